"""The evaluation sets that `truegold decontaminate` knows by name, and how to open whatever it is pointed at.

"math500"                    the test split of HuggingFaceH4/MATH-500, streamed from the hub
"evals/mine.jsonl"           a file
"owner/name:subset@split"    any other set of the hub; subset and split (`test` where not given) may be left out
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from truegold.pipeline.config.sources import HubSource
from truegold.pipeline.ingest.hub import open_hub
from truegold.pipeline.ingest.problem_batches import Batch, ProblemColumns, problems_of, read_problems
from truegold.verifiers import InputError


@dataclass(frozen=True)
class EvalSet:
    """An evaluation set on the hub."""

    name: str
    """The hub name."""
    subset: str | None = None
    """The hub's configuration name, where it has several."""
    split: str = "test"
    """The split that models are evaluated on."""
    columns: ProblemColumns = field(default_factory=ProblemColumns)
    """Columns that have other names than those usually looked for."""


EVAL_SETS = {
    "aime24": EvalSet("HuggingFaceH4/aime_2024", split="train"),
    "aime25": EvalSet("math-ai/aime25"),
    "amc23": EvalSet("AI-MO/aimo-validation-amc", split="train"),
    "gpqa": EvalSet("Idavidrein/gpqa", "gpqa_diamond", "train", ProblemColumns("Question", "Correct Answer")),
    "gsm8k": EvalSet("openai/gsm8k", "main"),
    "gsm8k-platinum": EvalSet("madrylab/gsm8k-platinum", "main"),
    "humaneval": EvalSet("openai/openai_humaneval"),
    "math500": EvalSet("HuggingFaceH4/MATH-500"),
    "mbpp": EvalSet("google-research-datasets/mbpp", "full"),
    "mmlu": EvalSet("cais/mmlu", "all"),
}

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?::(?P<subset>[\w.-]+))?(?:@(?P<split>[\w.-]+))?")


def read_eval_set(spec: str, columns: ProblemColumns) -> Iterator[Batch]:
    """Return the problems of a known set, a file, or a set of the hub, in batches.

    Columns that are not named are known or go by their usual names. Raises InputError where there is no such set or
    file, SetupError where the hub is needed and cannot be reached.
    """
    known = EVAL_SETS.get(spec)
    path = Path(spec).expanduser()
    if known is None and not path.exists() and (match := _HUB_NAME.fullmatch(spec)) and not path.suffix:
        known = EvalSet(match["name"], match["subset"], match["split"] or "test")
    if known is not None:
        source = open_hub(HubSource(name=known.name, subset=known.subset, split=known.split))
        return problems_of(source, columns if columns != ProblemColumns() else known.columns)
    if not path.exists():
        names = ", ".join(EVAL_SETS)
        raise InputError(f"There is no evaluation set or file {spec}.", f"Known by name: {names}; or name a file.")
    return read_problems(path, columns)

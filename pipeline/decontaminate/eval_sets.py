"""Opens evaluation sets by a name, a file, a folder, or the name of a set on the hub.

"math500"                    the test split of HuggingFaceH4/MATH-500, streamed from the hub
"evals/mine.jsonl"           a file
"evals/saved@test"           a folder that `save_to_disk` wrote, and its split (by default `test`)
"owner/name:subset@split"    any other set of the hub; the subset is optional, and so is the split (by default `test`)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from truegold.pipeline.config.sources import HubSource
from truegold.pipeline.problems import Batch, ProblemColumns, problems_of, read_problems
from truegold.pipeline.sources.data_files import at_hand, check_file, is_within
from truegold.pipeline.sources.hub import open_hub
from truegold.verifiers import InputError
from truegold.verifiers.user_code import did_you_mean, near_path

_HUB_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?::(?P<subset>[\w.-]+))?(?:@(?P<split>[\w.-]+))?")


@dataclass(frozen=True)
class EvalSet:
    """An evaluation set on the hub."""

    name: str
    """The hub name."""
    subset: str | None = None
    """The hub's configuration name, if the set has several."""
    split: str = "test"
    """The split that models are evaluated on."""
    columns: ProblemColumns = field(default_factory=ProblemColumns)
    """The known columns of the set. Other columns are guessed."""


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

FORMS = (
    f"Known by name: {', '.join(EVAL_SETS)}; else name a file, or a set of the hub as owner/name:subset@split, where "
    "subset and split may be left out"
)
"""The spellings of an evaluation set."""


def find_local(spec: str) -> Path | None:
    """Return the file or folder of an evaluation set, or None if it is on the hub.

    Raises InputError if there is no such set or file, or the file cannot be read.
    """
    if not spec.strip():
        raise InputError("The name of an evaluation set is empty.", f"{FORMS}.")
    path = _split_folder(spec)[0]
    if spec in EVAL_SETS or (not path.exists() and not path.suffix and _HUB_NAME.fullmatch(spec)):
        return None
    if not path.exists():
        near = _right_order(spec) or did_you_mean(spec, EVAL_SETS) or near_path(path)
        raise InputError(f"There is no evaluation set or file {spec}.", f"{near + ' ' if near else ''}{FORMS}.")
    if path.is_file():
        check_file(path)
    return path


def check_apart(data: Path, against: Iterable[str]) -> None:
    """Raise InputError if an evaluation set has all rows of the data, which would all be dropped."""
    for spec in against:
        path = find_local(spec)
        if path is not None and path.is_file() and is_within(data, [path]):
            raise InputError(
                f"The evaluation set {spec} has all rows of {data}, and every row would be dropped.",
                "Name the set that models are evaluated on.",
            )


def _right_order(spec: str) -> str | None:
    """Return the hint "Did you mean ...?" for `owner/name@split:subset`, or None."""
    match = re.fullmatch(r"([\w.-]+/[\w.-]+)@([\w.-]+):([\w.-]+)", spec)
    return f"Did you mean {f'{match[1]}:{match[3]}@{match[2]}'!r}?" if match is not None else None


def read_eval_set(spec: str, columns: ProblemColumns) -> Iterator[Batch]:
    """Return the problems of a known set, a file, a folder, or a set of the hub, in batches.

    `columns` names columns. Others are known for the set, or guessed. Raises InputError if there is no such set or
    file, and SetupError if the hub is needed and cannot be reached.
    """
    path = find_local(spec)
    if path is not None and path.is_file():
        return read_problems(path, columns)
    if path is not None:
        return problems_of(open_hub(HubSource(name=str(path), split=_split_folder(spec)[1])), columns)
    if (known := EVAL_SETS.get(spec)) is None:
        match = _HUB_NAME.fullmatch(spec)
        assert match is not None  # `find_local` raises for other names.
        known = EvalSet(match["name"], match["subset"], match["split"] or "test")
    source = open_hub(HubSource(name=known.name, subset=known.subset, split=known.split))
    prompt, gold = columns.prompt or known.columns.prompt, columns.gold or known.columns.gold
    return problems_of(source, replace(columns, prompt=prompt, gold=gold))


def _split_folder(spec: str) -> tuple[Path, str]:
    """Split `folder@split` into its path and its split."""
    path = at_hand(Path(spec).expanduser())
    folder, at_sign, split = spec.rpartition("@")
    if at_sign and folder and not path.exists() and Path(folder).expanduser().is_dir():
        return Path(folder).expanduser(), split
    return path, "test"

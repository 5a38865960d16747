r"""Tells which column of a file is which by its name: the names that people use, in one table for every command.

    [{"problem_id": 7, "question": "Tom has ...", "ground_truth": "72", "response": "So \\boxed{72}"}]
    ->  id "problem_id", prompt "question", gold "ground_truth", response "response"

A column with nothing but nulls in the sample records counts only where no other one fits. Whole shapes of data sets,
such as those of programs with their tests, are in `presets`; what is not a data set of problems has its names here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from truegold.pipeline.config.sources import ColumnSpec
from truegold.pipeline.sources.columns import MISSING, Column, last_boxed
from truegold.pipeline.sources.gold_columns import gold_texts

Role = Literal["prompt", "gold", "solution", "id", "response", "extracted", "system"]

NAMES: dict[Role, tuple[str, ...]] = {
    "prompt": (
        *("prompt", "question", "problem", "instruction", "input", "text", "content", "original_text"),
        *("题目", "问题"),
    ),
    "gold": (
        *("gold", "ground_truth", "reward_model.ground_truth", "answer", "final_answer", "label", "target"),
        *("答案", "标准答案"),
    ),
    "solution": ("solution", "rationale", "worked_solution", "解析", "解答"),
    "id": (
        *("id", "ID", "_id", "unique_id", "uuid", "task_id", "question_id", "problem_id", "item_id", "item", "idx"),
        "编号",
    ),
    "response": ("response", "completion", "generation", "text", "回答"),
    "extracted": ("answer", "extracted", "prediction"),
    "system": ("system", "model", "generator"),
}
"""For each role the names most often used, the surest first. Files of samples have `extracted`, what a system answered,
and `system`, which system it was."""

GOLDS_COLUMNS = ("golds", "accepted_golds", "accepted_answers", "acceptable_answers")
"""Columns with a list of accepted golds, any of which is right."""

CHOICE_COLUMNS = ("options", "choices")
"""Where one of these columns holds something, the question alone is not the problem."""

FINAL_MARK = "####"
"""It stands before the answer at the end of GSM8K's solutions."""

SHOWN_DEPTH = 3
"""An error shows structs within structs down to here."""

SHOWN_NAMES = 40
"""An error lists this many columns at most."""


def find_column(role: Role, samples: Sequence[Mapping[str, Any]], exclude: Iterable[str] = ()) -> str | None:
    """Return the name of the column with this role in the sample records, or None where there is none."""
    names = [name for name in NAMES[role] if name not in exclude]
    for empty in ((MISSING, None), (MISSING,)):
        for name in names:
            column = Column(name)
            if any(column(values) not in empty for values in samples):
                return name
    return None


def gold_spec(name: str, samples: Sequence[Mapping[str, Any]]) -> ColumnSpec:
    """Return how to take gold out of this column: after `####` where half of its values have that, else as it is."""
    column = Column(name)
    texts = [text for values in samples for text in gold_texts(column(values))]
    marked = sum(FINAL_MARK in text for text in texts)
    return ColumnSpec(column=name, extract=f"after {FINAL_MARK}" if marked and 2 * marked >= len(texts) else None)


def boxed_gold_spec(solution: str, samples: Sequence[Mapping[str, Any]]) -> ColumnSpec | None:
    r"""Return how to take gold out of worked solutions: the last \boxed{}; None where no solution has one."""
    column = Column(solution)
    if any(last_boxed(text) for values in samples for text in gold_texts(column(values))):
        return ColumnSpec(column=solution, extract="boxed")
    return None


def column_paths(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the columns, and behind a struct's name the paths of its parts: `q`, `q.text`."""
    paths: dict[str, None] = {}

    def add(values: Mapping[str, Any], prefix: str, depth: int) -> None:
        for name, value in values.items():
            paths[f"{prefix}{name}"] = None
            if isinstance(value, Mapping) and depth < SHOWN_DEPTH:
                add(value, f"{prefix}{name}.", depth + 1)

    for sample in samples:
        add(sample, "", 1)
    return list(paths)


def describe_columns(samples: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the columns that the sample records have, those of structs with their parts, for an error."""
    names = column_paths(samples)
    names = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    more = ", ..." if len(names) > SHOWN_NAMES else ""
    shown = ", ".join(name if name.isprintable() and name else repr(name) for name in names[:SHOWN_NAMES])
    return shown[:1000] + more if names else "no columns"

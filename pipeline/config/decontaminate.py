"""The configuration of stage `decontaminate`: the evaluation sets that no training row may stand in.

decontaminate:
  against:
    - math500                                  # a set that is known by name, streamed from the hub
    - openai/gsm8k:main@test                   # any other set of the hub: owner/name:subset@split
    - evals/aime.jsonl                         # a file, or a folder of `save_to_disk` (folder@split)
    - {set: evals/ours.csv, columns: {prompt: Question, gold: Key}}
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator, model_validator

from truegold.pipeline.config.base import StageConfig


class MatchKind(StrEnum):
    """How a row stands in an evaluation set, the surest first; the value is the kind in `matches.parquet`."""

    EXACT = "exact"
    OVERLAP = "overlap"
    REWORDED = "reworded"


class EvalColumns(StageConfig):
    """Which column of an evaluation set is which; what is left out is guessed by its name."""

    prompt: str | None = None
    """The problem."""
    gold: str | None = None
    """The reference answer."""
    id: str | None = None
    """The item's identifier, which matches name."""


class EvalSetConfig(StageConfig):
    """One evaluation set."""

    set: str = Field(min_length=1)
    """A name such as `math500`, a file, a folder, or `owner/name:subset@split` of the hub."""
    preset: str | None = None
    """The shape of its records, as in `data.preset`; by its columns where not given."""
    columns: EvalColumns = EvalColumns()
    """Columns that are not to be guessed."""

    @model_validator(mode="before")
    @classmethod
    def _name_stands_for_a_set(cls, value: Any) -> Any:
        return {"set": value} if isinstance(value, str) else value


class DecontaminateConfig(StageConfig):
    """Training rows that stand in an evaluation set are dropped. Held-out rows stay: nothing is trained on them."""

    against: tuple[EvalSetConfig, ...] = Field(min_length=1)
    """The evaluation sets."""
    drop: tuple[MatchKind, ...] = tuple(MatchKind)
    """The kinds of matches that drop a row. A row of another kind stays, and the ledger says what it matches."""

    @field_validator("against", mode="before")
    @classmethod
    def _one_set_needs_no_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str | dict) else value

    @field_validator("against")
    @classmethod
    def _are_different(cls, value: tuple[EvalSetConfig, ...]) -> tuple[EvalSetConfig, ...]:
        names = [entry.set for entry in value]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(repeated)} stands there more than once")
        return value

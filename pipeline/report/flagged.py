"""How many rows are flagged, for what reasons, and how many are held back by it; and what a flag's confidence means."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from truegold.pipeline.tables.reasons import SUSPECT_GOLD
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles


@dataclass(frozen=True)
class ReasonCount:
    """How many rows are flagged for a reason, and how many of them it holds back."""

    reason: str
    rows: int
    blocking: int


@dataclass(frozen=True)
class Flagged:
    """The flagged rows of a run."""

    rows: int
    held: int
    """Those of them that a flag holds back."""
    reasons: tuple[ReasonCount, ...]


def count_flagged(files: RunFiles) -> Flagged | None:
    """Return the counts of flagged rows; None where the run has no flags table yet."""
    flags = files.flags(after_training=True)
    if flags is None:
        return None
    rows = flags.group_by(KEY).agg(pl.col("blocks").any())
    total, held = rows.select(pl.len(), pl.col("blocks").sum()).collect(engine="streaming").row(0)
    return Flagged(total, held, _reasons(flags))


def describe_confidence(reason: str, confidence: float) -> str:
    """Return the confidence of a flag in words: of samples it is their agreement, which is no probability."""
    if reason == SUSPECT_GOLD:
        return f"{confidence:.0%} of samples agree"
    return f"confidence {confidence:.0%}"


def describe_suspicion(suspicion: float) -> str:
    """Return the probability that a label is at fault in words."""
    return f"label wrong with probability {suspicion:.0%}"


def _reasons(flags: pl.LazyFrame) -> tuple[ReasonCount, ...]:
    rows = flags.group_by(*KEY, "reason").agg(pl.col("blocks").any())
    counted = rows.group_by("reason").agg(pl.len(), pl.col("blocks").sum().alias("blocking"))
    ordered = counted.sort(["len", "reason"], descending=[True, False]).collect(engine="streaming")
    return tuple(ReasonCount(*row) for row in ordered.iter_rows())

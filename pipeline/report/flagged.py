"""The flagged rows a reviewer should see, the most suspicious first: those held back, then by confidence.

A row that is flagged twice is shown once. Only the rows shown are read in full; all flags stay in the `flags.parquet`
tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE
from truegold.pipeline.profile.pass_rates import SUSPECT_GOLD
from truegold.pipeline.report.run_files import Fields, RunFiles, fetch
from truegold.pipeline.rows import KEY, RowKey, group_by_row, row_key
from truegold.pipeline.running.stage_table import ROW_STAGES

SAMPLES_SHOWN = 3

TEXT_STAGES = ("profile", "flag", "verify_gold", "dedup")
"""The stages where a flagged row's text is looked up: first after a reviewer's fix, then as the flags saw it."""


@dataclass(frozen=True)
class Flag:
    """One flag of a row, with its evidence parsed."""

    reason: str
    detector: str
    confidence: float
    blocks: bool
    """Whether it holds the row back in this run."""
    evidence: Mapping[str, Any]
    suggestion: str | None

    @property
    def strength(self) -> str:
        """Its confidence in words."""
        return describe_confidence(self.reason, self.confidence)


@dataclass(frozen=True)
class Votes:
    """What the model's samples say of a row: passes, and the answer that most of them agree on."""

    n: int
    judged: int
    passes: int
    majority_answer: str | None
    majority: int
    """The samples that give it."""

    @property
    def majority_is_other(self) -> bool:
        """Whether the majority stands against the gold, as far as pass counts tell."""
        return self.majority_answer is not None and self.majority + self.passes <= self.n


@dataclass(frozen=True)
class FlaggedRow:
    """One flagged row as it is shown."""

    row: Fields
    flags: tuple[Flag, ...]
    votes: Votes | None
    samples: tuple[Fields, ...]
    outcome: str
    """Where the row ended, in words."""
    suspicion: float | None
    """The probability that the label is at fault, as all samples together tell it."""

    @property
    def blocks(self) -> bool:
        """Whether any flag holds the row back."""
        return any(flag.blocks for flag in self.flags)


@dataclass(frozen=True)
class ReasonCount:
    """How many rows are flagged for a reason, and how many of them it holds back."""

    reason: str
    rows: int
    blocking: int


@dataclass(frozen=True)
class Review:
    """The flagged rows of a run: how many there are, for what reasons, and those shown."""

    rows: int
    reasons: tuple[ReasonCount, ...]
    shown: tuple[FlaggedRow, ...]


def rank_flagged_rows(files: RunFiles, max_items: int) -> Review | None:
    """Return the `max_items` most suspicious rows and the counts of all, None where the run has no flags table yet."""
    flags = files.flags(after_training=True)
    if flags is None:
        return None
    per_row = flags.group_by(KEY).agg(
        pl.col("blocks").any(), pl.col("confidence").max(), pl.col("reason").unique().sort().alias("reasons")
    )
    ranking = ["blocks", "confidence", "source", "source_row", "id"]
    ranked = per_row.sort(ranking, descending=[True, True, False, False, False])
    top = ranked.head(max_items).collect(engine="streaming")
    total = int(per_row.select(pl.len()).collect(engine="streaming").item())
    return Review(total, _reasons(flags), _read_rows(files, flags, top))


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


def _read_rows(files: RunFiles, flags: pl.LazyFrame, top: pl.DataFrame) -> tuple[FlaggedRow, ...]:
    texts = _texts(files, top)
    columns = ["reason", "detector", "confidence", "blocks", "evidence", "suggestion"]
    flags_by_row = group_by_row(fetch(flags, top, columns))
    votes = _votes(files, top)
    samples = _samples(files, top)
    outcomes = _outcomes(files, top)
    suspicions = files.suspicions(top)
    return tuple(
        FlaggedRow(
            row=texts[key],
            flags=tuple(_flag(record) for record in sorted(flags_by_row[key], key=_suspicion_order)),
            votes=votes.get(key),
            samples=tuple(samples.get(key, ())),
            outcome=outcomes.get(key, "still in the data"),
            suspicion=suspicions.get(key),
        )
        for key in map(row_key, top.iter_rows(named=True))
    )


def _suspicion_order(flag: Fields) -> tuple[bool, float, str, str]:
    return not flag["blocks"], -flag["confidence"], flag["reason"], flag["detector"]


def _flag(record: Fields) -> Flag:
    evidence = orjson.loads(record["evidence"] or "{}")
    shown = evidence if isinstance(evidence, dict) else {"evidence": evidence}
    return Flag(
        record["reason"], record["detector"], record["confidence"], record["blocks"], shown, record["suggestion"]
    )


def _texts(files: RunFiles, top: pl.DataFrame) -> dict[RowKey, Fields]:
    texts: dict[RowKey, Fields] = {}
    missing = top
    for _, table in files.tables("rows.parquet", TEXT_STAGES):
        texts |= {row_key(row): row for row in fetch(table, missing, ["prompt", "gold", "solution", "split"])}
        missing = missing.filter([row_key(row) not in texts for row in missing.iter_rows(named=True)])
    return texts


def _votes(files: RunFiles, top: pl.DataFrame) -> dict[RowKey, Votes]:
    profile = files.table("profile", "profile.parquet")
    if profile is None:
        return {}
    columns = ["n", "judged", "passes", "majority_answer", "majority_agreement"]
    return {
        row_key(row): Votes(
            row["n"], row["judged"], row["passes"], row["majority_answer"], round(row["majority_agreement"] * row["n"])
        )
        for row in fetch(profile, top, columns)
    }


def _samples(files: RunFiles, top: pl.DataFrame) -> dict[RowKey, list[Fields]]:
    samples = files.table("profile", "samples.parquet")
    if samples is None:
        return {}
    few = samples.filter(pl.col("sample") < SAMPLES_SHOWN)
    shown = fetch(few, top, ["sample", "completion", "finish_reason", "score", "reason", "extracted"])
    return group_by_row(sorted(shown, key=lambda sample: sample["sample"]))


def _outcomes(files: RunFiles, top: pl.DataFrame) -> dict[RowKey, str]:
    """Return where the rows ended, in words; rows that are still in the data are left out."""
    outcomes: dict[RowKey, str] = {}
    for stage, table in files.tables(DROPPED_FILE, (*ROW_STAGES, "select")):
        for row in fetch(table, top, ["drop_reason"]):
            outcomes[row_key(row)] = f"left at {stage}: {row['drop_reason']}"
    for name, words in (("selected", "selected for training"), ("heldout", "held out for evaluation")):
        for _, table in files.tables(f"{name}.parquet", ("select",)):
            outcomes |= {row_key(row): words for row in fetch(table, top, [])}
    return outcomes

"""The flagged rows a reviewer should see, the most suspicious first: those held back, then by confidence.

A row flagged twice is one item. Only the items shown are read in full; all flags stay in the `flags.parquet` tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE
from truegold.pipeline.report.run_files import KEY, ROW_STAGES, Key, RunFiles, fetch, key_of
from truegold.pipeline.rows import Row

SAMPLES_SHOWN = 3

TEXT_STAGES = ("profile", "flag", "verify_gold", "dedup")
"""Where a flagged row's text is looked up: after a reviewer's fix first, then as the flags saw it."""


@dataclass(frozen=True)
class Flag:
    reason: str
    detector: str
    confidence: float
    blocks: bool
    evidence: Mapping[str, Any]
    suggestion: str | None


@dataclass(frozen=True)
class Votes:
    """What the model's samples say: passes, and the answer that most of them agree on."""

    n: int
    judged: int
    passes: int
    majority_answer: str | None
    majority: int

    @property
    def majority_is_other(self) -> bool:
        """Whether the majority stands against the gold, as far as pass counts tell."""
        return self.majority_answer is not None and self.majority + self.passes <= self.n


@dataclass(frozen=True)
class Item:
    """One flagged row."""

    row: Row
    flags: tuple[Flag, ...]
    votes: Votes | None
    samples: tuple[Row, ...]
    outcome: str

    @property
    def blocks(self) -> bool:
        return any(flag.blocks for flag in self.flags)


@dataclass(frozen=True)
class ReasonCount:
    reason: str
    rows: int
    blocking: int


@dataclass(frozen=True)
class Review:
    rows: int
    reasons: tuple[ReasonCount, ...]
    items: tuple[Item, ...]


def review(files: RunFiles, max_items: int) -> Review | None:
    """None where the run has no flags table yet."""
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
    return Review(total, _reasons(flags), _items(files, flags, top))


def _reasons(flags: pl.LazyFrame) -> tuple[ReasonCount, ...]:
    rows = flags.group_by(*KEY, "reason").agg(pl.col("blocks").any())
    counted = rows.group_by("reason").agg(pl.len(), pl.col("blocks").sum().alias("blocking"))
    ordered = counted.sort(["len", "reason"], descending=[True, False]).collect(engine="streaming")
    return tuple(ReasonCount(*row) for row in ordered.iter_rows())


def _items(files: RunFiles, flags: pl.LazyFrame, top: pl.DataFrame) -> tuple[Item, ...]:
    texts = _texts(files, top)
    own_flags = _group(fetch(flags, top, ["reason", "detector", "confidence", "blocks", "evidence", "suggestion"]))
    votes = _votes(files, top)
    samples = _samples(files, top)
    outcomes = _outcomes(files, top)
    items = []
    for row in top.iter_rows(named=True):
        key = key_of(row)
        found = sorted(
            own_flags[key], key=lambda flag: (not flag["blocks"], -flag["confidence"], flag["reason"], flag["detector"])
        )
        items.append(
            Item(
                row=texts[key],
                flags=tuple(_flag(flag) for flag in found),
                votes=votes.get(key),
                samples=tuple(samples.get(key, ())),
                outcome=outcomes.get(key, "still in the data"),
            )
        )
    return tuple(items)


def _flag(row: Row) -> Flag:
    evidence = orjson.loads(row["evidence"] or "{}")
    shown = evidence if isinstance(evidence, dict) else {"evidence": evidence}
    return Flag(row["reason"], row["detector"], row["confidence"], row["blocks"], shown, row["suggestion"])


def _texts(files: RunFiles, top: pl.DataFrame) -> dict[Key, Row]:
    texts: dict[Key, Row] = {}
    missing = top
    for _, table in files.tables("rows.parquet", TEXT_STAGES):
        found = fetch(table, missing, ["prompt", "gold", "solution", "split"])
        texts |= {key_of(row): row for row in found}
        missing = missing.filter([key_of(row) not in texts for row in missing.iter_rows(named=True)])
    return texts


def _votes(files: RunFiles, top: pl.DataFrame) -> dict[Key, Votes]:
    profile = files.table("profile", "profile.parquet")
    if profile is None:
        return {}
    columns = ["n", "judged", "passes", "majority_answer", "majority_agreement"]
    return {
        key_of(row): Votes(
            row["n"], row["judged"], row["passes"], row["majority_answer"], round(row["majority_agreement"] * row["n"])
        )
        for row in fetch(profile, top, columns)
    }


def _samples(files: RunFiles, top: pl.DataFrame) -> dict[Key, list[Row]]:
    samples = files.table("profile", "samples.parquet")
    if samples is None:
        return {}
    few = samples.filter(pl.col("sample") < SAMPLES_SHOWN)
    found = fetch(few, top, ["sample", "completion", "finish_reason", "score", "reason", "extracted"])
    return _group(sorted(found, key=lambda row: row["sample"]))


def _outcomes(files: RunFiles, top: pl.DataFrame) -> dict[Key, str]:
    """Where the rows ended, in words."""
    outcomes: dict[Key, str] = {}
    for stage, table in files.tables(DROPPED_FILE, (*ROW_STAGES, "select")):
        for row in fetch(table, top, ["drop_reason"]):
            outcomes[key_of(row)] = f"left at {stage}: {row['drop_reason']}"
    for name, words in (("selected", "selected for training"), ("heldout", "held out for evaluation")):
        for _, table in files.tables(f"{name}.parquet", ("select",)):
            outcomes |= {key_of(row): words for row in fetch(table, top, [])}
    return outcomes


def _group(rows: Iterable[Row]) -> dict[Key, list[Row]]:
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    return groups

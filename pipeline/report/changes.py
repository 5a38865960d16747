"""How often rows were dropped, edited and rejected, by stage and reason. The rows are in the page's table."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from truegold.pipeline.accounting.accounting import count_rejects
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.tables.run_files import RunFiles


@dataclass(frozen=True)
class Drops:
    """The rows that one stage dropped for one reason."""

    stage: str
    reason: str
    rows: int


@dataclass(frozen=True)
class Edits:
    """The edits that one stage made in one column for one reason."""

    stage: str
    reason: str
    column: str
    edits: int


@dataclass(frozen=True)
class Rejects:
    """The records of one reason that never became rows."""

    reason: str
    records: int


@dataclass(frozen=True)
class Changes:
    """What a run dropped, edited and rejected."""

    drops: tuple[Drops, ...]
    edits: tuple[Edits, ...]
    rejects: tuple[Rejects, ...]


def count_changes(files: RunFiles) -> Changes:
    """Count the changes of all stages, the most frequent of each stage first."""
    drops = [drop for stage, table in files.tables(DROPPED_FILE) for drop in _drops(stage, table)]
    edits = [edit for stage, ledger in files.tables(LEDGER_FILE) for edit in _edits(stage, ledger)]
    rejects = count_rejects(files.path("ingest", "rejects.jsonl"))
    return Changes(tuple(drops), tuple(edits), tuple(Rejects(*count) for count in rejects.items()))


def _drops(stage: str, dropped: pl.LazyFrame) -> list[Drops]:
    counted = dropped.group_by("drop_reason").agg(pl.len()).sort("len", "drop_reason", descending=[True, False])
    return [Drops(stage, reason, count) for reason, count in counted.collect(engine="streaming").iter_rows()]


def _edits(stage: str, ledger: pl.LazyFrame) -> list[Edits]:
    records = ledger.filter(pl.col("action") == "edit").with_columns(
        column=pl.col("evidence").str.json_path_match("$.column").fill_null("")
    )
    counted = records.group_by("reason", "column").agg(pl.len())
    ordered = counted.sort("len", "reason", "column", descending=[True, False, False]).collect(engine="streaming")
    return [Edits(stage, reason, column, count) for reason, column, count in ordered.iter_rows()]

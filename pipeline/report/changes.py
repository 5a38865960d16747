"""What was dropped, edited and rejected, by stage and reason, each with examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.report.run_files import Fields, RunFiles, fetch
from truegold.pipeline.rows import KEY, RowKey, row_key

EXAMPLES = 20
"""How many examples there are of each stage and reason, in the order of the data."""


@dataclass(frozen=True)
class Drops:
    """The rows that one stage dropped for one reason."""

    stage: str
    reason: str
    rows: int
    examples: tuple[Fields, ...]
    """Rows with the `evidence` of their drop."""


@dataclass(frozen=True)
class Edits:
    """The edits that one stage made in one column for one reason."""

    stage: str
    reason: str
    column: str
    edits: int
    example: Fields
    """The ledger's `before` and `after` of the first."""


@dataclass(frozen=True)
class Rejects:
    """The records of one reason that never became rows."""

    reason: str
    records: int
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changes:
    """What a run dropped, edited and rejected."""

    drops: tuple[Drops, ...]
    edits: tuple[Edits, ...]
    rejects: tuple[Rejects, ...]


def gather_changes(files: RunFiles, max_items: int) -> Changes:
    """Gather the changes of all stages; `max_items` bounds the dropped rows that are examples."""
    drops: list[Drops] = []
    for stage, table in files.tables(DROPPED_FILE):
        room = max_items - sum(len(drop.examples) for drop in drops)
        drops += _drops(files, stage, table, room)
    edits = [edit for stage, ledger in files.tables(LEDGER_FILE) for edit in _edits(stage, ledger)]
    return Changes(tuple(drops), tuple(edits), _rejects(files, max_items))


def _drops(files: RunFiles, stage: str, dropped: pl.LazyFrame, room: int) -> list[Drops]:
    counted = dropped.group_by("drop_reason").agg(pl.len()).sort("len", "drop_reason", descending=[True, False])
    drops = []
    for reason, count in counted.collect(engine="streaming").iter_rows():
        rows = dropped.filter(pl.col("drop_reason") == reason).select(*KEY, "prompt", "gold", "split")
        examples = rows.head(min(EXAMPLES, max(room, 0))).collect()
        room -= examples.height
        evidence = _evidence(files, stage, reason, examples)
        shown = tuple({**row, "evidence": evidence.get(row_key(row), {})} for row in examples.iter_rows(named=True))
        drops.append(Drops(stage, reason, count, shown))
    return drops


def _evidence(files: RunFiles, stage: str, reason: str, examples: pl.DataFrame) -> dict[RowKey, Any]:
    ledger = files.table(stage, LEDGER_FILE)
    if ledger is None:
        return {}
    records = ledger.filter((pl.col("action") == "drop") & (pl.col("reason") == reason))
    return {row_key(row): orjson.loads(row["evidence"] or "{}") for row in fetch(records, examples, ["evidence"])}


def _edits(stage: str, ledger: pl.LazyFrame) -> list[Edits]:
    records = ledger.filter(pl.col("action") == "edit").with_columns(
        column=pl.col("evidence").str.json_path_match("$.column").fill_null("")
    )
    counted = records.group_by("reason", "column").agg(pl.len())
    ordered = counted.sort("len", "reason", "column", descending=[True, False, False]).collect(engine="streaming")
    edits = []
    for reason, column, count in ordered.iter_rows():
        alike = records.filter((pl.col("reason") == reason) & (pl.col("column") == column))
        example = alike.select(*KEY, "before", "after").head(1).collect().row(0, named=True)
        edits.append(Edits(stage, reason, column, count, example))
    return edits


def _rejects(files: RunFiles, max_items: int) -> tuple[Rejects, ...]:
    path = files.path("ingest", "rejects.jsonl")
    counts: dict[str, int] = {}
    examples: dict[str, list[Mapping[str, Any]]] = {}
    if path is not None:
        with path.open("rb") as lines:
            for line in lines:
                reject = orjson.loads(line)
                reason = reject["reason"]
                counts[reason] = counts.get(reason, 0) + 1
                if counts[reason] <= min(EXAMPLES, max_items):
                    examples.setdefault(reason, []).append(reject)
    return tuple(Rejects(reason, counts[reason], tuple(examples.get(reason, ()))) for reason in sorted(counts))

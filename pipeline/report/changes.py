"""What was dropped, edited and rejected, by stage and reason, each with examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.report.run_files import KEY, RunFiles, fetch, key_of
from truegold.pipeline.rows import Row

EXAMPLES = 20
"""Examples of each stage and reason, in the order of the data."""


@dataclass(frozen=True)
class Drops:
    """The rows of one stage and reason; each example is the row with its `evidence` parsed."""

    stage: str
    reason: str
    rows: int
    examples: tuple[Row, ...]


@dataclass(frozen=True)
class Edits:
    """The edits of one stage, reason and column, with the first of them."""

    stage: str
    reason: str
    column: str
    edits: int
    example: Row


@dataclass(frozen=True)
class Rejects:
    """The records of one reason that never became rows."""

    reason: str
    records: int
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changes:
    drops: tuple[Drops, ...]
    edits: tuple[Edits, ...]
    rejects: tuple[Rejects, ...]


def changes(files: RunFiles, max_items: int) -> Changes:
    """`max_items` bounds the dropped rows shown in all."""
    drops: list[Drops] = []
    left = max_items
    for stage, table in files.tables(DROPPED_FILE):
        for found in _drops(files, stage, table, left):
            drops.append(found)
            left -= len(found.examples)
    edits = [edit for stage, table in files.tables(LEDGER_FILE) for edit in _edits(stage, table)]
    return Changes(tuple(drops), tuple(edits), _rejects(files, max_items))


def _drops(files: RunFiles, stage: str, dropped: pl.LazyFrame, left: int) -> list[Drops]:
    counted = dropped.group_by("drop_reason").agg(pl.len()).sort("len", "drop_reason", descending=[True, False])
    found = []
    for reason, rows in counted.collect(engine="streaming").iter_rows():
        own = dropped.filter(pl.col("drop_reason") == reason).select(*KEY, "prompt", "gold", "split")
        examples = own.head(min(EXAMPLES, max(left, 0))).collect()
        left -= examples.height
        evidence = _evidence(files, stage, reason, examples)
        shown = tuple({**row, "evidence": evidence.get(key_of(row), {})} for row in examples.iter_rows(named=True))
        found.append(Drops(stage, reason, rows, shown))
    return found


def _evidence(files: RunFiles, stage: str, reason: str, examples: pl.DataFrame) -> dict[tuple[str, str, int], Any]:
    ledger = files.table(stage, LEDGER_FILE)
    if ledger is None:
        return {}
    records = ledger.filter((pl.col("action") == "drop") & (pl.col("reason") == reason))
    return {key_of(row): orjson.loads(row["evidence"] or "{}") for row in fetch(records, examples, ["evidence"])}


def _edits(stage: str, ledger: pl.LazyFrame) -> list[Edits]:
    edits = ledger.filter(pl.col("action") == "edit").with_columns(
        column=pl.col("evidence").str.json_path_match("$.column").fill_null("")
    )
    counted = edits.group_by("reason", "column").agg(pl.len())
    ordered = counted.sort("len", "reason", "column", descending=[True, False, False]).collect(engine="streaming")
    found = []
    for reason, column, count in ordered.iter_rows():
        own = edits.filter((pl.col("reason") == reason) & (pl.col("column") == column))
        example = own.select(*KEY, "before", "after").head(1).collect().row(0, named=True)
        found.append(Edits(stage, reason, column, count, example))
    return found


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

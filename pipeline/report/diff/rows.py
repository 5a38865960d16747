"""The rows of a run with what became of each, and the pairs of the same row in two runs.

A row is known by its content (`id`), so that a renamed or reordered file changes nothing; rows of the same content are
paired in the order of source and row. What is left over in both runs at the same source and row was changed in the
data. Texts are compared as 64-bit hashes: a row takes some 200 bytes here, whatever its length, and two different texts
are taken for the same once in 10^19 comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.run_files import SOURCE_KEY, RunFiles

COLUMNS = ["prompt", "gold", "solution", "domain", "verifier", "verifier_args", "split"]
"""The columns that are compared."""
KEPT, SELECTED, HELDOUT = "kept", "selected", "held out"
_NULL = "\0null"


@dataclass(frozen=True)
class Pairs:
    """The rows of two runs; columns of the second run end in `_b`."""

    both: pl.DataFrame
    """Rows in both: id, outcome, SOURCE_KEY and COLUMNS (hashes, null where the row was dropped)."""
    only_first: pl.DataFrame
    only_second: pl.DataFrame
    """Rows in one run alone: id and outcome."""
    changed: pl.DataFrame
    """Rows of the same source and row with other content: id, outcome and hashes as they came in."""


def pair(first: RunFiles, second: RunFiles) -> Pairs:
    """Pair the rows of two runs, which must have the same stages."""
    first_rows, second_rows = _rows(first), _rows(second)
    both = first_rows.join(second_rows, on=["id", "copy"], how="inner", suffix="_b")
    first_rest = first_rows.join(second_rows, on=["id", "copy"], how="anti")
    second_rest = second_rows.join(first_rows, on=["id", "copy"], how="anti")
    changed = first_rest.join(second_rest, on=SOURCE_KEY, how="inner", suffix="_b")
    return Pairs(
        both,
        first_rest.join(changed, on=SOURCE_KEY, how="anti"),
        second_rest.join(changed, on=SOURCE_KEY, how="anti"),
        changed,
    )


def _rows(files: RunFiles) -> pl.DataFrame:
    """Return a row for each that came in: id, copy, SOURCE_KEY, outcome, hashes as it came in (`raw_`) and ended."""
    ingested = files.table("ingest", "rows.parquet")
    assert ingested is not None
    raw = [_hashed(name).alias(f"raw_{name}") for name in COLUMNS]
    rows = ingested.select("id", *SOURCE_KEY, *raw).collect(engine="streaming").sort(SOURCE_KEY)
    rows = rows.with_columns(copy=pl.int_range(pl.len(), dtype=pl.UInt32).over("id"))
    ends = pl.concat([*_drops(files), _left(files)]).collect(engine="streaming")
    return rows.join(ends, on=SOURCE_KEY, how="left").with_columns(pl.col("outcome").fill_null(KEPT))


def _hashed(name: str) -> pl.Expr:
    return pl.col(name).fill_null(_NULL).hash(seed=0)


def _drops(files: RunFiles) -> list[pl.LazyFrame]:
    empty = [pl.lit(None, dtype=pl.UInt64).alias(name) for name in COLUMNS]
    return [
        table.select(*SOURCE_KEY, (pl.lit(f"{stage}: ") + pl.col("drop_reason")).alias("outcome"), *empty)
        for stage, table in files.tables(DROPPED_FILE, (*ROW_STAGES, "select"))
    ]


def _left(files: RunFiles) -> pl.LazyFrame:
    """Return the rows that are in the data at the end."""
    if "select" in files:
        parts = [
            (SELECTED, files.table("select", "selected.parquet")),
            (HELDOUT, files.table("select", "heldout.parquet")),
        ]
    else:
        last = [stage for stage in ("ingest", *ROW_STAGES) if stage in files][-1]
        parts = [(KEPT, files.table(last, "rows.parquet"))]
    hashes = [_hashed(name) for name in COLUMNS]
    return pl.concat(
        [
            table.select(*SOURCE_KEY, pl.lit(outcome).alias("outcome"), *hashes)
            for outcome, table in parts
            if table is not None
        ]
    )

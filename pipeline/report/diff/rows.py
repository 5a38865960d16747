"""The rows of a run with what became of each, and the pairs of the same row in two runs.

A row is known by its content (`id`), so that a renamed or reordered file changes nothing; rows of the same content are
paired in the order of source and row. What is left over in both runs at the same source and row was changed in the
data. Texts are compared as 64-bit hashes: a row takes some 200 bytes here, whatever its length, and two different texts
are taken for the same once in 10^19 comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from truegold.pipeline.ledger import DROPPED_FILE
from truegold.pipeline.report.run_files import ROW_STAGES, RunFiles

PLACE = ["source", "source_row"]
"""What tells the rows of one run apart."""
COLUMNS = ["prompt", "gold", "solution", "domain", "verifier", "verifier_args", "split"]
"""The columns that are compared."""
KEPT, SELECTED, HELDOUT = "kept", "selected", "held out"
_NULL = "\0null"


@dataclass(frozen=True)
class Pairs:
    """Rows of two runs: in both, in one alone, and changed in the data (same place, other content).

    `both` has the columns id, outcome, outcome_b, PLACE, PLACE with _b, COLUMNS and COLUMNS with _b (hashes, null where
    the row was dropped); `only_first` and `only_second` id and outcome; `changed` id, id_b and the raw hashes.
    """

    both: pl.DataFrame
    only_first: pl.DataFrame
    only_second: pl.DataFrame
    changed: pl.DataFrame


def pair(first: RunFiles, second: RunFiles) -> Pairs:
    """Both runs must have the same stages."""
    one, other = _rows(first), _rows(second)
    both = one.join(other, on=["id", "copy"], how="inner", suffix="_b")
    rest_one = one.join(other, on=["id", "copy"], how="anti")
    rest_other = other.join(one, on=["id", "copy"], how="anti")
    changed = rest_one.join(rest_other, on=PLACE, how="inner", suffix="_b")
    return Pairs(
        both,
        rest_one.join(changed, on=PLACE, how="anti"),
        rest_other.join(changed, on=PLACE, how="anti"),
        changed,
    )


def _rows(files: RunFiles) -> pl.DataFrame:
    """One row for each row that came in: id, copy, PLACE, outcome, hashes as it came in (`raw_`) and as it ended."""
    ingested = files.table("ingest", "rows.parquet")
    assert ingested is not None
    raw = [_hashed(name).alias(f"raw_{name}") for name in COLUMNS]
    rows = ingested.select("id", *PLACE, *raw).collect(engine="streaming").sort(PLACE)
    rows = rows.with_columns(copy=pl.int_range(pl.len(), dtype=pl.UInt32).over("id"))
    ends = pl.concat([*_drops(files), _left(files)]).collect(engine="streaming")
    return rows.join(ends, on=PLACE, how="left").with_columns(pl.col("outcome").fill_null(KEPT))


def _hashed(name: str) -> pl.Expr:
    return pl.col(name).fill_null(_NULL).hash(seed=0)


def _drops(files: RunFiles) -> list[pl.LazyFrame]:
    empty = [pl.lit(None, dtype=pl.UInt64).alias(name) for name in COLUMNS]
    return [
        table.select(*PLACE, (pl.lit(f"{stage}: ") + pl.col("drop_reason")).alias("outcome"), *empty)
        for stage, table in files.tables(DROPPED_FILE, (*ROW_STAGES, "select"))
    ]


def _left(files: RunFiles) -> pl.LazyFrame:
    """The rows that are in the data at the end."""
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
            table.select(*PLACE, pl.lit(outcome).alias("outcome"), *hashes)
            for outcome, table in parts
            if table is not None
        ]
    )

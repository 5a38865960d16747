"""What the card says of decontamination: which evaluation sets the data was compared with, and what matched.

Without a table of matches it says "not run", apart from the run's own held-out rows, which `dedup` always compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl
import pyarrow.parquet as pq

from truegold.pipeline.decontaminate.file import AGAINST
from truegold.verifiers import InputError

COLUMNS = ("id", "against", "kind")


@dataclass(frozen=True)
class Matches:
    """The matches of one kind with one evaluation set."""

    against: str
    kind: str
    rows: int
    """The matching rows of the data."""
    in_set: int
    """Those of them that are still in the set."""


@dataclass(frozen=True)
class Decontamination:
    """What is known of the set's decontamination."""

    table: str | None
    """The file of matches, None where there is none."""
    sets: Mapping[str, int]
    """The evaluation sets that it was made from with their numbers of items; empty where it does not say."""
    matches: tuple[Matches, ...]
    leaked_heldout: int
    """The rows that were dropped because of a held-out one."""


def read_decontamination(table: Path | None, rows: list[Path], leaked_heldout: int) -> Decontamination:
    """Read the table of matches against the exported `rows`. InputError where it lacks a column."""
    if table is None:
        return Decontamination(None, {}, (), leaked_heldout)
    matches = pl.scan_parquet(table)
    if missing := set(COLUMNS) - set(matches.collect_schema().names()):
        raise InputError(
            f"{table} has no column {', '.join(sorted(missing))}.",
            "Give a matches.parquet of `truegold decontaminate`.",
        )
    matched = matches.select(pl.col("id").cast(pl.String), pl.col("against").cast(pl.String), "kind").unique()
    exported = pl.concat([pl.scan_parquet(path).select("id", "meta") for path in rows])
    source_ids = exported.select(pl.col("meta").str.json_path_match("$.source_id").alias("id")).drop_nulls()
    kept = matched.join(pl.concat([exported.select("id"), source_ids]).unique(), on="id", how="semi")
    counted = matched.group_by("against", "kind").agg(pl.len().alias("rows"))
    inside = kept.group_by("against", "kind").agg(pl.len().alias("in_set"))
    joined = counted.join(inside, on=["against", "kind"], how="left").with_columns(pl.col("in_set").fill_null(0))
    ordered = joined.sort("against", "kind").collect(engine="streaming")
    counts = tuple(Matches(*row) for row in ordered.iter_rows())
    return Decontamination(table.name, _compared_sets(table), counts, leaked_heldout)


def _compared_sets(table: Path) -> dict[str, int]:
    """Return the sets that the file's metadata names, whether they have matches or not."""
    sizes = (pq.read_schema(table).metadata or {}).get(AGAINST.encode())
    return {} if sizes is None else {str(name): int(size) for name, size in orjson.loads(sizes).items()}

"""What the card says of decontamination: which evaluation sets the data was compared with, and what was found.

Without a table of matches that is "not run", apart from the run's own held-out rows, which `dedup` always compares.
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
    """Matches with one evaluation set, of one kind: rows of the data in all, and those still in the set."""

    against: str
    kind: str
    rows: int
    in_set: int


@dataclass(frozen=True)
class Decontamination:
    """`table`: the file of matches, None where none was given. `sets`: what it was made from, with the number of items;
    empty where it does not say. `leaked_heldout`: rows dropped for a held-out one."""

    table: str | None
    sets: Mapping[str, int]
    matches: tuple[Matches, ...]
    leaked_heldout: int


def decontamination(table: Path | None, rows: list[Path], leaked_heldout: int) -> Decontamination:
    """InputError where the table of matches lacks a column."""
    if table is None:
        return Decontamination(None, {}, (), leaked_heldout)
    matches = pl.scan_parquet(table)
    if missing := set(COLUMNS) - set(matches.collect_schema().names()):
        raise InputError(
            f"{table} has no column {', '.join(sorted(missing))}.",
            "Give a matches.parquet of `truegold decontaminate`.",
        )
    found = matches.select(pl.col("id").cast(pl.String), pl.col("against").cast(pl.String), "kind").unique()
    exported = pl.concat([pl.scan_parquet(path).select("id", "meta") for path in rows])
    own = exported.select(pl.col("meta").str.json_path_match("$.source_id").alias("id")).drop_nulls()
    kept = found.join(pl.concat([exported.select("id"), own]).unique(), on="id", how="semi")
    counted = found.group_by("against", "kind").agg(pl.len().alias("rows"))
    inside = kept.group_by("against", "kind").agg(pl.len().alias("in_set"))
    joined = counted.join(inside, on=["against", "kind"], how="left").with_columns(pl.col("in_set").fill_null(0))
    ordered = joined.sort("against", "kind").collect(engine="streaming")
    matched = tuple(Matches(*row) for row in ordered.iter_rows())
    return Decontamination(table.name, _sets(table), matched, leaked_heldout)


def _sets(table: Path) -> dict[str, int]:
    """What the metadata of a file of matches names, matches or not."""
    told = (pq.read_schema(table).metadata or {}).get(AGAINST.encode())
    return {} if told is None else {str(name): int(items) for name, items in orjson.loads(told).items()}

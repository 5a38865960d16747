"""What the card says of decontamination: which evaluation sets the data was compared with, and what matched.

Without the stage `decontaminate` it says "not run", apart from the run's own held-out rows, which `dedup` always
compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truegold.pipeline.decontaminate.file import items_by_set


@dataclass(frozen=True)
class Matches:
    """The matches of one kind with one evaluation set."""

    against: str
    kind: str
    rows: int
    """The matching rows of the data."""
    in_train: int
    """Those of them that are still in the set to train on, because their kind does not drop them."""
    in_heldout: int
    """Those of them that are held out."""


@dataclass(frozen=True)
class Decontamination:
    """What is known of the set's decontamination."""

    is_run: bool
    """Whether the data was compared with evaluation sets at all."""
    sets: Mapping[str, int]
    """The evaluation sets with their numbers of items."""
    matches: tuple[Matches, ...]
    leaked_heldout: int
    """The rows that were dropped because of a held-out one."""


def read_decontamination(table: Path | None, rows: list[Path], leaked_heldout: int) -> Decontamination:
    """Read the run's table of matches, where it has one, against the exported `rows`."""
    if table is None:
        return Decontamination(False, {}, (), leaked_heldout)
    matched = pl.scan_parquet(table).select("id", "row", "against", "kind")
    exported = pl.concat([pl.scan_parquet(path).select("id", "split") for path in rows]).unique()
    by = ["against", "kind"]
    counted = matched.group_by(by).agg(rows=pl.col("row").n_unique())
    kept = (
        matched.join(exported, on="id")
        .group_by(by)
        .agg(
            in_train=pl.col("id").filter(pl.col("split") != "heldout").n_unique(),
            in_heldout=pl.col("id").filter(pl.col("split") == "heldout").n_unique(),
        )
    )
    ordered = counted.join(kept, on=by, how="left").fill_null(0).sort(by).collect(engine="streaming")
    counts = tuple(Matches(**row) for row in ordered.iter_rows(named=True))
    return Decontamination(True, items_by_set(table), counts, leaked_heldout)

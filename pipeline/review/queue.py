"""Which rows come before a reviewer, and in what order.

the most suspicious first      the page's own order: a reviewer who stops early has seen the worst
100 at random, seed 7          so that what is decided about them speaks for the others: precision of the flags
what ann has decided, blind    so that two independent words about a row can be compared: kappa
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import polars as pl

from truegold.pipeline.review.decisions import load_decisions
from truegold.pipeline.review.run import BEFORE_SETTLE, ReviewedRun
from truegold.pipeline.tables.rows import KEY, RowKey
from truegold.verifiers import InputError

SUSPICIOUS = "suspicious"
Population = Literal["flagged", "all"]


@dataclass(frozen=True)
class ReviewQueue:
    """The rows to be read."""

    drawn: str
    """How they were drawn, as decisions record it."""
    keys: tuple[RowKey, ...] | None
    """In their order; None for all rows with the most suspicious first."""
    blind: bool = False
    """Whether the reviewer may not see what others have decided."""


def suspicious_first() -> ReviewQueue:
    """Return the order of the page."""
    return ReviewQueue(SUSPICIOUS, None)


def draw_at_random(run: ReviewedRun, rows: int, seed: int, among: Population) -> ReviewQueue:
    """Return so many rows at random, of those with a flag or of all; a larger draw begins with a smaller one's rows."""
    population = run.rows.select(KEY)
    if among == "flagged":
        tables = [run.files.table(stage, "flags.parquet") for stage in (*BEFORE_SETTLE, "profile")]
        flagged = pl.concat([table.select(KEY) for table in tables if table is not None])
        population = population.join(flagged, on=KEY, how="semi")
    keys = _shuffle(population.collect().iter_rows(), seed)
    if not keys:
        raise InputError(f"No row of {run.run_dir} is flagged.", "Draw among all rows: --among all.")
    return ReviewQueue(f"random:{seed}", tuple(keys[:rows]))


def second_look(run: ReviewedRun, reviewer: str, seed: int) -> ReviewQueue:
    """Return the rows that a reviewer has decided about, in another order, to be decided without seeing how."""
    decided = {
        row_id
        for row_id, decisions in load_decisions(run.folder).items()
        if any(decision.reviewer == reviewer for decision in decisions)
    }
    ids = pl.Series(sorted(decided), dtype=pl.String)
    keys = _shuffle(run.rows.select(KEY).filter(pl.col("id").is_in(ids.implode())).collect().iter_rows(), seed)
    if not keys:
        raise InputError(
            f"{reviewer} has decided about no row of {run.run_dir}.", f"Look at the names of the files in {run.folder}."
        )
    return ReviewQueue(f"random:{seed}", tuple(keys), blind=True)


def _shuffle(keys: Iterable[tuple[str, ...]], seed: int) -> list[RowKey]:
    """Return one row of each content in an order that seed and content alone decide."""
    first_of_id: dict[str, RowKey] = {}
    for row_id, source, source_row in keys:
        first_of_id.setdefault(row_id, (row_id, source, int(source_row)))
    return sorted(first_of_id.values(), key=lambda key: hashlib.sha256(f"{seed}:{key[0]}".encode()).digest())

"""How many labels of the curated set are wrong: an estimate with its interval, or that there is none.

From `suspicion.parquet`, where each row has a probability s that its label is at fault: the expected share is the mean
of s over the n rows that have one. If the rows' faults are independent given s, their number is Poisson-binomial with
variance sum s (1 - s) (Wang 1993, "On the number of successes in independent trials"), and the interval is mean +-
1.96 sqrt(sum s (1 - s)) / n, cut at 0 and 1. It says nothing about how well s is calibrated.

Else from reviewers: of the rows without a flag that somebody looked at, the share that was corrected or thrown out,
with Wilson's interval. Rows that a flag held back are left out: they are not in the set, unless a reviewer kept them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truegold.verifiers import InputError
from truegold.verifiers.rates import wilson_interval

Z = 1.96
"""For an interval of 95 %."""


@dataclass(frozen=True)
class LabelErrors:
    """The estimated share of wrong labels. `known`: rows it rests on. rate is None where nothing is known."""

    method: str
    known: int
    rate: float | None = None
    low: float | None = None
    high: float | None = None


NOT_ESTIMATED = LabelErrors("not estimated", 0)


def from_suspicion(suspicion: Path, rows: list[Path]) -> LabelErrors:
    """The expected share over the exported rows that have a suspicion. InputError where the table lacks a column."""
    table = pl.scan_parquet(suspicion)
    columns = set(table.collect_schema().names())
    if missing := {"suspicion", "source", "source_row"} - columns:
        raise InputError(
            f"{suspicion} has no column {', '.join(sorted(missing))}.", "Give a suspicion.parquet of `truegold flag`."
        )
    keys = pl.concat([pl.scan_parquet(path).select("source", "source_row") for path in rows])
    known = table.filter(pl.col("suspicion").is_not_null()).join(keys, on=["source", "source_row"], how="semi")
    share = pl.col("suspicion")
    found = known.select(n=pl.len(), mean=share.mean(), variance=(share * (1 - share)).sum())
    row = found.collect(engine="streaming").row(0, named=True)
    if not row["n"]:
        return NOT_ESTIMATED
    margin = Z * math.sqrt(row["variance"]) / row["n"]
    return LabelErrors(
        "suspicions from samples", row["n"], row["mean"], max(0.0, row["mean"] - margin), min(1.0, row["mean"] + margin)
    )


def from_reviews(ledger: pl.LazyFrame | None) -> LabelErrors:
    """From the ledger of `settle`: reviewers' words about rows that no flag had held back."""
    if ledger is None:
        return NOT_ESTIMATED
    words = ledger.filter(pl.col("reason").is_in(["reviewer_keep", "reviewer_fix", "reviewer_drop"]))
    unflagged = words.filter(pl.col("evidence").str.json_path_match("$.flags[0]").is_null())
    wrong = pl.col("reason") != "reviewer_keep"
    count, faulty = unflagged.select(pl.len(), wrong.sum().alias("wrong")).collect(engine="streaming").row(0)
    if not count:
        return NOT_ESTIMATED
    low, high = wilson_interval(faulty, count)
    return LabelErrors("reviewers' decisions on rows without a flag", count, faulty / count, low, high)

"""Estimates how many labels of the curated set are wrong, with an interval; or says that nothing tells.

`suspicion.parquet` gives rows a probability s that the label is at fault: the expected share is the mean of s over the
n rows that have one. If the rows' faults are independent given s, their number is Poisson-binomial with variance
sum s (1 - s) (Wang 1993, "On the number of successes in independent trials"), and the interval is mean +- 1.96
sqrt(sum s (1 - s)) / n, cut at 0 and 1. It says nothing about how well s is calibrated.

Where there is none, reviewers tell: the share of rows that they corrected or threw out of those they looked at and that
had no flag, with Wilson's interval. Rows that a flag held back are left out: they are not in the set, unless a reviewer
kept them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from truegold.verifiers import InputError
from truegold.verifiers.rates import Z_95, wilson_interval


@dataclass(frozen=True)
class LabelErrors:
    """The estimated share of wrong labels."""

    method: str
    known: int
    """The rows that it rests on."""
    rate: float | None = None
    """None, like the ends of its interval, where nothing is known."""
    low: float | None = None
    high: float | None = None


NOT_ESTIMATED = LabelErrors("not estimated", 0)


def estimate_from_suspicion(suspicion: Path, rows: list[Path]) -> LabelErrors:
    """Return the expected share over the exported rows that have a suspicion. InputError where a column is missing."""
    table = pl.scan_parquet(suspicion)
    columns = set(table.collect_schema().names())
    if missing := {"suspicion", "source", "source_row"} - columns:
        raise InputError(
            f"{suspicion} has no column {', '.join(sorted(missing))}.", "Give a suspicion.parquet of `truegold flag`."
        )
    keys = pl.concat([pl.scan_parquet(path).select("source", "source_row") for path in rows])
    known = table.filter(pl.col("suspicion").is_not_null()).join(keys, on=["source", "source_row"], how="semi")
    share = pl.col("suspicion")
    moments = known.select(pl.len(), share.mean().alias("mean"), (share * (1 - share)).sum().alias("variance"))
    n, mean, variance = moments.collect(engine="streaming").row(0)
    if not n:
        return NOT_ESTIMATED
    margin = Z_95 * math.sqrt(variance) / n
    return LabelErrors("suspicions from samples", n, mean, max(0.0, mean - margin), min(1.0, mean + margin))


def estimate_from_reviews(ledger: pl.LazyFrame | None) -> LabelErrors:
    """Return the share that reviewers found wrong of the rows without a flag, by the ledger of `settle`."""
    if ledger is None:
        return NOT_ESTIMATED
    decisions = ledger.filter(pl.col("reason").is_in(["reviewer_keep", "reviewer_fix", "reviewer_drop"]))
    unflagged = decisions.filter(pl.col("evidence").str.json_path_match("$.flags[0]").is_null())
    wrong = pl.col("reason") != "reviewer_keep"
    count, faulty = unflagged.select(pl.len(), wrong.sum().alias("wrong")).collect(engine="streaming").row(0)
    if not count:
        return NOT_ESTIMATED
    low, high = wilson_interval(faulty, count)
    return LabelErrors("reviewers' decisions on rows without a flag", count, faulty / count, low, high)

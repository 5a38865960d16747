"""What each filter did to the data besides making it smaller: how the rows that stayed differ from those that came.

    select    pass rate           .31 -> .38     +.29 deviations
    settle    domain geometry     12 % -> 8 %    -.14
    dedup     prompt, characters  181 -> 163     -.09

A filter that takes rows at random moves nothing but by chance. What has moved by more than that is listed, in standard
deviations of all rows that came, the most moved first. Held-out rows are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles

CHANCE = 4.0
"""Standard errors that a filter at random stays below: once in fifteen thousand it does not."""
LEAST_SHIFT = 0.05
"""A smaller shift, in standard deviations, is not listed however certain it is."""
FEWEST_ROWS = 30
"""A filter that drops or keeps fewer rows says nothing of a distribution."""

TEXT_LENGTHS = {"prompt": "prompt, characters", "solution": "solution, characters", "gold": "gold, characters"}
CATEGORIES = ("source", "domain", "verifier", "gold_kind", "script")

_INTEGER = r"^\s*[-+]?\d+\s*$"
_DECIMAL = r"^\s*[-+]?\d*\.\d+\s*$"
_LETTER = r"^\s*\(?[A-Ja-j]\)?\s*$"
_CHINESE = r"\p{Han}"


@dataclass(frozen=True)
class FilterShift:
    """How one property of the rows has moved in one stage."""

    stage: str
    feature: str
    """A number, such as `prompt, characters`, or a property with its value, such as `domain geometry`."""
    before: float
    after: float
    """The mean of a number, or the share of the rows that have the value."""
    is_share: bool
    deviations: float
    """What it moved by, in standard deviations of all rows that came."""


def measure_filter_shifts(files: RunFiles) -> list[FilterShift]:
    """Return what the filters of a run have moved, the most moved first."""
    rates = _expected_rates(files)
    moved: list[FilterShift] = []
    for stage in (*ROW_STAGES, "select"):
        kept = files.table(stage, "selected.parquet" if stage == "select" else "rows.parquet")
        dropped = files.table(stage, DROPPED_FILE)
        if kept is not None and dropped is not None:
            moved += _stage_shifts(stage, kept, dropped, rates)
    return sorted(moved, key=lambda shift: -abs(shift.deviations))


def _expected_rates(files: RunFiles) -> pl.LazyFrame | None:
    profile = files.table("profile", "profile.parquet")
    if profile is None:
        return None
    a, b = pl.col("posterior_a"), pl.col("posterior_b")
    return profile.select(*KEY, (a / (a + b)).alias("pass rate"))


def _stage_shifts(
    stage: str, kept: pl.LazyFrame, dropped: pl.LazyFrame, rates: pl.LazyFrame | None
) -> Iterator[FilterShift]:
    columns = [*KEY, "split", "prompt", "gold", "solution", "domain", "verifier"]
    both = [table.select(columns).with_columns(kept=pl.lit(value)) for table, value in ((kept, True), (dropped, False))]
    rows = pl.concat(both).filter(pl.col("split") != "heldout")
    numbers = list(TEXT_LENGTHS.values())
    if rates is not None:
        rows = rows.join(rates, on=KEY, how="left")
        numbers.append("pass rate")
    features = rows.select(
        "kept",
        *(pl.col(column).str.len_chars().cast(pl.Float64).alias(name) for column, name in TEXT_LENGTHS.items()),
        *(pl.col(name) for name in numbers if name == "pass rate"),
        "source",
        "domain",
        "verifier",
        gold_kind=_gold_kind(),
        script=pl.when(pl.col("prompt").str.contains(_CHINESE)).then(pl.lit("Chinese")).otherwise(pl.lit("other")),
    )
    counted = features.group_by("kept").agg(pl.len()).collect(engine="streaming")
    sizes = dict(counted.iter_rows())
    if min(sizes.get(True, 0), sizes.get(False, 0)) < FEWEST_ROWS:
        return
    for name in numbers:
        yield from _number_shift(stage, name, features)
    for name in CATEGORIES:
        yield from _share_shifts(stage, name, features, sizes[True] + sizes[False], sizes[True])


def _gold_kind() -> pl.Expr:
    gold = pl.col("gold")
    return (
        pl.when(gold.is_null())
        .then(pl.lit("none"))
        .when(gold.str.contains(_INTEGER))
        .then(pl.lit("integer"))
        .when(gold.str.contains(_DECIMAL))
        .then(pl.lit("decimal"))
        .when(gold.str.contains(_LETTER))
        .then(pl.lit("letter"))
        .when(gold.str.contains(r"\d"))
        .then(pl.lit("expression"))
        .otherwise(pl.lit("words"))
    )


def _number_shift(stage: str, name: str, features: pl.LazyFrame) -> Iterator[FilterShift]:
    value = pl.col(name)
    whole = value.filter("kept")
    moments = features.select(
        all=value.count(), kept=whole.count(), before=value.mean(), after=whole.mean(), deviation=value.std()
    ).collect(engine="streaming")
    row = moments.row(0, named=True)
    if row["deviation"] and row["after"] is not None:
        shift = (row["after"] - row["before"]) / row["deviation"]
        if _is_more_than_chance(shift, row["all"], row["kept"]):
            yield FilterShift(stage, name, row["before"], row["after"], is_share=False, deviations=shift)


def _share_shifts(stage: str, name: str, features: pl.LazyFrame, rows: int, kept: int) -> Iterator[FilterShift]:
    counts = features.group_by(name).agg(pl.len().alias("rows"), pl.col("kept").sum().alias("kept")).sort(name)
    for value, value_rows, value_kept in counts.collect(engine="streaming").iter_rows():
        before, after = value_rows / rows, value_kept / kept
        spread = math.sqrt(before * (1 - before))
        shift = (after - before) / spread if spread else 0.0
        if _is_more_than_chance(shift, rows, kept):
            feature = f"{name.replace('_', ' ')} {value}"
            yield FilterShift(stage, feature, before, after, is_share=True, deviations=shift)


def _is_more_than_chance(shift: float, rows: int, kept: int) -> bool:
    """Return whether a mean has moved, in deviations, by more than keeping `kept` of `rows` at random would move it."""
    error = math.sqrt((1 - kept / rows) / kept) if kept else math.inf
    return abs(shift) >= max(LEAST_SHIFT, CHANCE * error)

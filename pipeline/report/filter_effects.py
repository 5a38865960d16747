"""Measures the effects of stages on the rows: the edits, the flags, and how dropping rows changed their properties.

    stage     property            mean or share    change in standard deviations
    select    pass rate           .31 -> .38       +.29
    settle    domain geometry     12 % -> 8 %      -.14
    dedup     prompt, characters  181 -> 163       -.09

A change is listed only if it is larger than chance explains: larger than if the stage dropped rows at random. Standard
deviations are over all rows that entered the stage. Held-out rows are not counted.

The pass rate of a problem is the mean of its posterior (`rates`), because observed rates rise if rows are selected by
them. The standard deviation is that of observed rates, because posterior means vary little with few samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE, LEDGER_FILE
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles

CHANCE = 4.0
"""A change of fewer standard errors is not listed. Chance alone reaches this once in fifteen thousand cases."""
LEAST_SHIFT = 0.05
"""A change of fewer standard deviations is not listed."""
FEWEST_ROWS = 30
"""Changes are measured only if the stage dropped and kept at least this number of rows."""

PASS_RATE, OBSERVED = "pass rate", "observed pass rate"
TEXTS = ("prompt", "solution", "gold")
"""Columns whose lengths are compared."""
CATEGORIES = ("source", "domain", "verifier", "gold_kind", "script")
"""For each value of these properties, the share of rows is compared."""
GOLD_KINDS = {
    "integer": r"^\s*[-+]?\d+\s*$",
    "decimal": r"^\s*[-+]?\d*\.\d+\s*$",
    "letter": r"^\s*\(?[A-Ja-j]\)?\s*$",
    "expression": r"\d",
}
"""Patterns for kinds of golds, such as `-12`, `.5`, `(B)` and `3x+1`. The first match decides. Others are `words`."""


@dataclass(frozen=True)
class EditCount:
    """The number of edits that a stage made in a column for a reason."""

    stage: str
    reason: str
    column: str
    edits: int


def count_edits(files: RunFiles) -> tuple[EditCount, ...]:
    """Return the numbers of edits in the order of the stages, the most frequent of each stage first."""
    return tuple(edit for stage, ledger in files.tables(LEDGER_FILE) for edit in _count_stage_edits(stage, ledger))


def _count_stage_edits(stage: str, ledger: pl.LazyFrame) -> list[EditCount]:
    records = ledger.filter(pl.col("action") == "edit").with_columns(
        column=pl.col("evidence").str.json_path_match("$.column").fill_null("")
    )
    counted = records.group_by("reason", "column").agg(pl.len())
    ordered = counted.sort("len", "reason", "column", descending=[True, False, False]).collect(engine="streaming")
    return [EditCount(stage, reason, column, count) for reason, column, count in ordered.iter_rows()]


@dataclass(frozen=True)
class ReasonCount:
    """The number of rows that have a flag with this reason, and how many of these it holds back."""

    reason: str
    rows: int
    blocking: int


@dataclass(frozen=True)
class Flagged:
    """The numbers of flagged rows of a run."""

    rows: int
    held: int
    """The number of rows that a flag holds back."""
    reasons: tuple[ReasonCount, ...]


def count_flagged(files: RunFiles) -> Flagged | None:
    """Return the numbers of flagged rows, or None if the run has no flags yet."""
    if (flags := files.flags(after_training=True)) is None:
        return None
    rows = flags.group_by(KEY).agg(pl.col("blocks").any())
    total, held = rows.select(pl.len(), pl.col("blocks").sum()).collect(engine="streaming").row(0)
    by_reason = flags.group_by(*KEY, "reason").agg(pl.col("blocks").any())
    counted = by_reason.group_by("reason").agg(pl.len(), pl.col("blocks").sum().alias("blocking"))
    ordered = counted.sort(["len", "reason"], descending=[True, False]).collect(engine="streaming")
    return Flagged(total, held, tuple(ReasonCount(*row) for row in ordered.iter_rows()))


@dataclass(frozen=True)
class FilterShift:
    """The change of one property that a stage caused by dropping rows."""

    stage: str
    feature: str
    """The property: a number such as `prompt, characters`, or a value such as `domain geometry`."""
    before: float
    """The mean of the number, or the share of rows with the value, over all rows that entered the stage."""
    after: float
    """The mean or share over the kept rows."""
    is_share: bool
    deviations: float
    """The change in standard deviations over all rows that entered."""


def measure_filter_shifts(files: RunFiles) -> list[FilterShift]:
    """Return the changes in all stages of a run, the largest first."""
    moved: list[FilterShift] = []
    for stage in (*ROW_STAGES, "select"):
        kept = files.table(stage, "selected.parquet" if stage == "select" else "rows.parquet")
        dropped = files.table(stage, DROPPED_FILE)
        if kept is not None and dropped is not None:
            moved += _stage_shifts(stage, kept, dropped, files.table("profile", "profile.parquet"))
    return sorted(moved, key=lambda shift: -abs(shift.deviations))


def _stage_shifts(
    stage: str, kept: pl.LazyFrame, dropped: pl.LazyFrame, profile: pl.LazyFrame | None
) -> Iterator[FilterShift]:
    columns = [*KEY, "split", "prompt", "gold", "solution", "domain", "verifier"]
    both = [table.select(columns).with_columns(kept=pl.lit(value)) for table, value in ((kept, True), (dropped, False))]
    rows = pl.concat(both).filter(pl.col("split") != "heldout")
    numbers = {f"{column}, characters": pl.col(column).str.len_chars().cast(pl.Float64) for column in TEXTS}
    if profile is not None:
        numbers[PASS_RATE] = pl.col("expected_rate")
        rows = rows.join(profile.select(*KEY, "expected_rate", "pass_rate"), on=KEY, how="left")
    gold = pl.col("gold")
    kinds = [pl.when(gold.str.contains(pattern)).then(pl.lit(kind)) for kind, pattern in GOLD_KINDS.items()]
    features = rows.select(
        "kept",
        "source",
        "domain",
        "verifier",
        gold_kind=pl.coalesce(pl.when(gold.is_null()).then(pl.lit("none")), *kinds, pl.lit("words")),
        script=pl.when(pl.col("prompt").str.contains(r"\p{Han}")).then(pl.lit("Chinese")).otherwise(pl.lit("other")),
        **numbers,
        **({OBSERVED: pl.col("pass_rate")} if profile is not None else {}),
    )
    counted = features.group_by("kept").agg(pl.len()).collect(engine="streaming")
    sizes = dict(counted.iter_rows())
    if min(sizes.get(True, 0), sizes.get(False, 0)) < FEWEST_ROWS:
        return
    for name in numbers:
        yield from _number_shift(stage, name, features)
    for name in CATEGORIES:
        yield from _share_shifts(stage, name, features, sizes[True] + sizes[False], sizes[True])


def _number_shift(stage: str, name: str, features: pl.LazyFrame) -> Iterator[FilterShift]:
    value = pl.col(name)
    remaining = value.filter("kept")
    spread = pl.col(OBSERVED).std() if name == PASS_RATE else value.std()
    moments = features.select(
        all=value.count(),
        kept=remaining.count(),
        before=value.mean(),
        after=remaining.mean(),
        own=value.std(),
        shown=spread,
    ).collect(engine="streaming")
    row = moments.row(0, named=True)
    if row["own"] and row["shown"] and row["after"] is not None:
        moved = row["after"] - row["before"]
        shift = moved / row["shown"]
        if _is_more_than_chance(moved / row["own"], row["all"], row["kept"]) and abs(shift) >= LEAST_SHIFT:
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
    """Return True if a shift, in standard deviations, is too large for a random choice of the kept rows."""
    error = math.sqrt((1 - kept / rows) / kept) if kept else math.inf
    return abs(shift) >= max(LEAST_SHIFT, CHANCE * error)

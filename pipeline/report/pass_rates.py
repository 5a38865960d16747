"""Measures the pass rates of a run's problems before and after training.

    Held-out problems   100 problems   800 samples   mean .41   95 % interval .36 to .46   never pass 12   always 3

The mean is over the pass rates of the problems. If problems have different numbers of samples, it is over the means of
their posteriors. Samples of one problem are alike, so eight of them give less information than samples of eight
problems. So Wilson's interval is computed with a smaller, effective number of samples (Kish's design effect).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles
from truegold.verifiers.rates import Z_95, wilson_interval

HELDOUT = "Held-out problems"
"""The name of the group of held-out problems."""

MAX_STEPS = 10
"""The maximum number of bars of a histogram, without the bar for 0. With fewer samples than this, each number of passes
has a bar."""


@dataclass(frozen=True)
class Distribution:
    """The pass rates of one group of problems before or after training. Rates are None if no sample was judged."""

    problems: int
    judged_problems: int
    samples: int
    unjudged_samples: int
    unread_samples: int
    mean: float | None
    low: float | None
    high: float | None
    never: int
    always: int
    truncated: float | None
    tokens_mean: float | None
    bars: tuple[int, ...]
    """The number of problems in equal steps of the pass rate. The first bar is exactly 0, and the last exactly 1."""


@dataclass(frozen=True)
class ProblemGroup:
    """The pass rates of a group of problems. `after` is None if the problems were not profiled after training."""

    name: str
    note: str
    before: Distribution | None
    after: Distribution | None


def measure_pass_rates(files: RunFiles) -> tuple[ProblemGroup, ...]:
    """Return the groups of problems with known pass rates."""
    before, after = files.table("profile", "profile.parquet"), files.table("profile_after", "profile.parquet")
    if before is None:
        return ()
    selected = files.table("select", "selected.parquet")
    is_heldout = pl.col("split") == "heldout"
    heldout_after = None if after is None else after.filter(is_heldout)
    groups = [ProblemGroup(HELDOUT, "never trained on", _describe(before.filter(is_heldout)), _describe(heldout_after))]
    if selected is not None:
        chosen = before.join(selected.select(KEY), on=KEY, how="semi")
        chosen_after = None if after is None else after.filter(~is_heldout)
        note = "chosen for their pass rate, so that some of the change before to after is chance"
        groups.append(ProblemGroup("Problems selected for training", note, _describe(chosen), _describe(chosen_after)))
    everything = _describe(before.filter(~is_heldout))
    groups.append(ProblemGroup("All training problems that were profiled", "before selection", everything, None))
    return tuple(group for group in groups if group.before is not None)


def _describe(profile: pl.LazyFrame | None) -> Distribution | None:
    """Return the pass rates in a profile, or None if it has no problems."""
    if profile is None:
        return None
    rate, (expected, doubt) = pl.col("pass_rate"), _expected_rate(profile)
    totals = profile.select(
        problems=pl.len(),
        judged_problems=rate.count(),
        samples=pl.col("n").sum(),
        unjudged_samples=pl.col("n").sum() - pl.col("judged").sum(),
        unread_samples=pl.col("unread").sum(),
        most=pl.col("n").max(),
        mean=expected.mean(),
        variance=expected.var() + doubt,
        never=(rate == 0).sum(),
        always=(rate == 1).sum(),
        truncated=pl.col("truncated").mean(),
        tokens_mean=pl.col("tokens_mean").mean(),
    ).collect(engine="streaming")
    row = totals.row(0, named=True)
    if not row["problems"]:
        return None
    low, high = _interval(row)
    bars = _bars(profile, min(row.pop("most"), MAX_STEPS))
    del row["variance"]
    return Distribution(**row, low=low, high=high, bars=bars)


def _expected_rate(profile: pl.LazyFrame) -> tuple[pl.Expr, pl.Expr]:
    """Return the pass rate of each problem, and the mean variance of its posterior. If the numbers of samples differ,
    the pass rates are the means of the posteriors. Observed rates are biased then, because the first samples of a
    problem decided how many samples the problem got."""
    rate = pl.col("pass_rate")
    sampled_alike = profile.select(pl.col("n").n_unique() <= 1).collect(engine="streaming").item()
    if sampled_alike:
        return rate, pl.lit(0.0)
    return pl.col("expected_rate"), (pl.col("expected_deviation") ** 2).mean()


def _interval(row: Mapping[str, float]) -> tuple[float | None, float | None]:
    problems, mean = int(row["judged_problems"]), row["mean"]
    judged = int(row["samples"] - row["unjudged_samples"])
    if not problems:
        return None, None
    # The design effect is the number of samples divided by the effective number of samples.
    if problems < 2 or mean in (0.0, 1.0):
        # Without spread the effect cannot be estimated. As a caution, each problem counts as one sample.
        effect = judged / problems
    else:
        effect = max(1.0, row["variance"] / problems * judged / (mean * (1 - mean)))
    # Wilson's interval depends only on z*z/n. Dividing n by the effect is the same as multiplying z by its root.
    return wilson_interval(round(mean * judged), judged, Z_95 * math.sqrt(effect))


def _bars(profile: pl.LazyFrame, steps: int) -> tuple[int, ...]:
    rate = pl.col("pass_rate")
    inner_bar = (rate * steps).round().cast(pl.Int64).clip(1, max(steps - 1, 1))
    bar_index = pl.when(rate == 0).then(0).when(rate == 1).then(steps).otherwise(inner_bar).alias("bar")
    judged = profile.filter(rate.is_not_null()).select(bar_index)
    counts = dict(judged.group_by("bar").agg(pl.len()).collect(engine="streaming").iter_rows())
    return tuple(int(counts.get(bar, 0)) for bar in range(steps + 1))

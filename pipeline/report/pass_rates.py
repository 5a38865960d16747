"""Pass rates of a run's problems before and after training, and the rewards that training will see.

The mean is over problems; where they got different numbers of samples, over the means of their posteriors. Its
interval is Wilson's at the effective number of samples: the samples of one problem resemble each other, so that eight
of them say less than eight problems would (Kish's design effect).

    gsm8k.jsonl   rows 900   ones .62   dead .06   saturated .21   informative .73     groups of 8 samples

What to expect of a group of further samples is read from each problem's posterior (`rates.posterior`). A selection by
observed pass rate is read with the prior of the rows that it was selected from: its pass rates go back towards the mean
on the next samples. Samples that could not be judged carry no reward; their share stands beside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.rates.posterior import Prior, expected_shares, fit_prior
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles
from truegold.verifiers.rates import Z_95, wilson_interval

HELDOUT = "Held-out problems"

MAX_STEPS = 10
"""The bars of a histogram above that of no passes; with fewer samples a problem there is one for each count of passes.
"""


@dataclass(frozen=True)
class Distribution:
    """Pass rates of one group of problems, before or after training. Rates are None where nothing was judged."""

    problems: int
    judged_problems: int
    samples: int
    unjudged_samples: int
    mean: float | None
    low: float | None
    high: float | None
    never: int
    always: int
    truncated: float | None
    tokens_mean: float | None
    bars: tuple[int, ...]
    """Problems by pass rate: the first bar is exactly 0, the last exactly 1, between them equal steps."""


@dataclass(frozen=True)
class ProblemGroup:
    """The same problems before and after; `after` is None where they were not profiled again."""

    name: str
    note: str
    before: Distribution | None
    after: Distribution | None


def measure_pass_rates(files: RunFiles) -> tuple[ProblemGroup, ...]:
    """Return the groups of problems whose pass rates the run knows."""
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
    """Return the pass rates of a profile, None where there are no problems."""
    if profile is None:
        return None
    rate, (expected, doubt) = pl.col("pass_rate"), _expected_rate(profile)
    totals = profile.select(
        problems=pl.len(),
        judged_problems=rate.count(),
        samples=pl.col("n").sum(),
        unjudged_samples=pl.col("n").sum() - pl.col("judged").sum(),
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
    """Return the pass rate of each problem, and the mean variance of what is not known of it.

    Where some problems got further samples because of what their first ones showed, observed rates are biased, and the
    means of the posteriors are not.
    """
    rate, a, b = pl.col("pass_rate"), pl.col("posterior_a"), pl.col("posterior_b")
    sampled_alike = profile.select(pl.col("n").n_unique() <= 1).collect(engine="streaming").item()
    if sampled_alike:
        return rate, pl.lit(0.0)
    return a / (a + b), (a * b / ((a + b) ** 2 * (a + b + 1))).mean()


def _interval(row: Mapping[str, float]) -> tuple[float | None, float | None]:
    problems, mean = int(row["judged_problems"]), row["mean"]
    judged = int(row["samples"] - row["unjudged_samples"])
    if not problems:
        return None, None
    if problems < 2 or mean in (0.0, 1.0):
        # There is no spread to learn the design effect from: each problem counts as one sample, to be careful.
        effect = judged / problems
    else:
        effect = max(1.0, row["variance"] / problems * judged / (mean * (1 - mean)))
    # Wilson's interval depends on z*z/n alone, so that dividing n by the effect is multiplying z by its root.
    return wilson_interval(round(mean * judged), judged, Z_95 * math.sqrt(effect))


def _bars(profile: pl.LazyFrame, steps: int) -> tuple[int, ...]:
    rate = pl.col("pass_rate")
    inner_bar = (rate * steps).round().cast(pl.Int64).clip(1, max(steps - 1, 1))
    bar_index = pl.when(rate == 0).then(0).when(rate == 1).then(steps).otherwise(inner_bar).alias("bar")
    judged = profile.filter(rate.is_not_null()).select(bar_index)
    counts = dict(judged.group_by("bar").agg(pl.len()).collect(engine="streaming").iter_rows())
    return tuple(int(counts.get(bar, 0)) for bar in range(steps + 1))


BY = ("source", "domain", "verifier")
EVERYTHING = "all"
MIN_ROWS = 50
"""A group of fewer problems is read with the prior of all: two numbers cannot be learnt from ten."""


@dataclass(frozen=True)
class RewardRatio:
    """The rewards to expect of one group of problems. Shares are None where nothing was judged."""

    by: str
    """What the problems have in common: `source`, `domain` or `verifier`; `all` for all problems."""
    name: str
    """Which source, domain or verifier."""
    when: str
    """`profiled`, before selection, or `selected`, after it."""
    rows: int
    judged_rows: int
    """The rows with a judged sample."""
    unjudged: float | None
    """The share of all samples that could not be judged."""
    ones: float | None
    zeros: float | None
    """The shares of judged rewards, which add up to 1."""
    dead: float | None
    saturated: float | None
    informative: float | None
    """The shares of training groups that are all wrong, all right or neither, which add up to 1."""
    group_size: int
    prior_a: float | None
    prior_b: float | None
    """The Beta distribution with the mean and variance of the pass rates that these problems are taken to have."""


def measure_reward_ratios(
    profile: pl.LazyFrame, rows: pl.LazyFrame, selected: pl.LazyFrame | None, group_size: int
) -> list[RewardRatio]:
    """Return the ratios of a profile's training rows: of all of them, then by each of BY, largest group first.

    `rows` are the profiled rows, `selected` those that were chosen, None where nothing has been selected.
    """
    counts = profile.filter(pl.col("split") != "heldout").select(*KEY, "n", "judged", "passes")
    table = counts.join(rows.select(*KEY, "domain", "verifier"), on=KEY)
    if selected is not None:
        chosen = selected.select(KEY).with_columns(selected=pl.lit(True))
        table = table.join(chosen, on=KEY, how="left").with_columns(pl.col("selected").fill_null(False))
    else:
        table = table.with_columns(selected=pl.lit(False))
    counted = table.group_by(*BY, "selected", "n", "judged", "passes").agg(pl.len().alias("rows"))
    cells = counted.collect(engine="streaming")
    if not cells.height:
        return []
    overall = fit_prior(_counts(cells))
    ratios = list(_before_and_after(EVERYTHING, EVERYTHING, cells, overall, group_size, selected is not None))
    for by in BY:
        sizes = cells.group_by(by).agg(pl.col("rows").sum()).sort(["rows", by], descending=[True, False])
        for name in sizes[by]:
            group = cells.filter(pl.col(by) == name)
            judged = group.filter(pl.col("judged") > 0)["rows"].sum()
            prior = fit_prior(_counts(group)) if judged >= MIN_ROWS else overall
            ratios += _before_and_after(by, name, group, prior, group_size, selected is not None)
    return ratios


def _counts(cells: pl.DataFrame) -> dict[tuple[int, int], int]:
    judged = cells.filter(pl.col("judged") > 0).group_by("judged", "passes").agg(pl.col("rows").sum())
    return {(n, c): rows for n, c, rows in judged.sort("judged", "passes").iter_rows()}


def _before_and_after(
    by: str, name: str, cells: pl.DataFrame, prior: Prior | None, group_size: int, was_selected: bool
) -> Iterator[RewardRatio]:
    yield _ratio(by, name, "profiled", cells, prior, group_size)
    chosen = cells.filter(pl.col("selected"))
    if was_selected:
        yield _ratio(by, name, "selected", chosen, prior, group_size)


def _ratio(by: str, name: str, when: str, cells: pl.DataFrame, prior: Prior | None, group_size: int) -> RewardRatio:
    counts = _counts(cells)
    rows, judged_rows = int(cells["rows"].sum()), sum(counts.values())
    samples = int((cells["rows"] * cells["n"]).sum())
    judged = int((cells["rows"] * cells["judged"]).sum())
    unjudged = (samples - judged) / samples if samples else None
    if prior is None or not counts:
        nothing = (None,) * 5
        return RewardRatio(by, name, when, rows, judged_rows, unjudged, *nothing, group_size, None, None)
    ones, dead, saturated = expected_shares(counts, prior, group_size)
    informative = max(0.0, 1 - dead - saturated)
    shares = (ones, 1 - ones, dead, saturated, informative)
    alike = prior.after(0, 0)
    return RewardRatio(by, name, when, rows, judged_rows, unjudged, *shares, group_size, alike.a, alike.b)


GROUPS_SHOWN = 20
"""The most sources, domains and verifiers that the page shows; the table has all of them."""


@dataclass(frozen=True)
class Rewards:
    """The rewards to expect of groups of `group_size` samples."""

    group_size: int
    ratios: tuple[RewardRatio, ...]
    shown: tuple[RewardRatio, ...]
    """The rows of the page's table: all problems, then by source, domain and verifier where there are several."""


def measure_rewards(files: RunFiles, group_size: int) -> Rewards | None:
    """Return the rewards to expect, None where the run has no pass rates.

    A run that has trained is read with its own group size.
    """
    profile, rows = files.table("profile", "profile.parquet"), files.table("profile", "rows.parquet")
    if profile is None or rows is None:
        return None
    if "train" in files:
        group_size = int(files.records["train"].get("config", {}).get("group_size", group_size))
    ratios = measure_reward_ratios(profile, rows, files.table("select", "selected.parquet"), group_size)
    return Rewards(group_size, tuple(ratios), tuple(_shown(ratios))) if ratios else None


def _shown(ratios: list[RewardRatio]) -> Iterator[RewardRatio]:
    for by in dict.fromkeys(ratio.by for ratio in ratios):
        names = list(dict.fromkeys(ratio.name for ratio in ratios if ratio.by == by))
        if by == EVERYTHING or len(names) > 1:
            yield from (ratio for ratio in ratios if ratio.by == by and ratio.name in names[:GROUPS_SHOWN])

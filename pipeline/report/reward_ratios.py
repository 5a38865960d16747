"""Estimates the rewards that a training will see, by source, domain and verifier, from measured pass rates.

    groups of 8 samples   all wrong (dead)    all right (saturated)    mixed (informative)    share of rewards of 1
    gsm8k.jsonl           .06                 .21                      .73                    .62

The estimate uses the posterior of each problem's pass rate (`rates`), because observed rates of selected problems are
too extreme: new samples of these problems are usually nearer to the mean. Samples that could not be judged have no
reward. Their share is shown separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.rates import Mixture, expected_shares
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles

BY = ("source", "domain", "verifier")
"""The columns by which problems are grouped."""
EVERYTHING = "all"
"""The name of the group of all problems."""
GROUPS_SHOWN = 20
"""The maximum number of sources, of domains and of verifiers on the page. The table `reward_ratio.parquet` has all."""


@dataclass(frozen=True)
class RewardRatio:
    """The expected rewards of problems with one source, domain or verifier. Shares are None if no sample was judged."""

    by: str
    """The property that the problems share, `source`, `domain` or `verifier`, or `all` for all problems."""
    name: str
    """The name of the source, domain or verifier."""
    when: str
    """`profiled` for the problems before selection, `selected` for the selected ones."""
    rows: int
    judged_rows: int
    """The number of rows with a judged sample."""
    unjudged: float | None
    """The share of all samples that could not be judged."""
    ones: float | None
    """The share of rewards that are 1."""
    zeros: float | None
    """The share of rewards that are 0."""
    dead: float | None
    """The share of groups without a right sample."""
    saturated: float | None
    """The share of groups without a wrong sample."""
    informative: float | None
    """The share of groups with right and wrong samples."""
    group_size: int


def measure_reward_ratios(
    profile: pl.LazyFrame, rows: pl.LazyFrame, selected: pl.LazyFrame | None, group_size: int
) -> list[RewardRatio]:
    """Return the expected rewards of all training rows, then those by each column of BY, the largest group first.

    `rows` are the profiled rows. `selected` are the selected rows, or None if the run has not selected any.
    """
    counts = profile.filter(pl.col("split") != "heldout").select(*KEY, "n", "judged", "passes", "posterior")
    table = counts.join(rows.select(*KEY, "domain", "verifier"), on=KEY)
    if selected is not None:
        chosen = selected.select(KEY).with_columns(selected=pl.lit(True))
        table = table.join(chosen, on=KEY, how="left").with_columns(pl.col("selected").fill_null(False))
    else:
        table = table.with_columns(selected=pl.lit(False))
    # Rows with the same source, domain and counts have one posterior.
    counted = table.group_by(*BY, "selected", "n", "judged", "passes").agg(
        pl.len().alias("rows"), pl.col("posterior").first()
    )
    cells = counted.collect(engine="streaming").sort(*BY, "selected", "n", "judged", "passes")
    if not cells.height:
        return []
    ratios = list(_before_and_after(EVERYTHING, EVERYTHING, cells, group_size, selected is not None))
    for by in BY:
        sizes = cells.group_by(by).agg(pl.col("rows").sum()).sort(["rows", by], descending=[True, False])
        for name in sizes[by]:
            group = cells.filter(pl.col(by) == name)
            ratios += _before_and_after(by, name, group, group_size, selected is not None)
    return ratios


def _before_and_after(
    by: str, name: str, cells: pl.DataFrame, group_size: int, was_selected: bool
) -> Iterator[RewardRatio]:
    yield _ratio(by, name, "profiled", cells, group_size)
    if was_selected:
        yield _ratio(by, name, "selected", cells.filter(pl.col("selected")), group_size)


def _ratio(by: str, name: str, when: str, cells: pl.DataFrame, group_size: int) -> RewardRatio:
    known = [
        (mixture, rows)
        for components, rows in cells.filter(pl.col("judged") > 0).select("posterior", "rows").iter_rows()
        if (mixture := Mixture.from_components(components)) is not None
    ]
    rows, judged_rows = int(cells["rows"].sum()), sum(rows for _, rows in known)
    samples = int((cells["rows"] * cells["n"]).sum())
    judged = int((cells["rows"] * cells["judged"]).sum())
    unjudged = (samples - judged) / samples if samples else None
    measured = dict.fromkeys(("ones", "zeros", "dead", "saturated", "informative"))
    if known:
        ones, dead, saturated = expected_shares(known, group_size)
        measured |= {"ones": ones, "zeros": 1 - ones}
        measured |= {"dead": dead, "saturated": saturated, "informative": max(0.0, 1 - dead - saturated)}
    return RewardRatio(by, name, when, rows, judged_rows, unjudged, group_size=group_size, **measured)


@dataclass(frozen=True)
class Rewards:
    """The expected rewards with groups of `group_size` samples."""

    group_size: int
    ratios: tuple[RewardRatio, ...]
    shown: tuple[RewardRatio, ...]
    """The ratios on the page. Sources, for example, are listed only if there are several."""


def measure_rewards(files: RunFiles, group_size: int) -> Rewards | None:
    """Return the expected rewards, or None if the run has no pass rates.

    If the run has trained, the group size of the training is used instead of `group_size`.
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

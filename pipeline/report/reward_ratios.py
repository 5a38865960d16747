"""The rewards to expect in training from problems whose pass rates were measured, by source, domain and verifier.

    gsm8k.jsonl   rows 900   ones .62   dead .06   saturated .21   informative .73     groups of 8 samples

What a group of further samples will show is read from each problem's posterior (`rates.posterior`), which the profile
has made with the pass rates of all problems of its kind: those of a selection go back towards the mean on the next
samples. Samples that could not be judged carry no reward; their share is shown as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from truegold.pipeline.rates.posterior import Mixture, expected_shares
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import RunFiles

BY = ("source", "domain", "verifier")
"""The columns by whose values problems are grouped."""
EVERYTHING = "all"
"""The name of the group of all problems."""
GROUPS_SHOWN = 20
"""The most sources, domains and verifiers that the page shows; the table has all of them."""


@dataclass(frozen=True)
class RewardRatio:
    """The rewards to expect of one group of problems. Shares are None where nothing was judged."""

    by: str
    """The property that the problems share: `source`, `domain` or `verifier`; `all` for all problems."""
    name: str
    """The name of the source, domain or verifier."""
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


def measure_reward_ratios(
    profile: pl.LazyFrame, rows: pl.LazyFrame, selected: pl.LazyFrame | None, group_size: int
) -> list[RewardRatio]:
    """Return the ratios of a profile's training rows: of all of them, then by each of BY, largest group first.

    `rows` are the profiled rows, `selected` those that were chosen, None where nothing has been selected.
    """
    counts = profile.filter(pl.col("split") != "heldout").select(*KEY, "n", "judged", "passes", "posterior")
    table = counts.join(rows.select(*KEY, "domain", "verifier"), on=KEY)
    if selected is not None:
        chosen = selected.select(KEY).with_columns(selected=pl.lit(True))
        table = table.join(chosen, on=KEY, how="left").with_columns(pl.col("selected").fill_null(False))
    else:
        table = table.with_columns(selected=pl.lit(False))
    # Rows of one source and domain with the same counts have the same posterior.
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

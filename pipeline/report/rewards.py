"""The rewards that training will see: the reward-ratio view of a run, and the table of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from truegold.pipeline.report.reward_ratio import EVERYTHING, RewardRatio, reward_ratios
from truegold.pipeline.tables.rows import arrow_schema, write_rows
from truegold.pipeline.tables.run_files import RunFiles

REWARD_RATIO_FILE = "reward_ratio.parquet"
GROUPS_SHOWN = 20
"""How many sources, domains and verifiers the page shows; the table has all of them."""


@dataclass(frozen=True)
class RewardPair:
    """One group of problems as profiled, and as selected where a selection was made."""

    profiled: RewardRatio
    selected: RewardRatio | None


@dataclass(frozen=True)
class Rewards:
    """The rewards to expect of groups of `group_size` samples."""

    group_size: int
    ratios: tuple[RewardRatio, ...]
    pairs: tuple[RewardPair, ...]
    """What the page shows: all problems, then by source, domain and verifier where there are several."""


def measure_rewards(files: RunFiles, group_size: int) -> Rewards | None:
    """Return the rewards to expect, None where the run has no pass rates.

    A run that has trained is read with its own group size.
    """
    profile, rows = files.table("profile", "profile.parquet"), files.table("profile", "rows.parquet")
    if profile is None or rows is None:
        return None
    if "train" in files:
        group_size = int(files.records["train"].get("config", {}).get("group_size", group_size))
    ratios = reward_ratios(profile, rows, files.table("select", "selected.parquet"), group_size)
    return Rewards(group_size, tuple(ratios), tuple(_pairs(ratios))) if ratios else None


def _pairs(ratios: list[RewardRatio]) -> list[RewardPair]:
    selected = {(ratio.by, ratio.name): ratio for ratio in ratios if ratio.when == "selected"}
    profiled = [ratio for ratio in ratios if ratio.when == "profiled"]
    pairs = []
    for by in dict.fromkeys(ratio.by for ratio in profiled):
        alike = [ratio for ratio in profiled if ratio.by == by]
        if by == EVERYTHING or len(alike) > 1:
            pairs += [RewardPair(ratio, selected.get((by, ratio.name))) for ratio in alike[:GROUPS_SHOWN]]
    return pairs


def write_rewards(rewards: Rewards, out_dir: Path) -> None:
    """Write all ratios to `reward_ratio.parquet`."""
    write_rows(out_dir / REWARD_RATIO_FILE, map(asdict, rewards.ratios), arrow_schema(RewardRatio))

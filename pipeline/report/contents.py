"""Everything a report says, gathered from a run's files before any of it is drawn.

`summary` gives the numbers alone, for machines: what the page shows, without the texts of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report.accounting import Account, account
from truegold.pipeline.report.changes import Changes, changes
from truegold.pipeline.report.distribution import Distribution, Group, distributions
from truegold.pipeline.report.flagged import Review, review
from truegold.pipeline.report.planted import Planted, score_planted
from truegold.pipeline.report.rewards import Rewards, rewards
from truegold.pipeline.report.run_files import RunFiles
from truegold.pipeline.report.training import Training, training

HELDOUT = "Held-out problems"


@dataclass(frozen=True)
class StageLine:
    """What a stage's record says of it."""

    name: str
    seconds: float
    rows_in: int
    rows_out: int
    key: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Contents:
    """The sections of the report; None where the run has nothing to say on one."""

    name: str
    run_dir: str
    """As it is typed in a command."""
    account: Account
    planted: Planted | None
    groups: tuple[Group, ...]
    rewards: Rewards | None
    training: Training | None
    review: Review | None
    changes: Changes
    stages: tuple[StageLine, ...]

    @property
    def left(self) -> int:
        """The rows at the end: those selected, or what a shorter run has left."""
        return self.account.total("selected") + self.account.total("left")

    @property
    def heldout(self) -> tuple[Distribution | None, Distribution | None]:
        """The held-out pass rates before and after."""
        found = [group for group in self.groups if group.name == HELDOUT]
        return (found[0].before, found[0].after) if found else (None, None)


def gather(files: RunFiles, config: ReportConfig) -> Contents:
    """Read what the report tells. Raises RuntimeError where rows went missing."""
    stages = []
    for name, record in files.records.items():
        told = record["report"]
        stages.append(
            StageLine(name, record["seconds"], told["rows_in"], told["rows_out"], record["key"], told["facts"])
        )
    return Contents(
        name=config.name,
        run_dir=str(files.folders["ingest"].parent),
        account=account(files),
        planted=score_planted(files),
        groups=distributions(files),
        rewards=rewards(files, config.group_size),
        training=training(files),
        review=review(files, config.max_items),
        changes=changes(files, config.max_items),
        stages=tuple(stages),
    )


def summary(contents: Contents) -> dict[str, Any]:
    """Every number of the page, JSON-able."""
    before, after = contents.heldout
    return {
        "name": contents.name,
        "headline": {
            "records_in": contents.account.records_in,
            "rows_left": contents.left,
            "heldout_pass_rate_before": before and before.mean,
            "heldout_pass_rate_after": after and after.mean,
            "adds_up": True,  # where it does not, there is no report
        },
        "accounting": asdict(contents.account),
        "planted": contents.planted and asdict(contents.planted),
        "pass_rates": [asdict(group) for group in contents.groups],
        "reward_ratio": [asdict(ratio) for ratio in contents.rewards.ratios] if contents.rewards else None,
        "training": contents.training and _training_numbers(contents.training),
        "flagged": contents.review
        and {
            "rows": contents.review.rows,
            "shown": len(contents.review.items),
            "reasons": [asdict(reason) for reason in contents.review.reasons],
        },
        "drops": [{"stage": d.stage, "reason": d.reason, "rows": d.rows} for d in contents.changes.drops],
        "edits": [
            {"stage": e.stage, "reason": e.reason, "column": e.column, "edits": e.edits} for e in contents.changes.edits
        ],
        "rejects": [{"reason": r.reason, "records": r.records} for r in contents.changes.rejects],
        "stages": [asdict(stage) for stage in contents.stages],
    }


def _training_numbers(found: Training) -> dict[str, Any]:
    metrics = {metric.name: {"first": metric.points[0], "last": metric.points[-1]} for metric in found.table}
    curves = {metric.name: metric.points for curve in found.curves for metric in curve.metrics}
    return {"steps": found.steps, "problems_seen": found.problems_seen, "metrics": metrics, "curves": curves}

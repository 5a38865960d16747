"""Everything a report says, gathered from a run's files before any of it is drawn.

`summarise` gives the numbers alone, for machines: what the page shows, without the texts of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from truegold.pipeline.accounting.accounting import Account, count_rows_by_end
from truegold.pipeline.accounting.by_source import SourceAccount, count_by_source
from truegold.pipeline.accounting.label_errors import LabelErrors, estimate_from_reviews, estimate_from_suspicion
from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.demo.planted import Planted, score_planted
from truegold.pipeline.report.browser import Browser, gather_browser, pack_completions
from truegold.pipeline.report.changes import Changes, count_changes
from truegold.pipeline.report.distribution import HELDOUT, Distribution, ProblemGroup, measure_pass_rates
from truegold.pipeline.report.filter_shifts import FilterShift, measure_filter_shifts
from truegold.pipeline.report.flagged import Flagged, count_flagged
from truegold.pipeline.report.origins import OriginGain, measure_gains_by_origin
from truegold.pipeline.report.provenance import Provenance, read_provenance
from truegold.pipeline.report.rewards import Rewards, measure_rewards
from truegold.pipeline.report.training import Training, read_training
from truegold.pipeline.report.verifier_card import VerifierCard, read_verifier_card
from truegold.pipeline.running.stage_table import ROW_STAGES
from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.reasons import SUSPICION_FILE
from truegold.pipeline.tables.run_files import RunFiles

_PLANTED_KEYS = {"detected": "found", "detected_by_any": "found_by_any"}
"""Keys of the summary that are not called as the fields of `KindScore` are."""


@dataclass(frozen=True)
class StageLine:
    """What a stage's record says of it."""

    name: str
    seconds: float
    rows_in: int
    rows_out: int
    key: str
    facts: Mapping[str, Any]

    @property
    def tokens(self) -> int:
        """The tokens that it drew; 0 of a stage that draws none."""
        drawn = self.facts.get("sampling", {}).get("tokens", self.facts.get("tokens", 0))
        return drawn if isinstance(drawn, int) else 0


@dataclass(frozen=True)
class Contents:
    """The sections of the report; None where the run has nothing to say on one."""

    name: str
    run_dir: str
    """The run's folder as it is typed in a command."""
    account: Account
    sources: tuple[SourceAccount, ...]
    planted: Planted | None
    groups: tuple[ProblemGroup, ...]
    shifts: tuple[FilterShift, ...]
    """What the filters moved, the most moved first."""
    rewards: Rewards | None
    training: Training | None
    flagged: Flagged | None
    changes: Changes
    origins: tuple[OriginGain, ...]
    """What positives of each origin came to."""
    stages: tuple[StageLine, ...]
    labels: LabelErrors | None
    """The share of wrong labels among the rows at the end; None where nothing tells it."""
    verifier: str
    """The verifier of most rows."""
    verifier_card: VerifierCard | None
    provenance: Provenance
    browser: Browser
    """Every row."""
    completions: str | None
    """What the model wrote while it trained, packed; None where it has not trained."""

    @property
    def run_key(self) -> str:
        """What tells this run from others, for what a browser keeps of it: name and data."""
        return f"{self.name} {self.stages[0].key}"

    @property
    def left(self) -> int:
        """The rows at the end: those selected, or what a shorter run has left."""
        return self.account.total("selected") + self.account.total("left")

    @property
    def tokens(self) -> int:
        """The tokens that all stages drew."""
        return sum(stage.tokens for stage in self.stages)

    @property
    def sampled(self) -> tuple[StageLine, ...]:
        """The profiles, which say what their samples cost."""
        return tuple(stage for stage in self.stages if "drawn" in stage.facts.get("sampling", {}))

    @property
    def synthesis(self) -> StageLine | None:
        """The stage that made positives, where there is one."""
        return next((stage for stage in self.stages if stage.name == "synth"), None)

    @property
    def heldout(self) -> tuple[Distribution | None, Distribution | None]:
        """The held-out pass rates before and after training."""
        return next(((group.before, group.after) for group in self.groups if group.name == HELDOUT), (None, None))


def gather(
    files: RunFiles, config: ReportConfig, *, is_blind: bool = False, earlier: pl.DataFrame | None = None
) -> Contents:
    """Read what the report shows; what reviewers decided is not in the rows where the reader is to be blind to it.

    earlier: what became of the rows in another run (`gather_browser`). Raises RuntimeError where rows went missing.
    """
    stages = []
    for name, record in files.records.items():
        work = record["report"]
        stages.append(
            StageLine(name, record["seconds"], work["rows_in"], work["rows_out"], record["key"], work["facts"])
        )
    return Contents(
        name=config.name,
        run_dir=str(files.folders["ingest"].parent),
        account=count_rows_by_end(files),
        sources=count_by_source(files),
        planted=score_planted(files),
        groups=measure_pass_rates(files),
        shifts=tuple(measure_filter_shifts(files)),
        rewards=measure_rewards(files, config.group_size),
        training=read_training(files),
        flagged=count_flagged(files),
        changes=count_changes(files),
        origins=measure_gains_by_origin(files),
        stages=tuple(stages),
        labels=_estimate_wrong_labels(files),
        verifier=_most_used_verifier(files),
        verifier_card=read_verifier_card(files),
        provenance=read_provenance(files),
        browser=gather_browser(files, config.max_rows, is_blind=is_blind, earlier=earlier),
        completions=pack_completions(files.training),
    )


def _most_used_verifier(files: RunFiles) -> str:
    """Return the verifier of most rows as they came in, `math` where there are none."""
    rows = files.table("ingest", "rows.parquet")
    if rows is None:
        return "math"
    counted = rows.group_by("verifier").agg(pl.len()).sort(["len", "verifier"], descending=[True, False])
    names = counted.head(1).collect(engine="streaming")["verifier"].to_list()
    return str(names[0]) if names else "math"


def _estimate_wrong_labels(files: RunFiles) -> LabelErrors | None:
    """Return the share of wrong labels among the training rows that are left, by samples, else by reviewers."""
    suspicion = next((path for stage in ("profile", "suspect") if (path := files.path(stage, SUSPICION_FILE))), None)
    left = files.path("select", "selected.parquet")
    if left is None:
        last = [stage for stage in ("ingest", *ROW_STAGES) if stage in files][-1]
        left = files.path(last, "rows.parquet")
    estimate = estimate_from_reviews(files.table("settle", LEDGER_FILE))
    if suspicion is not None and left is not None:
        by_samples = estimate_from_suspicion(suspicion, [left])
        estimate = by_samples if by_samples.rate is not None else estimate
    return estimate if estimate.rate is not None else None


def summarise(contents: Contents) -> dict[str, Any]:
    """Return every number of the page, as values that JSON can hold."""
    before, after = contents.heldout
    return {
        "name": contents.name,
        "headline": {
            "records_in": contents.account.records_in,
            "rows_left": contents.left,
            "heldout_pass_rate_before": before and before.mean,
            "heldout_pass_rate_after": after and after.mean,
            # Where it does not add up there is no report.
            "adds_up": True,
        },
        "accounting": asdict(contents.account),
        "sources": [asdict(source) for source in contents.sources],
        "planted": contents.planted and asdict(contents.planted, dict_factory=_rename_planted),
        "pass_rates": [asdict(group) for group in contents.groups],
        "shifts": [asdict(shift) for shift in contents.shifts],
        "reward_ratio": [asdict(ratio) for ratio in contents.rewards.ratios] if contents.rewards else None,
        "training": contents.training and _training_numbers(contents.training),
        "flagged": contents.flagged and asdict(contents.flagged),
        "wrong_labels": contents.labels and asdict(contents.labels),
        "drops": [asdict(drop) for drop in contents.changes.drops],
        "edits": [asdict(edit) for edit in contents.changes.edits],
        "rejects": [asdict(reject) for reject in contents.changes.rejects],
        "origins": [asdict(gain) for gain in contents.origins],
        "stages": [asdict(stage) for stage in contents.stages],
    }


def _rename_planted(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_PLANTED_KEYS.get(name, name): value for name, value in fields}


def _training_numbers(training: Training) -> dict[str, Any]:
    metrics = {metric.name: {"first": metric.points[0], "last": metric.points[-1]} for metric in training.table}
    curves = {metric.name: metric.points for curve in training.curves for metric in curve.metrics}
    return {
        "steps": training.steps,
        "problems_seen": training.problems_seen,
        "is_finished": training.is_finished,
        "ending": training.ending and asdict(training.ending),
        "moved": [asdict(shift) for shift in training.moved],
        "metrics": metrics,
        "curves": curves,
    }

"""Gathers the sections of the report from the files of a run, for the page (`render`) and for `summary.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.accounting import (
    Account,
    LabelErrors,
    SourceAccount,
    count_by_source,
    count_rows_by_end,
    estimate_from_reviews,
    estimate_from_suspicion,
)
from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.demo.planted import score_planted
from truegold.pipeline.report.filter_effects import (
    EditCount,
    FilterShift,
    Flagged,
    count_edits,
    count_flagged,
    measure_filter_shifts,
)
from truegold.pipeline.report.page_rows import PageRows, gather_page_rows
from truegold.pipeline.report.pass_rates import HELDOUT, Distribution, ProblemGroup, measure_pass_rates
from truegold.pipeline.report.reward_ratios import Rewards, measure_rewards
from truegold.pipeline.report.training import Training, pack_completions, read_training
from truegold.pipeline.running.stage import RECORD, StageReport, table_digest
from truegold.pipeline.tables.ledger import LEDGER_FILE
from truegold.pipeline.tables.losses import Loss, read_losses
from truegold.pipeline.tables.reasons import SUSPICION_FILE
from truegold.pipeline.tables.run_files import Fields, RunFiles, open_finished

LINKED = {
    "configuration": "config.resolved.json",
    "manifest": "manifest.json",
    "data card": "export/README.md",
    "verifier card": "verifier_card.md",
}
"""Files of a run that the page links to, if they exist."""
VERIFIER_CARD = "verifier_card.json"


@dataclass(frozen=True)
class RunOrigin:
    """The origin of a page's data."""

    date: str
    """The time at which the last stage ended: `2025-03-01 14:05 UTC`."""
    truegold: str
    """The version of truegold that ingested the rows."""
    data: tuple[str, ...]
    """The files or data sets that were read."""
    digest: str | None
    """The digest of the ingested rows, or None if it was not recorded."""
    links: Mapping[str, str]
    """Maps the keys of LINKED to paths relative to the report's folder."""


@dataclass(frozen=True)
class StageLine:
    """The record of a stage."""

    name: str
    seconds: float
    rows_in: int
    rows_out: int
    key: str
    facts: Mapping[str, Any]

    @property
    def tokens(self) -> int:
        """The number of sampled tokens, or 0 if the stage does not sample."""
        drawn = self.facts.get("sampling", {}).get("tokens", self.facts.get("tokens", 0))
        return drawn if isinstance(drawn, int) else 0


@dataclass(frozen=True)
class Sections:
    """The sections of the report. A section is None if the run has no data for it."""

    name: str
    run_dir: str
    """The path of the run's folder, for commands."""
    account: Account
    losses: tuple[Loss, ...]
    """Each reason for which more than a fifth of the rows was lost."""
    sources: tuple[SourceAccount, ...]
    source_facts: tuple[Fields, ...]
    """Faults of whole sources, as `ingest` recorded them."""
    planted: Fields | None
    groups: tuple[ProblemGroup, ...]
    shifts: tuple[FilterShift, ...]
    """The changes of properties by filters, the largest first."""
    rewards: Rewards | None
    training: Training | None
    flagged: Flagged | None
    edits: tuple[EditCount, ...]
    stages: tuple[StageLine, ...]
    labels: LabelErrors | None
    """The estimated share of wrong labels among the remaining rows, or None."""
    verifier: str
    """The verifier of most rows."""
    verifier_card: Fields | None
    """The result of an audit of the verifier (`truegold verifiers audit NAME ... --output RUN`), or None."""
    provenance: RunOrigin
    rows: PageRows
    completions: str | None
    """The packed completions of the training, or None if the run has not trained."""

    @property
    def run_key(self) -> str:
        """A key of this run and its data. A browser stores decisions under this key."""
        return f"{self.name} {self.stages[0].key}"

    @property
    def left(self) -> int:
        """The number of remaining training rows: the selected ones, or all of them in a run without selection."""
        return self.account.total("selected") + self.account.total("left")

    @property
    def tokens(self) -> int:
        """The number of sampled tokens of all stages."""
        return sum(stage.tokens for stage in self.stages)

    @property
    def sampled(self) -> tuple[StageLine, ...]:
        """The stages that recorded the cost of their samples."""
        return tuple(stage for stage in self.stages if "drawn" in stage.facts.get("sampling", {}))

    @property
    def synthesis(self) -> StageLine | None:
        """The stage of synthesis, or None."""
        return next((stage for stage in self.stages if stage.name == "synth"), None)

    @property
    def heldout(self) -> tuple[Distribution | None, Distribution | None]:
        """The distributions of held-out pass rates before and after training."""
        return next(((group.before, group.after) for group in self.groups if group.name == HELDOUT), (None, None))


def gather(files: RunFiles, config: ReportConfig, *, is_blind: bool = False) -> Sections:
    """Gather the sections of the report.

    With `is_blind`, the rows are shown without reviewers' decisions. Raises RuntimeError if the rows do not add up.
    """
    run_dir = files.folders["ingest"].parent
    card = run_dir / VERIFIER_CARD
    return Sections(
        name=config.name,
        run_dir=str(run_dir),
        account=count_rows_by_end(files),
        losses=tuple(
            loss for record in files.records.values() for loss in read_losses(StageReport(**record["report"]))
        ),
        sources=count_by_source(files),
        source_facts=tuple(files.records["ingest"]["report"]["facts"].get("source_facts", ())),
        planted=score_planted(files),
        groups=measure_pass_rates(files),
        shifts=tuple(measure_filter_shifts(files)),
        rewards=measure_rewards(files, config.group_size),
        training=read_training(files),
        flagged=count_flagged(files),
        edits=count_edits(files),
        stages=tuple(_read_stage(name, record) for name, record in files.records.items()),
        labels=_estimate_wrong_labels(files),
        verifier=_most_used_verifier(files),
        verifier_card=orjson.loads(card.read_bytes()) if card.exists() else None,
        provenance=_read_provenance(files),
        rows=gather_page_rows(files, config.max_rows, is_blind=is_blind),
        completions=pack_completions(files.training),
    )


def gather_run(run_dir: Path, *, is_blind: bool = False) -> Sections:
    """Gather the sections of a run on disk. Raises InputError if it is not a run or has no rows yet."""
    files = open_finished(run_dir)
    stages = tuple(name for name in files.folders if name != "report")
    config = ReportConfig(name=run_dir.resolve().name, stages=stages)
    return gather(files.only(stages), config, is_blind=is_blind)


def _read_stage(name: str, record: Mapping[str, Any]) -> StageLine:
    counted = record["report"]
    return StageLine(name, record["seconds"], counted["rows_in"], counted["rows_out"], record["key"], counted["facts"])


def _read_provenance(files: RunFiles) -> RunOrigin:
    ended = max((folder / RECORD).stat().st_mtime for folder in files.folders.values())
    ingest = files.records["ingest"]
    run_dir = files.folders["ingest"].parent
    config = ingest.get("config", {})
    sources = config.get("sources") or [config]
    names = ("path", "heldout_path", "name")
    return RunOrigin(
        date=f"{datetime.fromtimestamp(ended, UTC):%Y-%m-%d %H:%M} UTC",
        truegold=str(ingest.get("truegold", version("truegold"))),
        data=tuple(str(source[name]) for source in sources for name in names if source.get(name)),
        digest=table_digest(ingest, "rows.parquet"),
        links={name: f"../{path}" for name, path in LINKED.items() if (run_dir / path).exists()},
    )


def _most_used_verifier(files: RunFiles) -> str:
    """Return the verifier of most ingested rows, or `math` if there are none."""
    if (rows := files.table("ingest", "rows.parquet")) is None:
        return "math"
    counted = rows.group_by("verifier").agg(pl.len()).sort(["len", "verifier"], descending=[True, False])
    names = counted.head(1).collect(engine="streaming")["verifier"].to_list()
    return str(names[0]) if names else "math"


def _estimate_wrong_labels(files: RunFiles) -> LabelErrors | None:
    """Return the estimated share of wrong labels among the remaining training rows, or None if there is no estimate."""
    suspicion = next((path for stage in ("profile", "suspect") if (path := files.path(stage, SUSPICION_FILE))), None)
    left = files.path("select", "selected.parquet") or files.path(files.last_row_stage, "rows.parquet")
    estimate = estimate_from_reviews(files.table("settle", LEDGER_FILE))
    if suspicion is not None and left is not None:
        by_samples = estimate_from_suspicion(suspicion, [left])
        estimate = by_samples if by_samples.rate is not None else estimate
    return estimate if estimate.rate is not None else None


def summarise(sections: Sections) -> dict[str, Any]:
    """Return every number on the page as JSON values, without the texts of rows."""
    before, after = sections.heldout
    ingest, *later = sections.account.passages
    return {
        "name": sections.name,
        "headline": {
            "records_in": sections.account.records_in,
            "rows_left": sections.left,
            "heldout_pass_rate_before": before and before.mean,
            "heldout_pass_rate_after": after and after.mean,
            # There is a report only if the rows add up.
            "adds_up": True,
        },
        "accounting": asdict(sections.account),
        "losses": list(map(asdict, sections.losses)),
        "sources": list(map(asdict, sections.sources)),
        "source_facts": list(sections.source_facts),
        "planted": sections.planted,
        "pass_rates": list(map(asdict, sections.groups)),
        "shifts": list(map(asdict, sections.shifts)),
        "reward_ratio": sections.rewards and list(map(asdict, sections.rewards.ratios)),
        "training": sections.training and _training_numbers(sections.training),
        "flagged": sections.flagged and asdict(sections.flagged),
        "wrong_labels": sections.labels and asdict(sections.labels),
        "drops": [
            {"stage": passage.stage, "reason": reason, "rows": rows}
            for passage in later
            for reason, rows in sorted(passage.lost.items(), key=lambda entry: (-entry[1], entry[0]))
        ],
        "edits": list(map(asdict, sections.edits)),
        "rejects": [{"reason": reason, "records": records} for reason, records in ingest.lost.items()],
        "stages": list(map(asdict, sections.stages)),
    }


def _training_numbers(training: Training) -> dict[str, Any]:
    metrics = {metric.name: {"first": metric.points[0], "last": metric.points[-1]} for metric in training.table}
    curves = {metric.name: metric.points for curve in training.curves for metric in curve.metrics}
    numbers = asdict(replace(training, curves=(), table=()))
    names = ("steps", "problems_seen", "is_finished", "ending", "moved")
    return {**{name: numbers[name] for name in names}, "metrics": metrics, "curves": curves}

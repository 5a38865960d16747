"""How training went: its metrics step by step, and what its guards said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from truegold.pipeline.report.shifts import Shift, find_shifts
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.tables.run_files import RunFiles

WAITING = ("trainer_waiting", "sampler_starved", "environment_wait")
"""The metrics of time that is lost where sampler and trainer run beside each other."""
STALENESS = ("staleness", "staleness_max", "stale_groups")
"""The metrics of how old groups were that were sampled beside the update."""
CURVES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Pass rate of the rollouts", ("pass_rate",)),
    ("Held-out pass rate", ("heldout_pass_rate",)),
    ("Entropy (nats per token)", ("entropy",)),
    ("Gradient norm", ("grad_norm",)),
    ("Mean length (tokens)", ("length_mean",)),
    ("Clipped tokens, and by what", ("clip_share", "clip_engine", "clip_staleness", "clip_update")),
    ("Sampler against trainer (|Δ log p|)", ("mismatch_abs", "probe_mean_abs")),
    ("Rollouts beside the update: who waits (share of the time)", WAITING),
    ("Rollouts beside the update: the oldest group (versions)", ("staleness_max",)),
)
"""The title of each chart, and the metrics drawn in it."""

TABLE_ONLY = (
    "reward",
    "unjudged",
    "truncated",
    "groups_all_right",
    "groups_all_wrong",
    "right_share",
    "trained_completions",
    "positive_token_mass",
    "distinct_answers",
    "mismatch_outside",
    "repetition",
    "foreign_script",
    "staleness",
    "stale_groups",
)
"""The metrics that have no chart."""

ENDINGS = ("pause", "stop")
"""The actions of guards that end a run."""
MOVED_SHOWN = 12
Point = tuple[int, float]
"""A step and a metric's value in it."""


@dataclass(frozen=True)
class Metric:
    """One metric's points; steps where it has no value are left out."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class GuardAlarm:
    """A guard that fired, and what was done."""

    step: int
    guard: str
    action: str
    metric: str | None
    """What it watches; None where an error has ended the run."""
    value: float | None
    causes: str
    remedy: str
    returned_to: int | None
    """The step of the checkpoint that the run returned to."""
    resumed_at: int | None
    """The step with which the run has gone on since, where this alarm had ended it."""


@dataclass(frozen=True)
class Curve:
    """The metrics of one chart."""

    title: str
    metrics: tuple[Metric, ...]
    alarms: tuple[GuardAlarm, ...] = ()
    """Marked on the time line."""


@dataclass(frozen=True)
class Training:
    """What is shown of a training."""

    steps: int
    problems_seen: int
    """The problems that were trained on."""
    curves: tuple[Curve, ...]
    table: tuple[Metric, ...]
    alarms: tuple[GuardAlarm, ...]
    """Of all guards, in order."""
    is_finished: bool
    """Whether it has come to its end."""
    ending: GuardAlarm | None
    """What has ended one that is not finished, if it is known."""
    moved: tuple[Shift, ...]
    """How far metrics have moved since the first steps, the furthest first."""


def read_training(files: RunFiles) -> Training | None:
    """Return what the run's training left, None where it has not trained."""
    folder = files.training
    if folder is None:
        return None
    is_finished = "train" in files
    lines = read_whole_lines(folder / "metrics.jsonl")
    alarms = tuple(_alarms(folder / "alarms.jsonl"))
    acted = tuple(alarm for alarm in alarms if alarm.action != "warn")
    is_ended = bool(alarms) and not is_finished and alarms[-1].action in ENDINGS and alarms[-1].resumed_at is None
    curves = [Curve(title, tuple(_metrics(lines, names)), acted) for title, names in CURVES]
    drawn = [name for _, names in CURVES for name in names]
    return Training(
        steps=sum("pass_rate" in line for line in lines),
        problems_seen=_problems_seen([parts for _, parts in steps_of(folder)]),
        # The first chart is the time line too: what stops a run at its start stands there alone.
        curves=tuple(curve for curve in curves if curve.metrics or (curve is curves[0] and acted)),
        table=tuple(_metrics(lines, (*drawn, *TABLE_ONLY))),
        alarms=alarms,
        is_finished=is_finished,
        ending=alarms[-1] if is_ended else None,
        moved=tuple(find_shifts([(int(line["step"]), line) for line in lines])[:MOVED_SHOWN]),
    )


def describe_waiting(folder: Path) -> list[dict[str, Any]]:
    """Return mean and most of who waited and of how old groups were, over the steps of a training in `folder` whose
    rollouts ran beside its updates; nothing for others."""
    lines = [line for line in read_whole_lines(folder / "metrics.jsonl") if WAITING[0] in line]
    values = {name: [line[name] for line in lines if name in line] for name in (*WAITING, *STALENESS)}
    return [
        {"metric": name, "mean": round(fmean(points), 4), "most": round(max(points), 4)}
        for name, points in values.items()
        if points
    ]


def _alarms(path: Path) -> Iterator[GuardAlarm]:
    for alarm in read_whole_lines(path):
        shown: dict[str, Any] = {field.name: alarm.get(field.name) for field in fields(GuardAlarm)}
        yield GuardAlarm(**shown)


def _metrics(lines: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Metric]:
    metrics = []
    for name in names:
        values = [(int(line["step"] or 0), line.get(name)) for line in lines]
        points = tuple((step, float(value)) for step, value in values if value is not None and math.isfinite(value))
        if points:
            metrics.append(Metric(name, points))
    return metrics


def steps_of(folder: Path) -> list[tuple[int, list[Path]]]:
    """Return the steps of a training with the files of their completions; each rank writes its own part of a step."""
    paths = sorted((folder / "completions").glob("step-*.parquet"))
    return [(step, list(parts)) for step, parts in groupby(paths, key=_step)]


def _step(path: Path) -> int:
    """Return the step of step-000002.parquet, or of step-000002.rank-1.parquet."""
    return int(path.name.removeprefix("step-").split(".", 1)[0])


def _problems_seen(steps: Sequence[Sequence[Path]]) -> int:
    if not steps:
        return 0
    ids = pl.scan_parquet(list(chain(*steps))).filter(pl.col("trained")).select(pl.col("id").n_unique())
    return int(ids.collect(engine="streaming").item())

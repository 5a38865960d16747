"""How training went: its metrics step by step, and what the model wrote in the first and in the last step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.report.run_files import RunFiles
from truegold.pipeline.report.shifts import Shift, find_shifts
from truegold.pipeline.running.json_lines import read_whole_lines

CURVES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Pass rate of the rollouts", ("pass_rate",)),
    ("Held-out pass rate", ("heldout_pass_rate",)),
    ("Entropy (nats per token)", ("entropy",)),
    ("Gradient norm", ("grad_norm",)),
    ("Mean length (tokens)", ("length_mean",)),
    ("Clipped tokens, and by what", ("clip_share", "clip_engine", "clip_staleness", "clip_update")),
    ("Sampler against trainer (|Δ log p|)", ("mismatch_abs", "probe_mean_abs")),
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
)
"""The metrics that have no chart."""

ENDINGS = ("pause", "stop")
"""The actions of guards that end a run."""
MOVED_SHOWN = 12
PROBLEMS_SHOWN = 3
COMPLETIONS_SHOWN = 2
"""How many completions of each problem are shown at the first and at the last step."""

COLUMNS = ["id", "prompt", "gold", "completion", "truncated", "score", "reason", "extracted", "advantage"]

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
class Attempt:
    """One completion of the training."""

    completion: str
    score: float | None
    reason: str
    extracted: str | None
    truncated: bool
    advantage: float


@dataclass(frozen=True)
class Problem:
    """A problem with some of its attempts."""

    id: str
    prompt: str
    gold: str | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Pairing:
    """A problem of the first step beside the same one, or another, of the last step."""

    first: Problem | None
    last: Problem | None


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
    first_step: int | None
    last_step: int | None
    pairings: tuple[Pairing, ...]


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
    paths = sorted((folder / "completions").glob("step-*.parquet"))
    # Each rank writes its own part of a step.
    steps = [list(parts) for _, parts in groupby(paths, key=_step)]
    return Training(
        steps=sum("pass_rate" in line for line in lines),
        problems_seen=_problems_seen(steps),
        # The first chart is the time line too: what stops a run at its start stands there alone.
        curves=tuple(curve for curve in curves if curve.metrics or (curve is curves[0] and acted)),
        table=tuple(_metrics(lines, (*drawn, *TABLE_ONLY))),
        alarms=alarms,
        is_finished=is_finished,
        ending=alarms[-1] if is_ended else None,
        moved=tuple(find_shifts([(int(line["step"]), line) for line in lines])[:MOVED_SHOWN]),
        first_step=_step(steps[0][0]) if steps else None,
        last_step=_step(steps[-1][0]) if len(steps) > 1 else None,
        pairings=_pairings(steps),
    )


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


def _step(path: Path) -> int:
    """Return the step of step-000002.parquet, or of step-000002.rank-1.parquet."""
    return int(path.name.removeprefix("step-").split(".", 1)[0])


def _problems_seen(steps: Sequence[Sequence[Path]]) -> int:
    if not steps:
        return 0
    ids = pl.scan_parquet(list(chain(*steps))).filter(pl.col("trained")).select(pl.col("id").n_unique())
    return int(ids.collect(engine="streaming").item())


def _pairings(steps: Sequence[Sequence[Path]]) -> tuple[Pairing, ...]:
    """Pair problems of the first and the last step: those of both with themselves, then the others in their order."""
    if not steps:
        return ()
    first_ids = _problem_ids(steps[0])
    last_ids = _problem_ids(steps[-1]) if len(steps) > 1 else []
    both = [id_ for id_ in first_ids if id_ in last_ids][:PROBLEMS_SHOWN]
    room = PROBLEMS_SHOWN - len(both)
    first = _problems(steps[0], both + [id_ for id_ in first_ids if id_ not in both][:room])
    last = _problems(steps[-1], both + [id_ for id_ in last_ids if id_ not in both][:room])
    return tuple(Pairing(*pair) for pair in zip_longest(first, last))


def _problem_ids(parts: Sequence[Path]) -> list[str]:
    ids = pl.scan_parquet(list(parts)).select(pl.col("id").unique(maintain_order=True)).collect()
    return [str(id_) for id_ in ids["id"]]


def _problems(parts: Sequence[Path], ids: Sequence[str]) -> list[Problem]:
    if not ids:
        return []
    rows = pl.scan_parquet(list(parts)).select(COLUMNS).filter(pl.col("id").is_in(list(ids))).collect().to_dicts()
    problems = []
    for id_ in ids:
        few = [row for row in rows if row["id"] == id_][:COMPLETIONS_SHOWN]
        attempts = tuple(Attempt(**{name: row[name] for name in Attempt.__dataclass_fields__}) for row in few)
        problems.append(Problem(id_, few[0]["prompt"], few[0]["gold"], attempts))
    return problems

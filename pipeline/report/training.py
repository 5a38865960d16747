"""The course of a training: its metrics step by step, what moved most, its completions, and what its guards said."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files as package_files
from itertools import groupby
from pathlib import Path
from statistics import fmean, median
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.page_rows import pack
from truegold.pipeline.report.row_cards import longer_than, middle_cut
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.tables.run_files import Fields, RunFiles

TO_DEVIATION = 1.4826
"""The median absolute deviation of normal values times this is their standard deviation."""
EDGE = 8
"""The number of steps that count as the start, and as the end."""
FEWEST_STEPS = 2 * EDGE
"""A shorter run has no end that its start could be compared with."""
LEAST_SHIFT = 0.05
"""A smaller shift, as a share of the start, is left out even of a steady metric."""
SKIPPED = ("seconds_", "lr", "step", "epoch", "term_std/")
"""Prefixes of metrics that do not describe the training data."""

WAITING = ("trainer_waiting", "sampler_starved", "environment_wait")
"""The metrics of time that is lost where sampler and trainer run at the same time."""
STALENESS = ("staleness", "staleness_max", "stale_groups")
"""The metrics of how old groups were that were sampled during the update."""
METRICS_SHOWN = orjson.loads((package_files(__package__) / "training_metrics.json").read_bytes())
"""The title of each chart with the metrics that are drawn in it (`curves`), and those that have none (`table_only`),
each with its name in words."""
METRIC_WORDS: Mapping[str, str] = dict(
    pair for metrics in (*METRICS_SHOWN["curves"].values(), METRICS_SHOWN["table_only"]) for pair in metrics.items()
)
ENDINGS = ("pause", "stop")
"""The actions of guards that end a run."""
MOVED_SHOWN = 12
"""The metrics that are listed as the furthest moved."""
LEAST_START = 1e-3
"""Shifts are compared with the start of a metric, and with this much where it starts near 0."""
ANSWER_CHARS = 200
"""The characters of a gold and of an answer."""

Point = tuple[int, float]
"""A step and a metric's value in it."""

STEPS_SHOWN = 100
"""The steps of the page, evenly over the training, the first and the last among them."""
PROBLEMS_SHOWN = 12
"""The problems of each of them: those first that come in other steps of the page too."""
ATTEMPTS_SHOWN = 8
COMPLETION_CHARS = 800
PROMPT_CHARS = 1_000

COMPLETION_COLUMNS = ["id", "prompt", "gold", "completion", "truncated", "score", "reason", "extracted", "advantage"]
"""The columns of a step's completions that are read."""


@dataclass(frozen=True)
class Metric:
    """One metric's points; steps where it has no value are left out."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Shift:
    """The move of one metric."""

    metric: str
    start: float
    """The median of the first steps."""
    end: float
    """The median of the last ones."""
    deviations: float
    """Their distance in deviations of the first steps."""


@dataclass(frozen=True)
class GuardAlarm:
    """A guard that fired, and what was done."""

    step: int
    guard: str
    action: str
    metric: str | None
    """The metric that it watches, or None if an error has ended the run."""
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
    """A training as the report shows it."""

    steps: int
    problems_seen: int
    """The problems that were trained on."""
    curves: tuple[Curve, ...]
    table: tuple[Metric, ...]
    alarms: tuple[GuardAlarm, ...]
    """The alarms of all guards, in order."""
    is_finished: bool
    """Whether it has come to its end."""
    ending: GuardAlarm | None
    """The alarm that has ended a training that is not finished, if it is known."""
    moved: tuple[Shift, ...]
    """The metrics that have moved since the first steps, the furthest first."""


def read_training(files: RunFiles) -> Training | None:
    """Return what the run's training left, or None if it has not trained."""
    if (folder := files.training) is None:
        return None
    is_finished = "train" in files
    lines = read_whole_lines(folder / "metrics.jsonl")
    alarms = tuple(_alarms(folder / "alarms.jsonl"))
    acted = tuple(alarm for alarm in alarms if alarm.action != "warn")
    is_ended = bool(alarms) and not is_finished and alarms[-1].action in ENDINGS and alarms[-1].resumed_at is None
    curves = [Curve(title, tuple(_metrics(lines, names)), acted) for title, names in METRICS_SHOWN["curves"].items()]
    return Training(
        steps=sum("pass_rate" in line for line in lines),
        problems_seen=_count_problems(folder),
        # The first chart is the time line too: what stops a run at its start stands there alone.
        curves=tuple(curve for curve in curves if curve.metrics or (curve is curves[0] and acted)),
        table=tuple(_metrics(lines, METRIC_WORDS)),
        alarms=alarms,
        is_finished=is_finished,
        ending=alarms[-1] if is_ended else None,
        moved=tuple(find_shifts((int(line["step"]), line) for line in lines)[:MOVED_SHOWN]),
    )


def describe_waiting(folder: Path) -> list[dict[str, Any]]:
    """Return the mean and the maximum of waiting times and of the age of groups, for an asynchronous training in
    `folder`. Empty for other trainings."""
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


def _metrics(lines: Sequence[dict[str, Any]], names: Iterable[str]) -> list[Metric]:
    metrics = []
    for name in names:
        values = [(int(line["step"] or 0), line.get(name)) for line in lines]
        points = tuple((step, float(value)) for step, value in values if value is not None and math.isfinite(value))
        if points:
            metrics.append(Metric(name, points))
    return metrics


def _steps_of(folder: Path) -> list[tuple[int, list[Path]]]:
    """Return the steps of a training with the files of their completions; each rank writes its own part of a step."""
    paths = sorted((folder / "completions").glob("step-*.parquet"))
    # step-000002.parquet, or step-000002.rank-1.parquet
    parts = groupby(paths, key=lambda path: path.name.removeprefix("step-").split(".", 1)[0])
    return [(int(step), list(files)) for step, files in parts]


def _count_problems(folder: Path) -> int:
    paths = [path for _, parts in _steps_of(folder) for path in parts]
    if not paths:
        return 0
    ids = pl.scan_parquet(paths).filter(pl.col("trained")).select(pl.col("id").n_unique())
    return int(ids.collect(engine="streaming").item())


def find_shifts(lines: Iterable[tuple[int, Mapping[str, float | None]]]) -> list[Shift]:
    """Return how far each metric has moved, the furthest first."""
    series: dict[str, list[float]] = {}
    for _, metrics in lines:
        for name, value in metrics.items():
            if value is not None and math.isfinite(value) and not name.startswith(SKIPPED):
                series.setdefault(name, []).append(value)
    moved = []
    for name, values in series.items():
        if len(values) < FEWEST_STEPS:
            continue
        start, end = median(values[:EDGE]), median(values[-EDGE:])
        spread = TO_DEVIATION * median(abs(value - start) for value in values[:EDGE])
        if abs(end - start) <= LEAST_SHIFT * max(abs(start), LEAST_START):
            continue
        moved.append(Shift(name, start, end, (end - start) / max(spread, LEAST_SHIFT * abs(start), LEAST_START)))
    return sorted(moved, key=lambda shift: -abs(shift.deviations))


def pack_completions(training: Path | None) -> str | None:
    """Return the packed completions of a training's folder, or None if they are missing."""
    steps = _steps_of(training) if training is not None else []
    if not steps:
        return None
    last = len(steps) - 1
    count = min(len(steps), STEPS_SHOWN)
    chosen = sorted({round(index * last / max(count - 1, 1)) for index in range(count)})
    ids = {index: _problem_ids(steps[index][1]) for index in chosen}
    occurrences = Counter(problem for problems in ids.values() for problem in problems)
    shown = []
    for index in chosen:
        step, parts = steps[index]
        # Among equals the id decides, in every step alike, so that the same problems are chosen wherever they come.
        ordered = sorted(ids[index], key=lambda problem: (-occurrences[problem], problem))[:PROBLEMS_SHOWN]
        folder = f"{parts[0].parent.parent.name}/{parts[0].parent.name}"
        files = f"{folder}/{parts[0].name.split('.', 1)[0]}*.parquet"
        shown.append({"step": step, "files": files, "problems": _problems(parts, ordered)})
    return pack({"steps": shown, "all": len(steps)})


def _problem_ids(parts: Sequence[Path]) -> list[str]:
    """Return the ids of a step's problems in their order."""
    ids = pl.scan_parquet(list(parts)).select(pl.col("id").unique(maintain_order=True)).collect()
    return ids["id"].to_list()


def _problems(parts: Sequence[Path], ids: Sequence[str]) -> list[Fields]:
    completions = pl.scan_parquet(list(parts)).select(COMPLETION_COLUMNS)
    rows = completions.filter(pl.col("id").is_in(list(ids))).collect().to_dicts()
    problems = []
    for id_ in ids:
        attempts = [row for row in rows if row["id"] == id_]
        first = attempts[0]
        problems.append(
            {
                "id": id_,
                "prompt": middle_cut(first["prompt"], PROMPT_CHARS),
                **longer_than(PROMPT_CHARS, first["prompt"]),
                "gold": None if first["gold"] is None else middle_cut(first["gold"], ANSWER_CHARS),
                "attempts": [_attempt(row) for row in attempts[:ATTEMPTS_SHOWN]],
                "right": sum(row["score"] == 1.0 for row in attempts),
                "n": len(attempts),
            }
        )
    return problems


def _attempt(row: Mapping[str, Any]) -> Fields:
    return {
        "text": middle_cut(row["completion"], COMPLETION_CHARS),
        **longer_than(COMPLETION_CHARS, row["completion"]),
        "score": row["score"],
        "reason": row["reason"],
        "answer": None if row["extracted"] is None else middle_cut(row["extracted"], ANSWER_CHARS),
        "advantage": None if row["advantage"] is None else round(row["advantage"], 3),
        "truncated": row["truncated"],
    }

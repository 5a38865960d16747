"""Reads a training for the report: metrics by step, their largest changes, completions, and alarms of guards."""

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
"""Multiplied by this, the median absolute deviation of normal values gives their standard deviation."""
EDGE = 8
"""The first EDGE steps are compared with the last EDGE steps."""
FEWEST_STEPS = 2 * EDGE
"""A metric with fewer steps is not compared."""
LEAST_SHIFT = 0.05
"""A change is listed if it is larger than this share of the start value."""
SKIPPED = ("seconds_", "lr", "step", "epoch", "term_std/")
"""Prefixes of metrics that do not describe the training data."""

WAITING = ("trainer_waiting", "sampler_starved", "environment_wait")
"""Metrics of the time that sampler and trainer wait for each other when they run at the same time."""
STALENESS = ("staleness", "staleness_max", "stale_groups")
"""Metrics of the age of groups, in updates since they were sampled."""
METRICS_SHOWN = orjson.loads((package_files(__package__) / "training_metrics.json").read_bytes())
"""The metrics on the page with their names in words: `curves` by the title of their chart, and `table_only`."""
METRIC_WORDS: Mapping[str, str] = dict(
    pair for metrics in (*METRICS_SHOWN["curves"].values(), METRICS_SHOWN["table_only"]) for pair in metrics.items()
)
"""The names in words of all metrics on the page."""
ENDINGS = ("pause", "stop")
"""The actions of guards that end a run."""
MOVED_SHOWN = 12
"""The maximum number of metrics in the list of largest changes."""
LEAST_START = 1e-3
"""A smaller start value is replaced by this value when changes are computed."""
ANSWER_CHARS = 200
"""The maximum number of characters of a gold or an answer."""

Point = tuple[int, float]
"""A step, and the value of a metric at this step."""

STEPS_SHOWN = 100
"""The maximum number of steps whose completions are on the page. They are evenly spaced."""
PROBLEMS_SHOWN = 12
"""The maximum number of problems for each step. Problems that occur at several of these steps come first."""
ATTEMPTS_SHOWN = 8
COMPLETION_CHARS = 800
PROMPT_CHARS = 1_000

COMPLETION_COLUMNS = ["id", "prompt", "gold", "completion", "truncated", "score", "reason", "extracted", "advantage"]
"""The columns that are read from a step's completions."""


@dataclass(frozen=True)
class Metric:
    """The points of one metric. Steps without a value are left out."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Shift:
    """The change of one metric."""

    metric: str
    start: float
    """The median over the first steps."""
    end: float
    """The median over the last steps."""
    deviations: float
    """The change, as a multiple of the standard deviation over the first steps."""


@dataclass(frozen=True)
class GuardAlarm:
    """An alarm of a guard, with the action that followed."""

    step: int
    guard: str
    action: str
    metric: str | None
    """The metric that the guard watches, or None if an error ended the run."""
    value: float | None
    causes: str
    remedy: str
    returned_to: int | None
    """The step of the checkpoint to which the run returned."""
    resumed_at: int | None
    """The step at which the run was resumed, if this alarm ended it."""


@dataclass(frozen=True)
class Curve:
    """The metrics of one chart."""

    title: str
    metrics: tuple[Metric, ...]
    alarms: tuple[GuardAlarm, ...] = ()
    """Alarms that are marked on the chart."""


@dataclass(frozen=True)
class Training:
    """A training, for the report."""

    steps: int
    problems_seen: int
    """The number of problems that were trained on."""
    curves: tuple[Curve, ...]
    table: tuple[Metric, ...]
    alarms: tuple[GuardAlarm, ...]
    """The alarms of all guards, in order."""
    is_finished: bool
    """True if the training has finished."""
    ending: GuardAlarm | None
    """The alarm that ended the training before it was finished, or None."""
    moved: tuple[Shift, ...]
    """The largest changes of metrics since the first steps, the largest first."""


def read_training(files: RunFiles) -> Training | None:
    """Return the training of a run, or None if it has not trained."""
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
        # A run that stops at its start has alarms and no metrics. The first chart then shows only the alarms.
        curves=tuple(curve for curve in curves if curve.metrics or (curve is curves[0] and acted)),
        table=tuple(_metrics(lines, METRIC_WORDS)),
        alarms=alarms,
        is_finished=is_finished,
        ending=alarms[-1] if is_ended else None,
        moved=tuple(find_shifts((int(line["step"]), line) for line in lines)[:MOVED_SHOWN]),
    )


def describe_waiting(folder: Path) -> list[dict[str, Any]]:
    """Return the mean and the maximum of the metrics WAITING and STALENESS.

    The list is empty unless the training was asynchronous: sampling and training ran at the same time.
    """
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
    """Return the steps of a training with the files of their completions. Each rank writes its own file."""
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
    """Return the changes of all metrics, the largest first."""
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
    """Return the packed completions of a training, or None if there are none."""
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
        # Ties are broken by id. So steps with the same problems show the same ones.
        ordered = sorted(ids[index], key=lambda problem: (-occurrences[problem], problem))[:PROBLEMS_SHOWN]
        folder = f"{parts[0].parent.parent.name}/{parts[0].parent.name}"
        files = f"{folder}/{parts[0].name.split('.', 1)[0]}*.parquet"
        shown.append({"step": step, "files": files, "problems": _problems(parts, ordered)})
    return pack({"steps": shown, "all": len(steps)})


def _problem_ids(parts: Sequence[Path]) -> list[str]:
    return pl.scan_parquet(list(parts)).select(pl.col("id").unique(maintain_order=True)).collect()["id"].to_list()


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

"""Reads the metrics of a run of truegold or another trainer, and translates their names to those of the guards.

    log = read_log(Path("trl-run"))
    log.trainer                 TRL
    log.lines[0]                (1, {"reward": 1.03, "accuracy": 0.37, "pass_rate": 0.37, "zero_std": 0.03, ...})
    log.columns["accuracy"]     rewards/accuracy_reward/mean
    log.unread                  ["num_tokens", "step_time", ...]

The total reward is a sum of terms, not a pass rate. The accuracy is the term with such a name, and is a pass rate if it
is always between 0 and 1. `log_files.py` reads the files, and `metric_names.toml` has the names.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from truegold.train.guards.log_files import PATTERNS, Entry, LogEntries, read_entries
from truegold.train.guards.trends import Move, measure_move
from truegold.verifiers import InputError

ALARMS = "alarms.jsonl"
"""A file in the stage's folder with every alarm and its action."""

Metrics = dict[str, float | None]
"""One step's metrics by the names that the guards know."""

METRIC_NAMES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    files("truegold.train.guards").joinpath("metric_names.toml").read_text("utf-8")
)
"""The patterns of each trainer's names of metrics, with the names that the guards know."""
OWN_METRICS = ("pass_rate", "heldout_pass_rate")
"""Metrics that only truegold writes under these names."""
ACCURACY_WORDS = {"accuracy", "acc", "correct", "correctness", "truegold"}
"""A term with one of these words in its name is the accuracy. So is a term with the name `score`."""
OTHER_WORDS = {
    "format",
    "xml",
    "tag",
    "tags",
    "structure",
    "length",
    "style",
    "language",
    "think",
    "thinking",
    "penalty",
}
"""A term with one of these words in its name is not the accuracy."""
EMPTY_WORDS = {"reward", "rewards", "func", "fn", "mean", "avg"}
WIDEST = 0.55
"""Rewards that are 0 or 1 have no greater standard deviation, even in groups of eight."""
GENERIC = {"reward", "loss", "grad_norm", "learning_rate", "lr", "kl", "entropy", "epoch"}
"""Columns that do not tell which trainer wrote them."""
FEWEST_NAMES = 3
"""A file without steps is a log if at least this many of its columns are metrics."""
FILLED = 4
"""A row of NaN with at least this many names is left out. With fewer names, the NaN were logged."""
MOST_REPEATS = 4
"""A log that repeats a step more often than this has a line for each rollout, not for each step."""


@dataclass(frozen=True)
class RunLog:
    """The metrics of a finished run."""

    trainer: str
    """The program that wrote them: `truegold`, `TRL`, `verl` and so on."""
    path: Path
    """The file that was read."""
    lines: list[tuple[int, Metrics]]
    """Steps with their metrics by the names that the guards know, in order."""
    columns: dict[str, str] = field(default_factory=dict)
    """Maps the guards' name of a metric to the column that was read."""
    unread: list[str] = field(default_factory=list)
    """Columns that no name is known for."""
    notes: list[str] = field(default_factory=list)
    """Notes on parts that could not be read, or were changed."""
    returns: list[tuple[int, int]] = field(default_factory=list)
    """The steps at which the log goes back: from this step to that one."""
    is_rounded: bool = False
    """Whether a 0 may stand for a small number."""

    def series(self, metric: str) -> tuple[list[int], list[float]]:
        """Return the steps in which a metric is known and finite, and its values there."""
        points = [(step, value) for step, metrics in self.lines if (value := metrics.get(metric)) is not None]
        points = [(step, value) for step, value in points if math.isfinite(value)]
        return [step for step, _ in points], [value for _, value in points]


def read_log(path: Path) -> RunLog:
    """Read the metrics of a run, and recognise its trainer by their names. Raises InputError for other files."""
    file = _find_file(path)
    if file.name == ALARMS:
        return RunLog("truegold", file, [])
    log = read_entries(file)
    steps = [step for step, _ in log.entries]
    if steps[0] > steps[-1] and steps == sorted(steps, reverse=True):
        # A table that was sorted by its newest step.
        log.entries.reverse()
    columns = {name: None for _, entry in log.entries for name in entry}
    if any(name in columns for name in OWN_METRICS) and log.has_steps:
        merged, returns = _merge(log.entries)
        return RunLog("truegold", file, _with_shares(merged), notes=log.notes, returns=returns)
    trainer = max(METRIC_NAMES, key=lambda name: len(_known(name, columns)))
    known = _known(trainer, columns)
    if not known or (not log.has_steps and len(known) < FEWEST_NAMES):
        names = ", ".join(METRIC_NAMES)
        raise InputError(f"{file} has no metrics of truegold, {names}.", "Give a run's folder or its metrics file.")
    return _foreign(file, "unknown trainer" if known.keys() <= GENERIC else trainer, log, known)


def _find_file(path: Path) -> Path:
    """Return the newest file with metrics of a run: `path` itself, or one in that folder."""
    if path.is_file():
        return path
    choices = (
        # A run may have a finished training and a newer, failed one.
        ("metrics.jsonl", "train/metrics.jsonl", ".partial/train-*/metrics.jsonl"),
        ("trainer_state.json", "checkpoint-*/trainer_state.json"),
        # A training that was stopped before its first step has nothing else.
        (ALARMS, f".partial/train-*/{ALARMS}"),
    )
    for patterns in choices:
        files = [file for pattern in patterns for file in path.glob(pattern)]
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    for pattern in PATTERNS:
        files = sorted(path.glob(pattern))
        if len(files) > 1 and not pattern.startswith("**"):
            raise InputError(f"{path} holds {len(files)} files that may be logs.", f"Give one, such as {files[0]}.")
        if files:
            return max(files, key=lambda file: file.stat().st_mtime)
    raise InputError(f"{path} has no metrics of a training.", "Give a run's folder or its metrics file.")


@cache
def _patterns(trainer: str) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """Return a trainer's names as patterns, each with the guards' names."""
    table = METRIC_NAMES[trainer]
    return tuple((re.compile(table["prefix"] + name), tuple(meanings)) for name, meanings in table["names"].items())


def _known(trainer: str, columns: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return by the guards' names the columns that a trainer has for them, the first by the order of its table."""
    known: dict[str, dict[str, str]] = {}
    ranks: dict[str, int] = {}
    for column in columns:
        for rank, (pattern, names) in enumerate(_patterns(trainer)):
            if (match := pattern.fullmatch(column)) is None:
                continue
            meanings = {name.format(*match.groups()): column for name in names}
            known[column] = meanings
            ranks[column] = rank
            break
    taken: dict[str, dict[str, str]] = {}
    best: dict[str, int] = {}
    for column in sorted(known, key=lambda name: ranks[name]):
        taken[column] = {name: column for name in known[column] if name not in best}
        best |= dict.fromkeys(taken[column], ranks[column])
    return taken


def _foreign(file: Path, trainer: str, log: LogEntries, known: Mapping[str, Mapping[str, str]]) -> RunLog:
    """Return another trainer's log in the names of the guards."""
    translated = [
        (step, {name: value for column, value in entry.items() for name in known.get(column, ())})
        for step, entry in log.entries
    ]
    if max(_repeats(translated).values(), default=0) > MOST_REPEATS:
        raise InputError(f"{file} has many lines of each step: these are no metrics.", "Give the log of the training.")
    merged, returns = _merge(_without_blanks([(step, entry) for step, entry in translated if entry]))
    columns = {name: column for meanings in known.values() for name, column in meanings.items()}
    columns |= _add_accuracy(merged, columns) | _add_heldout(merged, columns)
    for _, metrics in merged:
        _derive(metrics)
    unread = {name for _, entry in log.entries for name in entry} - set(known) | log.texts
    return RunLog(trainer, file, merged, columns, sorted(unread), log.notes, returns, log.is_rounded)


def _repeats(translated: Iterable[tuple[int, Entry]]) -> dict[tuple[int, str], int]:
    """Return how often a step has a loss or a reward, without counting resumed steps."""
    counts: dict[tuple[int, str], int] = {}
    for step, entry in translated:
        for name in {"reward", "loss"} & entry.keys():
            counts[step, name] = counts.get((step, name), 0) + 1
    return counts


def _without_blanks(entries: Sequence[tuple[int, Entry]]) -> Iterator[tuple[int, Entry]]:
    """Yield the entries without rows that a tracker has filled up with NaN, such as those of an evaluation.

    A row is one of these where it has a held-out metric, or where others with numbers follow: what is lost goes on so.
    """
    is_blank = []
    for _, entry in entries:
        values = [value for name, value in entry.items() if not name.startswith("heldout/")]
        is_blank.append(len(values) > 0 and all(map(math.isnan, values)))
    last = max((index for index, blank in enumerate(is_blank) if not blank), default=-1)
    for index, (step, entry) in enumerate(entries):
        heldout = {name: value for name, value in entry.items() if name.startswith("heldout/")}
        if not is_blank[index] or (not heldout and (index > last or len(entry) < FILLED)):
            yield step, entry
        elif heldout:
            yield step, heldout


def _merge(
    steps: Iterable[tuple[int, Mapping[str, float | None]]],
) -> tuple[list[tuple[int, Metrics]], list[tuple[int, int]]]:
    """Put lines of the same step together, in order, and mark those with a number that is not finite.

    Where a run was resumed, its reward or loss goes back in steps: what comes later counts. Return also those returns.
    """
    merged: dict[int, Metrics] = {}
    latest: dict[str, int] = {}
    returns: list[tuple[int, int]] = []
    for step, metrics in steps:
        back = [
            last
            for name in ("reward", "loss", "pass_rate")
            if name in metrics and step < (last := latest.get(name, step))
        ]
        if back:
            returns.append((max(back), step))
            merged = {past: values for past, values in merged.items() if past < step}
            latest = {}
        latest |= dict.fromkeys(metrics, step)
        merged.setdefault(step, {}).update(metrics)
    for metrics in merged.values():
        watched = [value for name, value in metrics.items() if name in ("loss", "grad_norm", "kl", "entropy", "reward")]
        if any(value is not None and not math.isfinite(value) for value in watched):
            metrics["not_finite"] = 1.0
    return sorted(merged.items()), returns


def _with_shares(merged: list[tuple[int, Metrics]]) -> list[tuple[int, Metrics]]:
    """Add to truegold's metrics the share of groups that teach nothing."""
    for _, metrics in merged:
        teaching = metrics.get("groups_teaching")
        if teaching is not None:
            metrics["zero_std"] = 1.0 - teaching
    return merged


def _add_accuracy(merged: Sequence[tuple[int, Metrics]], columns: Mapping[str, str]) -> dict[str, str]:
    """Add the accuracy to each step's metrics, and the pass rate where it is one; return the column that it is."""
    terms = [name for name in columns if name.startswith("term/") and is_accuracy(name.removeprefix("term/"))]
    if not terms:
        return {}
    term = terms[0]
    values = [value for _, metrics in merged if (value := metrics.get(term)) is not None and math.isfinite(value)]
    deviations = [metrics.get("term_std/" + term.removeprefix("term/")) or 0.0 for _, metrics in merged]
    edges = [
        metrics.get(name) for name in ("reward_min", "reward_max") for _, metrics in merged if term == "term/score"
    ]
    in_range = all(0.0 <= value <= 1.0 for value in [*values, *(edge for edge in edges if edge is not None)])
    is_rate = in_range and max(deviations, default=0.0) <= WIDEST
    for _, metrics in merged:
        if (value := metrics.pop(term, None)) is not None:
            metrics["accuracy"] = value
            if is_rate:
                metrics["pass_rate"] = value
    return {"accuracy": columns[term]} | ({"pass_rate": columns[term]} if is_rate and values else {})


def is_accuracy(name: str) -> bool:
    """Say whether a term's name calls it the accuracy: `accuracy_reward`, `acc`, `correctness`, `score`."""
    words = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))
    if words & OTHER_WORDS:
        return False
    return bool(words & ACCURACY_WORDS) or words - EMPTY_WORDS == {"score"}


def _add_heldout(merged: Sequence[tuple[int, Metrics]], columns: Mapping[str, str]) -> dict[str, str]:
    """Add to each step's metrics what an evaluation found, the mean over its sets; return the columns that it is."""
    names = [name for name in columns if name.startswith("heldout/")]
    totals = [name for name in names if name in ("heldout/reward", "heldout/scores")]
    rates = [name for name in names if name not in totals]
    accuracies = [name for name in rates if is_accuracy(name.removeprefix("heldout/"))]
    chosen = accuracies or ([] if totals else rates) or totals
    complete = max((sum(name in metrics for name in chosen) for _, metrics in merged), default=0)
    for _, metrics in merged:
        values = [value for name in chosen if (value := metrics.get(name)) is not None and math.isfinite(value)]
        for name in names:
            metrics.pop(name, None)
        if values and len(values) == complete:
            metrics["heldout_pass_rate"] = sum(values) / len(values)
    return {"heldout_pass_rate": ", ".join(columns[name] for name in chosen)} if chosen else {}


def _derive(metrics: Metrics) -> None:
    """Add what a trainer logs in another form."""
    none, every = metrics.get("solved_none"), metrics.get("solved_all")
    if none is not None and every is not None:
        metrics["zero_std"] = none + every
    if (mixed := metrics.get("mixed_percent")) is not None:
        metrics["zero_std"] = 1.0 - mixed / 100.0
    if (ended := metrics.get("ended")) is not None:
        metrics["truncated"] = 1.0 - ended


def quality_of(log: RunLog) -> str:
    """Return the metric that says best how good completions are: the accuracy, else the reward."""
    names = {name for _, metrics in log.lines for name in metrics}
    return next((name for name in ("accuracy", "pass_rate", "reward") if name in names), "reward")


def move_of(log: RunLog, metric: str) -> Move | None:
    """Return how a metric moved over the run, or None if it is not logged or too seldom."""
    return measure_move(*log.series(metric))


def improves(log: RunLog) -> bool:
    """Say whether completions become better over the run."""
    move = move_of(log, quality_of(log))
    return move is not None and move.is_up and move.change > 0.1 * max(abs(move.start), 0.1)


def steps_per_epoch(log: RunLog) -> int | None:
    """Return how many steps an epoch has, where the log says so and has more than one."""
    steps, epochs = log.series("epoch")
    if len(steps) < 2 or epochs[-1] - epochs[0] < 1.0:
        return None
    return round((steps[-1] - steps[0]) / (epochs[-1] - epochs[0]))

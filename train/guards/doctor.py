"""Says of a finished run what went wrong, when, and what probably caused it, by the guards that watch a running one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truegold.pipeline.report.training import ENDINGS, find_shifts
from truegold.pipeline.running.disk import read_whole_lines
from truegold.train.guards.logs import ALARMS, RunLog, read_log
from truegold.train.guards.table import SEVERITY
from truegold.train.guards.watch import Alarm, Watch

SHOWN_SHIFTS = 8


def examine_log(path: Path) -> Iterator[str]:
    """Yield the lines of a diagnosis. Raises InputError where `path` holds no metrics."""
    log = read_log(path)
    alarms = replay(log)
    first, last = (log.lines[0][0], log.lines[-1][0]) if log.lines else (0, 0)
    yield f"{log.path}: {log.trainer}, steps {first} to {last}, {len(alarms)} alarms"
    stop = recorded_stop(log.path.with_name(ALARMS))
    if stop is not None:
        yield f"what ended it: Step {stop['step']}: {stop['guard']}: {stop['causes']}."
        yield f"what to do: {stop['remedy']}"
    if alarms:
        worst = diagnose(alarms)
        yield f"what went wrong: {worst.line()}"
        yield f"what to do: {worst.remedy}"
        yield from _other_lines(alarms, worst)
    elif stop is None:
        yield "no guard fires."
    moved = find_shifts(log.lines)[:SHOWN_SHIFTS]
    if moved:
        yield "what moved most, first steps -> last steps:"
    for shift in moved:
        yield f"  {shift.metric:<28} {shift.start:>10.4g} -> {shift.end:<10.4g} {shift.deviations:+.0f} deviations"


def recorded_stop(path: Path) -> dict[str, Any] | None:
    """Return the alarm that has ended a run without a guard of the table, by the run's own record; None where there is
    none, or where the run has gone on since."""
    alarms = read_whole_lines(path)
    if not alarms or alarms[-1]["action"] not in ENDINGS or alarms[-1]["metric"] is not None:
        return None
    return alarms[-1] if alarms[-1].get("resumed_at") is None else None


def replay(log: RunLog) -> list[Alarm]:
    """Return the alarms that a run would have raised, had it been watched; nobody has acted on them."""
    watch = Watch()
    return [alarm for step, metrics in log.lines for alarm in watch.observe(step, metrics)]


def diagnose(alarms: list[Alarm]) -> Alarm:
    """Return the alarm that says what went wrong: the first that asks for more than a warning, else the first."""
    serious = [alarm for alarm in alarms if SEVERITY[alarm.action] > SEVERITY["warn"]]
    return (serious or alarms)[0]


def _other_lines(alarms: list[Alarm], worst: Alarm) -> Iterator[str]:
    """Yield a line for each other guard that fires, with its first step."""
    by_guard: dict[str, list[Alarm]] = {}
    for alarm in alarms:
        by_guard.setdefault(alarm.guard, []).append(alarm)
    for guard, its_alarms in by_guard.items():
        if guard != worst.guard:
            yield f"  {its_alarms[0].line()} ({len(its_alarms)} times)"

"""Watches the metrics of a run, step after step, by the table of guards: pure, without any knowledge of a trainer.

    watch = GuardWatch()
    for step, metrics in enumerate(lines):
        for alarm in watch.observe(step, metrics):
            print(alarm.line())

Baselines are medians of healthy values alone: a value that a guard finds wrong is not added to them, or a collapse
would soon be the rule that the next one is measured by.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from truegold.pipeline.report.training import TO_DEVIATION
from truegold.train.guards.table import GUARDS, SEVERITY, Action, MetricGuard, derived_metrics

WINDOW = 20
"""The recent baseline is of so many healthy steps."""
WARM_UP = 8
"""The recent baseline is not used before it has so many; the first so many healthy steps are the start."""
ERRORS = 4.0
"""What was measured on few samples is not wrong before it is so many standard errors away."""
FEWEST = 3
"""With fewer values a deviation says nothing, and the floor and the ratio decide."""
QUIET = 20
"""A guard that has warned is silent for so many steps; and a streak is over after so many without a measurement."""


@dataclass(frozen=True)
class Alarm:
    """A guard that fired."""

    step: int
    guard: str
    action: Action
    metric: str
    value: float
    """What the metric was."""
    baseline: float | None
    """What it was compared with; None for a limit."""
    threshold: float
    """The value from which the guard finds it wrong."""
    since: int
    """The first step of those in a row."""
    causes: str
    remedy: str

    def line(self) -> str:
        """Return one line that says what happened."""
        usual = "" if self.baseline is None else f", usual {self.baseline:.3g}"
        return (
            f"Step {self.step}: {self.guard}: {self.metric} is {self.value:.3g} (bound {self.threshold:.3g}{usual}) "
            f"since step {self.since}. Likely: {self.causes}."
        )


@dataclass
class Series:
    """The healthy values of one metric."""

    start: list[float] = field(default_factory=list)
    """The first ones."""
    recent: list[float] = field(default_factory=list)
    """The last ones."""
    highest: float = -math.inf
    lowest: float = math.inf
    error: float = 0.0
    """The standard error of the highest one."""

    def add(self, value: float, error: float = 0.0) -> None:
        """Take a healthy value in, with its standard error."""
        if value > self.highest:
            self.error = error
        if len(self.start) < WARM_UP:
            self.start.append(value)
        self.recent = [*self.recent, value][-WINDOW:]
        self.highest, self.lowest = max(self.highest, value), min(self.lowest, value)


@dataclass
class GuardWatch:
    """The state of all guards."""

    off: Collection[str] = ()
    """Names of guards that do not watch, and of actions in whose place there is a warning."""
    guards: Sequence[MetricGuard] = GUARDS
    series: dict[str, Series] = field(default_factory=dict)
    """By metric."""
    streaks: dict[str, list[int]] = field(default_factory=dict)
    """By guard: the first step of its present streak, how many steps it has, and the last of them. Steps in which the
    metric is unknown neither belong to a streak nor end it, as long as they are few (`QUIET`)."""
    quiet_until: dict[str, int] = field(default_factory=dict)
    """By guard: the step from which it watches again."""
    latest: dict[str, float] = field(default_factory=dict)
    """By metric: its last value."""
    known: tuple[int, dict[str, float | None]] = (-1, {})
    """The present step, and what is known of it."""

    def observe(self, step: int, metrics: Mapping[str, float | None]) -> list[Alarm]:
        """Take in metrics of a step, and return the alarms that they raise, the hardest action first.

        A step may be observed in parts, each with the metrics that are known by then, as long as no metric comes twice.
        """
        before = self.known[1] if self.known[0] == step else {}
        self.known = step, {**before, **metrics}
        derived_before = derived_metrics(before)
        derived = {name: value for name, value in derived_metrics(self.known[1]).items() if name not in derived_before}
        values = {name: value for name, value in {**derived, **metrics}.items() if value is not None}
        self.latest |= values
        alarms, wrong = [], set()
        for guard in self.guards:
            value = values.get(guard.metric)
            is_off = guard.name in self.off or (guard.until is not None and step >= guard.until)
            if value is None or is_off or step < self.quiet_until.get(guard.name, 0):
                continue
            bound = self._bound(guard, values)
            if bound is None or not _is_beyond(guard, value, bound[1]):
                self.streaks.pop(guard.name, None)
                continue
            wrong.add(guard.metric)
            since, length, last = self.streaks.get(guard.name, [step, 0, step])
            if step - last > QUIET:
                since, length = step, 0
            self.streaks[guard.name] = [since, length + 1, step]
            if length + 1 >= guard.steps:
                alarm = self._alarm(guard, step, value, bound, since)
                alarms.append(alarm)
                del self.streaks[guard.name]
                if alarm.action in ("warn", "halve_rate"):
                    self.quiet_until[guard.name] = step + QUIET
                if alarm.action == "pause":
                    # Whoever goes on has meant it.
                    self.quiet_until[guard.name] = sys.maxsize
        watched = {guard.metric: guard.error for guard in self.guards}
        for name, value in values.items():
            if name in watched and name not in wrong and math.isfinite(value):
                self.series.setdefault(name, Series()).add(value, values.get(watched[name] or "", 0.0))
        return sorted(alarms, key=lambda alarm: -SEVERITY[alarm.action])

    def start_over(self) -> None:
        """Forget all streaks, and what is recent: after a return to an earlier policy, its values are usual again."""
        self.streaks.clear()
        for series in self.series.values():
            series.recent = list(series.start)
            series.highest, series.lowest = max(series.start, default=-math.inf), min(series.start, default=math.inf)

    def unfinished(self, step: int) -> list[Alarm]:
        """Return alarms for the streaks that are not long enough yet and reach the last step before `step`, the hardest
        action first: a run that ends cannot wait whether they go on."""
        by_name = {guard.name: guard for guard in self.guards}
        alarms = [
            self._alarm(by_name[name], step, self.latest[by_name[name].metric], (None, by_name[name].floor), since)
            for name, (since, _, last) in self.streaks.items()
            if last >= step - 1
        ]
        return sorted(alarms, key=lambda alarm: -SEVERITY[alarm.action])

    def _bound(self, guard: MetricGuard, values: Mapping[str, float]) -> tuple[float | None, float] | None:
        """Return the baseline, if there is one, and the value from which the metric is wrong; None where there is
        nothing yet to compare with."""
        error = values.get(guard.error, 0.0) if guard.error else 0.0
        if guard.against == "limit":
            return None, max(guard.floor, ERRORS * error) if guard.error else guard.floor
        series = self.series.get(guard.metric)
        if series is None or not series.start:
            return None
        past = series.recent if guard.against == "recent" else series.start
        if guard.against == "recent" and len(past) < WARM_UP:
            return None
        baseline = median(past)
        if guard.against == "best":
            baseline = series.highest if guard.direction == "down" else series.lowest
        deviation = TO_DEVIATION * median(abs(value - baseline) for value in past) if len(past) >= FEWEST else 0.0
        # The baseline was measured, too.
        error = math.hypot(error, series.error) if guard.error else 0.0
        distance = max(guard.mads * deviation, guard.floor, ERRORS * error, guard.ratio * abs(baseline))
        return baseline, baseline + distance if guard.direction == "up" else baseline - distance

    def _alarm(
        self, guard: MetricGuard, step: int, value: float, bound: tuple[float | None, float], since: int
    ) -> Alarm:
        action: Action = "warn" if guard.action in self.off else guard.action
        return Alarm(step, guard.name, action, guard.metric, value, *bound, since, guard.causes, guard.remedy)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        values = asdict(self)
        return {name: values[name] for name in ("series", "streaks", "quiet_until", "latest")}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint's state."""
        self.series = {name: Series(**values) for name, values in state["series"].items()}
        self.streaks, self.quiet_until = dict(state["streaks"]), dict(state["quiet_until"])
        self.latest = dict(state["latest"])


def _is_beyond(guard: MetricGuard, value: float, threshold: float) -> bool:
    """Say whether a value is wrong; one that is not finite always is."""
    if not math.isfinite(value):
        return True
    return value > threshold if guard.direction == "up" else value < threshold

"""Watches a training: takes the metrics of each step, and returns the alarms of all guards.

    watch = GuardWatch()
    for step, metrics in enumerate(lines):
        for alarm in watch.observe(step, metrics):
            print(alarm.line())

Baselines are medians of healthy values. A value that a guard finds wrong is not added to a baseline, so that a collapse
does not become the baseline of later steps.

Steps that train on nothing (idle steps) are found with their cause. A group teaches if its completions have advantages:

    three steps without a group that teaches              conclusion
    16 groups a step, each teaches with probability .6    probability .4 ** 48: a fault, completions are copies
    4 groups a step, each teaches with probability .1     probability .9 ** 12: not unusual
    every completion is cut at max_tokens and masked      a fault, the policy does not end completions

The probability that a group teaches comes from the posteriors of pass rates (`Feed`) and from earlier steps of the run.

The state also determines the checkpoints to keep, and the one to roll back to. A checkpoint is named by its step:

checkpoints 0, 20, 40, 60, 80 at step 80, 20 is the best    keep 20, 60 and 80
checkpoints 20, 60 and 80, trouble was noticed at step 62   roll back to 20, because trouble may have begun before 60

All checkpoints but the newest have only weights, no optimizer state (`train/model/saved_states.py`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

from truegold.pipeline.report.training import TO_DEVIATION
from truegold.train.guards.sampling_error import RECENT_STEPS, START_GROUPS, START_STEPS, WINDOWS, StepMean, find_shift
from truegold.train.guards.table import GUARDS, SEVERITY, Action, Baseline, MetricGuard, derived_metrics

SETTLED = 8
"""The number of steps after which a checkpoint counts as settled. Guards need some steps to notice trouble."""
MARGIN = 3
"""Trouble may begin this number of steps before a guard notices it."""


def kept_checkpoints(steps: Collection[int], now: int, best: int | None) -> set[int]:
    """Return the checkpoints to keep at step `now`.

    These are the newest checkpoint, the best by held-out pass rate (`best`), the newest settled one, and the next to
    settle: the oldest one that is not settled yet.
    """
    ordered = sorted(steps)
    settled = [step for step in ordered if step <= now - SETTLED]
    unsettled = [step for step in ordered if step > now - SETTLED]
    return {*ordered[-1:], *settled[-1:], *unsettled[:1], *(step for step in ordered if step == best)}


def healthy_checkpoint(steps: Collection[int], since: int) -> int | None:
    """Return the checkpoint to roll back to after trouble that was first noticed at step `since`.

    This is the newest checkpoint at least `MARGIN` steps before `since`. If all are later, it is the oldest one.
    Returns None without checkpoints.
    """
    ordered = sorted(steps)
    before = [step for step in ordered if step <= since - MARGIN]
    if before:
        return before[-1]
    return ordered[0] if ordered else None


FEWEST_IDLE = 3
"""The smallest number of consecutive idle steps that is reported."""
UNKNOWN = 0.05
"""The expected share of teaching groups without a profile."""
REMEMBERED = 40
"""The number of earlier steps from which the share of teaching groups is estimated."""
ENOUGH = 16
"""The smallest number of groups for this estimate."""
MASKED = 2.0
"""The evidence (-log10 of a probability) of an idle step for which equal rewards are not the cause. An example is
masks."""
IDLE_KINDS = ("idle_alike", "idle_cut", "idle_masked", "idle_hard", "idle_dead")
"""The causes of idle steps, in the order of this tuple: equal rewards in every group, cut completions, masks, a pass
rate near 0 from the start, and a pass rate near 0 that was higher before."""
ALL = 0.99
"""All completions count as cut if at least this share is cut."""
ALMOST_NONE = 0.1
"""The pass rate below which almost no completion passes."""


@dataclass
class Idleness:
    """The latest consecutive steps that trained on nothing (idle steps), and how unlikely they are by chance."""

    record: list[tuple[float, float]] = field(default_factory=list)
    """The number of groups and of teaching groups in the last steps before the idle ones."""
    streak: list[tuple[float, float]] = field(default_factory=list)
    """The number of groups and of teaching groups in the idle steps."""
    evidence: float = 0.0
    """-log10 of the probability that the idle steps occur by chance."""
    kind: str = "idle_masked"
    """The cause of the last idle step."""
    trained: int = 0
    """The number of steps of the whole run that trained on something."""

    def add(self, metrics: Mapping[str, float | None]) -> dict[str, float]:
        """Add a step. Return the evidence for each of `IDLE_KINDS`. It is 0 for all kinds except the cause of the last
        idle step."""
        passed, teaching = metrics.get("pass_rate"), metrics.get("groups_teaching") or 0.0
        groups = metrics.get("groups")
        step = (groups or 0.0, teaching * (groups or 0.0))
        if metrics.get("trained_completions"):
            self.record = [*self.record, *self.streak, step][-REMEMBERED:]
            self.streak, self.evidence = [], 0.0
            self.trained += 1
        elif not metrics.get("not_finite") and passed is not None:
            self.evidence += self._rarity(metrics, passed, groups)
            self.streak.append(step)
            self.kind = self._kind(metrics, passed)
        return {**dict.fromkeys(IDLE_KINDS, 0.0), self.kind: self.evidence if self.is_long else 0.0}

    @property
    def is_long(self) -> bool:
        """Whether there are enough consecutive idle steps for a report."""
        return len(self.streak) >= FEWEST_IDLE

    def start_over(self) -> None:
        """Forget the idle steps, after a roll-back to earlier weights."""
        self.streak, self.evidence = [], 0.0

    def _rarity(self, metrics: Mapping[str, float | None], passed: float, groups: float | None) -> float:
        """Return -log10 of the probability that a step trains on nothing."""
        is_cut = (metrics.get("truncated") or 0.0) >= ALL
        if is_cut or metrics.get("groups_teaching") or (groups is None and passed < ALMOST_NONE):
            return MASKED
        expected = metrics.get("feed_expected_teaching")
        if expected is None or metrics.get("profile_pass_rate") is None:
            expected = UNKNOWN
        counted = sum(count for count, _ in self.record)
        if counted >= ENOUGH:
            recorded = sum(taught for _, taught in self.record) / counted
            expected = recorded if metrics.get("profile_pass_rate") is None else min(expected, recorded)
        return -(groups or 0.0) * math.log10(max(1.0 - expected, 1e-3))

    def _kind(self, metrics: Mapping[str, float | None], passed: float) -> str:
        """Return the cause of an idle step, one of `IDLE_KINDS`."""
        if (metrics.get("truncated") or 0.0) >= ALL:
            return "idle_cut"
        if (metrics.get("groups_teaching") is None and passed >= ALMOST_NONE) or any(
            taught for _, taught in self.streak
        ):
            return "idle_masked"
        if passed < ALMOST_NONE:
            return "idle_dead" if self.trained else "idle_hard"
        return "idle_alike"


KEPT = 64
"""The number of last values that are kept of each metric."""
ERRORS = 4.0
"""The smallest difference from a baseline or limit, in standard errors, for metrics with a known standard error."""
FEWEST = 3
"""The smallest number of values whose deviation is used. With fewer values, a guard compares only by `floor` and
`ratio`."""
QUIET = 20
"""A guard is silent for this number of steps after a warning. A streak of wrong steps ends after this number of steps
without a measurement."""


@dataclass(frozen=True)
class Alarm:
    """A guard that fired."""

    step: int
    guard: str
    action: Action
    metric: str
    value: float
    baseline: float | None
    """The value that the metric was compared with; None for a fixed limit."""
    threshold: float
    """The bound beyond which the value is wrong."""
    since: int
    """The first of the consecutive wrong steps."""
    causes: str
    remedy: str

    def line(self) -> str:
        """Return one line with the step, guard, metric, bound and causes."""
        usual = "" if self.baseline is None else f", usual {self.baseline:.3g}"
        return (
            f"Step {self.step}: {self.guard}: {self.metric} is {self.value:.3g} (bound {self.threshold:.3g}{usual}) "
            f"since step {self.since}. Likely: {self.causes}."
        )


KINDS = ("first", "last")
"""The fields of `Series` that are lists of steps."""


@dataclass
class Series:
    """The values of a metric that guards compare with."""

    first: list[StepMean] = field(default_factory=list)
    """The first healthy steps, for the baseline `start`."""
    last: list[StepMean] = field(default_factory=list)
    """The last steps, wrong ones included."""
    highest: float = -math.inf
    """The highest healthy value."""
    lowest: float = math.inf
    """The lowest healthy value."""
    error: float = 0.0
    """The standard error of the highest value."""

    def add(self, measured: StepMean, error: float = 0.0, *, is_settled: bool = True) -> None:
        """Add a value with its standard error. is_settled: whether it may become one of the first steps."""
        self.last = [*self.last, measured][-KEPT:]
        if not measured.is_usual:
            return
        if measured.value > self.highest:
            self.error = error
        groups = sum(START_GROUPS if each.groups is None else each.groups for each in self.first)
        if is_settled and (len(self.first) < START_STEPS or groups < START_GROUPS):
            self.first.append(measured)
        self.highest, self.lowest = max(self.highest, measured.value), min(self.lowest, measured.value)

    def values(self, against: Baseline) -> list[float]:
        """Return the healthy values of a baseline: the last ones for `recent`, else the first ones."""
        if against == "recent":
            return [each.value for each in self.last if each.is_usual][-RECENT_STEPS:]
        return [each.value for each in self.first]

    def disown(self, since: int) -> None:
        """Remove the steps from `since` on from all baselines."""
        for each in (*self.first, *self.last):
            each.is_usual = each.is_usual and each.step < since
        self.first = [each for each in self.first if each.is_usual]


@dataclass
class GuardWatch:
    """The state of all guards."""

    off: Collection[str] = ()
    """Names of guards that are switched off, and of actions that are replaced by a warning."""
    guards: Sequence[MetricGuard] = GUARDS
    settling: int = 0
    """Values before this step are not compared with the baseline `start`, and do not become part of it. In asynchronous
    training, the first steps of a new or resumed run have mostly short completions."""
    series: dict[str, Series] = field(default_factory=dict)
    """The values of each metric."""
    streaks: dict[str, list[int]] = field(default_factory=dict)
    """The current streak of wrong steps of each guard: first step, number of steps, last step. A streak goes on over up
    to `QUIET` steps without a measurement."""
    quiet_until: dict[str, int] = field(default_factory=dict)
    """The step from which each silent guard watches again."""
    latest: dict[str, float] = field(default_factory=dict)
    """The last value of each metric."""
    idleness: Idleness = field(default_factory=Idleness)
    """The state of the guards against steps that train on nothing."""
    known: tuple[int, dict[str, float | None]] = (-1, {})
    """The current step and its metrics so far."""

    def observe(self, step: int, metrics: Mapping[str, float | None]) -> list[Alarm]:
        """Return the alarms that the metrics of a step raise, the most severe action first.

        The metrics of a step may be passed in several calls, each metric once.
        """
        before = self.known[1] if self.known[0] == step else {}
        self.known = step, {**before, **metrics}
        derived_before = derived_metrics(before)
        derived = {name: value for name, value in derived_metrics(self.known[1]).items() if name not in derived_before}
        values = {name: value for name, value in {**derived, **metrics}.items() if value is not None}
        values |= self.idleness.add(self.known[1]) if "trained_completions" in values else {}
        self.latest |= values
        watched = {guard.metric: guard.error for guard in self.guards}
        measured = {name: self._measure(step, name, value) for name, value in values.items() if name in watched}
        alarms, wrong = [], set()
        for guard in self.guards:
            is_off = guard.name in self.off or (guard.until is not None and step >= guard.until)
            is_off |= guard.against == "start" and step < self.settling
            if guard.metric not in measured or is_off or step < self.quiet_until.get(guard.name, 0):
                continue
            alarm, is_wrong = self._judge(guard, measured[guard.metric], values)
            if is_wrong:
                wrong.add(guard.metric)
            if alarm is not None:
                alarms.append(alarm)
                self.streaks.pop(guard.name, None)
                if alarm.action in ("warn", "halve_rate"):
                    self.quiet_until[guard.name] = step + QUIET
                if alarm.action == "pause":
                    # A user who continues the run has accepted the alarm.
                    self.quiet_until[guard.name] = sys.maxsize
        for name, each in measured.items():
            if math.isfinite(each.value):
                each.is_usual = name not in wrong
                error = values.get(watched[name] or "", 0.0)
                self.series.setdefault(name, Series()).add(each, error, is_settled=step >= self.settling)
        for alarm in alarms:
            if alarm.metric in self.series:
                self.series[alarm.metric].disown(alarm.since)
        return sorted(alarms, key=lambda alarm: -SEVERITY[alarm.action])

    def _measure(self, step: int, name: str, value: float) -> StepMean:
        """Return the value of a metric with the size and spread of its sample."""
        expected = self.known[1].get("profile_pass_rate") if name == "pass_rate" else None
        return StepMean(step, value, self.known[1].get("groups"), self.known[1].get(f"{name}_between"), expected)

    def _judge(self, guard: MetricGuard, measured: StepMean, values: Mapping[str, float]) -> tuple[Alarm | None, bool]:
        """Return the alarm of a guard, or None if it does not fire, and whether the value is wrong."""
        step, value, longer = measured.step, measured.value, None
        bound: tuple[float | None, float] | None
        if guard.noise is not None and measured.groups is not None and math.isfinite(value):
            series = self.series.get(guard.metric, Series())
            last = [*series.last, measured]
            alone = find_shift(guard, series.first, last, WINDOWS[:1])
            bound = None if alone is None else (alone.baseline, alone.threshold)
            longer = find_shift(guard, series.first, last, [count for count in WINDOWS if count >= guard.steps])
        else:
            bound = self._bound(guard, values)
            if bound is not None and not _is_beyond(guard, value, bound[1]):
                bound = None
        if longer is not None:
            bound = (longer.baseline, longer.threshold)
            return self._alarm(guard, step, longer.value, bound, longer.since), True
        if bound is None:
            self.streaks.pop(guard.name, None)
            return None, False
        since, length, last_wrong = self.streaks.get(guard.name, [step, 0, step])
        if step - last_wrong > QUIET:
            since, length = step, 0
        self.streaks[guard.name] = [since, length + 1, step]
        return (self._alarm(guard, step, value, bound, since) if length + 1 >= guard.steps else None), True

    def start_over(self) -> None:
        """Forget all streaks and recent values, after a roll-back to an earlier policy."""
        self.streaks.clear()
        for series in self.series.values():
            series.last, start = list(series.first), series.values("start")
            series.highest, series.lowest = max(start, default=-math.inf), min(start, default=math.inf)
        self.idleness.start_over()

    def unfinished(self, step: int) -> list[Alarm]:
        """Return the alarms of streaks that include the last step before `step` and are not long enough yet.

        They are used at the end of a run. The most severe action comes first.
        """
        by_name = {guard.name: guard for guard in self.guards}
        alarms = [
            self._alarm(by_name[name], step, self.latest[by_name[name].metric], (None, by_name[name].floor), since)
            for name, (since, _, last) in self.streaks.items()
            if last >= step - 1
        ]
        return sorted(alarms, key=lambda alarm: -SEVERITY[alarm.action])

    def untrained(self, step: int) -> Alarm | None:
        """Return an alarm if a whole run of `step` steps trained on nothing, else None."""
        idleness = self.idleness
        if idleness.trained or not idleness.is_long:
            return None
        named = next((guard for guard in self.guards if guard.metric == idleness.kind), None)
        # If the steps may be idle by chance, the alarm names no cause.
        name = "nothing_trained" if named is None or idleness.evidence < named.floor else named.name
        alarm = self.alarm(name, step, 0.0, step - len(idleness.streak))
        return None if alarm is None else replace(alarm, metric="trained_completions", threshold=1.0)

    def back_at_start(self, step: int, rolled_back: tuple[int, int, str] | None) -> Alarm | None:
        """Return an alarm if a run ends soon after a roll-back to its first weights, else None.

        rolled_back: the step of the last roll-back, the step of its checkpoint, and the metric of its alarm.
        """
        if rolled_back is None or rolled_back[1] > 0 or step - rolled_back[0] > SETTLED:
            return None
        return self.alarm("nothing_left", step, float(step - rolled_back[0] - 1), rolled_back[0])

    def alarm(self, name: str, step: int, value: float, since: int) -> Alarm | None:
        """Return the alarm of the guard `name`, or None if the guard is off."""
        guard = next((guard for guard in self.guards if guard.name == name and name not in self.off), None)
        return None if guard is None else self._alarm(guard, step, value, (None, guard.floor), since)

    def _bound(self, guard: MetricGuard, values: Mapping[str, float]) -> tuple[float | None, float] | None:
        """Return the baseline and the bound of a guard, or None if there are too few values for a baseline.

        The baseline is None for a limit.
        """
        error = values.get(guard.error, 0.0) if guard.error else 0.0
        if guard.against == "limit":
            return None, max(guard.floor, ERRORS * error) if guard.error else guard.floor
        series = self.series.get(guard.metric)
        past = [] if series is None else series.values(guard.against)
        if series is None or not past or (guard.against == "recent" and len(past) < START_STEPS):
            return None
        baseline = median(past)
        if guard.against == "best":
            baseline = series.highest if guard.direction == "down" else series.lowest
        deviation = TO_DEVIATION * median(abs(value - baseline) for value in past) if len(past) >= FEWEST else 0.0
        # The baseline has a standard error, too.
        error = math.hypot(error, series.error) if guard.error else 0.0
        distance = max(guard.mads * deviation, guard.floor, ERRORS * error, guard.ratio * abs(baseline))
        return baseline, baseline + distance if guard.direction == "up" else baseline - distance

    def _alarm(
        self, guard: MetricGuard, step: int, value: float, bound: tuple[float | None, float], since: int
    ) -> Alarm:
        action: Action = "warn" if guard.action in self.off else guard.action
        return Alarm(step, guard.name, action, guard.metric, value, *bound, since, guard.causes, guard.remedy)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        # `asdict` copies every value recursively, which takes eight milliseconds in each step.
        series = {
            name: vars(each) | {kind: [dict(vars(step)) for step in getattr(each, kind)] for kind in KINDS}
            for name, each in self.series.items()
        }
        known = {name: dict(getattr(self, name)) for name in ("streaks", "quiet_until", "latest")}
        return {"series": series, "idleness": asdict(self.idleness), **known}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        for name, values in state["series"].items():
            steps = {kind: [StepMean(**each) for each in values[kind]] for kind in KINDS}
            self.series[name] = Series(**{**values, **steps})
        self.idleness = Idleness(**state["idleness"])
        self.streaks, self.quiet_until = dict(state["streaks"]), dict(state["quiet_until"])
        self.latest = dict(state["latest"])


def _is_beyond(guard: MetricGuard, value: float, threshold: float) -> bool:
    """Return whether a value is beyond the bound. NaN and infinity are always beyond it."""
    if not math.isfinite(value):
        return True
    return value > threshold if guard.direction == "up" else value < threshold

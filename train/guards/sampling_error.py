"""Tests whether a metric has changed beyond the noise of its sample, at any batch size.

    groups a step   usual share right   observed share                    verdict
    4               .25                 .06, .13 and .00 in three steps   chance
    4               .25                 .10 on average in 6 steps         chance
    4               .25                 .05 on average in 12 steps        a change
    64              .25                 .06 on average in two steps       a change

A metric of a step is the mean over its groups. Completions of one group are similar, so the sample size is the number
of groups. The last one to 24 steps, a window, are compared with the steps before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from truegold.train.guards.table import MetricGuard

WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""The lengths of windows, in steps."""
EVIDENCE = 10.5
"""A change counts if its evidence is at least this: -log of the probability by chance. It is high, because a run tests
hundreds of windows."""
PRIOR_GROUPS = 4.0
"""The prior for the variance of groups: this number of groups that are all right or all wrong."""
START_STEPS, START_GROUPS = 8, 128
"""The baseline `start` has at least START_STEPS steps and at least START_GROUPS groups."""
RECENT_STEPS = 20
"""The number of steps in the baseline `recent`. It ends before the window."""
LEAST_SCATTER = 3
"""The smallest number of steps from which a variance is estimated."""
BEYOND_SAMPLING = 2.5
"""If the variance of steps is more than this multiple of their sampling variance, the policy varies."""


@dataclass
class StepMean:
    """The value of a metric in one step."""

    step: int
    value: float
    groups: float | None = None
    """The number of groups that the value is the mean of, or None if it is not known."""
    spread: float | None = None
    """The standard deviation of the metric between groups."""
    expected: float | None = None
    """The expected value for the same problems, such as their pass rate in the profile."""
    is_usual: bool = True
    """Whether the value may be part of a baseline. This is false for a value that a guard found wrong."""


@dataclass(frozen=True)
class LastingChange:
    """A change of a metric beyond noise."""

    baseline: float
    threshold: float
    """The bound that the mean of the window is beyond."""
    value: float
    """The mean of the window."""
    since: int
    """The first step of the window."""
    steps: int
    """The number of steps in the window."""


def find_shift(
    guard: MetricGuard, first: Sequence[StepMean], last: Sequence[StepMean], windows: Sequence[int]
) -> LastingChange | None:
    """Return the change in the shortest window of last steps that is wrong beyond noise, or None.

    first: the first steps, for the baseline `start`. last: the last steps, the current one included. windows: the
    lengths of windows, in ascending order.
    """
    sign = 1.0 if guard.direction == "up" else -1.0
    is_start = guard.against == "start"
    before = [each for each in (first if is_start else last) if each.is_usual]
    if not before or (not is_start and len(before) < START_STEPS):
        return None
    baseline = _mean(before) if is_start else math.nan
    for count in windows:
        if count > len(last):
            return None
        window, base = last[-count:], before
        if not is_start or before[-1].step >= window[0].step:
            # Compared by step numbers, because the first steps may overlap with the window.
            base = [each for each in before if each.step < window[0].step]
            if not base or (not is_start and len(base) < START_STEPS):
                return None
            base = base if is_start else base[-RECENT_STEPS:]
            baseline = _mean(base)
        mean, least = _mean(window), max(guard.floor, guard.ratio * abs(baseline))
        if sign * (mean - baseline) <= least:
            continue
        least += _explained(base, window, sign)
        # If the guard needs several wrong steps, the mean must also be wrong without the most extreme steps.
        steady = sorted(window, key=lambda each: sign * each.value)[: max(count - guard.steps + 1, 1)]
        if min(sign * (_mean(steady) - baseline), sign * (mean - baseline)) <= least:
            continue
        evidence = _share_evidence if guard.noise == "share" else _log_evidence
        if evidence(base, window, sign * (mean - baseline), sign) > EVIDENCE:
            return LastingChange(baseline, baseline + sign * least, mean, window[0].step, count)
    return None


def _explained(base: Sequence[StepMean], window: Sequence[StepMean], sign: float) -> float:
    """Return the part of a change that is expected because the problems of the steps differ."""
    if any(each.expected is None for each in (*base, *window)):
        return 0.0
    before, now = (
        sum((each.expected or 0.0) * (each.groups or 1.0) for each in steps) / _groups(steps)
        for steps in (base, window)
    )
    return max(0.0, sign * (now - before))


def _share_evidence(base: Sequence[StepMean], window: Sequence[StepMean], distance: float, sign: float) -> float:
    """Return the evidence of a change of a share, a metric between 0 and 1.

    It is -log of Bennett's bound (1962, Journal of the ASA 57, p. 33) on the probability that the mean of the window's
    groups is at least `distance` from the baseline, with the variance of groups estimated from `base`.
    """
    before, now, baseline = _groups(base), _groups(window), _mean(base)
    smooth = (baseline * before + 0.5) / (before + 1.0)
    weight = [(each.groups or 1.0) - 1.0 if each.spread is not None else 0.0 for each in base]
    known = sum(weight) + PRIOR_GROUPS
    squares = [count * (each.spread or 0.0) ** 2 for each, count in zip(base, weight, strict=True)]
    spread = (sum(squares) + PRIOR_GROUPS * smooth * (1.0 - smooth)) / known
    variance = spread * (1 / now + 1 / before)
    if len(base) >= START_STEPS:
        scatter = fmean((each.value - baseline) ** 2 for each in base)
        if scatter > BEYOND_SAMPLING * spread * len(base) / before:
            variance = scatter * (1 / len(window) + 1 / len(base))
    bound = max(1.0 - smooth if sign > 0 else smooth, 1e-3)
    ratio = bound * distance / (variance * now)
    return variance * (now / bound) ** 2 * ((1.0 + ratio) * math.log1p(ratio) - ratio)


def _log_evidence(base: Sequence[StepMean], window: Sequence[StepMean], distance: float, sign: float) -> float:
    """Return the evidence of a change of a positive metric, whose noise is a factor.

    It is -log of a bound on the probability of Student's t for the logarithms of the values.
    """
    del distance, sign
    if len(base) < LEAST_SCATTER:
        return 0.0
    logs, now = ([math.log(max(each.value, 1e-9)) for each in steps] for steps in (base, window))
    centre, freedom = fmean(logs), len(logs) - 1
    variance = max(sum((each - centre) ** 2 for each in logs) / freedom, 1e-6)
    # A mean over fewer groups varies more.
    fewer = max(1.0, _groups(base) / len(base) / (_groups(window) / len(window)))
    squared = (fmean(now) - centre) ** 2 / (variance * (fewer / len(now) + 1 / len(logs)))
    return (freedom + 1) / 2 * math.log1p(squared / freedom)


def _groups(steps: Sequence[StepMean]) -> float:
    return sum([each.groups or 1.0 for each in steps])


def _mean(steps: Sequence[StepMean]) -> float:
    return sum([each.value * (each.groups or 1.0) for each in steps]) / _groups(steps)

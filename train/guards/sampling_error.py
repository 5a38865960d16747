"""Tells a change of a metric from the noise of its sample, at any batch size.

    4 prompts a step, usually .25 right     .06, .13, .00 is chance, and so is .10 in 6 steps; .05 in 12 steps is not
    64 prompts a step                       .06 in two steps is not

A step draws a few problems, and what it measures is the mean of their groups: completions of a group are alike, so that
groups are what is counted. The last steps are taken together as far as it needs, and compared with those before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from truegold.train.guards.table import MetricGuard

WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Numbers of last steps that are taken together."""
EVIDENCE = 10.5
"""Chance makes a change that counts with a probability below exp(-10.5): a run looks at some hundred windows."""
PRIOR_GROUPS = 4.0
"""Before groups have shown how they scatter, they are taken for all right or all wrong, with this
weight."""
START_STEPS, START_GROUPS = 8, 128
"""The first steps are the start: at least the first number, and enough steps for the second number of groups."""
RECENT_STEPS = 20
"""The recent baseline is of this many steps before those that are compared with it."""
LEAST_SCATTER = 3
"""The fewest steps whose scatter says something."""
BEYOND_SAMPLING = 2.5
"""If the variance of steps is this many times that of their samples, the policy itself goes up and down."""


@dataclass
class StepMean:
    """A metric in one step."""

    step: int
    value: float
    groups: float | None = None
    """The mean of how many groups it is, or None if the log does not tell."""
    spread: float | None = None
    """The standard deviation of the groups' own values."""
    expected: float | None = None
    """The value that was known beforehand for the same problems, such as their pass rate in the profile."""
    is_usual: bool = True
    """Whether it belongs to a baseline: what a guard has found wrong does not."""


@dataclass(frozen=True)
class LastingChange:
    """A change beyond noise."""

    baseline: float
    threshold: float
    """The mean from which it is wrong."""
    value: float
    """The mean of the steps that are."""
    since: int
    """The first of them."""
    steps: int
    """How many they are."""


def find_shift(
    guard: MetricGuard, first: Sequence[StepMean], last: Sequence[StepMean], windows: Sequence[int]
) -> LastingChange | None:
    """Return the shortest stretch of last steps, of the lengths `windows`, that is wrong beyond noise, or
    None.

    first: the steps of the start. last: the last ones, the present one included.
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
            # By their numbers, since a start may reach into the window.
            base = [each for each in before if each.step < window[0].step]
            if not base or (not is_start and len(base) < START_STEPS):
                return None
            base = base if is_start else base[-RECENT_STEPS:]
            baseline = _mean(base)
        mean, least = _mean(window), max(guard.floor, guard.ratio * abs(baseline))
        if sign * (mean - baseline) <= least:
            continue
        least += _explained(base, window, sign)
        # A single step that is far off is not enough where the guard waits for two: the others have to be wrong, too.
        steady = sorted(window, key=lambda each: sign * each.value)[: max(count - guard.steps + 1, 1)]
        if min(sign * (_mean(steady) - baseline), sign * (mean - baseline)) <= least:
            continue
        evidence = _share_evidence if guard.noise == "share" else _log_evidence
        if evidence(base, window, sign * (mean - baseline), sign) > EVIDENCE:
            return LastingChange(baseline, baseline + sign * least, mean, window[0].step, count)
    return None


def _explained(base: Sequence[StepMean], window: Sequence[StepMean], sign: float) -> float:
    """Return how much of a change is that of the problems: as far as it was known of them beforehand."""
    if any(each.expected is None for each in (*base, *window)):
        return 0.0
    before, now = (
        sum((each.expected or 0.0) * (each.groups or 1.0) for each in steps) / _groups(steps)
        for steps in (base, window)
    )
    return max(0.0, sign * (now - before))


def _share_evidence(base: Sequence[StepMean], window: Sequence[StepMean], distance: float, sign: float) -> float:
    """Return minus the logarithm of Bennett's bound (1962, Journal of the ASA 57, p. 33) on the probability that the
    mean of a window's groups is so far from the baseline: each is within 0 to 1, with the variance that groups have."""
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
    """Return minus the logarithm of a bound on the probability of Student's t, of logarithms: what is above 0 scatters
    by a factor."""
    del distance, sign
    if len(base) < LEAST_SCATTER:
        return 0.0
    logs, now = ([math.log(max(each.value, 1e-9)) for each in steps] for steps in (base, window))
    centre, freedom = fmean(logs), len(logs) - 1
    variance = max(sum((each - centre) ** 2 for each in logs) / freedom, 1e-6)
    # A mean of fewer groups scatters more.
    fewer = max(1.0, _groups(base) / len(base) / (_groups(window) / len(window)))
    squared = (fmean(now) - centre) ** 2 / (variance * (fewer / len(now) + 1 / len(logs)))
    return (freedom + 1) / 2 * math.log1p(squared / freedom)


def _groups(steps: Sequence[StepMean]) -> float:
    return sum([each.groups or 1.0 for each in steps])


def _mean(steps: Sequence[StepMean]) -> float:
    return sum([each.value * (each.groups or 1.0) for each in steps]) / _groups(steps)

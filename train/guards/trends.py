"""Statistics of a metric over the steps of a run: how it moved, when, and whether noise alone could have done it.

    move = measure_move(steps, values)
    move.start, move.end            0.42, 0.16        levels of the first and the last steps
    move.slope                      -0.003 a step     Theil and Sen's, with an interval of 99.9 %
    move.is_down                    True              the interval is below 0, or the series has a sudden fall

Two tests decide. Theil and Sen's slope sees a slow move of any shape, and is deaf to single outliers; a change
point (the split with the greatest difference of means, in standard errors) sees a sudden one, also near the end. Noise
is taken from the differences of neighbours, and both tests are widened by how long it lasts, so that batches of unlike
difficulty are not taken for a trend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.ndimage import median_filter
from scipy.stats import theilslopes

from truegold.pipeline.report.training import TO_DEVIATION

Floats = npt.NDArray[np.float64]

FEWEST = 10
"""The fewest steps in which a move can be told from noise."""
BINS = 64
"""Slopes are taken over this many medians at most."""
CONFIDENCE = 0.999
"""The confidence of the slope's interval."""
SUDDEN = 6.0
"""A change point is this many standard errors high at least: the best of all splits is looked for."""
SHORTEST = 3
"""Neither side of a change point has fewer steps."""
LONGEST_MEMORY = 0.8
"""Noise is not taken to last longer than an autocorrelation of this between neighbours."""
STEP = 0.75
"""The share of the difference of means by which the neighbours of a sudden step have to differ."""
BESIDE, ERRORS = 100, 4.0
"""A sudden step is seen in at most a fifth of the steps on either side, and is this many standard errors high."""
OUTLIER = 6.0
"""A value this many deviations from the median of its neighbours is one."""
LONGEST_PERIOD = 200
"""Steps."""
AROUND = 5
"""Steps before and after a step that are its neighbours."""


@dataclass(frozen=True)
class Move:
    """The move of one metric over some steps."""

    start: float
    """The level of the first steps."""
    end: float
    """The level of the last ones."""
    slope: float
    """In the metric's unit, a step."""
    slope_low: float
    slope_high: float
    jump: int
    """The first step after the change point."""
    jump_errors: float
    """The change there, in standard errors; negative for a fall."""
    first: int
    """The first of the steps."""
    last: int

    @property
    def is_up(self) -> bool:
        """Whether it rose beyond what noise does."""
        return self.end > self.start and (self.slope_low > 0 or self.jump_errors > SUDDEN)

    @property
    def is_down(self) -> bool:
        """Whether it fell beyond what noise does."""
        return self.end < self.start and (self.slope_high < 0 or self.jump_errors < -SUDDEN)

    @property
    def change(self) -> float:
        """The end's level minus the start's."""
        return self.end - self.start

    def text(self) -> str:
        """Return the numbers in words."""
        slope = f"slope {self.slope:.2g} a step, 99.9 % between {self.slope_low:.2g} and {self.slope_high:.2g}"
        if abs(self.jump_errors) > SUDDEN and not self.slope_low > 0 and not self.slope_high < 0:
            slope = f"a change of {abs(self.jump_errors):.0f} standard errors at step {self.jump}"
        return f"{self.start:.3g} -> {self.end:.3g} ({slope})"


def measure_move(steps: Sequence[int], values: Sequence[float]) -> Move | None:
    """Return how a metric moved from its first steps to its last, or None if there are too few to tell."""
    if len(values) < FEWEST:
        return None
    ticks, series = np.asarray(steps, dtype=float), np.asarray(values, dtype=float)
    memory = _memory(series)
    edge = max(SHORTEST, len(series) // 8)
    binned_ticks, binned = _binned(ticks, series)
    slope, _, low, high = theilslopes(binned, binned_ticks, CONFIDENCE)
    wider = math.sqrt(max(_memory(binned), 1.0)) if len(binned) < len(series) else math.sqrt(memory)
    jump, errors = change_point(series, memory)
    return Move(
        start=float(np.median(series[:edge])),
        end=float(np.median(series[-edge:])),
        slope=float(slope),
        slope_low=float(slope - wider * (slope - low)),
        slope_high=float(slope + wider * (high - slope)),
        jump=steps[jump],
        jump_errors=errors,
        first=steps[0],
        last=steps[-1],
    )


def fall_from_peak(steps: Sequence[int], values: Sequence[float]) -> Move | None:
    """Return how a metric moved since its level was highest, or None if too few steps have come since."""
    if len(values) < FEWEST:
        return None
    series = np.asarray(values, dtype=float)
    width = max(FEWEST // 2, len(series) // 10)
    starts = range(0, len(series) - width + 1, max(1, width // 8))
    levels = [float(np.median(series[start : start + width])) for start in starts]
    peak = starts[int(np.argmax(levels))]
    return measure_move(steps[peak:], values[peak:])


def noise(values: Floats) -> float:
    """Return the standard deviation of a metric's noise, from the differences of neighbours."""
    differences = np.diff(values)
    robust = TO_DEVIATION * float(np.median(np.abs(differences - np.median(differences))))
    # Where most neighbours are equal, such as shares that are 0 in most steps, the median knows no noise.
    return max(robust, 0.5 * float(np.std(differences))) / math.sqrt(2.0)


def find_outliers(values: Sequence[float], direction: int) -> list[int]:
    """Return the indexes of values far above (`direction` 1) or below (-1) the median of their neighbours."""
    series = np.asarray(values, dtype=float)
    usual = running_median(series)
    away = direction * (series - usual)
    deviation = TO_DEVIATION * float(np.median(np.abs(away)))
    return [int(index) for index in np.flatnonzero(away > OUTLIER * max(deviation, 1e-9))]


def running_median(series: Floats) -> Floats:
    """Return for each value the median of the values around it."""
    return np.asarray(median_filter(series, size=2 * AROUND + 1, mode="reflect"), dtype=float)


def find_period(steps: Sequence[int], values: Sequence[float], direction: int, fewest: int) -> list[int]:
    """Return the indexes at a fixed distance of each other whose values are far above (`direction` 1) or below (-1)
    those around them; nothing if there is no such distance.

    Every distance and every phase of it is looked at. Its values have to be off together, beyond what the best of this
    many looks is by chance, and nearly all of them one by one: a single outlier is nothing periodic.
    """
    if len(values) < 3 * fewest:
        return []
    series = np.asarray(values, dtype=float)
    ticks = np.asarray(steps) - steps[0]
    ticks //= max(int(np.gcd.reduce(ticks)), 1)
    away = direction * (series - running_median(series))
    scale = max(TO_DEVIATION * float(np.median(np.abs(away - np.median(away)))), 1e-9)
    best: tuple[float, list[int]] = (SUDDEN, [])
    for distance in range(3, min(int(ticks[-1]) // fewest, LONGEST_PERIOD) + 2):
        phases = ticks % distance
        counts = np.bincount(phases, minlength=distance)
        errors = np.bincount(phases, away, minlength=distance) / (scale * np.sqrt(np.maximum(counts, 1)))
        errors[counts < fewest] = 0.0
        phase = int(np.argmax(errors))
        if errors[phase] > best[0]:
            indexes = np.flatnonzero(phases == phase)
            if np.quantile(away[indexes], 0.2) > 2.0 * scale:
                best = float(errors[phase]), [int(index) for index in indexes]
    return best[1]


def _memory(series: Floats) -> float:
    """Return by how much the variance of a mean exceeds that of independent noise."""
    rest = series - running_median(series)
    variance = float(np.dot(rest, rest))
    if variance == 0.0 or len(rest) < 2 * AROUND:
        return 1.0
    # A running median takes some of the correlation away.
    correlation = float(np.dot(rest[1:], rest[:-1])) / variance + 1.0 / (2 * AROUND + 1)
    correlation = min(max(correlation, 0.0), LONGEST_MEMORY)
    return (1.0 + correlation) / (1.0 - correlation)


def _binned(ticks: Floats, series: Floats) -> tuple[Floats, Floats]:
    if len(series) <= BINS:
        return ticks, series
    parts = np.array_split(np.arange(len(series)), BINS)
    return np.array([np.mean(ticks[part]) for part in parts]), np.array([np.median(series[part]) for part in parts])


def change_point(series: Floats, memory: float = 1.0) -> tuple[int, float]:
    """Return the index of the split with the greatest difference of means, and that in standard errors; `memory` is by
    how much noise that lasts adds to the variance of a mean."""
    count = len(series)
    splits = np.arange(SHORTEST, count - SHORTEST + 1)
    sums = np.cumsum(series)
    before = sums[splits - 1] / splits
    after = (sums[-1] - sums[splits - 1]) / (count - splits)
    deviation = max(noise(series), 1e-12)
    errors = (after - before) / (deviation * np.sqrt(memory * (1.0 / splits + 1.0 / (count - splits))))
    best = int(np.argmax(np.abs(errors)))
    return int(splits[best]), float(errors[best])


def gradual_fall(values: Sequence[float]) -> float:
    """Return how much a metric falls over its steps besides sudden steps down.

    A curriculum with harder problems makes accuracy step down and rise again, which is not a slide.
    """
    series = np.asarray(values, dtype=float)
    edge = max(SHORTEST, len(series) // 8)
    fall = float(np.median(series[:edge]) - np.median(series[-edge:]))
    return fall - _sudden_fall(series)


def _sudden_fall(series: Floats) -> float:
    """Return the sum of sudden steps down, of the highest change point and of those on either side of it."""
    if len(series) < 2 * AROUND:
        return 0.0
    split, errors = change_point(series)
    if abs(errors) < SUDDEN:
        return 0.0
    before, after = series[:split], series[split:]
    # Where a metric slides, the steps on either side of the split are near each other.
    width = max(SHORTEST, min(BESIDE, len(series)) // 5)
    near = float(np.median(before[-width:]) - np.median(after[:width]))
    between = float(np.mean(before) - np.mean(after))
    is_step = near > STEP * between > 0 and near > ERRORS * noise(series) * math.sqrt(math.pi / width)
    return (near if is_step else 0.0) + _sudden_fall(before) + _sudden_fall(after)

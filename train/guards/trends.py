"""Statistics of a metric over the steps of a run: its move, the step of the move, and whether noise could explain it.

    move = measure_move(steps, values)
    move.start, move.end            0.42, 0.16        levels of the first and the last steps
    move.slope                      -0.003 a step     Theil and Sen's slope; it has an interval of 99.9 %
    move.is_down                    True              the interval is below 0, or the series falls suddenly

A move is found by two tests. Theil and Sen's slope finds a slow move of any shape and ignores single outliers. A change
point, the split with the largest difference of means in standard errors, finds a sudden move, also near the end. Noise
is estimated from the differences of neighbouring values. Both tests allow for autocorrelation of the noise, so that a
series of harder batches is not taken for a trend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.report.training import TO_DEVIATION

Floats = npt.NDArray[np.float64]

FEWEST = 10
"""The smallest number of steps in which a move is looked for."""
BINS = 64
"""The largest number of points for a slope. Longer series are reduced to medians of this number of parts."""
CONFIDENCE = 0.999
"""The confidence of the slope's interval."""
SUDDEN = 6.0
"""The smallest height of a change point, in standard errors. It is high because the best of all splits is taken."""
SHORTEST = 3
"""The smallest number of steps on each side of a change point."""
LONGEST_MEMORY = 0.8
"""The largest autocorrelation between neighbouring values that is attributed to noise."""
STEP = 0.75
"""The smallest difference of the levels next to a sudden step, as a share of the difference of means."""
BESIDE, ERRORS = 100, 4.0
"""The levels next to a sudden step are taken over a fifth of the series, but at most over a fifth of `BESIDE` steps.
They must differ by `ERRORS` standard errors."""
OUTLIER = 6.0
"""The distance of an outlier from the median of its neighbours, in deviations."""
LONGEST_PERIOD = 200
"""The longest period, in steps."""
AROUND = 5
"""The number of neighbours of a value on each side."""


@dataclass(frozen=True)
class Move:
    """The move of one metric over some steps."""

    start: float
    """The level of the first steps."""
    end: float
    """The level of the last steps."""
    slope: float
    """The slope, in the metric's unit per step."""
    slope_low: float
    """The lower bound of the slope (99.9 %)."""
    slope_high: float
    """The upper bound of the slope (99.9 %)."""
    jump: int
    """The first step after the change point."""
    jump_errors: float
    """The change at the change point in standard errors; negative for a fall."""
    first: int
    """The first step."""
    last: int
    """The last step."""

    @property
    def is_up(self) -> bool:
        """Whether the metric rose beyond noise."""
        return self.end > self.start and (self.slope_low > 0 or self.jump_errors > SUDDEN)

    @property
    def is_down(self) -> bool:
        """Whether the metric fell beyond noise."""
        return self.end < self.start and (self.slope_high < 0 or self.jump_errors < -SUDDEN)

    @property
    def change(self) -> float:
        """The last level minus the first level."""
        return self.end - self.start

    def text(self) -> str:
        """Return the start, end and slope or jump as a text: "0.4 -> 0.16 (slope ...)"."""
        slope = f"slope {self.slope:.2g} a step, 99.9 % between {self.slope_low:.2g} and {self.slope_high:.2g}"
        if abs(self.jump_errors) > SUDDEN and not self.slope_low > 0 and not self.slope_high < 0:
            slope = f"a change of {abs(self.jump_errors):.0f} standard errors at step {self.jump}"
        return f"{self.start:.3g} -> {self.end:.3g} ({slope})"


def measure_move(steps: Sequence[int], values: Sequence[float]) -> Move | None:
    """Return the move of a metric from its first to its last steps, or None for fewer than `FEWEST` steps."""
    if len(values) < FEWEST:
        return None
    from scipy.stats import theilslopes  # Importing it takes as long as curating a small file.

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
    """Return the move of a metric since its highest level, or None if there are fewer than `FEWEST` steps since."""
    if len(values) < FEWEST:
        return None
    series = np.asarray(values, dtype=float)
    width = max(FEWEST // 2, len(series) // 10)
    starts = range(0, len(series) - width + 1, max(1, width // 8))
    levels = [float(np.median(series[start : start + width])) for start in starts]
    peak = starts[int(np.argmax(levels))]
    return measure_move(steps[peak:], values[peak:])


def noise(values: Floats) -> float:
    """Return the standard deviation of a metric's noise, estimated from differences of neighbouring values."""
    differences = np.diff(values)
    robust = TO_DEVIATION * float(np.median(np.abs(differences - np.median(differences))))
    # If most neighbours are equal, such as shares that are mostly 0, the median alone is 0.
    return max(robust, 0.5 * float(np.std(differences))) / math.sqrt(2.0)


def find_outliers(values: Sequence[float], direction: int) -> list[int]:
    """Return the indexes of values far above (`direction` 1) or below (-1) the median of their neighbours."""
    series = np.asarray(values, dtype=float)
    usual = running_median(series)
    away = direction * (series - usual)
    deviation = TO_DEVIATION * float(np.median(np.abs(away)))
    return [int(index) for index in np.flatnonzero(away > OUTLIER * max(deviation, 1e-9))]


def running_median(series: Floats) -> Floats:
    """Return the median of each value and its `AROUND` neighbours on each side."""
    from scipy.ndimage import median_filter

    return np.asarray(median_filter(series, size=2 * AROUND + 1, mode="reflect"), dtype=float)


def find_period(steps: Sequence[int], values: Sequence[float], direction: int, fewest: int) -> list[int]:
    """Return the indexes of periodic outliers, far above (`direction` 1) or below (-1) their neighbours.

    Returns an empty list if there is no period.

    All periods and phases are tried. The mean distance of a phase's values from their neighbours must be larger than
    chance explains for the best of all phases. Nearly all values of the phase must be far from their neighbours. So one
    extreme outlier does not make a period. fewest: the smallest number of values of a phase.
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
    """Return the factor by which autocorrelation raises the variance of a mean."""
    rest = series - running_median(series)
    variance = float(np.dot(rest, rest))
    if variance == 0.0 or len(rest) < 2 * AROUND:
        return 1.0
    # Subtracting a running median removes some correlation. It is added here.
    correlation = float(np.dot(rest[1:], rest[:-1])) / variance + 1.0 / (2 * AROUND + 1)
    correlation = min(max(correlation, 0.0), LONGEST_MEMORY)
    return (1.0 + correlation) / (1.0 - correlation)


def _binned(ticks: Floats, series: Floats) -> tuple[Floats, Floats]:
    """Return a series reduced to medians of at most `BINS` parts."""
    if len(series) <= BINS:
        return ticks, series
    parts = np.array_split(np.arange(len(series)), BINS)
    return np.array([np.mean(ticks[part]) for part in parts]), np.array([np.median(series[part]) for part in parts])


def change_point(series: Floats, memory: float = 1.0) -> tuple[int, float]:
    """Return the index of the split with the largest difference of means, and this difference in standard errors.

    memory: the factor by which autocorrelation raises the variance of a mean.
    """
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
    """Return the fall of a metric over its steps, without sudden steps down.

    Sudden steps are left out, because a curriculum with harder problems causes them.
    """
    series = np.asarray(values, dtype=float)
    edge = max(SHORTEST, len(series) // 8)
    fall = float(np.median(series[:edge]) - np.median(series[-edge:]))
    return fall - _sudden_fall(series)


def _sudden_fall(series: Floats) -> float:
    """Return the sum of sudden steps down: at the largest change point and, recursively, before and after it."""
    if len(series) < 2 * AROUND:
        return 0.0
    split, errors = change_point(series)
    if abs(errors) < SUDDEN:
        return 0.0
    before, after = series[:split], series[split:]
    # The levels next to a split of a gradual fall are close to each other.
    width = max(SHORTEST, min(BESIDE, len(series)) // 5)
    near = float(np.median(before[-width:]) - np.median(after[:width]))
    between = float(np.mean(before) - np.mean(after))
    is_step = near > STEP * between > 0 and near > ERRORS * noise(series) * math.sqrt(math.pi / width)
    return (near if is_step else 0.0) + _sudden_fall(before) + _sudden_fall(after)

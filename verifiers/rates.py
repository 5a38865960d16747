"""Shares with 95 % intervals, such as pass rates and error rates of verifiers."""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95 = 1.96
"""The normal quantile of a two-sided 95 % interval."""


def wilson_interval(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Return Wilson's score interval of a share (Wilson 1927, Journal of the ASA 22, p. 209), 95 % by default.

    Without trials the interval is (0, 1). Without successes its low end is exactly 0; without failures its high end is
    exactly 1.
    """
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    centre = share + z * z / (2 * trials)
    margin = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if successes == 0 else (centre - margin) / scale
    high = 1.0 if successes == trials else (centre + margin) / scale
    return low, high


def difference_interval(
    first: float, first_interval: tuple[float, float], second: float, second_interval: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval of the difference of two independent shares, from the shares and their intervals.

    Newcombe's method 10 (1998, Statistics in Medicine 17, p. 873).
    """
    (first_low, first_high), (second_low, second_high) = first_interval, second_interval
    below = math.hypot(first - first_low, second_high - second)
    above = math.hypot(first_high - first, second - second_low)
    return first - second - below, first - second + above


@dataclass(frozen=True, slots=True)
class Rate:
    """The number of errors among verdicts."""

    errors: int = 0
    judged: int = 0
    """Verdicts with a score, errors included."""
    undecided: int = 0
    """Verdicts without a score; `judged` leaves them out."""

    @property
    def share(self) -> float | None:
        """The share of errors, or None if nothing was judged."""
        return self.errors / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share."""
        return wilson_interval(self.errors, self.judged)

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.errors + other.errors, self.judged + other.judged, self.undecided + other.undecided)

"""A share of errors with its interval, and the cost of verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959964
"""The normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Rate:
    """`errors` of `judged` verdicts. Those without a score are in `undecided` and in neither of the others."""

    errors: int = 0
    judged: int = 0
    undecided: int = 0

    @property
    def value(self) -> float | None:
        return self.errors / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval, 95 % (Wilson 1927, Journal of the ASA 22, p. 209)."""
        if not self.judged:
            return 0.0, 1.0
        n, share = self.judged, self.errors / self.judged
        centre = (share + Z_95**2 / (2 * n)) / (1 + Z_95**2 / n)
        half = Z_95 * math.sqrt(share * (1 - share) / n + Z_95**2 / (4 * n**2)) / (1 + Z_95**2 / n)
        # At the ends the interval touches 0 or 1 exactly; rounding must not say otherwise.
        return (0.0 if not self.errors else centre - half), (1.0 if self.errors == n else centre + half)

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.errors + other.errors, self.judged + other.judged, self.undecided + other.undecided)


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU time of single verdicts, in milliseconds."""

    verdicts: int
    mean_ms: float
    median_ms: float
    p99_ms: float
    max_ms: float


def speed_of(seconds: Sequence[float]) -> Speed:
    if not seconds:
        return Speed(0, 0.0, 0.0, 0.0, 0.0)
    ordered = [1000 * s for s in sorted(seconds)]

    def quantile(share: float) -> float:
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return Speed(len(ordered), sum(ordered) / len(ordered), quantile(0.5), quantile(0.99), ordered[-1])

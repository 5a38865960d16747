"""The cost of verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speed:
    """CPU time of single verdicts, in milliseconds."""

    verdicts: int
    mean_ms: float
    median_ms: float
    p99_ms: float
    max_ms: float


def speed_of(seconds: Sequence[float]) -> Speed:
    """Mean, median, 99th percentile and maximum of CPU times in seconds; zeros where there are none."""
    if not seconds:
        return Speed(0, 0.0, 0.0, 0.0, 0.0)
    ordered = [1000 * s for s in sorted(seconds)]

    def quantile(share: float) -> float:
        return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]

    return Speed(len(ordered), sum(ordered) / len(ordered), quantile(0.5), quantile(0.99), ordered[-1])

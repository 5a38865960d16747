"""What moved most while a run trained: each metric at the end against its first steps, in deviations of those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

TO_DEVIATION = 1.4826
"""The median absolute deviation of normal values times this is their standard deviation."""
EDGE = 8
"""The first so many steps are the start, the last so many the end."""
FEWEST_STEPS = 2 * EDGE
"""A shorter run has no end that its start could be compared with."""
LEAST_SHIFT = 0.05
"""A smaller shift, as a share of the start, is left out however steady the metric was."""
SKIPPED = ("seconds_", "lr", "step")
"""Metrics whose names begin so say nothing of what is trained on."""


@dataclass(frozen=True)
class Shift:
    """How far one metric has moved."""

    metric: str
    start: float
    """The median of the first steps."""
    end: float
    """The median of the last ones."""
    deviations: float
    """Their distance in deviations of the first steps."""


def find_shifts(lines: Sequence[tuple[int, dict[str, float | None]]]) -> list[Shift]:
    """Return how far each metric has moved, the furthest first."""
    series: dict[str, list[float]] = {}
    for _, metrics in lines:
        for name, value in metrics.items():
            if value is not None and math.isfinite(value) and not name.startswith(SKIPPED):
                series.setdefault(name, []).append(value)
    moved = []
    for name, values in series.items():
        if len(values) < FEWEST_STEPS:
            continue
        start, end = median(values[:EDGE]), median(values[-EDGE:])
        spread = TO_DEVIATION * median(abs(value - start) for value in values[:EDGE])
        if abs(end - start) <= LEAST_SHIFT * max(abs(start), 1e-3):
            continue
        moved.append(Shift(name, start, end, (end - start) / max(spread, LEAST_SHIFT * abs(start), 1e-3)))
    return sorted(moved, key=lambda shift: -abs(shift.deviations))

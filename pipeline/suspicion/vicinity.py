"""How much an item's neighbours say: errors come in runs, where a section's labels were mangled as a whole.

    suspicions 0.9 0.8 [0.3] 0.9 ... in a file whose mean is 0.05  ->  0.3 becomes more than 0.8

The rate of faulty labels around an item is its neighbours' mean suspicion, shrunk towards the whole file's (empirical
Bayes). How wide to look and how much to shrink is chosen by the likelihood of each item given the others, and not
looking at all is one of the choices: in a file without such runs nothing changes. No bad item's label is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HALF_WIDTHS = (10, 20, 40)
"""How many neighbours on either side are looked at."""
SHRINKAGES = (3.0, 10.0, 30.0, 100.0, 300.0)
"""How many neighbours' worth the file's mean rate counts."""
MIN_GAIN = 4.0
"""Gain in log likelihood below which the neighbours are left out: two parameters are chosen (Akaike), twice over."""
FLOOR = 1e-6
"""Suspicions are kept this far from 0 and 1 before their odds are taken."""


@dataclass(frozen=True, slots=True)
class Vicinity:
    """The suspicion of n items with their neighbours taken into account."""

    suspicion: Array
    """(n,), in [0, 1]."""
    half_width: int
    """How many neighbours on either side were looked at; 0 where they say nothing."""
    shrinkage: float
    """How many neighbours' worth the file's mean rate counted; 0 where they say nothing."""


def with_neighbours(suspicion: Array) -> Vicinity:
    """Take the neighbours into account; suspicion: (n,) in the file's order, each from an item's samples alone."""
    if len(suspicion) < 3:
        return Vicinity(suspicion.copy(), 0, 0.0)
    clipped = np.clip(suspicion, FLOOR, 1.0 - FLOOR)
    rate = float(clipped.mean())
    # The evidence is the Bayes factor that led from the rate to the suspicion.
    evidence = clipped / (1.0 - clipped) * (1.0 - rate) / rate
    best = float(np.log(rate * evidence + 1.0 - rate).sum()) + MIN_GAIN
    chosen: tuple[int, float, Array] | None = None
    for half_width in HALF_WIDTHS:
        total, count = _sum_of_neighbours(clipped, half_width)
        for shrinkage in SHRINKAGES:
            local = (shrinkage * rate + total) / (shrinkage + count)
            likelihood = float(np.log(local * evidence + 1.0 - local).sum())
            if likelihood > best:
                best, chosen = likelihood, (half_width, shrinkage, local)
    if chosen is None:
        return Vicinity(suspicion.copy(), 0, 0.0)
    half_width, shrinkage, local = chosen
    odds = evidence * local / (1.0 - local)
    return Vicinity(odds / (1.0 + odds), half_width, shrinkage)


def _sum_of_neighbours(values: Array, half_width: int) -> tuple[Array, Array]:
    """Return the sum and the count of the neighbours of each value, without the value itself."""
    index = np.arange(len(values))
    low = np.maximum(0, index - half_width)
    high = np.minimum(len(values), index + half_width + 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return sums[high] - sums[low] - values, (high - low - 1).astype(np.float64)

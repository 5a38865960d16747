"""Errors come in runs: a file's section whose labels were mangled is bad as a whole. How much an item's neighbours say.

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
"""Items looked at on either side."""
SHRINKAGE = (3.0, 10.0, 30.0, 100.0, 300.0)
"""How many items' worth the file's mean rate counts."""
NEEDED = 4.0
"""Gain in log likelihood below which the neighbours are left out: two parameters are chosen (Akaike), twice over."""
FLOOR = 1e-6


@dataclass(frozen=True, slots=True)
class Vicinity:
    """suspicion: (n,), neighbours taken into account. half_width and shrinkage: 0 where they say nothing."""

    suspicion: Array
    half_width: int
    shrinkage: float


def with_neighbours(suspicion: Array) -> Vicinity:
    """(n,) in the file's order, each from the item's own samples alone."""
    n = len(suspicion)
    own = np.clip(suspicion, FLOOR, 1.0 - FLOOR)
    if n < 3:
        return Vicinity(suspicion.copy(), 0, 0.0)
    rate = float(own.mean())
    evidence = own / (1.0 - own) * (1.0 - rate) / rate  # the Bayes factor that led from the rate to the suspicion
    best = float(np.log(rate * evidence + 1.0 - rate).sum()) + NEEDED
    chosen: tuple[int, float, Array] | None = None
    for half_width in HALF_WIDTHS:
        total, count = _around(own, half_width)
        for shrinkage in SHRINKAGE:
            local = (shrinkage * rate + total) / (shrinkage + count)
            likelihood = float(np.log(local * evidence + 1.0 - local).sum())
            if likelihood > best:
                best, chosen = likelihood, (half_width, shrinkage, local)
    if chosen is None:
        return Vicinity(suspicion.copy(), 0, 0.0)
    half_width, shrinkage, local = chosen
    odds = evidence * local / (1.0 - local)
    return Vicinity(odds / (1.0 + odds), half_width, shrinkage)


def _around(values: Array, half_width: int) -> tuple[Array, Array]:
    """Sum and number of the neighbours of each value, without itself."""
    places = np.arange(len(values))
    low = np.maximum(0, places - half_width)
    high = np.minimum(len(values), places + half_width + 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return sums[high] - sums[low] - values, (high - low - 1).astype(np.float64)

"""Scores of a ranking against labels of bad items, with bootstrap intervals. numpy only.

average_precision([1, 0, 1], [0.9, 0.5, 0.4])  ->  0.8333: precision 1 at the first bad item, 2/3 at the second
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 1000

Score = Callable[[NDArray[np.bool_], NDArray[np.float64]], float]


def average_precision(bad: ArrayLike, score: ArrayLike) -> float:
    """Mean precision over the recall steps; items of equal score come in together. nan without a bad item."""
    y, s = np.asarray(bad, dtype=bool), np.asarray(score, dtype=np.float64)
    if not y.any():
        return float("nan")
    order = np.argsort(-s, kind="stable")
    y, s = y[order], s[order]
    last = np.append(np.flatnonzero(np.diff(s)), len(s) - 1)
    hits = np.cumsum(y)[last]
    return float(np.sum(np.diff(hits, prepend=0) / y.sum() * hits / (last + 1)))


def area_under_roc(bad: ArrayLike, score: ArrayLike) -> float:
    """Probability that a bad item scores higher than a good one, ties half. nan where one kind is missing."""
    y, s = np.asarray(bad, dtype=bool), np.asarray(score, dtype=np.float64)
    good = int((~y).sum())
    if not y.any() or not good:
        return float("nan")
    _, inverse, counts = np.unique(s, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n = int(y.sum())
    return float((rank[y].sum() - n * (n + 1) / 2) / (n * good))


def interval(score_of: Score, bad: Sequence[bool] | NDArray[np.bool_], score: ArrayLike) -> tuple[float, float]:
    """95 % bootstrap percentile interval over items (seeded). nan without a bad item."""
    y, s = np.asarray(bad, dtype=bool), np.asarray(score, dtype=np.float64)
    if not y.any():
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(0, len(y), len(y))
        values.append(score_of(y[drawn], s[drawn]))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)

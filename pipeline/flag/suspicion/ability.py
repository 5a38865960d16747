"""Abilities of systems and the difficulty to expect of items, from who agrees with which labels.

A one-parameter item-response (Rasch) model: a system of ability t solves an item of difficulty b with probability
`CEILING * sigmoid(t - b)`. Item difficulties are integrated out over a grid (marginal maximum likelihood: Bock and
Aitkin 1981, Psychometrika 46, eq. 9-14), with a normal prior whose mean is a linear function of the item's text
(`difficulty`). Abilities get a weak normal prior. The scale's zero is the mean item. Labels that are at fault lower all
systems alike, strong ones a little more; with a few per cent of them that does not change the order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CEILING = 0.99
"""Even the best systems slip: one wrong answer of a strong system is no evidence."""
GRID: Array = np.linspace(-7.0, 7.0, 57)
"""Difficulties, in logits, over which is integrated."""
MAX_ITEMS = 20_000
"""Items the fit looks at, evenly spread over the data: abilities are known to a hundredth of a logit then, and memory
does not grow with the data."""
ROUNDS = 30
TEXT_ROUNDS = 12
RIDGE = 20.0
"""Strength of the ridge on the weights of standardised text features: as if 20 items said that they mean nothing."""
ABILITY_SD = 3.0
SPREAD = 2.0
"""Standard deviation of difficulties before any data, worth `SPREAD_ITEMS` items: one system alone cannot tell it."""
SPREAD_ITEMS = 20.0
MIN_SPREAD = 0.5
MIN_SYSTEMS_FOR_SPREAD = 4


@dataclass(frozen=True, slots=True)
class Ability:
    """theta: (m,) in logits. mean, spread: the prior of difficulty is normal with mean `mean + features @ weights`."""

    theta: Array
    mean: float
    weights: Array
    spread: float

    def expected_difficulty(self, features: Array) -> Array:
        """(n,), in logits."""
        expected: Array = self.mean + features @ self.weights
        return expected

    def of_systems(self, chosen: NDArray[np.bool_]) -> Ability:
        """The chosen systems alone; chosen: (m,)."""
        return replace(self, theta=self.theta[chosen])


def sigmoid(values: Array) -> Array:
    # clipped, so that exp never overflows
    result: Array = 1.0 / (1.0 + np.exp(-np.clip(values, -50.0, 50.0)))
    return result


def fit(right: Array, seen: Array, features: Array) -> Ability:
    """right, seen: (n, m) weights of a system's answers that agree with the label, and of all its answers.

    features: (n, k). Any n, m >= 0; what is never seen has ability 0.
    """
    n, m = seen.shape
    total = seen.sum(axis=0)
    rate = (right.sum(axis=0) + 0.5) / (total + 1.0)
    theta: Array = 1.3 * np.log(rate / (1.0 - rate))  # logits shrink when difficulties are averaged over
    if not n or not m:
        return Ability(theta, 0.0, np.zeros(features.shape[1]), SPREAD)
    spread = SPREAD
    for _ in range(ROUNDS):
        posterior = _posterior(right, seen, theta, np.zeros(n), spread)
        mean = float((posterior @ GRID).mean())
        spread = _spread(posterior, np.full(n, mean), m)
        theta = _newton(right, seen, posterior, theta - mean)
    mean = 0.0
    weights: Array = np.zeros(features.shape[1])
    for _ in range(TEXT_ROUNDS if features.any() else 0):
        expected = mean + features @ weights
        posterior = _posterior(right, seen, theta, expected, spread)
        found = posterior @ GRID
        mean = float(found.mean())
        precision = features.T @ features + RIDGE * np.eye(features.shape[1])
        weights = np.linalg.solve(precision, features.T @ (found - mean)).astype(np.float64)
        spread = _spread(posterior, mean + features @ weights, m)
    return Ability(theta, mean, weights, spread)


def solved(theta: Array) -> Array:
    """(m, grid): the probability that each system solves an item of each difficulty of `GRID`."""
    return CEILING * sigmoid(theta[:, None] - GRID)


def log_prior(expected: Array, spread: float) -> Array:
    """(n, grid): log of the normal prior of difficulty, normalised over the grid."""
    log = -((GRID - expected[:, None]) ** 2) / (2.0 * spread**2)
    normalised: Array = log - np.log(np.exp(log).sum(axis=1, keepdims=True))
    return normalised


def _posterior(right: Array, seen: Array, theta: Array, expected: Array, spread: float) -> Array:
    p = solved(theta)
    log = right @ np.log(p) + (seen - right) @ np.log1p(-p) + log_prior(expected, spread)
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    normalised: Array = posterior / posterior.sum(axis=1, keepdims=True)
    return normalised


def _spread(posterior: Array, expected: Array, m: int) -> float:
    if m < MIN_SYSTEMS_FOR_SPREAD:
        return SPREAD
    squares = float((posterior * (GRID - expected[:, None]) ** 2).sum())
    variance = (squares + SPREAD_ITEMS * SPREAD**2) / (len(posterior) + SPREAD_ITEMS)
    return max(MIN_SPREAD, float(np.sqrt(variance)))


def _newton(right: Array, seen: Array, posterior: Array, theta: Array) -> Array:
    """A few Fisher-scoring steps on the expected log likelihood of each ability."""
    expected_seen, expected_right = seen.T @ posterior, right.T @ posterior
    for _ in range(3):
        s = sigmoid(theta[:, None] - GRID)
        p, slope = CEILING * s, CEILING * s * (1.0 - s)
        gradient = (expected_right * slope / p - (expected_seen - expected_right) * slope / (1.0 - p)).sum(axis=1)
        information = (expected_seen * slope**2 / (p * (1.0 - p))).sum(axis=1) + 1.0 / ABILITY_SD**2
        theta = theta + np.clip((gradient - theta / ABILITY_SD**2) / information, -1.0, 1.0)
    return theta

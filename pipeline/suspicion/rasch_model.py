"""Fits a Rasch model: the abilities of systems and the expected difficulty of problems, by agreement with the labels.

A system of ability t solves a problem of difficulty b with probability `CEILING * sigmoid(t - b)`, which is the
one-parameter item-response model. Difficulties are integrated out over a grid (marginal maximum likelihood: Bock and
Aitkin 1981, Psychometrika 46, eq. 9-14). Their prior is normal, with a mean that is linear in features of the problem's
text (`text_features`). This is the linear logistic test model of Fischer 1973 with an error term:

    "Tom has 3 apples and buys 2 more. ..."  solution "3+2=5"     ->  short, one step: easy

Ridge regression learns the weights of the features from pass rates, without reviewed labels. Abilities have a weak
normal prior. The zero of the scale is the mean problem. Wrong labels lower the abilities of all systems, and those of
strong systems a little more. A few per cent of wrong labels do not change the order of the systems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LabelledProblem

Array = NDArray[np.float64]

CEILING = 0.99
"""The highest probability of a right answer. Even the best systems make slips. So a single wrong answer of a strong
system is hardly evidence."""
GRID: Array = np.linspace(-7.0, 7.0, 57)
"""The grid of difficulties, in logits."""
MAX_ITEMS = 20_000
"""The maximum number of items that are fitted, to bound memory. They are spread evenly over the data, and determine
abilities to a hundredth of a logit."""
ROUNDS = 30
"""The number of rounds of the fit without text features."""
TEXT_ROUNDS = 12
"""The number of further rounds of the fit, with text features."""
RIDGE = 20.0
"""The strength of the ridge on the weights of standardised text features. It counts as this number of items."""
ABILITY_SD = 3.0
"""The standard deviation of the abilities' prior, in logits."""
SPREAD = 2.0
"""The prior standard deviation of difficulties, in logits."""
SPREAD_ITEMS = 20.0
"""In the fit of the standard deviation, `SPREAD` has the weight of this number of items."""
MIN_SPREAD = 0.5
"""The minimum standard deviation of difficulties."""
MIN_SYSTEMS_FOR_SPREAD = 4
"""The minimum number of systems by which the standard deviation of difficulties is fitted."""
MAX_CHARS = 20_000
"""The number of characters of a text from which features are made. It bounds the time for texts of megabytes."""

_DIGITS = re.compile(r"\d[\d,]{0,15}\.?\d{0,10}")
_WORD = re.compile(r"[A-Za-z]+|[一-鿿]")
_CALCULATOR = re.compile(r"<<[^<>]{0,200}>>")
"""GSM8K's calculator annotations: `<<48/2=24>>`."""


@dataclass(frozen=True, slots=True)
class Ability:
    """The fitted abilities of m systems, and the normal prior of difficulty with mean `mean + features @ weights`."""

    theta: Array
    """(m,), the abilities in logits."""
    mean: float
    """The mean difficulty of a problem with average features, in logits."""
    weights: Array
    """(k,), the weights of the text features."""
    spread: float
    """The standard deviation of the prior of difficulty."""

    def expected_difficulty(self, features: Array) -> Array:
        """Return the mean of the prior of difficulty, in logits (n,), for items with features (n, k)."""
        return self.mean + features @ self.weights


def sigmoid(logits: Array) -> Array:
    """Return probabilities. Logits are clipped, so that `exp` never overflows."""
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -50.0, 50.0)))


def text_features(problems: Sequence[LabelledProblem]) -> Array:
    """Return six features of each problem (n, 6), with mean 0 and standard deviation 1. A constant column is 0.

    Two features are logarithms of counts in the prompt: of words and of numbers. Four are logarithms for the solution:
    of its numbers of lines, equals signs and characters, and of its largest number. A missing text counts as average.
    """
    counts = chain.from_iterable(map(_log_counts, problems))
    table = np.fromiter(counts, np.float64, 6 * len(problems)).reshape(len(problems), 6)
    known = np.isfinite(table)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, table, 0.0).sum(axis=0) / n
    centred = np.where(known, table - mean, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / n)
    scaled: Array = centred / np.where(spread > 1e-9, spread, 1.0)
    return scaled


def _log_counts(item: LabelledProblem) -> list[float]:
    prompt_counts, solution_counts = [math.nan] * 2, [math.nan] * 4
    if item.prompt:
        prompt = item.prompt[:MAX_CHARS]
        prompt_counts = [len(_WORD.findall(prompt)), len(_DIGITS.findall(prompt))]
    if item.solution:
        solution = _CALCULATOR.sub("", item.solution[:MAX_CHARS])
        largest = max((float(digits.replace(",", "")) for digits in _DIGITS.findall(solution)), default=0.0)
        solution_counts = [solution.count("\n"), solution.count("="), len(solution), largest]
    return [math.log1p(count) for count in (*prompt_counts, *solution_counts)]


def fit(right: Array, seen: Array, features: Array) -> Ability:
    """Fit the model to n items and m systems; both n and m may be 0. A system without answers has ability 0.

    `right` and `seen` (n, m) are the weights of a system's answers that agree with the label, and of all its answers.
    `features` is (n, k).
    """
    n, m = seen.shape
    total = seen.sum(axis=0)
    rate = (right.sum(axis=0) + 0.5) / (total + 1.0)
    # Averaging over difficulties shrinks logits by about 1.3.
    theta: Array = 1.3 * np.log(rate / (1.0 - rate))
    if not n or not m:
        return Ability(theta, 0.0, np.zeros(features.shape[1]), SPREAD)
    spread = SPREAD
    for _ in range(ROUNDS):
        posterior = _posterior(right, seen, theta, np.zeros(n), spread)
        mean = float((posterior @ GRID).mean())
        spread = _fit_spread(posterior, np.full(n, mean), m)
        theta = _improve_theta(right, seen, posterior, theta - mean)
    mean = 0.0
    weights: Array = np.zeros(features.shape[1])
    for _ in range(TEXT_ROUNDS if features.any() else 0):
        expected = mean + features @ weights
        posterior = _posterior(right, seen, theta, expected, spread)
        difficulty = posterior @ GRID
        mean = float(difficulty.mean())
        precision = features.T @ features + RIDGE * np.eye(features.shape[1])
        weights = np.linalg.solve(precision, features.T @ (difficulty - mean)).astype(np.float64)
        spread = _fit_spread(posterior, mean + features @ weights, m)
    return Ability(theta, mean, weights, spread)


def solve_probability(theta: Array) -> Array:
    """Return the probability that each system solves an item of each difficulty in `GRID` (m, grid)."""
    return CEILING * sigmoid(theta[:, None] - GRID)


def log_prior(expected: Array, spread: float) -> Array:
    """Return the log of the normal prior of difficulty, normalised over the grid (n, grid)."""
    log = -((GRID - expected[:, None]) ** 2) / (2.0 * spread**2)
    normalised: Array = log - np.log(np.exp(log).sum(axis=1, keepdims=True))
    return normalised


def _posterior(right: Array, seen: Array, theta: Array, expected: Array, spread: float) -> Array:
    p = solve_probability(theta)
    log = right @ np.log(p) + (seen - right) @ np.log1p(-p) + log_prior(expected, spread)
    posterior = np.exp(log - log.max(axis=1, keepdims=True))
    normalised: Array = posterior / posterior.sum(axis=1, keepdims=True)
    return normalised


def _fit_spread(posterior: Array, expected: Array, m: int) -> float:
    if m < MIN_SYSTEMS_FOR_SPREAD:
        return SPREAD
    squares = float((posterior * (GRID - expected[:, None]) ** 2).sum())
    variance = (squares + SPREAD_ITEMS * SPREAD**2) / (len(posterior) + SPREAD_ITEMS)
    return max(MIN_SPREAD, float(np.sqrt(variance)))


def _improve_theta(right: Array, seen: Array, posterior: Array, theta: Array) -> Array:
    """Return the abilities after a few Fisher-scoring steps on their expected log likelihood."""
    expected_seen, expected_right = seen.T @ posterior, right.T @ posterior
    for _ in range(3):
        s = sigmoid(theta[:, None] - GRID)
        p, slope = CEILING * s, CEILING * s * (1.0 - s)
        gradient = (expected_right * slope / p - (expected_seen - expected_right) * slope / (1.0 - p)).sum(axis=1)
        information = (expected_seen * slope**2 / (p * (1.0 - p))).sum(axis=1) + 1.0 / ABILITY_SD**2
        theta = theta + np.clip((gradient - theta / ABILITY_SD**2) / information, -1.0, 1.0)
    return theta

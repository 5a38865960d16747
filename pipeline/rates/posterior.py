r"""Estimates pass rates from judged samples: their distribution in a data set, and each problem's Beta posterior.

    0 passes of 8, where most problems are either easy or hopeless   ->  mean .02, 90 % in 0 to .07
    0 passes of 8, where most pass about half of the time            ->  mean .17, 90 % in .04 to .34

Of each problem only c passes of n judged samples are known, and 0 of 8 is not a pass rate of 0. For a group of G
further samples of a problem whose pass rate is p ~ Beta(a, b) (the posterior predictive, which is beta-binomial:
Skellam 1948, "A probability distribution derived from the binomial distribution by regarding the probability of success
as variable between the sets of trials")

    share of ones        E[p]           = a / (a + b)
    all wrong, dead      E[(1 - p)^G]   = B(a, b + G) / B(a, b)
    all right, saturated E[p^G]         = B(a + G, b) / B(a, b)

The prior is a mixture of Beta distributions, fitted to all problems:

    20,000 problems of four samples; 8 % never pass, the others as Beta(6, 1). What is known of 0 passes of 4:
        with one Beta distribution for all     mean .22, 71 % of its groups of eight are expected to teach
        with the mixture                       mean .04, 11 %

The pass rates p of a set of problems are taken as distributed like

    sum over j of  w_j Beta(a_j, b_j)

whose first component is the Beta distribution of greatest likelihood alone. The likelihood of c passes of n samples,
each component's being beta-binomial,

    sum over problems of  ln sum over j of  w_j B(a_j + c, b_j + n - c) / B(a_j, b_j)         (empirical Bayes)

is maximised over the weights by expectation maximisation (Dempster, Laird and Rubin 1977). The other components are two
spikes and the Bernstein basis of a degree, with which any density on 0 to 1 can be approximated. How many samples a
problem got may depend on what its earlier ones showed: the likelihood does not change by that.

Given its samples, a problem's pass rate is again a mixture. It is handed on as the Beta distribution of the same mean
and variance, which is what tables keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

Counts = Mapping[tuple[int, int], int]
"""Problems by their judged samples and passes."""

MEANS = tuple(i / 40 for i in range(1, 40))
WEIGHTS = tuple(10 ** (i / 8) for i in range(-12, 17))
"""The grid of a + b, 0.03 to 100: from nearly all problems hopeless or sure to all of one difficulty."""
REFINEMENTS = 4
"""The grid is laid anew so often, four times as fine, around its best point."""
DEGREE = 10
"""Of the Bernstein basis, whose components have a standard deviation of .14 at most: as fine as some ten samples of a
problem can tell."""
FIRST_PROBLEMS = 20.0
"""So many problems beside the counted ones are taken to be of the first component: a few rows show no shape."""
MOST_ROUNDS = 400
SETTLED = 1e-6
"""Expectation maximisation ends when no weight changes by more."""


@dataclass(frozen=True)
class Beta:
    """Beta(a, b): the pass rates of a set of problems, or what is known of the pass rate of one."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        """The expected pass rate."""
        return self.a / (self.a + self.b)

    def after(self, judged: int, passes: int) -> Beta:
        """Return the posterior after `passes` of `judged` further samples, where this is the prior."""
        return Beta(self.a + passes, self.b + judged - passes)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return the ends of the interval that holds the pass rate with the probability `level`.

        Equal tails are cut, but none where the density rises without bound: a problem that hardly ever passes may
        never pass.
        """
        from scipy.special import betaincinv

        low_tail = high_tail = (1 - level) / 2
        if self.a < 1 <= self.b:
            low_tail, high_tail = 0.0, 1 - level
        elif self.b < 1 <= self.a:
            low_tail, high_tail = 1 - level, 0.0
        return float(betaincinv(self.a, self.b, low_tail)), float(betaincinv(self.a, self.b, 1 - high_tail))

    def dead_share(self, group_size: int) -> float:
        """Return how often a group of this size is all wrong."""
        return math.exp(log_beta(self.a, self.b + group_size) - log_beta(self.a, self.b))

    def saturated_share(self, group_size: int) -> float:
        """Return how often a group of this size is all right."""
        return math.exp(log_beta(self.a + group_size, self.b) - log_beta(self.a, self.b))

    def teaching_share(self, group_size: int) -> float:
        """Return how often a group of this size has right and wrong samples, so that it teaches."""
        return max(0.0, 1 - self.dead_share(group_size) - self.saturated_share(group_size))


class PassRates(Protocol):
    """The pass rates of a set of problems, of which one is known by its samples alone."""

    def after(self, judged: int, passes: int) -> Beta:
        """Return the posterior after `passes` of `judged` samples."""


def expected_shares(counts: Counts, prior: PassRates, group_size: int) -> tuple[float, float, float]:
    """Return the shares of ones, of dead groups and of saturated groups to expect of these problems."""
    total = sum(counts.values())
    ones = dead = saturated = 0.0
    for (judged, passes), rows in sorted(counts.items()):
        known = prior.after(judged, passes)
        ones += rows * known.mean
        dead += rows * known.dead_share(group_size)
        saturated += rows * known.saturated_share(group_size)
    return ones / total, dead / total, saturated / total


def log_beta(a: float, b: float) -> float:
    """Return ln B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


SPIKES = (Beta(0.25, 50.0), Beta(50.0, 0.25))
"""Problems that as good as never or always pass."""


@dataclass(frozen=True)
class Prior:
    """The distribution of the pass rates of a set of problems."""

    weights: tuple[float, ...]
    """The share of each component; together 1."""
    components: tuple[Beta, ...]
    """The first is the best one alone."""
    _posteriors: dict[tuple[int, int], Beta] = field(default_factory=dict, repr=False, compare=False)
    """The posteriors that were asked for before, by judged samples and passes."""

    def after(self, judged: int, passes: int) -> Beta:
        """Return the posterior after `passes` of `judged` samples: the Beta distribution of its mean and variance."""
        if (judged, passes) not in self._posteriors:
            self._posteriors[judged, passes] = self._matched(judged, passes)
        return self._posteriors[judged, passes]

    @property
    def simplest(self) -> Beta:
        """The best one Beta distribution for all problems, by which sampling is planned.

        A few samples of each problem do not tell whether those that always passed will go on to, and a rule that
        believes what the mixture makes of that stops too early in some data sets, and goes on for nothing in others.
        """
        return self.components[0]

    def _matched(self, judged: int, passes: int) -> Beta:
        posteriors = [component.after(judged, passes) for component in self.components]
        logs = [
            math.log(weight) + log_beta(known.a, known.b) - log_beta(component.a, component.b)
            for weight, component, known in zip(self.weights, self.components, posteriors, strict=True)
            if weight > 0
        ]
        posteriors = [known for weight, known in zip(self.weights, posteriors, strict=True) if weight > 0]
        shares = [math.exp(log - max(logs)) for log in logs]
        total = sum(shares)
        mean = sum(share * known.mean for share, known in zip(shares, posteriors, strict=True)) / total
        square = sum(
            share * known.mean * (known.a + 1) / (known.a + known.b + 1)
            for share, known in zip(shares, posteriors, strict=True)
        )
        weight = (mean - square / total) / (square / total - mean * mean)
        return Beta(mean * weight, (1 - mean) * weight)


def fit_prior(counts: Counts) -> Prior | None:
    """Return the distribution of greatest likelihood, None where nothing was judged."""
    first = _fit_first(counts)
    if first is None:
        return None
    components = (first, *SPIKES, *(Beta(1 + k, 1 + DEGREE - k) for k in range(DEGREE + 1)))
    return Prior(_fit_weights(counts, components), components)


def _fit_weights(counts: Counts, components: Sequence[Beta]) -> tuple[float, ...]:
    # In one order, whichever rows were settled first: a killed profile has to end with the same prior to the last bit.
    cells = sorted((cell, rows) for cell, rows in counts.items() if cell[0])
    rows = np.array([rows for _, rows in cells], dtype=float)
    logs = np.array([[_log_likelihood(component, n, c) for component in components] for (n, c), _ in cells])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(len(components), 0.5 / (len(components) - 1))
    weights[0] = 0.5
    for _ in range(MOST_ROUNDS):
        shares = weights * likelihood
        shares /= shares.sum(axis=1, keepdims=True)
        problems = rows @ shares
        problems[0] += FIRST_PROBLEMS
        earlier, weights = weights, problems / problems.sum()
        if np.abs(weights - earlier).max() < SETTLED:
            break
    return tuple(weights.tolist())


def _fit_first(counts: Counts) -> Beta | None:
    """Return the Beta distribution of greatest likelihood, None where nothing was judged.

    It is searched on a grid of mean and a + b that is refined around the best point.
    """
    if not any(judged for judged, _ in counts):
        return None
    means: Sequence[float] = MEANS
    weights: Sequence[float] = WEIGHTS
    best = (-math.inf, 0.5, 2.0)
    for _ in range(REFINEMENTS):
        best = max(best, *((_likelihood(counts, mean, weight), mean, weight) for mean in means for weight in weights))
        _, mean, weight = best
        step_mean = (means[-1] - means[0]) / (len(means) - 1)
        step_weight = (weights[-1] / weights[0]) ** (1 / (len(weights) - 1))
        means = [min(max(mean + step_mean * i / 4, 1e-4), 1 - 1e-4) for i in range(-4, 5)]
        weights = [weight * step_weight ** (i / 4) for i in range(-4, 5)]
    return Beta(best[1] * best[2], (1 - best[1]) * best[2])


def _likelihood(counts: Counts, mean: float, weight: float) -> float:
    component = Beta(mean * weight, (1 - mean) * weight)
    # Rounded once: rows are settled in any order.
    return math.fsum(rows * _log_likelihood(component, n, c) for (n, c), rows in counts.items())


def _log_likelihood(component: Beta, judged: int, passes: int) -> float:
    known = component.after(judged, passes)
    return log_beta(known.a, known.b) - log_beta(component.a, component.b)

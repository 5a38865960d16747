r"""What a problem's judged samples say of its pass rate: a Beta posterior, whose prior the data set gives.

    0 passes of 8, where most problems are either easy or hopeless   ->  mean .02, 90 % in 0 to .10
    0 passes of 8, where most pass about half of the time            ->  mean .17, 90 % in .04 to .34

Of each problem only c passes of n judged samples are known, and 0 of 8 is not a pass rate of 0. The pass rates p of a
set of problems are taken as Beta(a, b) distributed, which makes c beta-binomial (Skellam 1948, "A probability
distribution derived from the binomial distribution by regarding the probability of success as variable between the sets
of trials"): a and b maximise

    sum over problems of  ln B(a + c, b + n - c) - ln B(a, b)                           (empirical Bayes)

and given its samples a problem has p ~ Beta(a + c, b + n - c). How many samples a problem got may depend on what its
earlier ones showed: the likelihood of a and b does not change by that. For a group of G further samples (the posterior
predictive, beta-binomial again)

    share of ones        E[p]           = (a + c) / (a + b + n)
    all wrong, dead      E[(1 - p)^G]   = B(a + c, b + n - c + G) / B(a + c, b + n - c)
    all right, saturated E[p^G]         = B(a + c + G, b + n - c) / B(a + c, b + n - c)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Counts = Mapping[tuple[int, int], int]
"""Problems by their judged samples and passes."""

MEANS = tuple(i / 40 for i in range(1, 40))
WEIGHTS = tuple(10 ** (i / 8) for i in range(-12, 17))
"""The grid of a + b, 0.03 to 100: from nearly all problems hopeless or sure to all of one difficulty."""
REFINEMENTS = 4
"""How often the grid is laid anew, four times as fine, around its best point."""


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
        """Return the ends of the interval that holds the pass rate with the probability `level`, equal tails cut."""
        from scipy.special import betaincinv

        tail = (1 - level) / 2
        return float(betaincinv(self.a, self.b, tail)), float(betaincinv(self.a, self.b, 1 - tail))

    def dead_share(self, group_size: int) -> float:
        """Return how often a group of this size is all wrong."""
        return math.exp(_log_beta(self.a, self.b + group_size) - _log_beta(self.a, self.b))

    def saturated_share(self, group_size: int) -> float:
        """Return how often a group of this size is all right."""
        return math.exp(_log_beta(self.a + group_size, self.b) - _log_beta(self.a, self.b))

    def teaching_share(self, group_size: int) -> float:
        """Return how often a group of this size has right and wrong samples, so that it teaches."""
        return max(0.0, 1 - self.dead_share(group_size) - self.saturated_share(group_size))


def expected_shares(counts: Counts, prior: Beta, group_size: int) -> tuple[float, float, float]:
    """Return the shares of ones, of dead groups and of saturated groups to expect of these problems."""
    total = sum(counts.values())
    ones = dead = saturated = 0.0
    for (judged, passes), rows in sorted(counts.items()):
        known = prior.after(judged, passes)
        ones += rows * known.mean
        dead += rows * known.dead_share(group_size)
        saturated += rows * known.saturated_share(group_size)
    return ones / total, dead / total, saturated / total


def fit_prior(counts: Counts) -> Beta | None:
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
    a, b = mean * weight, (1 - mean) * weight
    whole = _log_beta(a, b)
    # Rounded once: rows are settled in any order, and a killed profile has to end with the same prior to the last bit.
    return math.fsum(rows * (_log_beta(a + c, b + n - c) - whole) for (n, c), rows in counts.items())


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

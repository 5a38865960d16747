r"""What a problem's judged samples say of its pass rate: a Beta posterior, whose prior the data set gives (`prior`).

    0 passes of 8, where most problems are either easy or hopeless   ->  mean .02, 90 % in 0 to .07
    0 passes of 8, where most pass about half of the time            ->  mean .17, 90 % in .04 to .34

Of each problem only c passes of n judged samples are known, and 0 of 8 is not a pass rate of 0. For a group of G
further samples of a problem whose pass rate is p ~ Beta(a, b) (the posterior predictive, which is beta-binomial:
Skellam 1948, "A probability distribution derived from the binomial distribution by regarding the probability of success
as variable between the sets of trials")

    share of ones        E[p]           = a / (a + b)
    all wrong, dead      E[(1 - p)^G]   = B(a, b + G) / B(a, b)
    all right, saturated E[p^G]         = B(a + G, b) / B(a, b)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

Counts = Mapping[tuple[int, int], int]
"""Problems by their judged samples and passes."""


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
        ...


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

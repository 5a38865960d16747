r"""Estimates the pass rates of problems from judged samples, and proposes `max_tokens` from the lengths of completions.

The pass rate of a problem is the probability that a sample is right. The estimate depends on the other problems:

    0 passes of 8; most problems of the set always or never pass     ->  mean .00, 90 % interval: 0
    0 passes of 8; most problems of the set pass half of the time    ->  mean .24, 90 % interval: .02 to .41

The distribution of pass rates in a data set is the prior. The distribution for one problem, given c passes of n judged
samples, is its posterior. Both are mixtures of Beta distributions (`Mixture`):

    prior       sum over j of  w_j Beta(a_j, b_j)
    posterior   sum over j of  v_j Beta(a_j + c, b_j + n - c)      v_j ~ w_j B(a_j + c, b_j + n - c) / B(a_j, b_j)

In a group of G further samples, the number of passes has a beta-binomial distribution for each component (Skellam 1948,
J. R. Stat. Soc. B 10, 257-261). Each expectation of a mixture is the weighted mean of the same expectation of the
components:

    passes                  E[p]           = a / (a + b)
    all wrong (dead)        E[(1 - p)^G]   = B(a, b + G) / B(a, b)
    all right (saturated)   E[p^G]         = B(a + G, b) / B(a, b)

A single Beta distribution with the same mean and variance is not accurate enough. Suppose that half of the problems
never pass, and the pass rates of the others follow Beta(10, 10). Then 49 % of all groups of eight have both right and
wrong samples, but a single distribution predicts 58 %.

The components of the prior are the same for all data sets. A narrow component at 0 stands for problems that never pass,
and one at 1 for problems that always pass: the spikes. The Beta distributions between them are evenly spaced in
log-odds. Only the weights are fitted to a data set: they maximise the likelihood of all counts (empirical Bayes), by
expectation maximisation (Dempster, Laird and Rubin 1977). Sampling may stop early for some problems, because the reason
for stopping does not change the likelihood. A source or a domain with at least GROUP_ROWS problems has its own prior
(`Priors`), shrunk towards the prior of all problems.

The proposed `max_tokens` is 1.25 times a length that 99.5 % of the right completions do not exceed. A configured limit
is rejected if it is more than 8 times the proposal, and above 512:

    proposal 163    limit 1,024  ->  accepted        limit 2,048  ->  rejected
    proposal 40     limit 512    ->  accepted        limit 1,024  ->  rejected
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

Counts = Mapping[tuple[int, int], int]
"""The number of problems by (judged samples, passes)."""
Group = tuple[str | None, str | None]
"""The source and the domain of problems. None stands for all sources or domains."""


class Component(TypedDict):
    """A component of a posterior, as it is stored in tables."""

    weight: float
    a: float
    b: float


SPIKE = (0.002, 200.0)
"""The parameters of the spikes: Beta(.002, 200) at a pass rate of 0, Beta(200, .002) at 1."""
AT_AN_END = 0.01
"""A component with a parameter below this value is a spike."""
LOG_ODDS = 5.0
"""The means of the other components lie between -5 and 5, in log-odds."""
SPACING = 0.4
"""The distance between the means of neighbouring components, in log-odds."""
DEVIATION = 0.25
"""The standard deviation of each of these components, in log-odds."""
FIRST_PROBLEMS = 8.0
"""The fit starts from a uniform distribution of pass rates. It weighs as much as this number of problems."""
GROUP_ROWS = 200
"""The minimum number of problems of a source or domain with its own prior."""
GROUP_PROBLEMS = 20.0
"""In the prior of a group, the prior of all problems weighs as much as this number of problems."""
MOST_ROUNDS = 2000
"""The maximum number of rounds of expectation maximisation."""
SETTLED = 1e-7
"""Expectation maximisation ends when every weight changes by less than this."""
KEPT_WEIGHT = 1e-3
"""The minimum weight of a component that is stored in tables."""
NEAR_AN_END = 0.01
"""An end of an interval within this distance of 0 or 1 is moved to 0 or 1."""
NEGLIGIBLE = 1e-4
"""The minimum weight of a component that is used for intervals."""
FINENESS = 500
"""The number of steps in the grid from 0 to 1 in which the ends of intervals are searched."""


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta distribution with the parameters a and b."""

    a: float
    b: float

    @property
    def mean(self) -> float:
        """The expected value."""
        return self.a / (self.a + self.b)

    def after(self, judged: int, passes: int) -> Beta:
        """Return the posterior after `passes` of `judged` samples, with this distribution as prior."""
        return Beta(self.a + passes, self.b + judged - passes)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Beta distributions: a prior or a posterior of pass rates."""

    weights: Array
    """The weight of each component. The weights add up to 1. Shape [components]."""
    a: Array
    b: Array

    @classmethod
    def from_components(cls, components: Iterable[Component] | None) -> Mixture | None:
        """Return the mixture of components from a table, or None without components."""
        records = list(components or ())
        if not records:
            return None
        return cls(*(np.array([float(record[name]) for record in records]) for name in ("weight", "a", "b")))

    def components(self) -> list[Component]:
        """Return the components to store in a table, without those of negligible weight."""
        kept = np.flatnonzero(self.weights >= min(KEPT_WEIGHT, float(self.weights.max())))
        shares = self.weights[kept] / self.weights[kept].sum()
        return [
            {"weight": float(share), "a": float(self.a[index]), "b": float(self.b[index])}
            for index, share in zip(kept, shares, strict=True)
        ]

    @cached_property
    def mean(self) -> float:
        """The expected pass rate."""
        return float(moments(self.weights, self.a, self.b)[0])

    @cached_property
    def variance(self) -> float:
        """The variance of the pass rate."""
        return float(moments(self.weights, self.a, self.b)[2])

    def after(self, judged: int, passes: int) -> Mixture:
        """Return the posterior after `passes` of `judged` samples, with this distribution as prior."""
        weights = posterior_weights(self.weights, self.a, self.b, float(judged), float(passes))
        return Mixture(weights, self.a + passes, self.b + judged - passes)

    def dead_share(self, group_size: int) -> float:
        """Return the probability that all samples of a group of this size are wrong."""
        return float(self.weights @ _likelihood(self.a, self.b, float(group_size), 0.0))

    def saturated_share(self, group_size: int) -> float:
        """Return the probability that all samples of a group of this size are right."""
        return float(self.weights @ _likelihood(self.a, self.b, float(group_size), float(group_size)))

    def teaching_share(self, group_size: int) -> float:
        """Return the probability that a group of this size has both right and wrong samples. Such a group has
        advantages."""
        return float(teaching_shares(self.weights, self.a, self.b, float(group_size)))

    def below(self, bounds: Array) -> Array:
        """Return the probability that the pass rate is below each of the bounds."""
        from scipy.special import betainc

        probabilities: Array = self.weights @ betainc(self.a[:, None], self.b[:, None], bounds)
        return probabilities

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return the ends of the shortest interval that contains the pass rate with the probability `level`.

        Let p be the probability of a rate strictly between 0 and 1. If p is above (1 - level) / 5, the interval also
        contains the share `level` of p. Without this rule, many problems without passes have the interval from 0 to 0.
        """
        never, always = (float(self.weights[ends < AT_AN_END].sum()) for ends in (self.a, self.b))
        between = (self.a >= AT_AN_END) & (self.b >= AT_AN_END) & (self.weights >= NEGLIGIBLE)
        hardly = (1 - level) / 5
        if 1 - never - always < hardly:
            return (0.0 if never > hardly else 1.0), (1.0 if always > hardly else 0.0)
        if never > hardly and always > hardly:
            return 0.0, 1.0
        weights = self.weights[between] / self.weights[between].sum()
        steps = np.linspace(0.0, 1.0, FINENESS + 1)
        known = Mixture(weights, self.a[between], self.b[between]).below(steps)
        if never > hardly:
            low, high = 0.0, float(np.interp(level, known, steps))
        elif always > hardly:
            low, high = float(np.interp(1 - level, known, steps)), 1.0
        else:
            starts = np.flatnonzero(known <= 1 - level)
            ends = np.interp(known[starts] + level, known, steps)
            shortest = int((ends - steps[starts]).argmin())
            low, high = float(steps[starts[shortest]]), float(ends[shortest])
        # A few samples cannot distinguish a rate of .005 from 0, or one of .995 from 1.
        return (0.0 if low < NEAR_AN_END else low), (1.0 if high > 1 - NEAR_AN_END else high)

    def merge(self, most: int) -> Mixture:
        """Return a mixture with at most `most` components.

        The most similar neighbours are joined. The new component has their common mean and variance.
        """
        order = np.argsort(self.a / (self.a + self.b), kind="stable")
        parts = [Mixture(self.weights[[i]], self.a[[i]], self.b[[i]]) for i in order if self.weights[i] > 0]
        while len(parts) > most:
            costs = [
                float(left.weights[0] * right.weights[0] / (left.weights[0] + right.weights[0]))
                * (left.mean - right.mean) ** 2
                for left, right in pairwise(parts)
            ]
            first = int(np.argmin(costs))
            parts[first : first + 2] = [_join(parts[first], parts[first + 1])]
        return Mixture(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("weights", "a", "b")))


def _join(left: Mixture, right: Mixture) -> Mixture:
    """Return one component with the joint mean, variance and weight of two components."""
    total = left.weights + right.weights
    both = Mixture(*(np.concatenate([getattr(part, name) for part in (left, right)]) for name in ("weights", "a", "b")))
    both = Mixture(both.weights / total, both.a, both.b)
    strength = both.mean * (1 - both.mean) / both.variance - 1 if both.variance else float((both.a + both.b)[0])
    return Mixture(total, np.array([both.mean * strength]), np.array([(1 - both.mean) * strength]))


def _likelihood(a: Array, b: Array, judged: float | Array, passes: float | Array) -> Array:
    """Return the probability, under Beta(a, b), of one sequence of `judged` samples with `passes` passes."""
    from scipy.special import betaln

    likelihood: Array = np.exp(betaln(a + passes, b + judged - passes) - betaln(a, b))
    return likelihood


def posterior_weights(weights: Array, a: Array, b: Array, judged: float | Array, passes: float | Array) -> Array:
    """Return the weights of the components after `passes` of `judged` samples.

    Weights, `a` and `b` have the shape [..., components]. The counts are numbers or have the shape [..., 1].
    """
    from scipy.special import betaln

    with np.errstate(divide="ignore"):
        logs = np.log(weights) + betaln(a + passes, b + judged - passes) - betaln(a, b)
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    normalised: Array = shares / shares.sum(axis=-1, keepdims=True)
    return normalised


def teaching_shares(weights: Array, a: Array, b: Array, group_size: float | Array) -> Array:
    """Return the probability, for each mixture, that a group of samples has both right and wrong ones.

    Weights, `a` and `b` have the shape [..., components], and the result has the shape [...]. The group size is a
    number or has the shape [..., 1].
    """
    dead, saturated = _likelihood(a, b, group_size, 0.0), _likelihood(a, b, group_size, group_size)
    shares: Array = np.clip((weights * (1 - dead - saturated)).sum(axis=-1), 0.0, 1.0)
    return shares


def moments(weights: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return E[p], E[p (1 - p)] and Var[p] of each mixture. p (1 - p) is the variance of a sample at the pass rate p.

    The arguments have the shape [..., components], and the results have the shape [...].
    """
    strength = a + b
    mean = (weights * a / strength).sum(axis=-1)
    single = (weights * a * b / (strength * (strength + 1))).sum(axis=-1)
    # E[p^2] = E[p] - E[p (1 - p)]
    return mean, single, np.maximum(mean - single - mean**2, 0.0)


def stack_mixtures(known: Sequence[Mixture | None]) -> tuple[Array, Array, Array]:
    """Return the weights, a and b of the components of each mixture, as arrays [mixtures, components].

    None stands for the uniform distribution. Mixtures with fewer components are padded with components of weight 0.
    """
    most = max((len(mixture.weights) for mixture in known if mixture is not None), default=1)
    weights, a, b = np.zeros((len(known), most)), np.ones((len(known), most)), np.ones((len(known), most))
    weights[:, 0] = 1.0
    for index, mixture in enumerate(known):
        if mixture is not None:
            size = len(mixture.weights)
            weights[index, :size], a[index, :size], b[index, :size] = mixture.weights, mixture.a, mixture.b
    return weights, a, b


def _make_components() -> tuple[Array, Array]:
    log_odds = np.arange(-LOG_ODDS, LOG_ODDS + SPACING / 2, SPACING)
    means = 1 / (1 + np.exp(-log_odds))
    # The variance of log-odds is about 1 / (strength * mean * (1 - mean)).
    strengths = 1 / (DEVIATION**2 * means * (1 - means))
    a = np.concatenate([[SPIKE[0]], means * strengths, [SPIKE[1]]])
    b = np.concatenate([[SPIKE[1]], (1 - means) * strengths, [SPIKE[0]]])
    return a, b


A, B = _make_components()
"""The parameters of the components of every prior, from the spike at 0 to the spike at 1. Shapes [components]."""


def _any_rate() -> Array:
    """Return the weights of a mixture that is about uniform between 0 and 1."""
    means = A / (A + B)
    density = means * (1 - means)
    density[[0, -1]] = 0.0
    uniform: Array = density / density.sum()
    return uniform


def fit_prior(counts: Counts, parent: Mixture | None = None) -> Mixture | None:
    """Return the prior of greatest likelihood, or None if there are no judged samples.

    `parent` is the prior of a larger set of problems. If it is given, the result is shrunk towards it.
    """
    # Sorted, so that a resumed profile gives exactly the same prior.
    cells = sorted((cell, rows) for cell, rows in counts.items() if cell[0])
    if not cells:
        return None
    rows = np.array([rows for _, rows in cells], dtype=float)
    judged, passes = (np.array([cell[i] for cell, _ in cells], dtype=float)[:, None] for i in (0, 1))
    from scipy.special import betaln

    logs = betaln(A + passes, B + judged - passes) - betaln(A, B)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    beside = FIRST_PROBLEMS * _any_rate() if parent is None else GROUP_PROBLEMS * parent.weights
    weights = np.full(len(A), 1 / len(A))
    for _ in range(MOST_ROUNDS):
        shares = weights * likelihood
        shares /= shares.sum(axis=1, keepdims=True)
        problems = rows @ shares + beside
        earlier, weights = weights, problems / problems.sum()
        if np.abs(weights - earlier).max() < SETTLED:
            break
    return Mixture(weights, A, B)


@dataclass(frozen=True)
class Priors:
    """The priors of a data set: of all problems, and of large sources and domains."""

    whole: Mixture
    groups: Mapping[Group, Mixture]
    _posteriors: dict[tuple[Group, int, int], Mixture] = field(default_factory=dict, repr=False, compare=False)

    def group(self, source: str, domain: str) -> Group:
        """Return the smallest group of a row that has its own prior."""
        for group in ((source, domain), (source, None), (None, domain)):
            if group in self.groups:
                return group
        return None, None

    def of_group(self, group: Group) -> Mixture:
        """Return the prior of a group, by default the prior of all problems."""
        return self.groups.get(group, self.whole)

    def after(self, source: str, domain: str, judged: int, passes: int) -> Mixture:
        """Return the posterior of a row with `passes` passes in `judged` samples."""
        key = self.group(source, domain), judged, passes
        if key not in self._posteriors:
            self._posteriors[key] = self.of_group(key[0]).after(judged, passes)
        return self._posteriors[key]


def fit_priors(counts: Mapping[tuple[str, str], Counts]) -> Priors | None:
    """Return the priors of problems that are counted by (source, domain), or None if there are no judged samples.

    A group with at least GROUP_ROWS judged problems has its own prior. The prior of a source or a domain is shrunk
    towards the prior of all problems, and the prior of a domain within a source towards the prior of the source.
    """
    sums: dict[Group, Counter[tuple[int, int]]] = {}
    for (source, domain), cells in counts.items():
        larger: tuple[Group, ...] = ((None, None), (source, None), (None, domain))
        for group in (*larger, (source, domain)):
            sums.setdefault(group, Counter()).update({cell: rows for cell, rows in cells.items() if cell[0]})
    whole = fit_prior(sums.get((None, None), {}))
    if whole is None:
        return None
    groups: dict[Group, Mixture] = {}
    # Sources and domains come first, because the prior of a domain within a source depends on them.
    for group in sorted(sums, key=lambda group: (None not in group, str(group))):
        parents: tuple[Group, ...] = ((group[0], None), (None, group[1]))
        above = [parent for parent in parents if parent != group and parent in groups]
        rows = sums[group].total()
        # A group with the same problems as a larger group, such as the only source, uses the prior of the larger group.
        is_all_of_another = any(rows == sums[parent].total() for parent in ((None, None), *above))
        if rows < GROUP_ROWS or is_all_of_another:
            continue
        fitted = fit_prior(sums[group], groups[above[0]] if above else whole)
        assert fitted is not None
        groups[group] = fitted
    return Priors(whole, groups)


def expected_shares(known: Iterable[tuple[Mixture, int]], group_size: int) -> tuple[float, float, float]:
    """Return the expected shares of passes, of all-wrong groups and of all-right groups.

    `known` has pairs of a posterior and the number of problems with it.
    """
    total = ones = dead = saturated = 0.0
    for mixture, rows in known:
        total += rows
        ones += rows * mixture.mean
        dead += rows * mixture.dead_share(group_size)
        saturated += rows * mixture.saturated_share(group_size)
    return ones / total, dead / total, saturated / total


QUANTILE = 0.995
"""The proposed limit is based on this quantile of the lengths of right completions."""
MARGIN = 1.25
"""The proposed limit is this multiple of the quantile."""
MISTAKE_FACTOR = 8
"""The highest accepted limit is this multiple of the proposed limit."""
SHORT = 512
"""A limit of up to this number of tokens is always accepted."""
MIN_COMPLETIONS = 200
"""The minimum number of right completions for a reliable quantile. With fewer completions, every limit is accepted."""

LengthCounts = Mapping[int, int]
"""The number of completions of each length in tokens."""


def quantile_length(lengths: LengthCounts) -> int | None:
    """Return the quantile QUANTILE of the lengths, or None if there are no completions."""
    total, seen = sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= QUANTILE * total:
            return length
    return None


def propose_max_tokens(lengths: LengthCounts) -> int | None:
    """Return the proposed limit for right completions of these lengths, or None if there are no completions."""
    longest = quantile_length(lengths)
    return None if longest is None else math.ceil(MARGIN * longest)


def is_wildly_above_need(max_tokens: int, lengths: LengthCounts) -> bool:
    """Return whether a limit is far above the proposed one, and so probably a mistake."""
    proposed = propose_max_tokens(lengths)
    if proposed is None or sum(lengths.values()) < MIN_COMPLETIONS:
        return False
    return max_tokens > max(SHORT, MISTAKE_FACTOR * proposed)

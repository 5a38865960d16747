r"""Estimates pass rates from judged samples: their distribution in a data set (the prior), and the pass rate of each
problem (its posterior).

    0 passes of 8; most problems of the set always or never pass     ->  mean .00, 90 % interval: 0
    0 passes of 8; most problems of the set pass half of the time    ->  mean .24, 90 % interval: .02 to .41

c passes of n judged samples do not mean a pass rate of c / n, since 0 of 8 may be bad luck. The prior is a mixture of
Beta distributions (`Mixture`), and so is the posterior of a problem:

    prior       sum over j of  w_j Beta(a_j, b_j)
    posterior   sum over j of  v_j Beta(a_j + c, b_j + n - c)      v_j ~ w_j B(a_j + c, b_j + n - c) / B(a_j, b_j)

The outcomes of a group of G further samples have a beta-binomial distribution for each component (Skellam 1948, J. R.
Stat. Soc. B 10, 257-261), and the mixture has the weighted mean of their probabilities:

    passes                  E[p]           = a / (a + b)
    all wrong (dead)        E[(1 - p)^G]   = B(a, b + G) / B(a, b)
    all right (saturated)   E[p^G]         = B(a + G, b) / B(a, b)

A single Beta distribution with the same mean and variance is not accurate enough. Take problems that never pass or are
like Beta(10, 10) with equal probability: 49 % of their groups of eight are mixed, but a single distribution predicts
58 %.

The components of the prior are the same for all data sets: a spike at 0 and one at 1, for problems that never or always
pass, and between them Beta distributions that are evenly spaced in log-odds. The weights of the components maximise the
likelihood of all counts (empirical Bayes), by expectation maximisation (Dempster, Laird and Rubin 1977). The number of
samples of a problem may depend on its earlier samples, since this does not change the likelihood.

A source or a domain with at least GROUP_ROWS problems has its own prior (`Priors`), shrunk towards the prior of all
problems.

The lengths of right completions propose `max_tokens`, and show limits that are far too high:

99.5 % of 1,000 right completions have up to 130 tokens    ->  the proposal is 163 (130 * 1.25)
a limit of 1,024                                           high, but accepted
a limit of 2,048                                           a mistake: more than 8 times the proposal
a limit of 512, with a proposal of 40                      accepted: such a short limit costs little
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
"""The parameters of the spikes: Beta(.002, 200) never passes, Beta(200, .002) always passes."""
AT_AN_END = 0.01
"""The size of a parameter below which a component is a spike at 0 or 1."""
LOG_ODDS = 5.0
SPACING = 0.4
DEVIATION = 0.25
"""The other components have means between -5 and 5 in log-odds, .4 apart, with standard deviations of .25."""
FIRST_PROBLEMS = 8.0
"""The weight of a uniform distribution of pass rates in the prior: as much as eight observed problems."""
GROUP_ROWS = 200
"""The minimum number of problems of a source or domain with its own prior."""
GROUP_PROBLEMS = 20.0
"""The weight of the prior of all problems in the prior of a group, in problems."""
MOST_ROUNDS = 2000
"""The maximum number of rounds of expectation maximisation."""
SETTLED = 1e-7
"""The change of weights below which expectation maximisation ends."""
KEPT_WEIGHT = 1e-3
"""The minimum weight of a component that is stored in tables."""
NEAR_AN_END = 0.01
"""An end of an interval within this distance of 0 or 1 is moved to 0 or 1."""
NEGLIGIBLE = 1e-4
"""The minimum weight of a component that is used for intervals."""
FINENESS = 500
"""The number of grid steps between 0 and 1 on which the ends of intervals are searched."""


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
        """Return the probability that a group of this size has right and wrong samples, so that it has advantages."""
        return float(teaching_shares(self.weights, self.a, self.b, float(group_size)))

    def below(self, bounds: Array) -> Array:
        """Return the probability that the pass rate is below each of the bounds."""
        from scipy.special import betainc

        probabilities: Array = self.weights @ betainc(self.a[:, None], self.b[:, None], bounds)
        return probabilities

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return the ends of the shortest interval that contains the pass rate with the probability `level`.

        If a rate strictly between 0 and 1 has a probability above (1 - level) / 5, the interval also covers `level` of
        that probability. Without this rule, the interval of a problem without passes would often be the spike at 0
        alone.
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
        # A few samples cannot distinguish a rate near 0 or 1 from 0 or 1.
        return (0.0 if low < NEAR_AN_END else low), (1.0 if high > 1 - NEAR_AN_END else high)

    def merge(self, most: int) -> Mixture:
        """Return a mixture with at most `most` components.

        The most similar neighbours are joined into a component with their mean and variance.
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
    """Return the probability of `passes` passes in `judged` samples, in a given order, under Beta(a, b)."""
    from scipy.special import betaln

    likelihood: Array = np.exp(betaln(a + passes, b + judged - passes) - betaln(a, b))
    return likelihood


def posterior_weights(weights: Array, a: Array, b: Array, judged: float | Array, passes: float | Array) -> Array:
    """Return the weights of the components after `passes` of `judged` samples.

    Shapes [..., components]; counts may have the shape [..., 1].
    """
    from scipy.special import betaln

    with np.errstate(divide="ignore"):
        logs = np.log(weights) + betaln(a + passes, b + judged - passes) - betaln(a, b)
    shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
    normalised: Array = shares / shares.sum(axis=-1, keepdims=True)
    return normalised


def teaching_shares(weights: Array, a: Array, b: Array, group_size: float | Array) -> Array:
    """Return the probabilities that groups have right and wrong samples.

    Shapes [..., components]; the result has no last axis. Sizes may have the shape [..., 1].
    """
    dead, saturated = _likelihood(a, b, group_size, 0.0), _likelihood(a, b, group_size, group_size)
    shares: Array = np.clip((weights * (1 - dead - saturated)).sum(axis=-1), 0.0, 1.0)
    return shares


def moments(weights: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return three moments of each mixture: E[p]; E[p (1 - p)], the variance of a sample at a known rate; and Var[p].

    Shapes [..., components]; the results have no last axis.
    """
    strength = a + b
    mean = (weights * a / strength).sum(axis=-1)
    single = (weights * a * b / (strength * (strength + 1))).sum(axis=-1)
    # E[p^2] = E[p] - E[p (1 - p)]
    return mean, single, np.maximum(mean - single - mean**2, 0.0)


def stack_mixtures(known: Sequence[Mixture | None]) -> tuple[Array, Array, Array]:
    """Return the weights, a and b of the components of each mixture, as arrays [mixtures, components].

    For None, all pass rates are equally probable. Mixtures with fewer components are padded with the weight 0.
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
    """Return weights for which all pass rates between 0 and 1 are about equally probable."""
    means = A / (A + B)
    density = means * (1 - means)
    density[[0, -1]] = 0.0
    uniform: Array = density / density.sum()
    return uniform


def fit_prior(counts: Counts, parent: Mixture | None = None) -> Mixture | None:
    """Return the prior of greatest likelihood, or None without judged samples.

    The prior is shrunk towards `parent`, the prior of a larger set of problems, if given.
    """
    # Sorted, so that a resumed profile has exactly the same prior.
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
    """Return the priors of problems that are counted by (source, domain), or None without judged samples.

    A source or a domain with at least GROUP_ROWS judged problems has a prior, shrunk towards the prior of all problems.
    So has a domain within a source, shrunk towards the prior of the source.
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
        # A group with the same problems as a larger group, such as an only source, uses the larger group's prior.
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
"""The quantile of the lengths of right completions on which the proposal is based."""
MARGIN = 1.25
"""The factor from the quantile to the proposed limit."""
MISTAKE_FACTOR = 8
"""The factor from the proposed limit to the highest limit that is accepted."""
SHORT = 512
"""The number of tokens up to which every limit is accepted."""
MIN_COMPLETIONS = 200
"""The minimum number of right completions for a reliable quantile. With fewer, every limit is accepted."""

LengthCounts = Mapping[int, int]
"""The number of completions of each length in tokens."""


def quantile_length(lengths: LengthCounts) -> int | None:
    """Return the quantile QUANTILE of the lengths, or None without completions."""
    total, seen = sum(lengths.values()), 0
    for length in sorted(lengths):
        seen += lengths[length]
        if seen >= QUANTILE * total:
            return length
    return None


def propose_max_tokens(lengths: LengthCounts) -> int | None:
    """Return the proposed limit for right completions of these lengths, or None without completions."""
    longest = quantile_length(lengths)
    return None if longest is None else math.ceil(MARGIN * longest)


def is_wildly_above_need(max_tokens: int, lengths: LengthCounts) -> bool:
    """Return whether a limit is so far above the needed length that it must be a mistake."""
    proposed = propose_max_tokens(lengths)
    if proposed is None or sum(lengths.values()) < MIN_COMPLETIONS:
        return False
    return max_tokens > max(SHORT, MISTAKE_FACTOR * proposed)

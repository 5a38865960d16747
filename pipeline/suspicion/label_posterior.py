"""Estimates for each item the share of able systems that give the label, and the share that give an alternative.

The pass rate does not suffice, because it is low for hard items and for mislabeled items. These items differ in how
agreement with the label changes with ability. On a hard item, agreement rises with ability. If the label is wrong,
agreement falls with ability, and an alternative rises. On an ambiguous item, able systems stay divided between two
answers.

The model. A system of ability t "solves" an item of difficulty b with probability p = CEILING * sigmoid(t - b). A
system that solves it gives the label with probability pi(t), and else the alternative. logit pi is linear in t between
`LOW` and `HIGH`. So the curve pi has two parameters, each on a grid: the label's share among weak systems and among
strong systems. A system that does not solve the item gives another answer. The clusters of these answers are scored by
the Ewens sampling formula (Ewens 1972, eq. 4; `Population.concentrations`): many equal wrong answers are unlikely for
open questions, and likely among four options. By a further hypothesis, the label is the only reading, and every other
answer is an error. Difficulty b is integrated out, and the two most frequent alternatives compete. With few systems,
the posterior stays close to the prior, which is learnt from the whole file (`population`).

Systems share errors, so m systems are not m independent witnesses. The log likelihood is divided by
1 + (m - 1) * `SHARED` for the m systems that answered the item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.rasch_model import Ability, log_prior, sigmoid, solve_probability
from truegold.pipeline.suspicion.votes import Votes

Array = NDArray[np.float64]

WEAK_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
"""The grid of the label's share among weak systems."""
STRONG_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995])
"""The grid of the label's share among strong systems."""
LOW, HIGH = -2.0, 4.5
"""The abilities of "weak" (LOW) and "strong" (HIGH) systems, in logits. They solve an item of mean difficulty with a
probability of 12 % and 98 %.

HIGH is fixed. Without strong systems the curve is extrapolated to HIGH, and is less certain.
"""
LINE_ENDS = (-0.5, 1.2)
"""The ends of the line of logit pi, on a scale with LOW at 0 and HIGH at 1. Beyond them, pi is constant."""
SHARED = 0.06
"""The correlation of the errors of different systems."""
CANDIDATES = 2
"""The number of alternatives, the most frequent first, that may be a second reading."""
BLOCK = 4096
"""The number of items that are processed at a time, to bound memory."""

POOLED_SHARES = (0.5, 0.25)
"""The estimates from these shares of the ablest systems are pooled with the estimate from all systems."""
MIN_POOLED_SYSTEMS = 12
"""The minimum number of systems in such a share."""
SINGLE, HARMLESS, WRONG = 0, 1, 2
"""The groups of hypotheses. SINGLE: the item has one reading. HARMLESS: fewer than half of the strong systems choose a
second reading. WRONG: at least half of them do, so the label is at fault."""
DEFAULT_CONCENTRATIONS = (10.0, 1 / 3)
"""Concentrations of wrong answers. Two wrong answers are equal with a probability of 1/11 for open questions, and of
3/4 for closed ones."""
UNDECIDED = (0.5, 0.25, 0.25)
"""The prior of the groups of hypotheses before the file is known."""
FLOOR = 1e-7
"""The minimum distance of a probability from 0 and 1, to keep its log odds finite."""

_WEAK, _STRONG = (grid.ravel() for grid in np.meshgrid(WEAK_SHARES, STRONG_SHARES, indexing="ij"))
LABEL_SHARE: Array = np.concatenate([[1.0], np.tile(_STRONG, CANDIDATES)])
"""(h,), the label's share among strong systems under each hypothesis. The first one is the single reading."""
GROUP: NDArray[np.intp] = np.concatenate([[SINGLE], np.tile(np.where(_STRONG <= 0.5, WRONG, HARMLESS), CANDIDATES)])
"""(h,), the group of each hypothesis."""
IS_REPLACED: NDArray[np.bool_] = STRONG_SHARES[0] >= LABEL_SHARE
"""(h,), whether all strong systems give another answer than the label, except for slips."""


@dataclass(frozen=True, slots=True)
class Population:
    """The parameters of systems and labels, learnt from all items together (`population`)."""

    ability: Ability
    concentrations: tuple[float, float] = DEFAULT_CONCENTRATIONS
    """Ewens concentrations of wrong answers to open and to closed questions. With a large concentration, wrong answers
    scatter, so systems rarely agree on a wrong answer by chance."""
    prior: tuple[float, float, float] = UNDECIDED
    """The prior probability of each group of hypotheses. The last one is the share of wrong labels."""


@dataclass(frozen=True, slots=True)
class Readings:
    """Summaries of the posterior of n items."""

    fault: Array
    """(n,), the expected square root of the share of strong systems that deny the label."""
    strong_share: Array
    """(n,), the posterior mean of the label's share among strong systems."""
    outvoted: Array
    """(n,), the posterior probability that the label's share is at most one half: that the label is wrong."""
    replaced: Array
    """(n,), the posterior probability that almost no strong system gives the label. The problem is then sound, and
    another answer is right."""
    group_log_likelihood: Array
    """(n, 3), the log likelihood of the votes under each group of hypotheses, up to a constant for each item."""
    alternative: NDArray[np.int32]
    """(n,), the class of the alternative that the posterior favours, 0 for none."""


def read(votes: Votes, population: Population, features: Array) -> Readings:
    """Return the posterior of every item. For items without votes, it is the prior."""
    n = votes.n_items
    fault, share, outvoted, is_replaced = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    groups = np.empty((n, 3))
    alternative = np.zeros(n, dtype=np.int32)
    # The probability of a group is divided evenly among its hypotheses.
    log_prior_of_hypotheses = np.log(np.asarray(population.prior) / np.bincount(GROUP, minlength=3))[GROUP]
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        block = votes.of_items(np.arange(start, stop))
        expected = population.ability.expected_difficulty(features[start:stop])
        log = _log_likelihood(block, population, expected)
        for group in (SINGLE, HARMLESS, WRONG):
            groups[start:stop, group] = _log_mean_exp(log[:, group == GROUP])
        posterior = np.exp(log + log_prior_of_hypotheses - log.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        fault[start:stop] = posterior @ np.sqrt(1.0 - LABEL_SHARE)
        share[start:stop] = posterior @ LABEL_SHARE
        outvoted[start:stop] = posterior @ (WRONG == GROUP)
        is_replaced[start:stop] = posterior @ IS_REPLACED
        by_candidate = posterior[:, 1:].reshape(block.n_items, CANDIDATES, -1).sum(axis=2)
        favoured = 1 + by_candidate.argmax(axis=1)
        alternative[start:stop] = np.where(by_candidate.sum(axis=1) > 0, favoured, 0)
    return Readings(fault, share, outvoted, is_replaced, groups, alternative)


def pooled_fault(fault: Array, votes: Votes, population: Population, features: Array) -> Array:
    """Return `fault` (n,), an estimate from all systems, pooled with estimates from the abler half and the ablest
    quarter.

        60 systems: 0.31     the best 30: 0.52     the best 15: 0.68     ->  0.50

    Many weak systems with the same error distort the estimate from all systems; a single slip distorts the estimate
    from the ablest few. The result is the mean of the log odds: the logarithmic opinion pool with equal weights (Genest
    and Zidek 1986, Statistical Science 1, section 3).
    """
    m = len(votes.systems)
    ranked = np.argsort(-population.ability.theta, kind="stable")
    total, count = _log_odds(fault), np.ones(votes.n_items)
    for share in POOLED_SHARES:
        size = round(m * share)
        if size < MIN_POOLED_SYSTEMS:
            break
        chosen = np.zeros(m, dtype=bool)
        chosen[ranked[:size]] = True
        abler_votes = votes.of_systems(chosen)
        answered = abler_votes.has_votes()
        abler = replace(population, ability=replace(population.ability, theta=population.ability.theta[chosen]))
        abler_fault = read(abler_votes, abler, features).fault
        total = total + np.where(answered, _log_odds(abler_fault), 0.0)
        count = count + answered
    return np.where(count > 1, sigmoid(total / count), fault)


def _log_odds(probability: Array) -> Array:
    clipped = np.clip(probability, FLOOR, 1.0 - FLOOR)
    return np.log(clipped / (1.0 - clipped))


def _log_mean_exp(log: Array) -> Array:
    top = log.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        mean: Array = (top + np.log(np.exp(log - top).mean(axis=1, keepdims=True)))[:, 0]
    return mean


def _log_likelihood(block: Votes, population: Population, expected: Array) -> Array:
    """Return the log likelihood of a block's votes under each hypothesis (n, h).

    The log likelihood is -inf for a hypothesis about an alternative that the item does not have.
    """
    theta = population.ability.theta
    p = solve_probability(theta)
    log_p, log_not = np.log(p), np.log1p(-p)
    prior = log_prior(expected, population.ability.spread)
    label = block.table(block.answer_class == 0)
    seen = block.table()
    temper = 1.0 / (1.0 + np.maximum((seen > 0).sum(axis=1) - 1, 0) * SHARED)
    clusters = _Clusters(block, population.concentrations)
    shares = _share_by_ability(_WEAK, _STRONG, theta)

    def integrated(hits: Array, misses: Array) -> Array:
        log = temper[:, None] * (hits @ log_p + misses @ log_not) + prior
        top = log.max(axis=1, keepdims=True)
        result: Array = (top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))[:, 0]
        return result

    columns = [integrated(label, seen - label) + temper * clusters.log_probability(None)]
    for candidate in range(1, CANDIDATES + 1):
        other = block.table(block.answer_class == candidate)
        common = integrated(label + other, seen - label - other) + temper * clusters.log_probability(candidate)
        split = temper[:, None] * (label @ np.log(shares) + other @ np.log1p(-shares))
        log = common[:, None] + split
        log[other.sum(axis=1) == 0] = -np.inf
        columns.extend(log.T)
    return np.stack(columns, axis=1)


def _share_by_ability(weak: Array, strong: Array, theta: Array) -> Array:
    """Return the label's share for each system, under each pair of shares among weak and strong systems (m, w)."""
    height = np.clip((theta - LOW) / (HIGH - LOW), *LINE_ENDS)[:, None]
    weak_logit, strong_logit = np.log(weak / (1.0 - weak)), np.log(strong / (1.0 - strong))
    return sigmoid(weak_logit * (1.0 - height) + strong_logit * height)


class _Clusters:
    """The clusters of equal wrong answers to each item, scored by the Ewens sampling formula."""

    def __init__(self, block: Votes, concentrations: tuple[float, float]) -> None:
        self._alpha = np.where(block.closed, concentrations[1], concentrations[0])
        wrong = block.answer_class > 0
        n_classes = int(block.answer_class.max(initial=0)) + 1
        keys = block.item[wrong].astype(np.int64) * n_classes + block.answer_class[wrong]
        key, cluster = np.unique(keys, return_inverse=True)
        self._n = block.n_items
        self._weight = np.bincount(cluster, weights=block.weight[wrong], minlength=len(key))
        self._item, self._class = key // n_classes, key % n_classes
        self._term = np.log(self._alpha[self._item]) + _log_gamma(np.maximum(self._weight, 1.0))

    def log_probability(self, explained: int | None) -> Array:
        """Return the log probability of all clusters (n,), except for the class `explained`, which is the second
        reading."""
        left = np.ones(len(self._class), dtype=bool) if explained is None else self._class != explained
        terms = np.bincount(self._item[left], weights=self._term[left], minlength=self._n)
        total: Array = np.bincount(self._item[left], weights=self._weight[left], minlength=self._n).astype(np.float64)
        return terms + _log_gamma(self._alpha) - _log_gamma(self._alpha + total)


def _log_gamma(values: Array) -> Array:
    return np.fromiter((math.lgamma(value) for value in values), dtype=np.float64, count=len(values))

"""For each item: which share of able systems reads it as the label does, and which as the best alternative.

Why not the pass rate: a hard item and a mislabeled one both have a low one. They differ in how agreement with the label
changes with ability. On a hard item it rises towards the top; where the label is wrong it falls, and an alternative
rises; on an ambiguous item two answers share the able systems however able they get.

The model. A system of ability t "solves" the item with probability p = CEILING * sigmoid(t - b). One that does gives
the label with probability pi(t) and the alternative otherwise; logit pi is linear in t between `LOW` and `HIGH`, so it
has two parameters, the share among weak systems and the share among strong ones, each on a grid. One that does not
gives some other answer; how those cluster is scored by the Ewens sampling formula (Ewens 1972, eq. 4; its concentration
is `Population.concentrations`), so that many equal wrong answers are unlikely to be chance where errors scatter, and
likely among four options. A further hypothesis is that there is no second reading and every other answer is an error.
Difficulty b is integrated out. The two most frequent alternatives compete. Everything is a posterior: with few systems
it stays close to the prior, and the prior is learnt from the whole file (`population`).

Systems share errors, so that m of them are not m independent witnesses: the log likelihood is divided by
1 + (m - 1) * `SHARED`, m the number of systems that answered the item.

Pooling. The fault read from all systems is put together with that from the abler half and from the ablest quarter:

    60 systems: 0.31     the best 30: 0.52     the best 15: 0.68     ->  0.51

The curves are an approximation, and where it errs depends on who votes: many weak systems that share a trap pull the
curve of all, one slip moves that of the ablest few. The logarithmic opinion pool (Genest and Zidek 1986, Statistical
Science 1, section 3; equal weights) believes neither alone: it is the mean of the log odds.
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
"""Abilities, in logits above the mean item, between which the share is read: a tenth and 99 % of the mean items solved.
HIGH does not depend on the systems at hand: if no strong ones are, the curve is read beyond them, and says less."""
LINE_ENDS = (-0.5, 1.2)
"""How far the line goes on beyond LOW (0) and HIGH (1), in units of their distance."""
SHARED = 0.06
"""Correlation of different systems' errors."""
CANDIDATES = 2
"""The most frequent alternatives that may be the second reading."""
BLOCK = 4096
"""Items worked on at a time, which bounds memory."""

POOLED_SHARES = (0.5, 0.25)
"""The parts of the systems, the ablest first, whose readings are pooled with that of all."""
MIN_POOLED_SYSTEMS = 12
"""Smaller sets say too little alone."""
SINGLE, HARMLESS, WRONG = 0, 1, 2
"""The groups of hypotheses: one reading; a second one that most strong systems do not have; one that at least half of
them have, so that the label is at fault."""
DEFAULT_CONCENTRATIONS = (10.0, 1 / 3)
"""Concentrations of wrong answers to open and to closed questions: two coincide one time in eleven, and three times in
four."""
UNDECIDED = (0.5, 0.25, 0.25)
"""The prior of the groups of hypotheses before anything is known of the file."""
FLOOR = 1e-7
"""Probabilities are kept this far from 0 and 1 before their log odds are taken."""

_WEAK, _STRONG = (grid.ravel() for grid in np.meshgrid(WEAK_SHARES, STRONG_SHARES, indexing="ij"))
LABEL_SHARE: Array = np.concatenate([[1.0], np.tile(_STRONG, CANDIDATES)])
"""(h,), the label's share of strong systems under each hypothesis; the first is the single reading."""
GROUP: NDArray[np.intp] = np.concatenate([[SINGLE], np.tile(np.where(_STRONG <= 0.5, WRONG, HARMLESS), CANDIDATES)])
"""(h,), the group of each hypothesis."""
IS_REPLACED: NDArray[np.bool_] = STRONG_SHARES[0] >= LABEL_SHARE
"""(h,), whether all strong systems except for slips read another answer."""


@dataclass(frozen=True, slots=True)
class Population:
    """The systems and labels as all items together show them (`population` learns it)."""

    ability: Ability
    concentrations: tuple[float, float] = DEFAULT_CONCENTRATIONS
    """Concentrations of wrong answers to open questions and to closed ones. Large: there are many ways to be wrong, and
    agreement on one needs a reason."""
    prior: tuple[float, float, float] = UNDECIDED
    """The probability of each group of hypotheses before an item's votes; the last is the share of wrong labels."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The posterior of n items, in a few figures."""

    fault: Array
    """(n,), the expected square root of the share of strong systems that do not read the label."""
    strong_share: Array
    """(n,), the posterior mean of the label's share among strong systems."""
    outvoted: Array
    """(n,), the posterior probability that this share is at most one half: that the label is wrong."""
    replaced: Array
    """(n,), the posterior probability that next to no strong system reads the label: that another answer is right, and
    the problem is sound."""
    group_log_likelihood: Array
    """(n, 3), of the votes under each group of hypotheses, up to a constant for each item."""
    alternative: NDArray[np.int32]
    """(n,), the class of the alternative that the posterior favours; 0 if there is none."""


def read(votes: Votes, population: Population, features: Array) -> Readings:
    """Return the posterior of every item. Items without votes are allowed; their fault is the prior's."""
    n = votes.n_items
    fault, share, outvoted, is_replaced = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    groups = np.empty((n, 3))
    alternative = np.zeros(n, dtype=np.int32)
    # Each group's probability is shared out evenly in it.
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
    """Return (n,): `fault`, read from all systems, pooled with the abler ones' reading of the items they answered."""
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
    """Return (n, h): the log likelihood of a block's votes under each hypothesis; -inf where it has no alternative."""
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
    """Return (m, w): the label's share for each system under each pair of weak and strong shares."""
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
        """Return (n,): the log probability of all clusters, or of all but the class that a second reading explains."""
        left = np.ones(len(self._class), dtype=bool) if explained is None else self._class != explained
        terms = np.bincount(self._item[left], weights=self._term[left], minlength=self._n)
        total: Array = np.bincount(self._item[left], weights=self._weight[left], minlength=self._n).astype(np.float64)
        return terms + _log_gamma(self._alpha) - _log_gamma(self._alpha + total)


def _log_gamma(values: Array) -> Array:
    return np.fromiter((math.lgamma(value) for value in values), dtype=np.float64, count=len(values))

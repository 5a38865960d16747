"""For each item: which share of able systems reads it as the label does, and which as the best alternative.

Why not the pass rate: a hard item and a mislabeled one both have a low one. They differ in how agreement with the label
changes with ability. On a hard item it rises towards the top; where the label is wrong it falls, and an alternative
rises; on an ambiguous item two answers share the able systems however able they get.

The model. A system of ability t "solves" the item with probability p = CEILING * sigmoid(t - b). One that does gives
the label with probability pi(t) and the alternative otherwise; logit pi is linear in t between `LOW` and `HIGH`, so it
has two parameters, the share among weak systems and the share among strong ones, each on a grid. One that does not
gives some other answer; how those cluster is scored by the Ewens sampling formula (Ewens 1972, eq. 4; concentration
`ALPHA`), so that many equal wrong answers are unlikely to be chance. A further hypothesis is that there is no second
reading and every other answer is an error. Difficulty b is integrated out. The two most frequent alternatives compete.
Everything is a posterior: with few systems it stays close to the prior.

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import Ability, log_prior, sigmoid, solve_probability
from truegold.pipeline.flag.suspicion.ballot import Votes

Array = NDArray[np.float64]

WEAK_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
"""The grid of the label's share among weak systems."""
STRONG_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995])
"""The grid of the label's share among strong systems."""
LOW, HIGH = -2.0, 4.5
"""Abilities, in logits above the mean item, between which the share is read: a tenth and 99 % of the mean items solved.
HIGH does not depend on the systems at hand: where no strong ones are, the curve is read beyond them, and says less."""
LINE_ENDS = (-0.5, 1.2)
"""How far the line goes on beyond LOW (0) and HIGH (1), in units of their distance."""
ALPHA = 10.0
"""Concentration of wrong answers. Large: there are many ways to be wrong, and agreement on one needs a reason."""
SHARED = 0.06
"""Correlation of different systems' errors."""
SINGLE_READING = 0.5
"""Prior probability that no second reading is needed. A second one may be harmless (share of strong near 1)."""
CANDIDATES = 2
"""The most frequent alternatives that may be the second reading."""
BLOCK = 4096
"""Items worked on at a time, which bounds memory."""

POOLED_SHARES = (0.5, 0.25)
"""The parts of the systems, the ablest first, whose readings are pooled with that of all."""
MIN_POOLED_SYSTEMS = 12
"""Smaller sets say too little alone."""
FLOOR = 1e-7
"""Probabilities are kept this far from 0 and 1 before their log odds are taken."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The posterior of n items, in a few figures."""

    fault: Array
    """(n,), the expected square root of the share of strong systems that do not read the label."""
    strong_share: Array
    """(n,), the posterior mean of the label's share among strong systems."""
    outvoted: Array
    """(n,), the posterior probability that this share is at most one half."""
    alternative: NDArray[np.int32]
    """(n,), the class of the alternative that the posterior favours; 0 where there is none."""


def read(votes: Votes, ability: Ability, features: Array) -> Readings:
    """Return the posterior of every item. Items without votes are allowed; their fault is the prior's."""
    n, m = votes.n_items, len(votes.systems)
    fault, share, outvoted = np.empty(n), np.empty(n), np.empty(n)
    alternative = np.zeros(n, dtype=np.int32)
    starts = votes.starts()
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        entries = slice(starts[start], starts[stop])
        block = _Block(
            votes.item[entries] - start,
            votes.system[entries],
            votes.answer_class[entries],
            votes.weight[entries],
            stop - start,
            m,
        )
        expected = ability.expected_difficulty(features[start:stop])
        posterior, label_share, alternative[start:stop] = _posterior(block, ability, expected)
        fault[start:stop] = posterior @ np.sqrt(1.0 - label_share)
        share[start:stop] = posterior @ label_share
        outvoted[start:stop] = posterior @ (label_share <= 0.5)
    return Readings(fault, share, outvoted, alternative)


def pooled_fault(fault: Array, votes: Votes, ability: Ability, features: Array) -> Array:
    """Return (n,): `fault`, read from all systems, pooled with the abler ones' reading of the items they answered."""
    m = len(votes.systems)
    ranked = np.argsort(-ability.theta, kind="stable")
    total, count = _log_odds(fault), np.ones(votes.n_items)
    for share in POOLED_SHARES:
        size = round(m * share)
        if size < MIN_POOLED_SYSTEMS:
            break
        chosen = np.zeros(m, dtype=bool)
        chosen[ranked[:size]] = True
        abler_votes = votes.restrict_to(chosen)
        answered = abler_votes.has_votes()
        abler_fault = read(abler_votes, ability.restrict_to(chosen), features).fault
        total = total + np.where(answered, _log_odds(abler_fault), 0.0)
        count = count + answered
    return np.where(count > 1, sigmoid(total / count), fault)


def _log_odds(probability: Array) -> Array:
    clipped = np.clip(probability, FLOOR, 1.0 - FLOOR)
    odds: Array = np.log(clipped / (1.0 - clipped))
    return odds


@dataclass(frozen=True, slots=True)
class _Block:
    """The votes on some of the items, which are counted from 0 here."""

    item: NDArray[np.int32]
    system: NDArray[np.int32]
    answer_class: NDArray[np.int32]
    weight: Array
    n: int
    m: int

    def table(self, chosen: NDArray[np.bool_]) -> Array:
        """Return (n, m): the weights of the chosen entries."""
        flat = np.bincount(
            self.item[chosen].astype(np.int64) * self.m + self.system[chosen],
            weights=self.weight[chosen],
            minlength=self.n * self.m,
        )
        table: Array = flat.astype(np.float64, copy=False).reshape(self.n, self.m)
        return table


def _posterior(block: _Block, ability: Ability, expected: Array) -> tuple[Array, Array, NDArray[np.int32]]:
    """Return the posterior of a block.

    It is (n, h) probabilities of the hypotheses, (h,) the label's share of strong systems in each, and (n,) the class
    of the favoured alternative.
    """
    p = solve_probability(ability.theta)
    log_p, log_not = np.log(p), np.log1p(-p)
    prior = log_prior(expected, ability.spread)
    label = block.table(block.answer_class == 0)
    seen = block.table(np.ones(len(block.answer_class), dtype=bool))
    temper = 1.0 / (1.0 + np.maximum((seen > 0).sum(axis=1) - 1, 0) * SHARED)
    clusters = _Clusters(block)
    weak, strong = np.meshgrid(WEAK_SHARES, STRONG_SHARES, indexing="ij")
    shares = _share_by_ability(weak.ravel(), strong.ravel(), ability.theta)

    def integrated(hits: Array, misses: Array) -> Array:
        log = temper[:, None] * (hits @ log_p + misses @ log_not) + prior
        top = log.max(axis=1, keepdims=True)
        result: Array = (top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))[:, 0]
        return result

    columns = [math.log(SINGLE_READING) + integrated(label, seen - label) + temper * clusters.log_probability(None)]
    log_prior_of_pair = math.log((1.0 - SINGLE_READING) / CANDIDATES / shares.shape[1])
    for candidate in range(1, CANDIDATES + 1):
        other = block.table(block.answer_class == candidate)
        common = integrated(label + other, seen - label - other) + temper * clusters.log_probability(candidate)
        split = temper[:, None] * (label @ np.log(shares) + other @ np.log1p(-shares))
        log = log_prior_of_pair + common[:, None] + split
        log[other.sum(axis=1) == 0] = -np.inf
        columns.extend(log.T)
    posterior = np.stack(columns, axis=1)
    posterior = np.exp(posterior - posterior.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    label_share = np.concatenate([[1.0], np.tile(strong.ravel(), CANDIDATES)])
    by_candidate = posterior[:, 1:].reshape(block.n, CANDIDATES, -1).sum(axis=2)
    alternative = np.where(by_candidate.sum(axis=1) > 0, 1 + by_candidate.argmax(axis=1), 0).astype(np.int32)
    return posterior, label_share, alternative


def _share_by_ability(weak: Array, strong: Array, theta: Array) -> Array:
    """Return (m, w): the label's share for each system under each pair of weak and strong shares."""
    height = np.clip((theta - LOW) / (HIGH - LOW), *LINE_ENDS)[:, None]
    weak_logit, strong_logit = np.log(weak / (1.0 - weak)), np.log(strong / (1.0 - strong))
    return sigmoid(weak_logit * (1.0 - height) + strong_logit * height)


class _Clusters:
    """How an item's wrong answers fall into clusters of equal ones, scored by the Ewens sampling formula."""

    def __init__(self, block: _Block) -> None:
        wrong = block.answer_class > 0
        n_classes = int(block.answer_class.max(initial=0)) + 1
        keys = block.item[wrong].astype(np.int64) * n_classes + block.answer_class[wrong]
        key, cluster = np.unique(keys, return_inverse=True)
        self._n = block.n
        self._weight = np.bincount(cluster, weights=block.weight[wrong], minlength=len(key))
        self._item, self._class = key // n_classes, key % n_classes
        self._term = math.log(ALPHA) + _log_gamma(np.maximum(self._weight, 1.0))

    def log_probability(self, explained: int | None) -> Array:
        """Return (n,): the log probability of all clusters, or of all but the class that a second reading explains."""
        left = np.ones(len(self._class), dtype=bool) if explained is None else self._class != explained
        terms = np.bincount(self._item[left], weights=self._term[left], minlength=self._n)
        total: Array = np.bincount(self._item[left], weights=self._weight[left], minlength=self._n).astype(np.float64)
        return terms + math.lgamma(ALPHA) - _log_gamma(ALPHA + total)


def _log_gamma(values: Array) -> Array:
    return np.fromiter((math.lgamma(value) for value in values), dtype=np.float64, count=len(values))

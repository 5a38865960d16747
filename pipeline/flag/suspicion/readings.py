"""For each item: which share of able systems reads it as the label does, and which as the best alternative.

Why not the pass rate: a hard item and a mislabeled one both have a low one. They differ in how agreement with the label
changes with ability. On a hard item it rises towards the top; where the label is wrong it falls, and an alternative
rises; on an ambiguous item two answers share the able systems however able they get.

The model. A system of ability t "solves" the item with probability p = CEILING * sigmoid(t - b). One that does gives
the label with probability pi(t) and the alternative otherwise; logit pi is linear in t between `LOW` and `HIGH`, so it
has two parameters, the share among weak systems and the share among strong ones, each on a grid. One that does not
gives some other answer; how those cluster is scored by the Ewens sampling formula (Ewens 1972, eq. 4; concentration
`ALPHA`), so that many equal wrong answers are unlikely to be chance. Beside that stands the hypothesis that there is no
second reading and every other answer is an error. Difficulty b is integrated out. The two most frequent
alternatives compete. Everything is a posterior: with few systems it stays close to the prior.

Systems share errors, so that m of them are not m independent witnesses: the log likelihood is divided by
1 + (m - 1) * `SHARED`, m the number of systems that answered the item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.suspicion.ability import Ability, log_prior, sigmoid, solved
from truegold.pipeline.flag.suspicion.ballot import Votes

Array = NDArray[np.float64]

WEAK_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
STRONG_SHARES: Array = np.array([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.995])
LOW, HIGH = -2.0, 4.5
"""Abilities, in logits above the mean item, between which the share is read: a tenth and 99 % of the mean items solved.
HIGH does not depend on the systems at hand: where no strong ones are, the curve is read beyond them, and says less."""
MAX_SLOPE = (-0.5, 1.2)
"""How far beyond LOW and HIGH the line goes on, in units of their distance."""
ALPHA = 10.0
"""Concentration of wrong answers. Large: there are many ways to be wrong, and agreement on one needs a reason."""
SHARED = 0.06
"""Correlation of different systems' errors."""
ONE_READING = 0.5
"""Prior probability that no second reading is needed. A second one may be harmless (share of strong near 1)."""
CANDIDATES = 2
BLOCK = 4096
"""Items worked on at a time: bounds memory."""


@dataclass(frozen=True, slots=True)
class Readings:
    """fault: (n,) the expected square root of the share of strong systems that do not read the label.

    strong_share: (n,) the posterior mean of the label's share among strong systems.
    outvoted: (n,) the posterior probability that this share is at most one half.
    alternative: int32 (n,), the class of the alternative the posterior favours; 0 where there is none.
    """

    fault: Array
    strong_share: Array
    outvoted: Array
    alternative: NDArray[np.int32]


def read(votes: Votes, ability: Ability, features: Array) -> Readings:
    """The posterior of every item; n items of which any may have no votes at all (fault: the prior's)."""
    n, m = votes.n_items, len(votes.systems)
    fault, share, outvoted = np.empty(n), np.empty(n), np.empty(n)
    alternative = np.zeros(n, dtype=np.int32)
    starts = np.searchsorted(votes.item, np.arange(n + 1))
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        entries = slice(starts[start], starts[stop])
        block = _Block(
            votes.item[entries] - start,
            votes.system[entries],
            votes.cls[entries],
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


@dataclass(frozen=True, slots=True)
class _Block:
    item: NDArray[np.int32]
    system: NDArray[np.int32]
    cls: NDArray[np.int32]
    weight: Array
    n: int
    m: int

    def table(self, chosen: NDArray[np.bool_]) -> Array:
        """(n, m): weights of the chosen entries."""
        flat = np.bincount(
            self.item[chosen].astype(np.int64) * self.m + self.system[chosen],
            weights=self.weight[chosen],
            minlength=self.n * self.m,
        )
        table: Array = flat.astype(np.float64, copy=False).reshape(self.n, self.m)
        return table


def _posterior(block: _Block, ability: Ability, expected: Array) -> tuple[Array, Array, NDArray[np.int32]]:
    """(n, h) probabilities of the hypotheses, (h,) the label's share of strong systems in each, (n,) alternatives."""
    p = solved(ability.theta)
    log_p, log_not = np.log(p), np.log1p(-p)
    prior = log_prior(expected, ability.spread)
    label = block.table(block.cls == 0)
    seen = block.table(np.ones(len(block.cls), dtype=bool))
    temper = 1.0 / (1.0 + np.maximum((seen > 0).sum(axis=1) - 1, 0) * SHARED)
    clusters = _Clusters(block)
    weak, strong = np.meshgrid(WEAK_SHARES, STRONG_SHARES, indexing="ij")
    shares = _share_by_ability(weak.ravel(), strong.ravel(), ability.theta)

    def integrated(hits: Array, misses: Array) -> Array:
        log = temper[:, None] * (hits @ log_p + misses @ log_not) + prior
        top = log.max(axis=1, keepdims=True)
        result: Array = (top + np.log(np.exp(log - top).sum(axis=1, keepdims=True)))[:, 0]
        return result

    columns = [math.log(ONE_READING) + integrated(label, seen - label) + temper * clusters.log_probability(None)]
    one = math.log((1.0 - ONE_READING) / CANDIDATES / shares.shape[1])
    for candidate in range(1, CANDIDATES + 1):
        other = block.table(block.cls == candidate)
        common = integrated(label + other, seen - label - other) + temper * clusters.log_probability(candidate)
        split = temper[:, None] * (label @ np.log(shares) + other @ np.log1p(-shares))
        log = one + common[:, None] + split
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
    """(m, w): the label's share for each system under each pair of shares."""
    place = np.clip((theta - LOW) / (HIGH - LOW), *MAX_SLOPE)[:, None]
    weak_logit, strong_logit = np.log(weak / (1.0 - weak)), np.log(strong / (1.0 - strong))
    return sigmoid(weak_logit * (1.0 - place) + strong_logit * place)


class _Clusters:
    """Log probability, by the Ewens sampling formula, of how an item's wrong answers fall into clusters."""

    def __init__(self, block: _Block) -> None:
        wrong = block.cls > 0
        n_classes = int(block.cls.max(initial=0)) + 1
        key, place = np.unique(block.item[wrong].astype(np.int64) * n_classes + block.cls[wrong], return_inverse=True)
        self._n = block.n
        self._weight = np.bincount(place, weights=block.weight[wrong], minlength=len(key))
        self._item, self._cls = key // n_classes, key % n_classes
        self._term = math.log(ALPHA) + _log_gamma(np.maximum(self._weight, 1.0))

    def log_probability(self, without: int | None) -> Array:
        """(n,), of all clusters, or of all but class `without`, which another reading explains."""
        left = np.ones(len(self._cls), dtype=bool) if without is None else self._cls != without
        terms = np.bincount(self._item[left], weights=self._term[left], minlength=self._n)
        total: Array = np.bincount(self._item[left], weights=self._weight[left], minlength=self._n).astype(np.float64)
        return terms + math.lgamma(ALPHA) - _log_gamma(ALPHA + total)


def _log_gamma(values: Array) -> Array:
    return np.fromiter((math.lgamma(value) for value in values), dtype=np.float64, count=len(values))

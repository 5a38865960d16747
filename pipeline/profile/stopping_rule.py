"""The stopping rule of a profile: after which samples of a problem further ones would change nothing that is decided.

    after 4 samples, most problems easy or hopeless:   0 passes -> enough   2 passes -> two more   4 passes -> enough

What is decided of a problem is the band that its pass rate most probably lies in (`PassRateBand`). All samples that it
may get, `most`, would decide some problems beyond doubt and others not; stopping earlier should decide the first in the
same way. The rule minimises

    expected samples  +  sum over decisions k of  weight[k] * E[s; all samples would say k, stopping says another]

where s goes from 0 to 1 as the probability of k after all samples goes from DOUBTFUL to SURE. The minimum is computed
by backward induction over (samples, passes), with the predictive of the next FURTHER_SAMPLES (optimal stopping of
a Bayes sequential test: Wald 1947; DeGroot, "Optimal Statistical Decisions", 12.5). The weights are raised from WEIGHT
until the rule, by its own expectation, gives the decision of all samples in AGREEMENT of the sure cases, and in
DECISION_AGREEMENT of those of each decision. Nothing of this depends on the order in which samples arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from truegold.pipeline.rates.posterior import Beta, PassRates

Array = np.ndarray[Any, np.dtype[Any]]

BOUNDS = (1 / 32, 1 / 4, 3 / 4, 31 / 32)
"""Where the bands meet. At 1/32 and 31/32 a fifth of the groups of eight still teach, within them more."""

DOUBTFUL, SURE = 0.75, 0.85
"""A decision of lower probability is not worth a sample, one of higher counts in full. A step from nothing to all
between them would follow every small error of the prior."""
AGREEMENT = 0.955
DECISION_AGREEMENT = 0.91

FURTHER_SAMPLES = 2
"""The samples that an open problem gets at a time."""

WEIGHT = 3.0
"""The cost of a wrong decision at first, in samples."""
RAISED_BY = 1.1
MOST_ROUNDS = 200
"""How often weights are raised, at most: to some hundred million samples for a wrong decision."""
RARE_ROWS, RARE_SHARE = 40, 0.04
"""A decision that fewer problems of a data set come to, by number and by share, is not guarded by a weight of its own.
Where nearly all are hopeless, the few that pass now and then would take nearly all samples of all the others."""
OF_ANY_RATE = 0.02
"""The share of problems that the prior, which has one shape for all, says nothing of: wrong labels among easy ones."""


class PassRateBand(StrEnum):
    """A band of pass rates, by what they mean for training; each ends where the next begins (BOUNDS)."""

    DEAD = "dead"
    HARD = "hard"
    USEFUL = "useful"
    EASY = "easy"
    SATURATED = "saturated"


def decide(known: Beta) -> tuple[PassRateBand, float]:
    """Return the most probable decision of a problem whose pass rate is so known, and its probability."""
    probabilities = _band_probabilities(known)
    best = int(probabilities.argmax())
    return tuple(PassRateBand)[best], float(probabilities[best])


@dataclass(frozen=True)
class Allocation:
    """The stopping rule for problems of one data set, and what is to be expected of it."""

    prior: PassRates
    first: int
    """The samples that every problem gets."""
    most: int
    """The samples that a problem gets at most."""
    stops: tuple[Array, ...]
    """For each count of judged samples from 0 to `most`, by passes: whether they are enough. Booleans of shape
    [judged + 1]."""
    expected_samples: float
    """The samples a problem, on average."""
    expected_agreement: float
    """How often the decision is that of all samples, where these would be sure."""

    def is_enough(self, judged: int, passes: int) -> bool:
        """Return whether a problem needs no further samples."""
        return judged >= self.first and bool(self.stops[judged][passes])


def allocate(prior: PassRates, first: int, most: int, problems: int) -> Allocation:
    """Return the stopping rule for so many problems, whose pass rates come from `prior`. 1 <= first <= most."""
    others = _Table(Beta(1, 1), first, most)
    table = _Table(prior, first, most)
    share = (1 - OF_ANY_RATE) * table.sure + OF_ANY_RATE * others.sure
    is_guarded = share > min(RARE_ROWS / problems, RARE_SHARE)
    weights = np.full(len(PassRateBand), WEIGHT)
    for _ in range(MOST_ROUNDS):
        stops = table.stops(weights)
        samples, agreed = table.outcome(stops)
        rates = agreed / table.sure.clip(min=1e-12)
        overall = float(agreed.sum() / max(table.sure.sum(), 1e-12))
        low = (rates < DECISION_AGREEMENT) & is_guarded & (table.sure > 0)
        if not low.any() and (overall >= AGREEMENT or not (table.sure > 0).any()):
            break
        weights = weights * RAISED_BY if not low.any() else weights * (1 + (RAISED_BY - 1) * low)
    never = tuple(np.zeros(judged + 1, dtype=bool) for judged in range(first))
    return Allocation(prior, first, most, (*never, *stops), samples, overall)


class _Table:
    """The states of a problem, (judged, passes), and how one leads to the next."""

    def __init__(self, prior: PassRates, first: int, most: int) -> None:
        self._prior, self._first, self._most = prior, first, most
        ends = np.array([_band_probabilities(prior.after(most, c)) for c in range(most + 1)])
        last = np.zeros_like(ends)
        sureness = ((ends.max(axis=1) - DOUBTFUL) / (SURE - DOUBTFUL)).clip(0, 1)
        last[np.arange(most + 1), ends.argmax(axis=1)] = sureness
        # decided[n][c, k]: the expected s of the decision k after all samples, when c of n have passed.
        self._decided = [last]
        for judged in range(most - 1, -1, -1):
            later = self._decided[0]
            self._decided.insert(0, self._expect(judged, later[1:], later[:-1]))
        # choices[n][c]: the most probable band, which is what is decided when sampling stops there.
        self._choices = [
            np.array([_band_probabilities(prior.after(n, c)).argmax() for c in range(n + 1)]) for n in range(most + 1)
        ]
        self.sure = self._decided[0][0]
        """The share of all problems that all samples would be sure about, by decision. Shape [decisions]."""

    def stops(self, weights: Array) -> list[Array]:
        """Return for each count from `first` to `most`, by passes, whether to stop there."""
        stops = [np.ones(self._most + 1, dtype=bool)]
        costs = {self._most: np.zeros(self._most + 1)}
        for judged in range(self._most - 1, self._first - 1, -1):
            later = min(judged + FURTHER_SAMPLES, self._most)
            going_on = costs[later]
            for drawn in range(later - 1, judged - 1, -1):
                going_on = self._expect(drawn, going_on[1:], going_on[:-1])
            going_on = going_on + later - judged
            weighted = self._decided[judged] * weights
            stopping = weighted.sum(axis=1) - weighted[np.arange(judged + 1), self._choices[judged]]
            stops.insert(0, stopping <= going_on)
            costs[judged] = np.minimum(stopping, going_on)
        return stops

    def outcome(self, stops: list[Array]) -> tuple[float, Array]:
        """Return the expected samples of a problem, and the share of all problems that get each decision as all
        samples, being sure, would have it. The second has the shape [decisions]."""
        reach = np.ones(1)
        agreed = np.zeros(len(PassRateBand))
        samples = 0.0
        ends = {*range(self._first, self._most, FURTHER_SAMPLES), self._most}
        for judged in range(self._most + 1):
            if judged in ends:
                ending = reach * stops[judged - self._first]
                decided = self._decided[judged]
                choices = self._choices[judged]
                np.add.at(agreed, choices, ending * decided[np.arange(judged + 1), choices])
                reach = reach - ending
            if judged < self._most:
                samples += float(reach.sum())
                next_reach = np.zeros(judged + 2)
                passes = self._pass_probability(judged)
                next_reach[1:] += reach * passes
                next_reach[:-1] += reach * (1 - passes)
                reach = next_reach
        return samples, agreed

    def _pass_probability(self, judged: int) -> Array:
        return np.array([self._prior.after(judged, passes).mean for passes in range(judged + 1)])

    def _expect(self, judged: int, after_pass: Array, after_failure: Array) -> Array:
        passes = self._pass_probability(judged)
        if after_pass.ndim == 2:
            passes = passes[:, None]
        expected: Array = passes * after_pass + (1 - passes) * after_failure
        return expected


def _band_probabilities(known: Beta) -> Array:
    from scipy.special import betainc

    return np.diff(betainc(known.a, known.b, np.array([0.0, *BOUNDS, 1.0])))

"""Learns from all problems together: abilities of systems, errors that they share, and the share of wrong labels.

    60 systems, 30 % of labels replaced  ->  the best agree with 68 % of the labels, and are right on 97 % of problems

Noisy labels lower the agreement of the best systems with the labels, so agreement does not measure strength. Abilities,
errors and labels are learnt together in rounds (expectation-maximisation: Dempster, Laird and Rubin 1977):

1. The truth of a problem is its best alternative with the probability that the label is wrong, else its label. In the
   first round, the label is wrong if the alternative has more votes. Abilities are fitted to the truth, so that noisy
   labels do not lower them (the label counts as one more annotator: Dawid and Skene 1979).
2. The share of wrong labels maximises the likelihood of the votes (empirical Bayes), with a prior worth `PRIOR_ITEMS`
   problems.
3. The concentration of wrong answers follows from how often two wrong systems give the same answer: one in eight on
   word problems, three in four among four options. So agreement on a letter is weaker evidence than on a number.
4. Two systems that share more errors than most pairs of systems weigh less (`independent_weights`):

    Llama-3.1-70B and Llama-3.2-90B-Vision share 500 of 586 errors, other pairs a third  ->  each weighs .57
    the same answers under eight names                                                   ->  each weighs 1/8

Nothing is learnt from a single system, because its errors cannot be told from those of the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.label_posterior import (
    DEFAULT_CONCENTRATIONS,
    UNDECIDED,
    WRONG,
    Population,
    Readings,
    read,
)
from truegold.pipeline.suspicion.rasch_model import Ability, fit
from truegold.pipeline.suspicion.votes import Votes
from truegold.verifiers.rates import wilson_interval

Array = NDArray[np.float64]

ROUNDS = 3
"""The number of rounds of the fit. A fourth round changes the share of wrong labels by less than 1 %."""
PRIOR_ROUNDS = 8
"""The number of steps of expectation-maximisation for the prior of the groups of hypotheses, within a round."""
PRIOR_ITEMS = (2.0, 1.0, 0.2)
"""The prior weight, in items, of each group of hypotheses (`label_posterior`)."""
LOWEST_PRIOR, PRIOR_HALVINGS = 60.0, 30
"""The log prior of wrong labels is lowered by at most LOWEST_PRIOR. Bisection finds the reduction in PRIOR_HALVINGS
steps."""
MIN_SYSTEMS = 2
"""The minimum number of systems from which anything is learnt."""
COINCIDENCE_ITEMS = 3.0
"""The weight of the default concentrations, in items."""
RANGE = (0.05, 50.0)
"""The range of an estimated concentration."""

SHRINKAGE = 10.0
"""In the estimate for each pair of systems, the share of common errors of the median pair has the weight of this number
of errors."""
MAX_BASE = 0.4
"""The largest share of common errors that is considered normal. On MMLU, unrelated systems share a third of them."""
MIN_CORRELATION = 0.2
"""The minimum correlation that counts. A hundred pairs have some high correlations by chance."""
COPY = 0.995
"""Two systems are copies if at least this share of their answers against the label is equal."""
MIN_COPY_ERRORS = 30
"""The minimum number of answers against the label for two systems to be recognised as copies."""
MAX_CLASSES = 32
"""The number of most frequent answer classes that are compared."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """The result of learning from n items and m systems."""

    population: Population
    system_weight: Array
    """(m,), the weight of each system's vote. It is 1 for a system that shares no more errors than others do."""
    is_wrong: Array
    """(n,), the probability that the label is wrong."""
    alternative: NDArray[np.int32]
    """(n,), the class of the right answer if the label is wrong, 0 without an alternative."""
    is_informed: bool = True
    """Whether there were enough systems to learn from."""

    def right(self, votes: Votes) -> Array:
        """Return the weights of the answers that agree with the estimated truth (n, m)."""
        is_alternative = (votes.answer_class == self.alternative[votes.item]) & (votes.answer_class > LABEL_CLASS)
        label = votes.table(votes.answer_class == LABEL_CLASS)
        expected: Array = (1.0 - self.is_wrong)[:, None] * label
        return expected + self.is_wrong[:, None] * votes.table(is_alternative)


def learn(votes: Votes, features: Array) -> Learnt:
    """Learn from the votes of m systems on n items, with their original weights. Both m and n may be 0."""
    most = _most_wrong(votes)
    learnt = _first_guess(votes, most)
    if len(np.unique(votes.family)) < MIN_SYSTEMS or not votes.n_items:
        ability = fit(votes.table(votes.answer_class == LABEL_CLASS), votes.table(), features)
        nothing_wrong = np.zeros(votes.n_items)
        return replace(learnt, population=Population(ability), is_wrong=nothing_wrong, is_informed=False)
    for _ in range(ROUNDS):
        learnt = _relearn(votes, features, learnt, most)
    return learnt


def _relearn(votes: Votes, features: Array, learnt: Learnt, most: float) -> Learnt:
    """Return the result of one more round."""
    weight = learnt.system_weight
    right, seen = learnt.right(votes), votes.table()
    population = Population(
        fit(right * weight, seen * weight, features), _concentrations(votes, 1.0 - learnt.is_wrong), UNDECIDED
    )
    readings = read(votes.reweight(weight), population, features)
    prior, is_wrong = _likeliest_prior(readings, votes.has_votes(), most)
    truth = np.where(is_wrong > 0.5, readings.alternative, LABEL_CLASS)
    return Learnt(replace(population, prior=prior), independent_weights(votes, truth), is_wrong, readings.alternative)


def _most_wrong(votes: Votes) -> float:
    """Return an upper bound on the share of wrong labels: the share of labels that the system with the most agreement
    denies.

    A system agrees with wrong labels only by chance. So eight copies of a weak model cannot outvote labels that an
    unrelated system agrees with.
    """
    seen = votes.table()
    label = votes.table(votes.answer_class == LABEL_CLASS)
    least = [
        wilson_interval(agreed, total)[0] for agreed, total in zip(label.sum(axis=0), seen.sum(axis=0), strict=True)
    ]
    return 1.0 - max(least, default=0.0)


def _first_guess(votes: Votes, most: float) -> Learnt:
    """Return the start of the fit: the most frequent answer is the truth. At most a share `most` of labels is wrong."""
    label, other = (votes.table(votes.answer_class == answer_class).sum(axis=1) for answer_class in (LABEL_CLASS, 1))
    is_wrong = np.where(other > label, other / np.maximum(label + other, 1e-9), 0.0)
    is_wrong *= min(1.0, most * max(1, votes.n_items) / max(float(is_wrong.sum()), 1e-9))
    m = len(votes.systems)
    unknown = Population(Ability(np.zeros(m), 0.0, np.zeros(0), 0.0))
    return Learnt(unknown, np.ones(m), is_wrong, (other > 0).astype(np.int32))


def _likeliest_prior(
    readings: Readings, answered: NDArray[np.bool_], most: float
) -> tuple[tuple[float, float, float], Array]:
    """Return the shares of the groups of hypotheses, and the probability that each label is wrong (n,).

    The shares are fitted by expectation-maximisation. Items without answers are left out and have a probability of 0.
    If more than the share `most` of the labels would be wrong, the prior is lowered until the share is `most`.
    """
    log = readings.group_log_likelihood[answered]
    likelihood = np.exp(log - log.max(axis=1, keepdims=True))
    prior = np.array(UNDECIDED)
    for _ in range(PRIOR_ROUNDS):
        posterior = _normalise(likelihood * prior)
        prior = (posterior.sum(axis=0) + PRIOR_ITEMS) / (len(log) + sum(PRIOR_ITEMS))
    if len(log) and _normalise(likelihood * prior)[:, WRONG].mean() > most:
        low, high = -LOWEST_PRIOR, 0.0
        for _ in range(PRIOR_HALVINGS):
            middle = (low + high) / 2
            is_over = _normalise(likelihood * prior * np.exp([0.0, 0.0, middle]))[:, WRONG].mean() > most
            low, high = (low, middle) if is_over else (middle, high)
        prior = prior * np.exp([0.0, 0.0, low])
        prior /= prior.sum()
    is_wrong = np.zeros(len(answered))
    is_wrong[answered] = _normalise(likelihood * prior)[:, WRONG]
    single, harmless, wrong = prior.tolist()
    return (single, harmless, wrong), is_wrong


def _normalise(weights: Array) -> Array:
    normalised: Array = weights / weights.sum(axis=1, keepdims=True)
    return normalised


def _concentrations(votes: Votes, is_right: Array) -> tuple[float, float]:
    """Return the Ewens concentrations of open and closed questions that fit the rate of equal wrong answers.

    Only items on which most answers agree with the label are counted. `is_right` (n,) is the probability that the label
    is right.
    """
    n, m = votes.n_items, max(1, len(votes.systems))
    wrong = votes.answer_class > LABEL_CLASS
    total, missed = np.bincount(votes.item, minlength=n), np.bincount(votes.item[wrong], minlength=n)
    classes = int(votes.answer_class.max(initial=0)) + 1
    by_class, by_system = (
        np.unique(votes.item[wrong].astype(np.int64) * width + part[wrong], return_counts=True)
        for width, part in ((classes, votes.answer_class), (m, votes.system))
    )
    equal = np.bincount(by_class[0] // classes, weights=by_class[1] * (by_class[1] - 1.0), minlength=n)
    of_one_system = np.bincount(by_system[0] // m, weights=by_system[1] * (by_system[1] - 1.0), minlength=n)
    pairs = missed * (missed - 1.0) - of_one_system
    counted = (2 * missed < total) & (pairs > 0)
    coincidence = np.zeros(n)
    coincidence[counted] = equal[counted] / pairs[counted]
    estimates = []
    for default, is_kind in zip(DEFAULT_CONCENTRATIONS, (~votes.closed, votes.closed), strict=True):
        weight = is_right * (counted & is_kind)
        rate = (coincidence @ weight + COINCIDENCE_ITEMS / (1.0 + default)) / (weight.sum() + COINCIDENCE_ITEMS)
        estimates.append(float(np.clip((1.0 - rate) / rate, *RANGE)))
    return estimates[0], estimates[1]


def independent_weights(votes: Votes, truth: NDArray[np.integer]) -> Array:
    """Return the weight of each system's vote (m,). `truth` (n,) has the class of the answer taken as true."""
    m = len(votes.systems)
    if m < 2:
        return np.ones(m)
    answers = votes.plurality()
    shared, union = _shared_errors(answers, truth)
    index = shared / np.maximum(union, 1.0)
    pairs = np.triu_indices(m, 1)
    base = min(MAX_BASE, float(np.median(index[pairs])))
    correlation = ((shared + SHRINKAGE * base) / (union + SHRINKAGE) - base) / (1.0 - base)
    correlation[correlation < MIN_CORRELATION] = 0.0
    shared, union = _shared_errors(answers, np.full(votes.n_items, LABEL_CLASS))
    correlation[(union >= MIN_COPY_ERRORS) & (shared >= COPY * union)] = 1.0
    correlation[votes.family[:, None] == votes.family] = 0.0  # Vote weights already discount a model's checkpoints.
    weights: Array = 1.0 / (1.0 + correlation.sum(axis=1))
    return weights


def _shared_errors(answers: NDArray[np.int32], truth: NDArray[np.integer]) -> tuple[Array, Array]:
    """Return for each pair of systems (m, m) the number of their equal wrong answers, and of items with a wrong answer.

    `answers` (n, m) has the class of each answer, -1 for none. Items that only one of the two answered are left out.
    """
    answered = answers >= 0
    is_wrong = answered & (answers != truth[:, None])
    m = answers.shape[1]
    shared = np.zeros((m, m))
    for answer_class in range(min(MAX_CLASSES, int(answers.max(initial=-1)) + 1)):
        alike = (is_wrong & (answers == answer_class)).astype(np.float64)
        shared += alike.T @ alike
    wrong = is_wrong.astype(np.float64)
    either = wrong.T @ answered.astype(np.float64)
    return shared, either + either.T - wrong.T @ wrong

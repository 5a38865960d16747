"""How many independent witnesses systems are worth: those that share more errors than others do count for fewer.

    Llama-3.1-70B and Llama-3.2-90B-Vision share 500 of 586 errors, other pairs a third  ->  each counts .57
    the same answers under eight names                                                   ->  each counts 1/8

The errors of two systems are compared by Jaccard's index: equal wrong answers among the items that either gets wrong,
shrunk towards the median pair by `SHRINKAGE` items. What is above the median is their correlation. A system with
correlations r to others counts as 1 / (1 + sum r) (the design effect: Kish 1965, section 5.4).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.ballot import Votes

Array = NDArray[np.float64]

SHRINKAGE = 10.0
"""The errors' worth that the median pair counts."""
MAX_BASE = 0.4
"""The most that unrelated systems are taken to share. On MMLU they share a third."""
MIN_CORRELATION = 0.2
"""Lower ones are left out: with a hundred pairs to compare, some are high by chance."""
COPY = 0.995
"""Systems whose answers against the label are this equal are copies, whoever is right."""
MIN_COPY_ERRORS = 30
"""The fewest answers against the label from which copies are known."""
MAX_CLASSES = 32
"""Rarer answers are not compared."""


def independent_weights(votes: Votes, truth: NDArray[np.integer]) -> Array:
    """Return (m,): what each system's vote counts; truth: (n,), the class of the answer taken to be true."""
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
    correlation[votes.family[:, None] == votes.family] = 0.0  # The votes' weights see to one model's checkpoints.
    weights: Array = 1.0 / (1.0 + correlation.sum(axis=1))
    return weights


def _shared_errors(answers: NDArray[np.int32], truth: NDArray[np.integer]) -> tuple[Array, Array]:
    """Return (m, m): items on which two systems are wrong alike, and on which either is; answers: (n, m), -1 for none.

    Items that only one of the two has answered are left out.
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

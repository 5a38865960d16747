"""Expected share of wrong labels among the questions on which all models agree against the label.

This is for closed questions, whose answer is one of a few options:

    models that agree on one wrong option       13 of 14   14 of 14
    questions, 2 % of labels replaced           30         79          ->  at least 59 % of the 79 are wrong
    questions, 30 % of labels replaced          80         546         ->  at least 94 % of the 546 are wrong

With only four options, all models may share a misconception and choose the same wrong letter. A misconception leads all
models to a wrong answer about as often as it leads all models but one. So both columns above contain about the same
number m of misconceptions. But if a label is wrong, the models choose the true answer as they choose right labels: all
models choose a share r of the right labels, and all but one choose a share s. r and s are counted in the file. Then the
two columns determine the number w of wrong labels:

    questions on which all models agree against the label             = w r + m
    questions on which all models but one agree against the label     = w s + m
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.votes import Votes

MIN_MODELS = 3
"""The minimum number of models that answered a question. Questions with fewer models are not counted."""


def unanimously_denied(votes: Votes) -> tuple[NDArray[np.bool_], float]:
    """Mark the closed questions for which all models share another answer (n,), and return their share of wrong labels.

    The share is one standard error below the most likely value; 0.0 with too few models or questions. Each model is
    represented by its last checkpoint.
    """
    denied = np.zeros(votes.n_items, dtype=bool)
    closed = np.flatnonzero(votes.closed)
    if not len(closed) or not len(votes.family):
        return denied, 0.0
    answers = votes.of_items(closed).plurality()[:, np.append(votes.family[1:] != votes.family[:-1], True)]
    answered, label = (answers >= 0).sum(axis=1), (answers == LABEL_CLASS).sum(axis=1)
    heard = answered >= MIN_MODELS
    other = np.zeros(len(closed), dtype=np.intp)
    for answer_class in range(LABEL_CLASS + 1, int(answers.max()) + 1):
        other = np.maximum(other, (answers == answer_class).sum(axis=1))
    denied[closed] = heard & (other == answered)
    given_by_all, given_by_most = (int((heard & (label == answered - short)).sum()) for short in (0, 1))
    n_denied, denied_by_most = int(denied.sum()), int((heard & (other == answered - 1)).sum())
    if not n_denied or given_by_most >= given_by_all:
        return denied, 0.0
    ratio = given_by_most / given_by_all
    misconceptions = max(0.0, denied_by_most - ratio * n_denied) / (1.0 - ratio)
    misconceptions += math.sqrt(denied_by_most + 1.0 + ratio**2 * n_denied) / (1.0 - ratio)
    return denied, max(0.0, 1.0 - misconceptions / n_denied)

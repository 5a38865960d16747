"""Expected share of wrong labels among the closed questions whose label every model denies for one other answer.

    models on one other answer than the label:  13   14 of 14
    questions, 2 % of labels replaced           30   79        ->  at least 59 of 100 of the last are wrong
    questions, 30 % of labels replaced          80  546        ->  at least 94 of 100 are wrong

Four options are few: able models share misconceptions, and all of them on one letter may be wrong together. How often
that happens the file itself tells. Where a label is right, the models that share another answer are about as often all
of them as all but one. Where it is wrong, they are on the truth as they are on right labels elsewhere: mostly all. So
two counts tell the two apart, with w wrong labels, and shares r and s of the right ones that all and all but one give:

    all models deny the label = w r + misconceptions        all but one do, for one answer = w s + misconceptions
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.suspicion.answer_classes import LABEL_CLASS
from truegold.pipeline.suspicion.votes import Votes

MIN_MODELS = 3
"""Questions with fewer models on them are left out."""


def unanimously_denied(votes: Votes) -> tuple[NDArray[np.bool_], float]:
    """Return (n,): whether all models give one other answer to a closed question, and the share of wrong labels there.

    The share is a standard error below what is likeliest, and 0.0 if there are too few models or questions to tell. The
    last checkpoint of a model speaks for it.
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

"""Tells hard, mislabeled and ambiguous problems apart, from the answers of one or several systems."""

from truegold.pipeline.suspicion.answer_classes import LabelledProblem, Sample
from truegold.pipeline.suspicion.assess import Assessment, Fit, SuspicionTier, assess
from truegold.pipeline.suspicion.stage import suspect
from truegold.pipeline.suspicion.votes import VoteCounter, Votes

__all__ = [
    "Assessment",
    "Fit",
    "LabelledProblem",
    "Sample",
    "SuspicionTier",
    "VoteCounter",
    "Votes",
    "assess",
    "suspect",
]

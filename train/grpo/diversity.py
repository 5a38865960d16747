"""What right completions earn for differing from each other, so that a policy does not settle on one way to be right.

    of a group       right   4-grams    distance from the other right ones   earns (weight .2)
    first            yes     a, b       1 - 1/3 and 1: .83                   .17
    second           yes     b, c       1 - 1/3 and 1: .83                   .17
    third            yes     d          1 and 1: 1                           .2
    fourth           no      e, f, g    -                                    0

Only what is right is paid, and only for differing from what is right too: a wrong completion cannot earn by being odd,
as in Darling (arXiv 2509.02534), which multiplies quality by diversity, there by clusters of meaning that a classifier
has learnt. A group without a wrong completion pays nothing: its rewards would differ by diversity alone, which an
advantage that is divided by their spread makes as large as that of being right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from statistics import fmean

from truegold.train.config.reward import RewardConfig
from truegold.train.grpo.batch_metrics import NGRAM, Metrics, group_completions
from truegold.train.grpo.rewards import StepCompletion

Features = frozenset[Hashable]
"""What two completions are compared by."""


def pay_diversity(completions: Sequence[StepCompletion], config: RewardConfig) -> None:
    """Add to the rewards of a step's completions what they earn for diversity, within the bounds of the reward."""
    diversity = config.diversity
    if not diversity.weight:
        return
    for group in group_completions(completions):
        judged = [completion for completion in group if completion.segment.reward is not None]
        right = [completion for completion in judged if completion.segment.right]
        if len(right) == len(judged):
            continue
        features = [answer_features(each) if diversity.by == "answers" else ngram_features(each) for each in right]
        for completion, distance in zip(right, mean_distances(features), strict=True):
            reward = completion.segment.reward
            assert reward is not None
            paid = reward + diversity.weight * distance
            if config.clip is not None:
                paid = min(max(paid, config.clip[0]), config.clip[1])
            completion.diversity = paid - reward
            completion.segment = replace(completion.segment, reward=paid)


def diversity_reward(completions: Sequence[StepCompletion], config: RewardConfig) -> Metrics:
    """Return the mean of what completions were paid, where anything is paid."""
    if not config.diversity.weight:
        return {}
    return {"reward/diversity": fmean(completion.diversity for completion in completions)}


def ngram_features(completion: StepCompletion, n: int = NGRAM) -> Features:
    """Return the n-grams of a completion's tokens; a shorter one is one of its own."""
    ids = completion.segment.output_ids
    return frozenset(tuple(ids[start : start + n]) for start in range(max(1, len(ids) - n + 1)))


def answer_features(completion: StepCompletion) -> Features:
    """Return the answer as it was written, if there is one."""
    answer = completion.score.correct.extracted
    return frozenset() if answer is None else frozenset([answer])


def mean_distances(features: Sequence[Features]) -> list[float]:
    """Return the mean Jaccard distance of each set from the others, 1 - |A and B| / |A or B|; 0 where it is alone."""

    def distance(first: Features, second: Features) -> float:
        union = len(first | second)
        return 1 - len(first & second) / union if union else 0.0

    if len(features) < 2:
        return [0.0] * len(features)
    return [
        fmean(distance(mine, other) for index, other in enumerate(features) if index != position)
        for position, mine in enumerate(features)
    ]

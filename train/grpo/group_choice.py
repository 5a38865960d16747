"""Which groups enter a training batch: those that teach, as many as it takes, with a bounded share of right answers.

    group       right of 8   teaches   a batch of 2, share of right within [.25, .75]
    a            8           no
    b            1           yes       enters
    c            2           yes       .19 with b is too low: makes room for d
    d            6           yes       enters: .44

Groups without advantages only dilute. Rewards are never changed to move the share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from truegold.train.objective import advantages

Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class GroupScore:
    """What decides whether a group enters."""

    right: int
    """How many of the judged completions passed."""
    judged: int
    """How many completions could be judged."""
    teaches: bool
    """Whether its completions have advantages."""

    @property
    def right_share(self) -> float:
        """The share of judged completions that passed."""
        return self.right / self.judged


def score_group(rewards: Sequence[float], right: Sequence[bool], kind: str, k: int) -> GroupScore:
    """Score a group's judged completions, with advantages of `kind`.

    `reinforce_pp` compares with the whole batch, where a group that is all right is as telling as any other.
    """
    return GroupScore(sum(right), len(rewards), _teaches(rewards, right, kind, k))


def _teaches(rewards: Sequence[float], right: Sequence[bool], kind: str, k: int) -> bool:
    if not rewards or kind == "reinforce_pp":
        return bool(rewards)
    # The differences of equal rewards from their mean need not be 0 to the bit.
    if len(set(zip(rewards, right, strict=True))) < 2:
        return False
    index = torch.zeros(len(rewards), dtype=torch.int64)
    values = advantages(kind, torch.tensor(rewards, dtype=torch.float64), index, k, torch.tensor(right))
    return bool(values.any())


def choose_groups(groups: Sequence[GroupScore], size: int, bounds: Bounds | None) -> list[int]:
    """Return the indices of the groups that enter a batch of `size` groups, in order.

    The first that teach enter. Where the share of right completions among them is then outside of `bounds`, the group
    furthest on that side makes room for the spare one that brings the share nearest, as long as one does.
    """
    teaching = [index for index, group in enumerate(groups) if group.teaches]
    entered, spare = teaching[:size], teaching[size:]
    if bounds is None:
        return entered

    def distance(indices: Sequence[int]) -> float:
        return _distance([groups[index] for index in indices], bounds)

    while entered and spare and distance(entered) > 0:
        sign = 1 if right_share([groups[index] for index in entered]) < bounds[0] else -1
        worst = min(entered, key=lambda index: (sign * groups[index].right_share, index))
        others = [index for index in entered if index != worst]
        best = min(spare, key=lambda index: (distance([*others, index]), index))
        if distance([*others, best]) >= distance(entered):
            break
        spare.remove(best)
        entered = [*others, best]
    return sorted(entered)


def count_missing_groups(groups: Sequence[GroupScore], size: int, bounds: Bounds | None) -> int:
    """Count the further groups worth sampling for a batch of `size` groups: those that it is short of, and those that
    move the share of right completions, at half a group's worth for each."""
    entered = [groups[index] for index in choose_groups(groups, size, bounds)]
    distance = _distance(entered, bounds) if bounds and entered else 0.0
    return min(size, size - len(entered) + math.ceil(2 * distance * size))


def _distance(groups: Sequence[GroupScore], bounds: Bounds) -> float:
    """Return how far the share of right completions is outside of its bounds."""
    share = right_share(groups)
    return max(bounds[0] - share, share - bounds[1], 0.0)


def right_share(groups: Sequence[GroupScore]) -> float:
    """Return the share of all judged completions that are right; 0 where there are none."""
    judged = sum(group.judged for group in groups)
    return sum(group.right for group in groups) / judged if judged else 0.0

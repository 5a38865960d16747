"""Which groups enter a training batch: those that teach, as many as are wanted, with a bounded share of right answers.

    group       right of 8   teaches   wanted 2, share of right within [.25, .75]
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
    """right: how many of the `judged` completions passed. teaches: they have advantages."""

    right: int
    judged: int
    teaches: bool


def score_group(rewards: Sequence[float], right: Sequence[bool], kind: str, k: int) -> GroupScore:
    """A group's judged completions, with advantages of `kind`.

    `reinforce_pp` compares with the whole batch, where a group that is all right is as telling as any other.
    """
    alone = torch.zeros(len(rewards), dtype=torch.int64)
    values = torch.tensor(rewards, dtype=torch.float64), alone, k, torch.tensor(right, dtype=torch.bool)
    alike = len(set(zip(rewards, right, strict=True))) < 2  # whose differences from their mean need not be 0 to the bit
    teaches = bool(rewards) and (kind == "reinforce_pp" or not (alike or not advantages(kind, *values).any()))
    return GroupScore(sum(right), len(rewards), teaches)


def choose_groups(groups: Sequence[GroupScore], wanted: int, bounds: Bounds | None) -> list[int]:
    """The places of the groups that enter, at most `wanted`, in order.

    The first that teach enter. Where the share of right completions among them is then outside of `bounds`, the group
    furthest on that side makes room for the spare one that brings the share nearest, as long as one does.
    """
    teaching = [place for place, group in enumerate(groups) if group.teaches]
    entered, spare = teaching[:wanted], teaching[wanted:]
    if bounds is None:
        return entered

    def rate(place: int) -> float:
        return groups[place].right / groups[place].judged

    def distance(places: Sequence[int]) -> float:
        return _distance([groups[place] for place in places], bounds)

    while entered and spare and distance(entered) > 0:
        sign = 1 if right_share([groups[place] for place in entered]) < bounds[0] else -1
        worst = min(entered, key=lambda place: (sign * rate(place), place))
        others = [place for place in entered if place != worst]
        best = min(spare, key=lambda place: (distance([*others, place]), place))
        if distance([*others, best]) >= distance(entered):
            break
        spare.remove(best)
        entered = [*others, best]
    return sorted(entered)


def missing_groups(groups: Sequence[GroupScore], wanted: int, bounds: Bounds | None) -> int:
    """How many further groups are worth sampling: for the places that are free, and to move the share of right
    completions, at half a group's worth for each."""
    entered = [groups[place] for place in choose_groups(groups, wanted, bounds)]
    off = _distance(entered, bounds) if bounds and entered else 0.0
    return min(wanted, wanted - len(entered) + math.ceil(2 * off * wanted))


def _distance(groups: Sequence[GroupScore], bounds: Bounds) -> float:
    share = right_share(groups)
    return max(bounds[0] - share, share - bounds[1], 0.0)


def right_share(groups: Sequence[GroupScore]) -> float:
    """Of all judged completions; 0 where there are none."""
    judged = sum(group.judged for group in groups)
    return sum(group.right for group in groups) / judged if judged else 0.0

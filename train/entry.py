"""Which groups enter a training batch: those that teach, as many as are wanted, with a bounded share of right answers.

    group       right of 8   teaches   wanted 2, share of right within [.25, .75]
    a            8           no
    b            1           yes       enters
    c            2           yes       .19 with b is too low: makes room for d
    d            6           yes       enters: .44

All-right and all-wrong groups have no advantage and only dilute. Rewards are never changed to move the share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupScore:
    """right: how many of the `judged` completions passed. teaches: rewards differ."""

    right: int
    judged: int
    teaches: bool


def choose_groups(groups: Sequence[GroupScore], wanted: int, bounds: tuple[float, float] | None) -> list[int]:
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
        share = right_share([groups[place] for place in places])
        return max(bounds[0] - share, share - bounds[1], 0.0)

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


def right_share(groups: Sequence[GroupScore]) -> float:
    """Of all judged completions; 0 where there are none."""
    judged = sum(group.judged for group in groups)
    return sum(group.right for group in groups) / judged if judged else 0.0

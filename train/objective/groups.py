"""Sums over groups of completions of one prompt, of the completions that could be judged."""

from __future__ import annotations

import torch
from torch import Tensor


class Groups:
    """rewards: [B] floats, NaN where a completion could not be judged. groups: [B] integers, the group of each. right:
    [B] bool, whether each is right; where left out, those with a reward above 1/2.

    rewards: [B], 0 where unjudged. judged, right: [B] bool. of: [B], the group's place among P. count: [P], judged
    ones.
    """

    def __init__(self, rewards: Tensor, groups: Tensor, right: Tensor | None = None) -> None:
        if rewards.shape != groups.shape or rewards.dim() != 1:
            raise ValueError(f"rewards {tuple(rewards.shape)} and groups {tuple(groups.shape)} must both be [B]")
        self.judged = ~rewards.isnan()
        self.rewards = torch.where(self.judged, rewards, 0)
        self.right = (self.rewards > 0.5 if right is None else right) & self.judged
        names, self.of = torch.unique(groups, return_inverse=True)
        self._number = len(names)
        self.count = self.sum(torch.ones_like(self.rewards))

    def sum(self, values: Tensor) -> Tensor:
        """[B] -> [P]: the sum of each group's judged completions."""
        return values.new_zeros(self._number).index_add(0, self.of, values * self.judged)

    def mean(self, values: Tensor) -> Tensor:
        """[B] -> [B]: to each completion the mean of its group."""
        return (self.sum(values) / self.count.clamp(min=1))[self.of]

    @property
    def size(self) -> Tensor:
        """[B]: to each completion how many of its group were judged."""
        return self.count[self.of]

    def comparable(self, values: Tensor) -> Tensor:
        """`values` [B], 0 for unjudged completions and in groups that have nothing to compare with."""
        return torch.where(self.judged & (self.size > 1), values, 0)

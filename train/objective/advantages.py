"""Advantages of completions from their rewards.

A reward of NaN marks a completion that could not be judged. Its advantage is 0, and it does not count for the mean of
its group. Groups with fewer than two judged completions get 0, except with `reinforce_pp`, which compares with the
whole batch. "Batch" means all rewards that are passed; with several ranks, pass the gathered rewards of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb, sqrt

import torch
from torch import Tensor

from truegold.train.objective import CompletionMask, GroupIndex, PerCompletion, PerGroup

STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards, as in TRL, so that advantages of nearly equal rewards stay small."""
WHITEN_EPSILON = 1e-8
"""Added to the standard deviation of the values that are whitened over the batch."""
CHEN_EPSILON = 1e-6
"""Added to the standard deviation of a subset's reward."""


class Groups:
    """Sums and means of rewards by group. A group has the completions of one prompt; unjudged ones are skipped."""

    def __init__(self, rewards: PerCompletion, groups: GroupIndex, right: CompletionMask | None = None) -> None:
        """Group the rewards [B] of completions; NaN marks a completion that could not be judged.

        groups: the number of each completion's group, [B]. right: whether each completion is right, [B]; by default,
        whether its reward is above 1/2. Raises ValueError if the shapes differ.
        """
        if rewards.shape != groups.shape or rewards.dim() != 1:
            raise ValueError(f"rewards {tuple(rewards.shape)} and groups {tuple(groups.shape)} must both be [B]")
        self.judged: CompletionMask = ~rewards.isnan()
        self.rewards: PerCompletion = torch.where(self.judged, rewards, 0)
        """The rewards, 0 for unjudged completions."""
        self.right: CompletionMask = (self.rewards > 0.5 if right is None else right) & self.judged
        """Whether each completion was judged and is right."""
        names, index = torch.unique(groups, return_inverse=True)
        self.index: GroupIndex = index
        """The position of each completion's group among all groups."""
        self._count = len(names)
        self.judged_count: PerGroup = self.sum(torch.ones_like(self.rewards))
        """The number of judged completions of each group."""

    def sum(self, values: PerCompletion) -> PerGroup:
        """Return the sum of `values` over the judged completions of each group, [groups]."""
        return values.new_zeros(self._count).index_add(0, self.index, values * self.judged)

    def mean(self, values: PerCompletion) -> PerCompletion:
        """Return for each completion the mean of `values` over the judged completions of its group, [B]."""
        return (self.sum(values) / self.judged_count.clamp(min=1))[self.index]

    @property
    def size(self) -> PerCompletion:
        """The number of judged completions in the group of each completion, [B]."""
        return self.judged_count[self.index]

    @property
    def centred(self) -> PerCompletion:
        """The reward less the mean reward of the group, [B]."""
        return self.comparable(self.rewards - self.mean(self.rewards))

    def comparable(self, values: PerCompletion) -> PerCompletion:
        """Return `values` with 0 for unjudged completions and in groups with fewer than two judged completions."""
        return torch.where(self.judged & (self.size > 1), values, 0)


def grpo(groups: Groups) -> PerCompletion:
    """Return (r - mean) / (std + 1e-4) in the group, std unbiased. DeepSeekMath, arXiv 2402.03300, section 4.1.2."""
    centred = groups.centred
    variance = groups.mean(centred**2) * groups.size / (groups.size - 1).clamp(min=1)
    return groups.comparable(centred / (variance.sqrt() + STD_EPSILON))


def dr_grpo(groups: Groups) -> PerCompletion:
    """Return r - mean of the group. Dr. GRPO, arXiv 2503.20783, section 3.2."""
    return groups.centred


def rloo(groups: Groups) -> PerCompletion:
    """Return r - mean of the group's other completions. RLOO, arXiv 2402.14740."""
    return groups.centred * groups.size / (groups.size - 1).clamp(min=1)


def reinforce_pp(groups: Groups) -> PerCompletion:
    """Return r, whitened over the batch, so that groups of one completion work too.

    REINFORCE++, arXiv 2501.03262, without a KL term in the reward. In the mean and standard deviation each completion
    has the same weight, independent of its length.
    """
    return _whitened(groups.rewards, groups.judged)


def reinforce_pp_baseline(groups: Groups) -> PerCompletion:
    """Return r - mean of the group, whitened over the batch. REINFORCE++-baseline, arXiv 2501.03262."""
    return _whitened(groups.centred, groups.judged & (groups.size > 1))


def _whitened(values: PerCompletion, counted: CompletionMask) -> PerCompletion:
    chosen = values[counted]
    if not len(chosen):
        return torch.zeros_like(values)
    white = (values - chosen.mean()) / (chosen.std(correction=0) + WHITEN_EPSILON)
    return torch.where(counted, white, 0)


def batch_std(groups: Groups) -> PerCompletion:
    """Return (r - mean of the group) / (std of the batch + 1e-4), std unbiased. Lite PPO, arXiv 2508.08221."""
    judged = groups.rewards[groups.judged]
    spread = judged.std() if len(judged) > 1 else judged.new_zeros(())
    return groups.centred / (spread + STD_EPSILON)


def maxrl(groups: Groups) -> PerCompletion:
    """Return (r - mean of the group) / pass rate of the group, or 0 in groups without a right completion.

    MaxRL, arXiv 2602.02710. The paper divides by the mean reward, which is the pass rate if rewards are 0 or 1. The
    pass rate is used here because the mean of rewards with other values may be 0 or negative.
    """
    rate = groups.mean(groups.right.to(groups.rewards))
    return torch.where(rate > 0, groups.centred / torch.where(rate > 0, rate, 1), 0)


def _by_counts(function: Callable[[int, int, int], tuple[float, float]], groups: Groups, k: int) -> PerCompletion:
    """Return advantages from the counts of each group. k is lowered in groups with fewer than k judged completions."""
    right_counts = groups.sum(groups.right.to(groups.rewards)).int().tolist()
    pairs = [
        function(n, c, min(k, n)) if n > 1 else (0.0, 0.0)
        for n, c in zip(groups.judged_count.int().tolist(), right_counts, strict=True)
    ]
    table = torch.tensor(pairs, dtype=groups.rewards.dtype, device=groups.rewards.device)[groups.index]
    return torch.where(groups.judged, torch.where(groups.right, table[:, 0], table[:, 1]), 0)


# Pass@k is the probability that at least one of k completions is right. The functions below take the number n of a
# prompt's completions and the number c of right completions among them, with 1 <= k <= n. Apart from `rho`, they return
# two numbers: the value of each right completion and the value of each wrong completion.


def rho(n: int, c: int, k: int) -> float:
    """Return the share of the k-subsets of n completions with at least one of the c right completions; 0 if k is 0.

    rho(n, c, k) = 1 - C(n - c, k) / C(n, k): Chen et al. 2021, arXiv 2107.03374, eq. 1.
    """
    return 1.0 - comb(n - c, k) / comb(n, k)


def chen(n: int, c: int, k: int) -> tuple[float, float]:
    """Return the mean z-score of the rewards of the k-subsets that contain a right completion, or a wrong one.

    Pass@k training, arXiv 2508.10751. A subset's reward is 1 if it has a right completion. With R = rho(n, c, k) and
    s = sqrt(R (1 - R)) + 1e-6, a right completion gets (1 - R) / s and a wrong one (1 - R - C(n - c - 1, k - 1) /
    C(n - 1, k - 1)) / s. Both are 0 if all subsets have the same reward.
    """
    mean = rho(n, c, k)
    spread = sqrt(mean * (1.0 - mean)) + CHEN_EPSILON
    all_wrong = comb(n - c - 1, k - 1) / comb(n - 1, k - 1) if c < n else 0.0
    return (1.0 - mean) / spread, (1.0 - mean - all_wrong) / spread if c < n else 0.0


def walder_rewards(n: int, c: int, k: int) -> tuple[float, float]:
    """Return the rewards whose policy gradient, summed over the n completions, is an unbiased gradient of pass@k.

    Walder and Karkhanis, arXiv 2505.15201. A right completion gets k / n, a wrong one (k / n) rho(n - 1, c, k - 1).
    """
    return k / n, k / n * rho(n - 1, c, k - 1) if c < n else 0.0


def walder(n: int, c: int, k: int) -> tuple[float, float]:
    """Return n times the rewards of `walder_rewards`, less a baseline, for a loss that averages over completions.

    The baseline is the mean reward of the subsets of k - 1 other completions (arXiv 2505.15201, "leave one out minus
    one"). A right completion gets k (1 - rho(n - 1, c - 1, k - 1)), from the subsets in which it is the only right one,
    and a wrong completion gets 0. With k = 1 these subsets are empty, and the baseline is the mean of the other
    completions (RLOO).
    """
    if k == 1:
        return ((n - c) / (n - 1), -c / (n - 1)) if n > 1 else (0.0, 0.0)
    return k * (1.0 - rho(n - 1, c - 1, k - 1)) if c else 0.0, 0.0


ADVANTAGES: Mapping[str, Callable[[Groups], Tensor]] = {
    function.__name__: function
    for function in (grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, batch_std, maxrl)
}
"""The advantage functions by their names in `objective.advantage`."""
PASS_AT_K: Mapping[str, Callable[[int, int, int], tuple[float, float]]] = {
    "pass_at_k_chen": chen,
    "pass_at_k_walder": walder,
}
"""The pass@k functions by their names in `objective.advantage`."""


def advantages(
    kind: str, rewards: PerCompletion, groups: GroupIndex, k: int = 1, right: CompletionMask | None = None
) -> PerCompletion:
    """Return the advantages of `kind`, one of `ADVANTAGES` or `PASS_AT_K`.

    rewards, groups, right: [B], as in `Groups`. Only maxrl and pass@k use `right`, only pass@k uses `k`. Raises
    KeyError for an unknown kind, ValueError if the shapes differ.
    """
    compared = Groups(rewards, groups, right)
    return _by_counts(PASS_AT_K[kind], compared, k) if kind in PASS_AT_K else ADVANTAGES[kind](compared)

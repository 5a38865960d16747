"""Advantages of completions from their rewards.

A reward of NaN is one that could not be judged: its completion gets 0 and leaves its group. Groups with fewer than two
judged completions get 0, except by `reinforce_pp`, which compares with the whole batch. "Batch" is what is passed: with
several ranks the rewards of all of them, gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import comb, sqrt

import torch
from torch import Tensor

from truegold.train.objective import CompletionMask, GroupIndex, PerCompletion, PerGroup

STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards, as in TRL, so that nearly equal rewards do not blow up."""
WHITEN_EPSILON = 1e-8
"""Added to the standard deviation of the values that are whitened over the batch."""
CHEN_EPSILON = 1e-6
"""Added to the standard deviation of a subset's reward."""


class Groups:
    """Sums over groups of completions of one prompt, of the completions that could be judged."""

    def __init__(self, rewards: PerCompletion, groups: GroupIndex, right: CompletionMask | None = None) -> None:
        """rewards: NaN where a completion could not be judged. groups: equal within a group. right: whether each is
        right; where left out, those with a reward above 1/2."""
        if rewards.shape != groups.shape or rewards.dim() != 1:
            raise ValueError(f"rewards {tuple(rewards.shape)} and groups {tuple(groups.shape)} must both be [B]")
        self.judged: CompletionMask = ~rewards.isnan()
        self.rewards: PerCompletion = torch.where(self.judged, rewards, 0)
        """0 where unjudged."""
        self.right: CompletionMask = (self.rewards > 0.5 if right is None else right) & self.judged
        """Judged, and right."""
        names, index = torch.unique(groups, return_inverse=True)
        self.index: GroupIndex = index
        """The position of each completion's group among all groups."""
        self._count = len(names)
        self.judged_count: PerGroup = self.sum(torch.ones_like(self.rewards))
        """How many completions of each group were judged."""

    def sum(self, values: PerCompletion) -> PerGroup:
        """Sum up each group's judged completions."""
        return values.new_zeros(self._count).index_add(0, self.index, values * self.judged)

    def mean(self, values: PerCompletion) -> PerCompletion:
        """Give each completion the mean of its group."""
        return (self.sum(values) / self.judged_count.clamp(min=1))[self.index]

    @property
    def size(self) -> PerCompletion:
        """How many completions of each one's group were judged."""
        return self.judged_count[self.index]

    @property
    def centred(self) -> PerCompletion:
        """r - mean of the group."""
        return self.comparable(self.rewards - self.mean(self.rewards))

    def comparable(self, values: PerCompletion) -> PerCompletion:
        """Set `values` to 0 for unjudged completions and in groups that have nothing to compare with."""
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
    """Return r - mean of the others of the group. RLOO, arXiv 2402.14740."""
    return groups.centred * groups.size / (groups.size - 1).clamp(min=1)


def reinforce_pp(groups: Groups) -> PerCompletion:
    """Return r, whitened over the batch; groups of one will do. REINFORCE++, arXiv 2501.03262, without a KL in the
    reward. Each completion weighs the same, independent of its length."""
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
    """Return (r - mean of the group) / pass rate of the group, 0 if none is right: a right completion of a problem with
    pass rate p weighs as 1/p.

    MaxRL, arXiv 2602.02710, where rewards are 0 or 1 and their mean is the pass rate; the mean of rewards that may be
    negative could be anything, 0 too.
    """
    rate = groups.mean(groups.right.to(groups.rewards))
    return torch.where(rate > 0, groups.centred / torch.where(rate > 0, rate, 1), 0)


def _by_counts(function: Callable[[int, int, int], tuple[float, float]], groups: Groups, k: int) -> PerCompletion:
    """Apply a function of counts; a group in which fewer than k could be judged is compared by as many as there are."""
    right_counts = groups.sum(groups.right.to(groups.rewards)).int().tolist()
    pairs = [
        function(n, c, min(k, n)) if n > 1 else (0.0, 0.0)
        for n, c in zip(groups.judged_count.int().tolist(), right_counts, strict=True)
    ]
    table = torch.tensor(pairs, dtype=groups.rewards.dtype, device=groups.rewards.device)[groups.index]
    return torch.where(groups.judged, torch.where(groups.right, table[:, 0], table[:, 1]), 0)


# Pass@k: that at least one of k completions is right. The functions below take counts, n completions of a prompt of
# which c are right, and return two numbers, one for each right completion and one for each wrong one. 1 <= k <= n.


def rho(n: int, c: int, k: int) -> float:
    """Return the share of the k-subsets of n completions that have one of the c right ones; 0 where k is 0.

    rho(n, c, k) = 1 - C(n - c, k) / C(n, k): Chen et al. 2021, arXiv 2107.03374, eq. 1.
    """
    return 1.0 - comb(n - c, k) / comb(n, k)


def chen(n: int, c: int, k: int) -> tuple[float, float]:
    """Return the z-scores of a k-subset's reward, averaged over the subsets that a completion is in.

    Pass@k training, arXiv 2508.10751: with R = rho(n, c, k) and s = sqrt(R (1 - R)), right (1 - R) / s
    and wrong (1 - R - C(n - c - 1, k - 1) / C(n - 1, k - 1)) / s. Both are 0 where every subset is alike.
    """
    mean = rho(n, c, k)
    spread = sqrt(mean * (1.0 - mean)) + CHEN_EPSILON
    all_wrong = comb(n - c - 1, k - 1) / comb(n - 1, k - 1) if c < n else 0.0
    return (1.0 - mean) / spread, (1.0 - mean - all_wrong) / spread if c < n else 0.0


def walder_rewards(n: int, c: int, k: int) -> tuple[float, float]:
    """Return rewards whose policy gradient, summed over the n completions, is an unbiased gradient of pass@k.

    Walder and Karkhanis, arXiv 2505.15201: right k / n, wrong (k / n) rho(n - 1, c, k - 1).
    """
    return k / n, k / n * rho(n - 1, c, k - 1) if c < n else 0.0


def walder(n: int, c: int, k: int) -> tuple[float, float]:
    """Return n times the rewards of `walder_rewards`, for a loss that averages over completions, less a baseline.

    The baseline leaves each completion out: it is that of the subsets without the completion's own part (arXiv
    2505.15201, "leave one out minus one"): a right completion gets k (1 - rho(n - 1, c - 1, k - 1)), what it alone
    brings, and a wrong one 0. With k = 1 there is nothing left in such a subset, and the baseline is the mean of the
    others (RLOO).
    """
    if k == 1:
        return ((n - c) / (n - 1), -c / (n - 1)) if n > 1 else (0.0, 0.0)
    return k * (1.0 - rho(n - 1, c - 1, k - 1)) if c else 0.0, 0.0


ADVANTAGES: Mapping[str, Callable[[Groups], Tensor]] = {
    function.__name__: function
    for function in (grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, batch_std, maxrl)
}
"""The functions of advantages by their names in the configuration."""
PASS_AT_K: Mapping[str, Callable[[int, int, int], tuple[float, float]]] = {
    "pass_at_k_chen": chen,
    "pass_at_k_walder": walder,
}
"""The functions of pass@k by their names in the configuration: z-scores under the reward "one of k is right", and
weights that make an unbiased gradient of pass@k."""


def advantages(
    kind: str, rewards: PerCompletion, groups: GroupIndex, k: int = 1, right: CompletionMask | None = None
) -> PerCompletion:
    """Return the advantages of `kind`, one of `ADVANTAGES` or `PASS_AT_K`.

    rewards, groups, right: as `Groups` takes them; `right` is what maxrl and the kinds of pass@k count, k is for the
    latter. Raises KeyError for another name.
    """
    compared = Groups(rewards, groups, right)
    return _by_counts(PASS_AT_K[kind], compared, k) if kind in PASS_AT_K else ADVANTAGES[kind](compared)

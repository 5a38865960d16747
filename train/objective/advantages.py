"""Advantages of completions from their rewards. All: rewards [B] and groups [B] -> [B].

A reward of NaN is one that could not be judged: its completion gets 0 and leaves its group. Groups with fewer than two
judged completions get 0, except by `reinforce_pp`, which compares with the whole batch. "Batch" is what is passed: with
several ranks the rewards of all of them, gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from truegold.train.objective.groups import Groups
from truegold.train.objective.pass_at_k import chen, walder

STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards, as in TRL, so that nearly equal rewards do not blow up."""
WHITEN_EPSILON = 1e-8

AdvantageFunction = Callable[[Tensor, Tensor], Tensor]


def grpo(rewards: Tensor, groups: Tensor) -> Tensor:
    """(r - mean) / (std + 1e-4), std unbiased, in the group. DeepSeekMath, arXiv 2402.03300, section 4.1.2."""
    of = Groups(rewards, groups)
    centred = _centred(of)
    variance = of.mean(centred**2) * of.size / (of.size - 1).clamp(min=1)
    return of.comparable(centred / (variance.sqrt() + STD_EPSILON))


def dr_grpo(rewards: Tensor, groups: Tensor) -> Tensor:
    """r - mean of the group. Dr. GRPO, arXiv 2503.20783, section 3.2."""
    return _centred(Groups(rewards, groups))


def rloo(rewards: Tensor, groups: Tensor) -> Tensor:
    """r - mean of the others of the group. RLOO, arXiv 2402.14740."""
    of = Groups(rewards, groups)
    return _centred(of) * of.size / (of.size - 1).clamp(min=1)


def reinforce_pp(rewards: Tensor, groups: Tensor) -> Tensor:
    """r, whitened over the batch; groups of one will do. REINFORCE++, arXiv 2501.03262, without a KL in the
    reward. Each completion weighs the same, whatever its length."""
    of = Groups(rewards, groups)
    return _whitened(of.rewards, of.judged)


def reinforce_pp_baseline(rewards: Tensor, groups: Tensor) -> Tensor:
    """r - mean of the group, whitened over the batch. REINFORCE++-baseline, arXiv 2501.03262."""
    of = Groups(rewards, groups)
    return _whitened(_centred(of), of.judged & (of.size > 1))


def batch_std(rewards: Tensor, groups: Tensor) -> Tensor:
    """(r - mean of the group) / (std of the batch + 1e-4), std unbiased. Lite PPO, arXiv 2508.08221."""
    of = Groups(rewards, groups)
    judged = of.rewards[of.judged]
    spread = judged.std() if len(judged) > 1 else judged.new_zeros(())
    return _centred(of) / (spread + STD_EPSILON)


def maxrl(rewards: Tensor, groups: Tensor) -> Tensor:
    """(r - mean) / mean of the group, 0 where that is not positive: a right completion of a problem with pass rate p
    weighs as 1/p. MaxRL, arXiv 2602.02710."""
    of = Groups(rewards, groups)
    mean = of.mean(of.rewards)
    return torch.where(mean > 0, _centred(of) / torch.where(mean > 0, mean, 1), 0)


def pass_at_k_chen(rewards: Tensor, groups: Tensor, k: int) -> Tensor:
    """Z-scores under the reward "one of k is right" (`pass_at_k.chen`). Right is a reward above 1/2."""
    return _by_count(chen, Groups(rewards, groups), k)


def pass_at_k_walder(rewards: Tensor, groups: Tensor, k: int) -> Tensor:
    """An unbiased gradient of pass@k (`pass_at_k.walder`). Right is a reward above 1/2."""
    return _by_count(walder, Groups(rewards, groups), k)


ADVANTAGES: Mapping[str, AdvantageFunction] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "reinforce_pp": reinforce_pp,
    "reinforce_pp_baseline": reinforce_pp_baseline,
    "batch_std": batch_std,
    "maxrl": maxrl,
}
PASS_AT_K: Mapping[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "pass_at_k_chen": pass_at_k_chen,
    "pass_at_k_walder": pass_at_k_walder,
}
"""By the name in the configuration."""


def advantages(kind: str, rewards: Tensor, groups: Tensor, k: int = 1) -> Tensor:
    """The advantages of `kind`, one of `ADVANTAGES` or `PASS_AT_K`; k is for the latter. KeyError for another name."""
    if kind in PASS_AT_K:
        return PASS_AT_K[kind](rewards, groups, k)
    return ADVANTAGES[kind](rewards, groups)


def _centred(of: Groups) -> Tensor:
    return of.comparable(of.rewards - of.mean(of.rewards))


def _whitened(values: Tensor, counted: Tensor) -> Tensor:
    chosen = values[counted]
    if not len(chosen):
        return torch.zeros_like(values)
    white = (values - chosen.mean()) / (chosen.std(correction=0) + WHITEN_EPSILON)
    return torch.where(counted, white, 0)


def _by_count(function: Callable[[int, int, int], tuple[float, float]], of: Groups, k: int) -> Tensor:
    """A group in which fewer than k could be judged is compared by as many as there are."""
    right = (of.rewards > 0.5) & of.judged
    pairs = [
        function(n, c, min(k, n)) if n > 1 else (0.0, 0.0)
        for n, c in zip(of.count.int().tolist(), of.sum(right.to(of.rewards)).int().tolist(), strict=True)
    ]
    table = torch.tensor(pairs, dtype=of.rewards.dtype, device=of.rewards.device)[of.of]
    return torch.where(of.judged, torch.where(right, table[:, 0], table[:, 1]), 0)

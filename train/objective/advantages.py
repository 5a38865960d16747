"""Advantages of completions from their rewards: [B] in, [B] out.

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

AdvantageFunction = Callable[[Groups], Tensor]


def grpo(of: Groups) -> Tensor:
    """(r - mean) / (std + 1e-4), std unbiased, in the group. DeepSeekMath, arXiv 2402.03300, section 4.1.2."""
    centred = _centred(of)
    variance = of.mean(centred**2) * of.size / (of.size - 1).clamp(min=1)
    return of.comparable(centred / (variance.sqrt() + STD_EPSILON))


def dr_grpo(of: Groups) -> Tensor:
    """r - mean of the group. Dr. GRPO, arXiv 2503.20783, section 3.2."""
    return _centred(of)


def rloo(of: Groups) -> Tensor:
    """r - mean of the others of the group. RLOO, arXiv 2402.14740."""
    return _centred(of) * of.size / (of.size - 1).clamp(min=1)


def reinforce_pp(of: Groups) -> Tensor:
    """r, whitened over the batch; groups of one will do. REINFORCE++, arXiv 2501.03262, without a KL in the
    reward. Each completion weighs the same, whatever its length."""
    return _whitened(of.rewards, of.judged)


def reinforce_pp_baseline(of: Groups) -> Tensor:
    """r - mean of the group, whitened over the batch. REINFORCE++-baseline, arXiv 2501.03262."""
    return _whitened(_centred(of), of.judged & (of.size > 1))


def batch_std(of: Groups) -> Tensor:
    """(r - mean of the group) / (std of the batch + 1e-4), std unbiased. Lite PPO, arXiv 2508.08221."""
    judged = of.rewards[of.judged]
    spread = judged.std() if len(judged) > 1 else judged.new_zeros(())
    return _centred(of) / (spread + STD_EPSILON)


def maxrl(of: Groups) -> Tensor:
    """(r - mean of the group) / pass rate of the group, 0 where none is right: a right completion of a problem with
    pass rate p weighs as 1/p. MaxRL, arXiv 2602.02710, where rewards are 0 or 1 and their mean is the pass rate; the
    mean of rewards that may be negative could be anything, 0 too."""
    rate = of.mean(of.right.to(of.rewards))
    return torch.where(rate > 0, _centred(of) / torch.where(rate > 0, rate, 1), 0)


def pass_at_k_chen(of: Groups, k: int) -> Tensor:
    """Z-scores under the reward "one of k is right" (`pass_at_k.chen`)."""
    return _by_count(chen, of, k)


def pass_at_k_walder(of: Groups, k: int) -> Tensor:
    """An unbiased gradient of pass@k (`pass_at_k.walder`)."""
    return _by_count(walder, of, k)


ADVANTAGES: Mapping[str, AdvantageFunction] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
    "reinforce_pp": reinforce_pp,
    "reinforce_pp_baseline": reinforce_pp_baseline,
    "batch_std": batch_std,
    "maxrl": maxrl,
}
PASS_AT_K: Mapping[str, Callable[[Groups, int], Tensor]] = {
    "pass_at_k_chen": pass_at_k_chen,
    "pass_at_k_walder": pass_at_k_walder,
}
"""By the name in the configuration."""


def advantages(kind: str, rewards: Tensor, groups: Tensor, k: int = 1, right: Tensor | None = None) -> Tensor:
    """The advantages of `kind`, one of `ADVANTAGES` or `PASS_AT_K`.

    rewards, groups, right: as `Groups` has them; `right` is what maxrl and the kinds of pass@k count, k is for the
    latter. KeyError for another name.
    """
    of = Groups(rewards, groups, right)
    return PASS_AT_K[kind](of, k) if kind in PASS_AT_K else ADVANTAGES[kind](of)


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
    pairs = [
        function(n, c, min(k, n)) if n > 1 else (0.0, 0.0)
        for n, c in zip(of.count.int().tolist(), of.sum(of.right.to(of.rewards)).int().tolist(), strict=True)
    ]
    table = torch.tensor(pairs, dtype=of.rewards.dtype, device=of.rewards.device)[of.of]
    return torch.where(of.judged, torch.where(of.right, table[:, 0], table[:, 1]), 0)

"""The RL objective: group advantages and the clipped token loss, as pure functions on tensors.

Shapes: B completions of up to T output tokens, right-padded; `mask` is 1 on sampled tokens and 0 on padding. Three
policies are kept apart, each a [B, T] tensor of natural-log probabilities of the sampled tokens:

    rollout  the engine that sampled, at the weights it sampled with
    old      the training engine, at the same weights, before the first update on this batch
    current  the training engine now; the only one that carries gradients
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

STD_EPSILON = 1e-4
"""Added to a group's standard deviation, as in TRL, so that a group of nearly equal rewards does not blow up."""


def group_advantages(rewards: Tensor, groups: Tensor, kind: Literal["grpo", "dr_grpo"] = "grpo") -> Tensor:
    """Advantages within groups of completions of the same prompt.

    rewards: [B] floats, NaN where a completion could not be judged. groups: [B] integers, the group of each.
    grpo: (r - mean) / (std + 1e-4) with the unbiased std (DeepSeekMath, arXiv 2402.03300, section 4.1.2).
    dr_grpo: r - mean (arXiv 2503.20783, section 3.2).
    Returns [B]; 0 for unjudged completions and for groups with fewer than two judged ones.
    """
    advantages = torch.zeros_like(rewards)
    for group in torch.unique(groups):
        members = (groups == group) & ~rewards.isnan()
        if int(members.sum()) < 2:
            continue
        own = rewards[members]
        centred = own - own.mean()
        advantages[members] = centred / (own.std() + STD_EPSILON) if kind == "grpo" else centred
    return advantages


@dataclass(frozen=True)
class LossParts:
    """A micro-batch's share of the loss.

    loss: scalar, the sum over tokens (divide by the token count of the whole batch). clipped_low, clipped_high: tokens
    whose gradient the clip removed, on either side. ratio_sum: sum of exp(current - old). All are sums over the mask.
    """

    loss: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    ratio_sum: Tensor


def clipped_token_loss(
    current: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, clip_low: float, clip_high: float
) -> LossParts:
    """The PPO clip with clip-higher, summed over tokens (DAPO, arXiv 2503.14476, eq. 8, before its division).

    current, old, mask: [B, T]; advantages: [B]. Token loss: -min(rho A, clip(rho, 1 - low, 1 + high) A).
    """
    ratio = torch.exp(current - old)
    advantage = advantages.unsqueeze(1).expand_as(ratio)
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    token_loss = -torch.minimum(ratio * advantage, clipped * advantage)
    low = (ratio < 1.0 - clip_low) & (advantage < 0)
    high = (ratio > 1.0 + clip_high) & (advantage > 0)
    return LossParts(
        loss=(token_loss * mask).sum(),
        clipped_low=(low * mask).sum().detach(),
        clipped_high=(high * mask).sum().detach(),
        ratio_sum=(ratio * mask).sum().detach(),
    )


@dataclass(frozen=True)
class Mismatch:
    """How far two engines' log-probabilities of the same tokens are apart.

    mean_abs: mean |delta|, delta = other - own. mean: mean delta. k3: mean of exp(delta) - delta - 1, an unbiased
    estimate of the KL divergence where `own` sampled. tokens: how many were compared.
    """

    mean_abs: float
    mean: float
    k3: float
    tokens: int


def mismatch_sums(own: Tensor, other: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Sums over the mask of |delta| and of the k3 estimate, delta = other - own, for a step's metrics."""
    delta = other - own
    return {
        "mismatch_abs": (delta.abs() * mask).sum(),
        "mismatch_k3": ((torch.expm1(delta) - delta) * mask).sum(),
    }


def mismatch(own: Tensor, other: Tensor, mask: Tensor) -> Mismatch:
    """Compare log-probabilities [B, T] over the mask; `own` is the engine that sampled."""
    chosen = mask.bool()
    delta = (other.double() - own.double())[chosen]
    if delta.numel() == 0:
        return Mismatch(0.0, 0.0, 0.0, 0)
    k3 = torch.expm1(delta) - delta
    return Mismatch(float(delta.abs().mean()), float(delta.mean()), float(k3.mean()), delta.numel())

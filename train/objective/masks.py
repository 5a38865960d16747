"""Which sequences and tokens are left out of the loss. Masks are 0 or 1 and never differentiated."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


@torch.no_grad()
def off_policy_sequence_mask(
    current: Tensor, rollout: Tensor, advantages: Tensor, mask: Tensor, delta: float
) -> Tensor:
    """[B]: 0 for wrong completions that the policy has moved away from: A < 0 and mean(rollout - current) > delta.

    DeepSeek-V3.2, arXiv 2512.02556, eq. 9.
    """
    drift = torch.where(mask > 0, rollout - current, 0).sum(1) / mask.sum(1).clamp(min=1)
    return (~((advantages < 0) & (drift > delta))).to(mask)


def entropy_threshold(entropies: Tensor, quantile: float) -> float:
    """The entropy (nats) from which a token belongs to the highest `quantile` of the batch. entropies: [N], of all
    sampled tokens of the batch, over all ranks. Linear interpolation, as numpy does it; -inf where there are none."""
    if entropies.numel() == 0:
        return float("-inf")
    return float(np.quantile(entropies.detach().double().cpu().numpy(), 1.0 - quantile))


@torch.no_grad()
def top_entropy_mask(entropy: Tensor, mask: Tensor, threshold: float) -> Tensor:
    """[B, T]: 1 for sampled tokens of at least that entropy: the forks of a derivation, a fifth of its tokens, carry
    the gain (arXiv 2506.01939)."""
    return ((entropy >= threshold) & (mask > 0)).to(mask)

"""How far the log-probabilities of the engine that samples and of the one that trains are apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


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


OUTSIDE = (0.8, 1.28)
"""The range of exp(delta) that PPO's clip leaves alone by default: a token outside of it would be clipped before any
update."""


def mismatch_sums(own: Tensor, other: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Sums over the mask, for a step's metrics, delta = other - own: of |delta|, of the k3 estimate, and of the tokens
    whose ratio is outside of the clip range."""
    delta = other - own
    ratio = delta.exp()
    return {
        "mismatch_abs": (delta.abs() * mask).sum(),
        "mismatch_k3": ((torch.expm1(delta) - delta) * mask).sum(),
        "mismatch_outside": (((ratio < OUTSIDE[0]) | (ratio > OUTSIDE[1])) * mask).sum(),
    }


def mismatch(own: Tensor, other: Tensor, mask: Tensor) -> Mismatch:
    """Compare log-probabilities [B, T] over the mask; `own` is the engine that sampled."""
    chosen = mask.bool()
    delta = (other.double() - own.double())[chosen]
    if delta.numel() == 0:
        return Mismatch(0.0, 0.0, 0.0, 0)
    k3 = torch.expm1(delta) - delta
    return Mismatch(float(delta.abs().mean()), float(delta.mean()), float(k3.mean()), delta.numel())

"""How far the log-probabilities of the engine that samples and of the one that trains are apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mismatch:
    """How far two engines' log-probabilities of the same tokens are apart: delta = trainer - sampler."""

    mean_abs: float
    """The mean of |delta|."""
    mean: float
    """The mean of delta."""
    k3: float
    """The mean of exp(delta) - delta - 1, an unbiased estimate of the KL divergence."""
    tokens: int
    """How many tokens were compared."""


OUTSIDE = (0.8, 1.28)
"""The range of exp(delta) that PPO's clip leaves alone by default: a token outside of it would be clipped before any
update."""


def mismatch_sums(sampler: Tensor, trainer: Tensor, mask: Tensor, is_fresh: Tensor) -> dict[str, Tensor]:
    """Return sums over the mask for a step's metrics: of |delta|, of the k3 estimate, and of the tokens whose ratio is
    outside of the clip range; and over the fresh tokens, sampled by the weights in training, of one and of |delta|."""
    delta = trainer - sampler
    ratio = delta.exp()
    return {
        "mismatch_abs": (delta.abs() * mask).sum(),
        "mismatch_fresh": (delta.abs() * mask * is_fresh).sum(),
        "fresh_tokens": (mask * is_fresh).sum(),
        "mismatch_k3": ((torch.expm1(delta) - delta) * mask).sum(),
        "mismatch_outside": (((ratio < OUTSIDE[0]) | (ratio > OUTSIDE[1])) * mask).sum(),
    }


def mismatch(sampler: Tensor, trainer: Tensor, mask: Tensor) -> Mismatch:
    """Compare log-probabilities [B, T] of the engine that samples and of the one that trains over the mask."""
    delta = (trainer.double() - sampler.double())[mask.bool()]
    if delta.numel() == 0:
        return Mismatch(0.0, 0.0, 0.0, 0)
    k3 = torch.expm1(delta) - delta
    return Mismatch(float(delta.abs().mean()), float(delta.mean()), float(k3.mean()), delta.numel())

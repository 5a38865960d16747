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

"""Weights for what the engine that sampled and the training engine disagree on, kappa = exp(old - rollout).

    tis             min(kappa, high)                          token truncated importance sampling, Yao et al. 2025
    icepop          kappa where low <= kappa <= high, else 0  IcePop, arXiv 2510.18855
    sequence_tis    min(product of kappa, high)               as tis, of whole sequences
    sequence_mask   product of kappa in the range, else 0     masked importance sampling
    geometric_mask  1 where exp(mean log kappa) is in the range, else 0; the same at any length

They multiply the loss and are never differentiated (decoupled PPO, arXiv 2110.00641). A product over a long sequence
leaves any range by noise alone; the geometric mean does not. Where the old policy is the engine's own record, kappa
is 1.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

Correction = Literal["tis", "icepop", "sequence_tis", "sequence_mask", "geometric_mask"]
CORRECTIONS: tuple[str, ...] = get_args(Correction)
MAX_LOG = 80.0
"""exp of more is beyond float32; every range ends far below."""


@torch.no_grad()
def engine_weights(
    old: Tensor, rollout: Tensor, mask: Tensor, kind: Correction, high: float, low: float = 0.0
) -> Tensor:
    """[B, T] of one kind, from log-probabilities [B, T]; on padding whatever comes out."""
    log_kappa = torch.where(mask > 0, old - rollout, 0)
    if kind in ("tis", "icepop"):
        weight = _exp(log_kappa)
    elif kind in ("sequence_tis", "sequence_mask"):
        weight = _exp(log_kappa.sum(1, keepdim=True)).expand_as(old)
    else:
        weight = _exp(log_kappa.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)).expand_as(old)
    if kind in ("tis", "sequence_tis"):
        return weight.clamp(max=high)
    inside = (weight >= low) & (weight <= high)
    return inside.to(old) if kind == "geometric_mask" else torch.where(inside, weight, 0)


def _exp(values: Tensor) -> Tensor:
    return torch.exp(values.clamp(-MAX_LOG, MAX_LOG))

"""Where clipping comes from: the engine that samples, weights that have gone stale, or the update itself.

    log current/rollout  =  engine + staleness + update

    engine      old - rollout, where the weights that sampled are those that are trained: only the engines differ
    staleness   old - rollout, where the weights that sampled are older, less the engines' usual difference
    update      current - old: the steps taken on this batch so far

A token is clipped where the whole ratio is beyond the bound that its advantage makes active. It is shared out among the
causes that moved it that way, each by how far it did, so that the causes add up to the share of clipped tokens. With no
difference between the engines and no staleness that share is what PPO's clip measures.
"""

from __future__ import annotations

import torch
from torch import Tensor

CAUSES = ("engine", "staleness", "update")


@torch.no_grad()
def clip_causes(
    current: Tensor,
    old: Tensor,
    rollout: Tensor,
    advantages: Tensor,
    mask: Tensor,
    is_stale: Tensor,
    bounds: tuple[float, float],
    engine_difference: float = 0.0,
    of_sequence: bool = False,
) -> dict[str, Tensor]:
    """Return the number of clipped tokens (`clip_share`) and how many of them each cause has (`clip_engine`, ...).

    Log-probabilities and mask are [B, T], advantages and is_stale [B]. bounds: the clip's low and high, as distances
    from 1. engine_difference: the usual |Δ log p| of the engines at the same weights. of_sequence: the ratio is that
    of the sequence, as GSPO clips it.
    """
    stale = is_stale.unsqueeze(1)
    sampled = old - rollout
    usual = sampled.sign() * sampled.abs().clamp(max=engine_difference)
    parts = torch.stack([torch.where(stale, usual, sampled), torch.where(stale, sampled - usual, 0.0), current - old])
    if of_sequence:
        lengths = mask.sum(1, keepdim=True).clamp(min=1)
        parts = ((parts * mask).sum(2, keepdim=True) / lengths).expand_as(parts)
    ratio = parts.sum(0).exp()
    signs = advantages.sign().unsqueeze(1)
    clipped = ((signs > 0) & (ratio > 1.0 + bounds[1])) | ((signs < 0) & (ratio < 1.0 - bounds[0]))
    clipped = clipped & (mask > 0)
    pushes = (parts * signs).clamp(min=0.0)
    shares = pushes / pushes.sum(0).clamp(min=torch.finfo(pushes.dtype).tiny)
    sums = {f"clip_{cause}": (share * clipped).sum() for cause, share in zip(CAUSES, shares, strict=True)}
    return {"clip_share": clipped.to(mask).sum(), **sums}

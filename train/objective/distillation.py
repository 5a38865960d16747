"""Training on the bare prompt x what was sampled with more in the context, y ~ p(. | x, c): weights and a shaped loss.

Three log-probabilities of the same tokens, [B, T]: conditioned = log p(y | x, c), the engine's at sampling; bare =
log p(y | x), the training engine's on the bare prompt, which is the old policy of the clip; and current. Taking
`conditioned` as the old policy instead shrinks every positive without a word.

`self_distillation` needs no positives: the policy's own samples from the bare prompt, judged by itself with more in the
context.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from truegold.train.config.objective import DistillationWeight

DISTILLATION_WEIGHTS: tuple[str, ...] = get_args(DistillationWeight)


@torch.no_grad()
def distillation_weights(
    bare: Tensor, conditioned: Tensor, mask: Tensor, kind: DistillationWeight, cap: float = 1.0
) -> Tensor:
    """Return importance weights p(y | x) / p(y | x, c), at most `cap`; [B, T] for "token" and
    "prefix", else [B, 1].

    sequence: the whole sequence's ratio, unbiased below the cap and next to nothing for what needed the context.
    token: token by token, biased; it damps tokens that only the context explains. geometric: exp of the mean log
    ratio, a measure of trust in a completion. prefix: the ratio of all tokens up to each one, the drift from the policy
    that sampled it; per-decision importance sampling (Precup 2000). none: 1.
    """
    log_ratio = bare - conditioned
    summed = torch.where(mask > 0, log_ratio, 0).sum(1, keepdim=True)
    if kind == "none":
        return torch.ones_like(summed)
    if kind == "token":
        log_weight = log_ratio
    elif kind == "prefix":
        log_weight = torch.where(mask > 0, log_ratio, 0).cumsum(1)
    elif kind == "sequence":
        log_weight = summed
    else:
        log_weight = summed / mask.sum(1, keepdim=True).clamp(min=1)
    return torch.exp(log_weight.clamp(max=20.0)).clamp(max=cap)


def shaped_imitation(current: Tensor, advantages: Tensor, gamma: float = 0.1) -> Tensor:
    """Return -A p / (p + gamma) [B, T] with p = exp(current).

    It is imitation that cares most for tokens the policy finds unlikely: LUFFY, arXiv 2504.14945, policy shaping, with
    the behaviour policy's probability taken as 1. advantages: [B]. No setting chooses it: it is for users' own losses,
    and `benchmarks/loss_fixture.py` holds it to the reference values.
    """
    p = current.exp()
    return -advantages.unsqueeze(1) * p / (p + gamma)


def self_distillation(current: Tensor, teacher: Tensor, old: Tensor, max_gap: float) -> Tensor:
    """Return r sg[log p(y | x) - log p(y | x, c)] log p(y | x) [B, T]. In the mean over what is sampled at a position
    its gradient is that of the divergence KL(p(. | x) || sg p(. | x, c)) there.

    It is the loss of SDPO, arXiv 2601.20802, with the sampled token in place of the sum over the vocabulary. teacher:
    the same policy's log-probabilities with the context, NaN where there is none. r = min(exp(current - old), 2) weighs
    tokens that an earlier policy has sampled. The difference is cut at `max_gap` nats.
    """
    detached = current.detach()
    gap = torch.where(teacher.isnan(), 0.0, detached - teacher).clamp(-max_gap, max_gap)
    return torch.exp((detached - old).clamp(max=20.0)).clamp(max=2.0) * gap * current

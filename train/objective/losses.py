"""Policy losses, token by token, and the KL penalty.

All losses return a `TokenLoss`. They take log-probabilities of the policy in training (`current`) and of the policy
before the step (`old`), advantages of completions or tokens, and the mask of sampled tokens, which only GSPO uses. rho
is exp(current - old).

Losses are not summed here. On padding they may have any value, because the token weights (`weights.token_weights`) are
0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from truegold.train.config.objective import KlEstimator
from truegold.train.objective import Advantages, PerToken, TokenMask

MAX_LOG_RATIO = 20.0
"""Log-ratios are cut here before exp: 5e8 is clipped by every objective, and infinity times 0 would be NaN."""
PPO_BOUNDS, GSPO_BOUNDS = (0.2, 0.28), (3e-4, 4e-4)
"""How far the ratio may be below and above 1 where `objective.clip` leaves the bounds out."""
_LOWER, _UPPER = GSPO_BOUNDS
"""The defaults of `gspo` and `gspo_token`, whose ratio is that of a sequence."""


@dataclass(frozen=True)
class TokenLoss:
    """The loss of each token, and where the ratio was out of bounds. There PPO and GSPO have no gradient; cispo and
    topr have one whose weight is bounded."""

    loss: PerToken
    clipped_low: TokenMask
    """Marks of the tokens whose ratio was too small."""
    clipped_high: TokenMask
    """Marks of the tokens whose ratio was too large."""
    ratio: PerToken
    """The ratio, without gradient."""


def ppo_clip(
    current: PerToken,
    old: PerToken,
    advantages: Advantages,
    mask: PerToken,
    low: float = PPO_BOUNDS[0],
    high: float = PPO_BOUNDS[1],
    dual: float | None = None,
) -> TokenLoss:
    """Return -min(rho A, clip(rho, 1 - low, 1 + high) A).

    PPO, arXiv 1707.06347, eq. 7, with clip-higher as in DAPO (arXiv 2503.14476, eq. 8). dual > 1 bounds the loss by
    -dual A where A < 0 (dual clip, arXiv 1912.09729).
    """
    return _clipped(_ratio(current, old), advantages, low, high, dual)


def gspo(
    current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, low: float = _LOWER, high: float = _UPPER
) -> TokenLoss:
    """Apply PPO's clip to the sequence ratio s = exp(mean over tokens of current - old), the same at every token.

    GSPO, arXiv 2507.18071, section 4.1. With the aggregation "sequence" it is the paper's objective.
    """
    ratio = torch.exp(_mean_log_ratio(current, old, mask)).expand_as(current)
    return _clipped(ratio, advantages, low, high)


def gspo_token(
    current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, low: float = _LOWER, high: float = _UPPER
) -> TokenLoss:
    """Return GSPO's loss with a gradient that reaches each token by itself: s_t = sg[s] exp(current - sg[current]).

    It is for advantages that differ between tokens (arXiv 2507.18071, section 4.3). With one advantage for a sequence
    its gradient is GSPO's.
    """
    sequence = torch.exp(_mean_log_ratio(current, old, mask)).detach()
    return _clipped(sequence * torch.exp(current - current.detach()), advantages, low, high)


def cispo(current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, max_rho: float = 5.0) -> TokenLoss:
    """Return -sg[min(rho, max_rho)] A log p: every token keeps its gradient, with a bounded weight.

    CISPO, MiniMax-M1, arXiv 2506.13585. max_rho is the ratio itself, not 1 + something; ScaleRL (arXiv
    2510.13786) takes 5.
    """
    ratio = _ratio(current, old).detach()
    over = ratio > max_rho
    loss = -ratio.clamp(max=max_rho) * _per_token(advantages, current) * current
    return TokenLoss(loss, torch.zeros_like(over), over, ratio)


def topr(current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken) -> TokenLoss:
    """Return -A log p where A > 0, and -sg[clip(rho, 0, 1)] A log p where A < 0.

    Tokens that are already unlikely are not pushed down further. Tapered off-policy REINFORCE, arXiv 2503.14286, token
    by token as in ROLL; the paper has the ratio of the whole completion. At the first step on a batch rho is 1, and
    this is plain REINFORCE.
    """
    ratio = _ratio(current, old).detach()
    advantage = _per_token(advantages, current)
    weight = torch.where(advantage > 0, 1.0, ratio.clamp(max=1.0))
    return TokenLoss(-weight * advantage * current, torch.zeros_like(ratio > 1), (ratio > 1) & (advantage < 0), ratio)


LOSSES: Mapping[str, Callable[..., TokenLoss]] = {
    "ppo": ppo_clip,
    "gspo": gspo,
    "gspo_token": gspo_token,
    "cispo": cispo,
    "topr": topr,
}
"""The losses by their names in the configuration."""


def _ratio(current: PerToken, old: PerToken) -> PerToken:
    return torch.exp((current - old).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))


def _mean_log_ratio(current: PerToken, old: PerToken, mask: PerToken) -> Tensor:
    """Return the mean over each sequence's tokens [B, 1]; 0 for a sequence without any."""
    log_ratio = torch.where(mask > 0, current - old, 0).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return log_ratio.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)


def _per_token(advantages: Advantages, like: PerToken) -> PerToken:
    return (advantages.unsqueeze(1) if advantages.dim() == 1 else advantages).expand_as(like)


def _clipped(ratio: PerToken, advantages: Advantages, low: float, high: float, dual: float | None = None) -> TokenLoss:
    advantage = _per_token(advantages, ratio)
    loss = -torch.minimum(ratio * advantage, ratio.clamp(1.0 - low, 1.0 + high) * advantage)
    too_low = (ratio < 1.0 - low) & (advantage < 0)
    too_high = (ratio > 1.0 + high) & (advantage > 0)
    if dual is not None:
        bound = -dual * advantage
        too_high |= (advantage < 0) & (loss > bound)
        loss = torch.where(advantage < 0, torch.minimum(loss, bound), loss)
    return TokenLoss(loss, too_low, too_high, ratio.detach())


def kl_estimate(current: PerToken, reference: PerToken, kind: KlEstimator = "k3") -> PerToken:
    """Estimate KL(current || reference) at each token where `current` sampled.

    k1 = current - reference, unbiased and as often negative; k3 = exp(reference - current) - (reference - current) - 1,
    unbiased, never negative and of lower variance (Schulman 2020, "Approximating KL divergence"). Samples of another
    policy have to be weighted by the ratio to it (DeepSeek-V3.2, arXiv 2512.02556).
    """
    delta = (reference - current).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return -delta if kind == "k1" else torch.expm1(delta) - delta


def kl_penalty(current: PerToken, reference: PerToken, kind: KlEstimator = "k3") -> PerToken:
    """Return `kl_estimate` as a penalty to be minimised.

    The gradient of k1 itself has nothing to do with the reference, and its expectation is 0. Here k1 has the gradient
    of half its square, whose expectation is that of the KL divergence (arXiv 2510.01555).
    """
    estimate = kl_estimate(current, reference, kind)
    if kind == "k3":
        return estimate
    pull = estimate.square() / 2
    return estimate.detach() + pull - pull.detach()

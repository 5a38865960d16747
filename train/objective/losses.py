"""Policy losses, token by token, and the KL penalty.

All losses take and return [B, T] tensors, for B completions of up to T output tokens:

    current, old   log-probabilities (nats) of the policy in training, and of the policy before the step
    advantages     [B] or [B, T]
    mask           1 on sampled tokens, 0 on padding; only GSPO uses it
    rho            exp(current - old)

They return a `TokenLoss`, which is not summed. On padding a loss may have any value, because the token weights
(`weights.token_weights`) are 0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from truegold.train.config.objective import KlEstimator
from truegold.train.objective import Advantages, PerToken, TokenMask

MAX_LOG_RATIO = 20.0
"""Log-ratios are cut at this value before exp. All losses clip the ratio exp(20) = 5e8, and an infinite ratio times 0
would be NaN."""
PPO_BOUNDS, GSPO_BOUNDS = (0.2, 0.28), (3e-4, 4e-4)
"""The default bounds (low, high) of `objective.clip`: the ratio is clipped to 1 - low and 1 + high."""
_LOWER, _UPPER = GSPO_BOUNDS


@dataclass(frozen=True)
class TokenLoss:
    """The loss of each token, and the tokens whose ratio was out of bounds. On these tokens PPO and GSPO have no
    gradient, CISPO and TOPR have a gradient with bounded weight."""

    loss: PerToken
    """The loss of each token, with gradient, [B, T]."""
    clipped_low: TokenMask
    """True for tokens whose ratio was too small, [B, T]."""
    clipped_high: TokenMask
    """True for tokens whose ratio was too large, [B, T]."""
    ratio: PerToken
    """The ratio exp(current - old), or the sequence ratio of GSPO, without gradient, [B, T]."""


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

    PPO, arXiv 1707.06347, eq. 7, with clip-higher as in DAPO (arXiv 2503.14476, eq. 8). With dual > 1 the loss is at
    most -dual A where A < 0 (dual clip, arXiv 1912.09729).
    """
    return _clipped(_ratio(current, old), advantages, low, high, dual)


def gspo(
    current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, low: float = _LOWER, high: float = _UPPER
) -> TokenLoss:
    """Return PPO's clipped loss with the sequence ratio s = exp(mean over tokens of current - old) at every token.

    GSPO, arXiv 2507.18071, section 4.1. With the aggregation "sequence" this is the paper's objective.
    """
    ratio = torch.exp(_mean_log_ratio(current, old, mask)).expand_as(current)
    return _clipped(ratio, advantages, low, high)


def gspo_token(
    current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, low: float = _LOWER, high: float = _UPPER
) -> TokenLoss:
    """Return GSPO's loss with a separate gradient for each token, by the ratio s_t = sg[s] exp(current - sg[current]).

    Use it if advantages differ between the tokens of a sequence (arXiv 2507.18071, section 4.3). With one advantage per
    sequence, its gradient is equal to GSPO's. sg stops the gradient.
    """
    sequence = torch.exp(_mean_log_ratio(current, old, mask)).detach()
    return _clipped(sequence * torch.exp(current - current.detach()), advantages, low, high)


def cispo(current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken, max_rho: float = 5.0) -> TokenLoss:
    """Return -sg[min(rho, max_rho)] A log p: every token keeps its gradient, with a bounded weight. sg: no gradient.

    CISPO, MiniMax-M1, arXiv 2506.13585. max_rho is the largest ratio, not its distance from 1. The default of 5
    comes from ScaleRL (arXiv 2510.13786).
    """
    ratio = _ratio(current, old).detach()
    over = ratio > max_rho
    loss = -ratio.clamp(max=max_rho) * _per_token(advantages, current) * current
    return TokenLoss(loss, torch.zeros_like(over), over, ratio)


def topr(current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken) -> TokenLoss:
    """Return -A log p where A > 0, and -sg[clip(rho, 0, 1)] A log p where A < 0.

    sg stops the gradient. Tokens of wrong completions are pushed down less, the less likely they have already become.
    Tapered off-policy REINFORCE, arXiv 2503.14286, with the ratio of each token as in ROLL; the paper uses the ratio of
    the whole completion. At the first step on a batch rho is 1, and the loss is plain REINFORCE.
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
"""The losses by their names in `objective.loss`."""


def _ratio(current: PerToken, old: PerToken) -> PerToken:
    return torch.exp((current - old).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO))


def _mean_log_ratio(current: PerToken, old: PerToken, mask: PerToken) -> Tensor:
    """Return the mean log-ratio of each sequence's tokens, [B, 1]; 0 for a sequence without tokens."""
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
    """Return an estimate of KL(current || reference) at each token, [B, T], from tokens that `current` sampled.

        k1   current - reference: unbiased, may be negative
        k3   exp(reference - current) - (reference - current) - 1: unbiased, never negative, lower variance

    Schulman 2020, "Approximating KL divergence". For tokens that another policy sampled, multiply the estimate by the
    ratio of `current` to that policy (DeepSeek-V3.2, arXiv 2512.02556).
    """
    delta = (reference - current).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return -delta if kind == "k1" else torch.expm1(delta) - delta


def kl_penalty(current: PerToken, reference: PerToken, kind: KlEstimator = "k3") -> PerToken:
    """Return `kl_estimate` with a gradient that minimises the KL divergence, [B, T].

    The gradient of k1 does not depend on the reference, and its expectation is 0. So k1 gets the gradient of k1^2 / 2,
    whose expectation is the gradient of the KL divergence (arXiv 2510.01555).
    """
    estimate = kl_estimate(current, reference, kind)
    if kind == "k3":
        return estimate
    pull = estimate.square() / 2
    return estimate.detach() + pull - pull.detach()

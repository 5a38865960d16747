"""The RL objective as small pure functions on tensors: advantages, losses, weights and masks.

Shapes: B completions of up to T output tokens, right-padded; `mask` is 1 on sampled tokens and 0 on padding. Three
policies are kept apart, each a [B, T] tensor of natural-log probabilities of the sampled tokens:

    rollout  the engine that sampled, at the weights it sampled with
    old      the training engine, at the same weights, before the first update on this batch
    current  the training engine now; the only one that carries gradients

A step's loss is

    (token loss * engine weights * masks * token weights).sum()

with the token loss of `losses` and everything else of `weights` (never differentiated). The denominators of the token
weights are those of the whole batch over all ranks, before any mask.
"""

from truegold.train.objective.advantages import ADVANTAGES, PASS_AT_K, advantages, walder_rewards
from truegold.train.objective.losses import (
    LOSSES,
    TokenLoss,
    cispo,
    gspo,
    gspo_token,
    kl_estimate,
    kl_penalty,
    ppo_clip,
    topr,
)
from truegold.train.objective.weights import (
    AGGREGATIONS,
    CAUSES,
    CORRECTIONS,
    DISTILLATION_WEIGHTS,
    Totals,
    aggregate,
    choose_covariant,
    clip_causes,
    covariances,
    distillation_weights,
    effective_size,
    engine_weights,
    entropy_threshold,
    interpolated_proximal,
    length_outliers,
    off_policy_sequence_mask,
    positive_weight,
    self_distillation,
    shaped_imitation,
    token_weights,
    top_entropy_mask,
    weigh,
)

__all__ = [
    "ADVANTAGES",
    "AGGREGATIONS",
    "CAUSES",
    "CORRECTIONS",
    "DISTILLATION_WEIGHTS",
    "LOSSES",
    "PASS_AT_K",
    "TokenLoss",
    "Totals",
    "advantages",
    "aggregate",
    "choose_covariant",
    "cispo",
    "clip_causes",
    "covariances",
    "distillation_weights",
    "effective_size",
    "engine_weights",
    "entropy_threshold",
    "gspo",
    "gspo_token",
    "interpolated_proximal",
    "kl_estimate",
    "kl_penalty",
    "length_outliers",
    "off_policy_sequence_mask",
    "positive_weight",
    "ppo_clip",
    "self_distillation",
    "shaped_imitation",
    "token_weights",
    "top_entropy_mask",
    "topr",
    "walder_rewards",
    "weigh",
]

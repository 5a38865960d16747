"""Weights and masks that token losses are multiplied by. A mask is a weight of 0 or 1. Weights have no gradient.

    function               corrects for, or does                                   a weight for each
    engine_weights         differences between the sampling and training engine    token or completion
    *_mask, *_outliers     leave tokens or completions out of the loss             token or completion
    positive_weight        a larger weight of positive advantages                  batch
    token_weights          the average of token losses                             token
    distillation_weights   completions that were sampled with a longer prompt      token or completion

`clip_causes` and `mismatch` measure the probability ratios between the engines and policies.

Shapes: B completions of up to T output tokens, right-padded; `mask` is 1 on sampled tokens and 0 on padding. On padding
a weight has any value, except that `token_weights` is 0 there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truegold.train.config.objective import Aggregation, Correction, CovarianceConfig, DistillationWeight
from truegold.train.objective import AllTokens, CompletionMask, PerCompletion, PerToken, TokenMask
from truegold.train.objective.losses import PPO_BOUNDS

MAX_LOG = 80.0
"""Log-ratios are cut at this value before exp, so that exp does not overflow float32."""
FEW_LENGTHS = 8
"""The smallest number of completions in which `length_outliers` looks for outliers."""


@torch.no_grad()
def engine_weights(
    old: PerToken, rollout: PerToken, mask: PerToken, kind: Correction, high: float, low: float = 0.0
) -> PerToken:
    """Return weights [B, T] that correct for differences between the sampling and the training engine.

    They are made of the ratio kappa = exp(old - rollout) of each token. P is its product over a sequence, G its
    geometric mean. A range is low to high.

        tis             min(kappa, high)                     token truncated importance sampling, Yao et al. 2025
        icepop          kappa if it is in the range, else 0  IcePop, arXiv 2510.18855
        sequence_tis    min(P, high)                         truncated importance sampling of whole sequences
        sequence_mask   P if it is in the range, else 0      masked importance sampling
        geometric_mask  1 if G is in the range, else 0

    The weights multiply the loss (decoupled PPO, arXiv 2110.00641). For long sequences P leaves any range by noise
    alone; G does not depend on the length. If `old` is a copy of `rollout`, all weights are 1.
    """
    log_kappa = torch.where(mask > 0, old - rollout, 0)
    if kind in ("tis", "icepop"):
        weight = _bounded_exp(log_kappa)
    elif kind in ("sequence_tis", "sequence_mask"):
        weight = _bounded_exp(log_kappa.sum(1, keepdim=True)).expand_as(old)
    else:
        weight = _bounded_exp(log_kappa.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)).expand_as(old)
    if kind in ("tis", "sequence_tis"):
        return weight.clamp(max=high)
    inside = (weight >= low) & (weight <= high)
    return inside.to(old) if kind == "geometric_mask" else torch.where(inside, weight, 0)


def _bounded_exp(values: Tensor) -> Tensor:
    return torch.exp(values.clamp(-MAX_LOG, MAX_LOG))


@torch.no_grad()
def interpolated_proximal(current: PerToken, rollout: PerToken, staleness: PerCompletion | PerToken) -> PerToken:
    """Return an approximation of the log-probabilities `old` [B, T] that needs no forward pass.

    A-3PO, arXiv 2512.06547: a rollout + (1 - a) current, where a is 1/d for tokens sampled by weights d versions old,
    and 0 for fresh tokens. staleness: d for each completion [B], or for each token [B, T] if a completion has tokens of
    several versions.
    """
    share = torch.where(staleness > 0, 1.0 / staleness.clamp(min=1.0), 0.0)
    if share.dim() == 1:
        share = share.unsqueeze(1)
    return share * rollout + (1.0 - share) * current


@torch.no_grad()
def off_policy_sequence_mask(
    current: PerToken, rollout: PerToken, advantages: PerCompletion, mask: PerToken, delta: float
) -> PerCompletion:
    """Return a mask [B] that is 0 for wrong completions that have already become much less likely, else 1.

    These are the completions with A < 0 and mean(rollout - current) > delta, in nats per token. DeepSeek-V3.2, arXiv
    2512.02556, eq. 9.
    """
    drift = torch.where(mask > 0, rollout - current, 0).sum(1) / mask.sum(1).clamp(min=1)
    return (~((advantages < 0) & (drift > delta))).to(mask)


def entropy_threshold(entropies: AllTokens, quantile: float) -> float:
    """Return the lowest entropy (nats) among the share `quantile` of tokens with the highest entropies.

    entropies: of all sampled tokens of the batch, over all ranks. Interpolates linearly, like `numpy.quantile`. Returns
    -inf if there are no tokens.
    """
    if entropies.numel() == 0:
        return float("-inf")
    return float(np.quantile(entropies.detach().double().cpu().numpy(), 1.0 - quantile))


@torch.no_grad()
def top_entropy_mask(entropy: PerToken, mask: PerToken, threshold: float) -> PerToken:
    """Return a mask [B, T] of the sampled tokens whose entropy (nats) is at least `threshold`.

    Training on the fifth of tokens with the highest entropy, where a derivation branches, is enough (arXiv 2506.01939).
    """
    return ((entropy >= threshold) & (mask > 0)).to(mask)


def covariances(logprobs: AllTokens, advantages: AllTokens) -> AllTokens:
    """Return each token's part in the covariance of log-probability and advantage: (log p - mean log p)(A - mean A).

    arXiv 2505.22617, eq. 9. Pass the tokens of the whole batch, over all ranks.
    """
    return (logprobs - logprobs.mean()) * (advantages - advantages.mean())


def choose_covariant(values: AllTokens, config: CovarianceConfig, seed: int) -> AllTokens:
    """Return a mask [tokens] of the tokens that `objective.covariance` treats, from the covariances of all tokens.

    kl: the share with the highest covariances. clip: a random sample, by `seed`, of the tokens between low and high.
    The same input gives the same mask on every rank.
    """
    count = max(1, int(config.share * len(values)))
    if config.kind == "kl":
        candidates = values.topk(min(count, len(values))).indices
    else:
        inside = ((values > config.low) & (values < config.high)).nonzero().flatten()
        order = torch.randperm(len(inside), generator=torch.Generator().manual_seed(seed))
        candidates = inside[order[:count]]
    return torch.zeros_like(values).index_fill_(0, candidates, 1.0)


def length_outliers(lengths: PerCompletion, fence: float = 3.0) -> CompletionMask:
    """Return a mask [B] of the completions that are far longer than the other completions of the batch.

    Tukey's outer fence on log lengths: outliers are above the upper quartile by more than `fence` times the distance
    between the quartiles. Among fewer than `FEW_LENGTHS` completions there are no outliers.
    """
    if len(lengths) < FEW_LENGTHS:
        return torch.zeros_like(lengths, dtype=torch.bool)
    logs = lengths.clamp(min=1).double().log()
    lower, upper = torch.quantile(logs, 0.25), torch.quantile(logs, 0.75)
    return logs > upper + fence * (upper - lower).clamp(min=0.1)


def positive_weight(advantages: PerCompletion, lengths: PerCompletion, floor: float, max_weight: float) -> float:
    """Return the smallest weight w in [1, max_weight] of positive advantages for which

        w sum(A_i T_i, A_i > 0)  >=  floor sum(|A_i| T_i, A_i < 0)

    lengths: T, the output tokens of each completion [B], or ones to count completions. Returns `max_weight` if no
    smaller weight is enough, and 1 if there are only positive or only negative advantages.

    The advantages of a group sum to 0. But in a mean over tokens, long completions count more. Wrong completions are
    usually longer, so that without the weight most of the batch's gradient lowers probabilities.
    """
    mass = advantages * lengths
    positive, negative = float(mass.clamp(min=0).sum()), float(-mass.clamp(max=0).sum())
    if positive <= 0.0 or negative <= 0.0:
        return 1.0
    return min(max(1.0, floor * negative / positive), max_weight)


def effective_size(masses: PerCompletion) -> float:
    """Return the effective number of completions with these weights m, (sum |m|)^2 / sum m^2 (Kish 1965).

    It is the number of completions if all weights are equal, and near 1 if one weight is far above the others. Returns
    0 if all are 0.
    """
    absolute = masses.abs()
    squares = float((absolute**2).sum())
    return float(absolute.sum()) ** 2 / squares if squares else 0.0


def weigh(advantages: PerCompletion, positive: float = 1.0, negative: float = 1.0) -> PerCompletion:
    """Return the advantages, with positive ones multiplied by `positive` and negative ones by `negative`.

    arXiv 2506.01347.
    """
    return torch.where(advantages > 0, positive * advantages, negative * advantages)


@dataclass(frozen=True)
class Totals:
    """The counts of a whole batch, over all ranks and before any mask, by which token losses are divided."""

    tokens: float
    """Output tokens of the whole batch."""
    sequences: float
    """Completions with at least one token."""


def token_weights(
    mask: PerToken,
    kind: Aggregation,
    totals: Totals,
    constant: int | None = None,
    sequence_tokens: PerCompletion | None = None,
) -> PerToken:
    """Return the weights [B, T] whose weighted sum of token losses is their mean, 0 on padding.

        token      1 / N, N the number of tokens of the batch             DAPO, arXiv 2503.14476, eq. 8
        sequence   1 / (B * tokens of its sequence)                       GRPO, arXiv 2402.03300, eq. 3
        constant   1 / (B * L), L a constant such as the longest output   Dr. GRPO, arXiv 2503.20783, section 3.2

    `totals` has N and B of the whole batch. So a token has the same weight if the batch is cut into micro-batches or
    spread over ranks, and masked tokens do not raise the weights of the remaining tokens.

    constant: L, in tokens; raises ValueError if it is missing for the kind "constant". sequence_tokens: the
    number of tokens of each row's whole sequence, [B]. By default each row is a whole sequence.
    """
    if kind == "token":
        return mask / max(totals.tokens, 1.0)
    if kind == "sequence":
        tokens = mask.sum(1) if sequence_tokens is None else sequence_tokens.to(mask)
        return mask / (tokens.unsqueeze(1).clamp(min=1) * max(totals.sequences, 1.0))
    if not constant:
        raise ValueError("the aggregation `constant` needs `constant`, a length in tokens such as the longest output")
    return mask / (constant * max(totals.sequences, 1.0))


# Distillation: completions y were sampled from a prompt x with an added context c, y ~ p(. | x, c), and are trained on
# after the bare prompt x. The functions take log-probabilities of the same tokens, [B, T]:
#
#     conditioned   log p(y | x, c), from the sampling engine at sampling
#     bare          log p(y | x), from the training engine; it is also the old policy of the clip
#     current       log p(y | x), from the policy in training
#
# If `conditioned` were the old policy of the clip, every positive would silently get a smaller weight.


@torch.no_grad()
def distillation_weights(
    bare: PerToken, conditioned: PerToken, mask: PerToken, kind: DistillationWeight, cap: float = 1.0
) -> Tensor:
    """Return importance weights p(y | x) / p(y | x, c), at most `cap`: [B, T] for token and prefix, else [B, 1].

    token      ratio of each token; biased, lowers the weight of tokens that are only likely with the context
    prefix     product of the ratios up to each token; per-decision importance sampling (Precup 2000)
    sequence   product of the ratios of all tokens; unbiased below the cap, near 0 for completions that needed
               the context
    geometric  geometric mean of the ratios of all tokens
    none       1
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


def shaped_imitation(current: PerToken, advantages: PerCompletion, gamma: float = 0.1) -> PerToken:
    """Return the loss -A p / (p + gamma) of each token, [B, T], with p = exp(current).

    LUFFY's policy shaping, arXiv 2504.14945, with the behaviour policy's probability taken as 1. Compared with -A p, it
    has a larger gradient on unlikely tokens. It is the loss of distilled positives with `distilled.weight: shaped`.
    """
    p = current.exp()
    return -advantages.unsqueeze(1) * p / (p + gamma)


def self_distillation(current: PerToken, teacher: PerToken, old: PerToken, max_gap: float) -> PerToken:
    """Return the loss r sg[log p(y | x) - log p(y | x, c)] log p(y | x) of each token, [B, T]. sg stops the gradient.

    It is the loss of SDPO, arXiv 2601.20802, with the sampled token in place of the sum over the vocabulary. The
    expectation of its gradient is the gradient of KL(p(. | x) || sg p(. | x, c)).

    teacher: log p(y | x, c), the policy's own log-probabilities with the context, NaN on tokens without a teacher. The
    difference is cut at `max_gap` nats. r = min(exp(current - old), 2) corrects for tokens of an earlier policy.
    """
    detached = current.detach()
    gap = torch.where(teacher.isnan(), 0.0, detached - teacher).clamp(-max_gap, max_gap)
    return torch.exp((detached - old).clamp(max=20.0)).clamp(max=2.0) * gap * current


CAUSES = ("engine", "staleness", "update")
"""The causes in `clip_causes`."""


@torch.no_grad()
def clip_causes(
    current: PerToken,
    old: PerToken,
    rollout: PerToken,
    advantages: PerCompletion,
    mask: PerToken,
    is_stale: CompletionMask,
    bounds: tuple[float, float],
    engine_difference: float = 0.0,
    of_sequence: bool = False,
) -> dict[str, Tensor]:
    """Return the number of clipped tokens (`clip_share`), and the part of it due to each cause (`clip_engine`, ...).

        log current/rollout  =  engine + staleness + update

        engine      old - rollout for fresh tokens, sampled by the weights in training; for stale tokens, old - rollout
                    cut at `engine_difference`
        staleness   the remainder of old - rollout for stale tokens, sampled by older weights
        update      current - old: the optimizer steps on this batch so far

    A token is clipped if the ratio current/rollout is beyond the bound for the sign of its advantage. It is divided
    among the causes that moved the ratio towards this bound, in proportion to their log-ratios, so that the causes add
    up to `clip_share`. If engine and staleness are 0, `clip_share` counts the same tokens as PPO's clip.

    bounds: the clip's (low, high), as distances from 1. engine_difference: the usual |old - rollout| of the two engines
    at the same weights, in nats. of_sequence: use the mean log-ratio of each sequence, as GSPO does.
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


@dataclass(frozen=True)
class Mismatch:
    """The difference between two engines' log-probabilities of the same tokens, delta = trainer - sampler."""

    mean_abs: float
    """The mean of |delta|, in nats."""
    tokens: int
    """The number of compared tokens."""


UNCLIPPED = (1 - PPO_BOUNDS[0], 1 + PPO_BOUNDS[1])
"""The range of ratios that PPO's default clip does not change. A token whose exp(delta) is outside of this range would
be clipped before any update."""


def mismatch_sums(sampler: PerToken, trainer: PerToken, mask: PerToken, is_fresh: TokenMask) -> dict[str, Tensor]:
    """Return sums over the masked tokens for a step's metrics, with delta = trainer - sampler in nats.

    mismatch_abs       |delta|
    mismatch_fresh     |delta| of fresh tokens, which the weights in training sampled
    fresh_tokens       the number of fresh tokens
    mismatch_k3        the k3 estimate of the KL divergence
    mismatch_outside   the number of tokens whose ratio exp(delta) is outside of `UNCLIPPED`
    """
    delta = trainer - sampler
    ratio = delta.exp()
    return {
        "mismatch_abs": (delta.abs() * mask).sum(),
        "mismatch_fresh": (delta.abs() * mask * is_fresh).sum(),
        "fresh_tokens": (mask * is_fresh).sum(),
        "mismatch_k3": ((torch.expm1(delta) - delta) * mask).sum(),
        "mismatch_outside": (((ratio < UNCLIPPED[0]) | (ratio > UNCLIPPED[1])) * mask).sum(),
    }


def mismatch(sampler: PerToken, trainer: PerToken, mask: PerToken) -> Mismatch:
    """Return the difference between the log-probabilities of the sampling and the training engine, over the mask."""
    delta = (trainer.double() - sampler.double())[mask.bool()]
    return Mismatch(float(delta.abs().mean()) if delta.numel() else 0.0, delta.numel())

"""Weights and masks that token losses are multiplied by. A mask is a weight of 0 or 1; none is ever differentiated.

    engine_weights         the sampling and the training engine disagree     of a token or a completion
    *_mask, *_outliers     what is left out of the loss                      of a token or a completion
    positive_weight        right completions weigh more than wrong ones      of an advantage
    token_weights          how token losses become one number                of a token
    distillation_weights   a completion was sampled with more in its prompt  of a token or a completion

`clip_causes` and `mismatch` measure the ratios that the weights are made of.

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
"""Log-ratios are cut here before exp, since exp of more is beyond float32; every range ends far below."""
FEW_LENGTHS = 8
"""Among fewer completions than these no length is called out of the ordinary."""


@torch.no_grad()
def engine_weights(
    old: PerToken, rollout: PerToken, mask: PerToken, kind: Correction, high: float, low: float = 0.0
) -> PerToken:
    """Return weights for what the sampling and the training engine disagree on, kappa = exp(old - rollout).

        tis             min(kappa, high)                          token truncated importance sampling, Yao et al. 2025
        icepop          kappa where low <= kappa <= high, else 0  IcePop, arXiv 2510.18855
        sequence_tis    min(product of kappa, high)               as tis, of whole sequences
        sequence_mask   product of kappa in the range, else 0     masked importance sampling
        geometric_mask  1 where exp(mean log kappa) is in the range, else 0; the same at any length

    They multiply the loss (decoupled PPO, arXiv 2110.00641). A product over a long sequence leaves any range by noise
    alone; the geometric mean does not. Where the old policy is the engine's own record, kappa is 1.
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
    """Return log-probabilities that stand for those of the policy before the update, without a forward pass:
    a rollout + (1 - a) current with a = 1/d for completions that are d versions old, and 0 for fresh ones.

    A-3PO, arXiv 2512.06547. staleness: of completions, or of their tokens where those are of several versions.
    """
    share = torch.where(staleness > 0, 1.0 / staleness.clamp(min=1.0), 0.0)
    if share.dim() == 1:
        share = share.unsqueeze(1)
    return share * rollout + (1.0 - share) * current


@torch.no_grad()
def off_policy_sequence_mask(
    current: PerToken, rollout: PerToken, advantages: PerCompletion, mask: PerToken, delta: float
) -> PerCompletion:
    """Return a mask without the wrong completions that the policy has moved away from: A < 0 and mean(rollout -
    current) > delta.

    DeepSeek-V3.2, arXiv 2512.02556, eq. 9.
    """
    drift = torch.where(mask > 0, rollout - current, 0).sum(1) / mask.sum(1).clamp(min=1)
    return (~((advantages < 0) & (drift > delta))).to(mask)


def entropy_threshold(entropies: AllTokens, quantile: float) -> float:
    """Return the entropy (nats) from which a token belongs to the highest `quantile` of the batch.

    entropies: of all sampled tokens of the batch, over all ranks. Linear interpolation, as numpy does it; -inf if there
    are no tokens.
    """
    if entropies.numel() == 0:
        return float("-inf")
    return float(np.quantile(entropies.detach().double().cpu().numpy(), 1.0 - quantile))


@torch.no_grad()
def top_entropy_mask(entropy: PerToken, mask: PerToken, threshold: float) -> PerToken:
    """Return a mask of the sampled tokens of at least that entropy.

    The forks of a derivation, a fifth of its tokens, carry the gain (arXiv 2506.01939).
    """
    return ((entropy >= threshold) & (mask > 0)).to(mask)


def covariances(logprobs: AllTokens, advantages: AllTokens) -> AllTokens:
    """Return how far each token makes log-probability and advantage rise together:
    (log p - mean log p)(A - mean A), arXiv 2505.22617, eq. 9. All are of the whole batch."""
    return (logprobs - logprobs.mean()) * (advantages - advantages.mean())


def choose_covariant(values: AllTokens, config: CovarianceConfig, seed: int) -> AllTokens:
    """Return a mask of the tokens that `config` means, by their covariances; the same on every rank."""
    count = max(1, int(config.share * len(values)))
    if config.kind == "kl":
        candidates = values.topk(min(count, len(values))).indices
    else:
        inside = ((values > config.low) & (values < config.high)).nonzero().flatten()
        order = torch.randperm(len(inside), generator=torch.Generator().manual_seed(seed))
        candidates = inside[order[:count]]
    return torch.zeros_like(values).index_fill_(0, candidates, 1.0)


def length_outliers(lengths: PerCompletion, fence: float = 3.0) -> CompletionMask:
    """Return a mask of the completions far longer than the batch's others, by Tukey's outer fence on log lengths:
    more than `fence` times the distance between the quartiles above the upper one. Among fewer than `FEW_LENGTHS`
    there are none."""
    if len(lengths) < FEW_LENGTHS:
        return torch.zeros_like(lengths, dtype=torch.bool)
    logs = lengths.clamp(min=1).double().log()
    lower, upper = torch.quantile(logs, 0.25), torch.quantile(logs, 0.75)
    return logs > upper + fence * (upper - lower).clamp(min=0.1)


def positive_weight(advantages: PerCompletion, lengths: PerCompletion, floor: float, max_weight: float) -> float:
    """Return the factor in [1, max_weight] for positive advantages that lifts the positive side to `floor` times the
    negative one:

        w sum(A_i T_i, A_i > 0)  >=  floor sum(|A_i| T_i, A_i < 0)

    Under a token mean the advantages of a group sum to 0, and its losses do not: wrong answers are longer, so that the
    batch mostly pushes down. lengths: output tokens, or ones to go by completions. 1 where one of
    the sides is empty.
    """
    mass = advantages * lengths
    positive, negative = float(mass.clamp(min=0).sum()), float(-mass.clamp(max=0).sum())
    if positive <= 0.0 or negative <= 0.0:
        return 1.0
    return min(max(1.0, floor * negative / positive), max_weight)


def effective_size(masses: PerCompletion) -> float:
    """Return how many equally heavy completions would vary as much as these (Kish 1965): (sum |m|)^2 / sum m^2."""
    absolute = masses.abs()
    squares = float((absolute**2).sum())
    return float(absolute.sum()) ** 2 / squares if squares else 0.0


def weigh(advantages: PerCompletion, positive: float = 1.0, negative: float = 1.0) -> PerCompletion:
    """Multiply advantages by one factor where they are positive, by another where they are negative (arXiv
    2506.01347)."""
    return torch.where(advantages > 0, positive * advantages, negative * advantages)


@dataclass(frozen=True)
class Totals:
    """The sizes that token weights are relative to: those of the whole batch over all ranks, before any mask."""

    tokens: float
    """Output tokens of the whole batch."""
    sequences: float
    """Completions that have any token."""


def token_weights(
    mask: PerToken,
    kind: Aggregation,
    totals: Totals,
    constant: int | None = None,
    sequence_tokens: PerCompletion | None = None,
) -> PerToken:
    """Return what each token's loss is multiplied by before all are added up, 0 on padding.

        token      1 / N, N the number of tokens of the batch             DAPO, arXiv 2503.14476, eq. 8
        sequence   1 / (B * tokens of its sequence)                       GRPO, arXiv 2402.03300, eq. 3
        constant   1 / (B * L), L a constant such as the longest output   Dr. GRPO, arXiv 2503.20783, section 3.2

    A batch that is cut into micro-batches and spread over ranks gives each token the same weight as in one piece. The
    totals are counted before any mask of corrections, so that masking does not raise what is left. constant: L, in
    tokens, for the kind "constant". Raises ValueError if it is missing. sequence_tokens: the tokens of the sequence
    that each row is a part of; its own where left out.
    """
    if kind == "token":
        return mask / max(totals.tokens, 1.0)
    if kind == "sequence":
        tokens = mask.sum(1) if sequence_tokens is None else sequence_tokens.to(mask)
        return mask / (tokens.unsqueeze(1).clamp(min=1) * max(totals.sequences, 1.0))
    if not constant:
        raise ValueError("the aggregation `constant` needs its length")
    return mask / (constant * max(totals.sequences, 1.0))


# Training on the bare prompt x what was sampled with more in the context, y ~ p(. | x, c). Three log-probabilities of
# the same tokens, [B, T]: conditioned = log p(y | x, c), the engine's at sampling; bare = log p(y | x), the training
# engine's on the bare prompt, which is the old policy of the clip; and current. Taking `conditioned` as the old policy
# instead shrinks every positive without a word. `self_distillation` needs no positives: the policy's own samples from
# the bare prompt are judged by itself with more in the context.


@torch.no_grad()
def distillation_weights(
    bare: PerToken, conditioned: PerToken, mask: PerToken, kind: DistillationWeight, cap: float = 1.0
) -> Tensor:
    """Return importance weights p(y | x) / p(y | x, c), at most `cap`, of each token for "token" and "prefix", else of
    each completion.

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


def shaped_imitation(current: PerToken, advantages: PerCompletion, gamma: float = 0.1) -> PerToken:
    """Return -A p / (p + gamma) with p = exp(current).

    It is imitation that cares most for tokens the policy finds unlikely: LUFFY, arXiv 2504.14945, policy shaping, with
    the behaviour policy's probability taken as 1. `distilled.weight: shaped` chooses it, for distilled positives alone.
    """
    p = current.exp()
    return -advantages.unsqueeze(1) * p / (p + gamma)


def self_distillation(current: PerToken, teacher: PerToken, old: PerToken, max_gap: float) -> PerToken:
    """Return r sg[log p(y | x) - log p(y | x, c)] log p(y | x). In the mean over what is sampled at a position
    its gradient is that of the divergence KL(p(. | x) || sg p(. | x, c)) there.

    It is the loss of SDPO, arXiv 2601.20802, with the sampled token in place of the sum over the vocabulary. teacher:
    the same policy's log-probabilities with the context, NaN if there is none. r = min(exp(current - old), 2) weighs
    tokens that an earlier policy has sampled. The difference is cut at `max_gap` nats.
    """
    detached = current.detach()
    gap = torch.where(teacher.isnan(), 0.0, detached - teacher).clamp(-max_gap, max_gap)
    return torch.exp((detached - old).clamp(max=20.0)).clamp(max=2.0) * gap * current


CAUSES = ("engine", "staleness", "update")


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
    """Return the number of clipped tokens (`clip_share`) and how many of them each cause has (`clip_engine`, ...).

        log current/rollout  =  engine + staleness + update

        engine      old - rollout, where the weights that sampled are those that are trained: only the engines differ
        staleness   old - rollout, where the weights that sampled are older, less the engines' usual difference
        update      current - old: the steps taken on this batch so far

    A token is clipped where the whole ratio is beyond the bound that its advantage makes active. It is shared out among
    the causes that moved it that way, each by how far it did, so that the causes add up to the share of clipped tokens.
    With no difference between the engines and no staleness that share is what PPO's clip measures.

    bounds: the clip's low and high, as distances
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


@dataclass(frozen=True)
class Mismatch:
    """How far two engines' log-probabilities of the same tokens are apart: delta = trainer - sampler."""

    mean_abs: float
    """The mean of |delta|."""
    tokens: int
    """How many tokens were compared."""


UNCLIPPED = (1 - PPO_BOUNDS[0], 1 + PPO_BOUNDS[1])
"""The range of exp(delta) that PPO's clip leaves alone by default: a token outside of it would be clipped before any
update."""


def mismatch_sums(sampler: PerToken, trainer: PerToken, mask: PerToken, is_fresh: TokenMask) -> dict[str, Tensor]:
    """Return sums over the mask for a step's metrics: of |delta|, of the k3 estimate, and of the tokens whose ratio is
    outside of the clip range; and over the fresh tokens, sampled by the weights in training, of one and of |delta|."""
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
    """Compare log-probabilities of the engine that samples and of the one that trains over the mask."""
    delta = (trainer.double() - sampler.double())[mask.bool()]
    return Mismatch(float(delta.abs().mean()) if delta.numel() else 0.0, delta.numel())

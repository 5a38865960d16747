"""The RL objective as small pure functions on tensors: advantages, losses, weights and masks.

Shapes: B completions of up to T output tokens, right-padded. `mask` [B, T] is 1 on sampled tokens and 0 on padding.
The log-probabilities (nats) of the sampled tokens, [B, T], come from three policies:

    rollout  the sampling engine, with the weights that it sampled with
    old      the training engine, before the first update on this batch
    current  the training engine now; the only one with gradients

A step's loss is

    (token loss * engine weights * masks * token weights).sum()

The token loss is one of `LOSSES`. The other factors are weights without gradient; a mask is a weight of 0 or 1. Token
weights are divided by counts of the whole batch, over all ranks and before any mask. They are 0 on padding, where other
weights and losses may have any value.

    function               purpose                                                        one weight for each
    engine_weights         correct differences between the sampling and training engine   token or completion
    *_mask, *_outliers     leave tokens or completions out of the loss                    token or completion
    positive_weight        raise the weight of positive advantages                        batch
    token_weights          average the token losses                                       token
    distillation_weights   correct completions that were sampled with a longer prompt     token or completion

`clip_causes` and `mismatch` measure the probability ratios between the engines and policies.

A loss takes `current`, `old`, `advantages` ([B] or [B, T]) and `mask`, which only GSPO uses. It returns a `TokenLoss`
of [B, T] tensors, which is not summed. In formulas rho is exp(current - old).

A reward of NaN marks a completion that could not be judged. Its advantage is 0, and it does not count for the mean of
its group. Groups with fewer than two judged completions get 0, except with `reinforce_pp`, which compares with the
whole batch. "Batch" means all rewards that are passed; with several ranks, pass the gathered rewards of all ranks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import comb, sqrt

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from truegold.train.config.objective import Aggregation, Correction, CovarianceConfig, DistillationWeight, KlEstimator

PerToken = Float[Tensor, "batch seq"]
"""A number for each output token of a batch's completions, right-padded."""
TokenMask = Bool[Tensor, "batch seq"]
"""True for selected output tokens."""
PerCompletion = Float[Tensor, " batch"]
"""A number for each completion of a batch."""
Advantages = PerCompletion | PerToken
"""The advantages of completions, or of their tokens."""
CompletionMask = Bool[Tensor, " batch"]
"""True for selected completions."""
GroupIndex = Int[Tensor, " batch"]
"""The number of each completion's group. The completions of a group have the same number."""
PerGroup = Float[Tensor, " groups"]
"""A number for each group of a batch."""
AllTokens = Float[Tensor, " tokens"]
"""A number for each sampled token of a batch, without padding."""


PPO_BOUNDS, GSPO_BOUNDS = (0.2, 0.28), (3e-4, 4e-4)
"""The default bounds (low, high) of `objective.clip`: the ratio is clipped to 1 - low and 1 + high."""
_LOWER, _UPPER = GSPO_BOUNDS
UNCLIPPED = (1 - PPO_BOUNDS[0], 1 + PPO_BOUNDS[1])
"""The range of ratios that PPO's default clip leaves unchanged. A token whose ratio of trainer to sampler is outside of
this range is clipped even before the first update."""
MAX_LOG = 80.0
"""Log-ratios are cut at this value before exp, so that exp does not overflow float32."""
FEW_LENGTHS = 8
"""The smallest number of completions in which `length_outliers` looks for outliers."""


@torch.no_grad()
def engine_weights(
    old: PerToken, rollout: PerToken, mask: PerToken, kind: Correction, high: float, low: float = 0.0
) -> PerToken:
    """Return weights [B, T] that correct for differences between the sampling and the training engine.

    kappa = exp(old - rollout) is the ratio of a token, P the product of these ratios over a sequence, and G their
    geometric mean. The range is from `low` to `high`.

        tis             min(kappa, high)                     token truncated importance sampling, Yao et al. 2025
        icepop          kappa if it is in the range, else 0  IcePop, arXiv 2510.18855
        sequence_tis    min(P, high)                         truncated importance sampling of whole sequences
        sequence_mask   P if it is in the range, else 0      masked importance sampling
        geometric_mask  1 if G is in the range, else 0

    The weights multiply the loss (decoupled PPO, arXiv 2110.00641). In long sequences noise alone moves P out of any
    range; G does not depend on the length. If `old` is a copy of `rollout`, all weights are 1.
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

    A-3PO, arXiv 2512.06547: a rollout + (1 - a) current. a is 1/d for tokens from weights that are d versions old, and
    0 for fresh tokens. staleness: d for each completion [B]. If a completion has tokens of several versions, d for each
    token [B, T].
    """
    share = torch.where(staleness > 0, 1.0 / staleness.clamp(min=1.0), 0.0)
    if share.dim() == 1:
        share = share.unsqueeze(1)
    return share * rollout + (1.0 - share) * current


@torch.no_grad()
def off_policy_sequence_mask(
    current: PerToken, rollout: PerToken, advantages: PerCompletion, mask: PerToken, delta: float
) -> PerCompletion:
    """Return a mask [B] that leaves out wrong completions which have already become much less likely.

    The mask is 0 if A < 0 and mean(rollout - current) > delta, in nats per token, and else 1. DeepSeek-V3.2, arXiv
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

    Training on the 20 % of tokens with the highest entropy, where derivations branch, is enough (arXiv 2506.01939).
    """
    return ((entropy >= threshold) & (mask > 0)).to(mask)


def covariances(logprobs: AllTokens, advantages: AllTokens) -> AllTokens:
    """Return each token's part in the covariance of log-probability and advantage: (log p - mean log p)(A - mean A).

    arXiv 2505.22617, eq. 9. Pass the tokens of the whole batch, over all ranks.
    """
    return (logprobs - logprobs.mean()) * (advantages - advantages.mean())


def choose_covariant(values: AllTokens, config: CovarianceConfig, seed: int) -> AllTokens:
    """Return a mask [tokens] of the tokens that `objective.covariance` treats, from the covariances of all tokens.

    kl: the share `share` of tokens with the highest covariances. clip: the same number of random tokens (by `seed`),
    with covariances between `low` and `high`. The same input gives the same mask on every rank.
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

    The advantages of a group sum to 0. But in a mean over tokens, long completions count more, and wrong completions
    are usually longer. So without the weight most of the batch's gradient lowers probabilities.
    """
    mass = advantages * lengths
    positive, negative = float(mass.clamp(min=0).sum()), float(-mass.clamp(max=0).sum())
    if positive <= 0.0 or negative <= 0.0:
        return 1.0
    return min(max(1.0, floor * negative / positive), max_weight)


def effective_size(masses: PerCompletion) -> float:
    """Return the effective number of completions with these weights m, (sum |m|)^2 / sum m^2 (Kish 1965).

    This is the number of completions if all weights are equal. It is near 1 if one weight is far above the others, and
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
    """Return weights [B, T] that turn the sum of token losses into a mean. They are 0 on padding.

        kind       weight of a token                                      paper
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

        engine      fresh tokens (sampled by the weights in training): old - rollout
                    stale tokens (sampled by older weights): old - rollout, cut at `engine_difference`
        staleness   stale tokens: the remainder of old - rollout
        update      current - old: the optimizer steps on this batch so far

    A token is clipped if the ratio current/rollout is beyond the bound for the sign of its advantage. The causes that
    moved the ratio towards this bound share the token in proportion to their log-ratios, so that the causes add up to
    `clip_share`. If engine and staleness are 0, `clip_share` counts the same tokens as PPO's clip.

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


MAX_LOG_RATIO = 20.0
"""Log-ratios are cut at this value before exp, because an infinite ratio times 0 would be NaN."""


@dataclass(frozen=True)
class TokenLoss:
    """The loss of each token, and the tokens whose ratio was out of bounds.

    On tokens out of bounds, PPO and GSPO have no gradient. CISPO and TOPR have a gradient with bounded weight.
    """

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

    PPO, arXiv 1707.06347, eq. 7, with clip-higher as in DAPO (arXiv 2503.14476, eq. 8). Where A < 0, `dual` > 1 limits
    the loss to -dual A (dual clip, arXiv 1912.09729).
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
    """Return -sg[min(rho, max_rho)] A log p: every token keeps its gradient, with a bounded weight.

    sg stops the gradient. CISPO, MiniMax-M1, arXiv 2506.13585. max_rho is the largest ratio, not its distance from 1.
    The default of 5 comes from ScaleRL (arXiv 2510.13786).
    """
    ratio = _ratio(current, old).detach()
    over = ratio > max_rho
    loss = -ratio.clamp(max=max_rho) * _per_token(advantages, current) * current
    return TokenLoss(loss, torch.zeros_like(over), over, ratio)


def topr(current: PerToken, old: PerToken, advantages: Advantages, mask: PerToken) -> TokenLoss:
    """Return -A log p where A > 0, and -sg[clip(rho, 0, 1)] A log p where A < 0.

    sg stops the gradient. A token of a wrong completion that has become unlikely is pushed down less. Tapered
    off-policy REINFORCE, arXiv 2503.14286. The ratio is that of each token, as in ROLL; the paper uses the ratio of the
    whole completion. At the first step on a batch rho is 1, and the loss is plain REINFORCE.
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


STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards, as in TRL, so that advantages of nearly equal rewards stay small."""
WHITEN_EPSILON = 1e-8
"""Added to the standard deviation of the values that are whitened over the batch."""
CHEN_EPSILON = 1e-6
"""Added to the standard deviation of a subset's reward."""


class Groups:
    """Sums and means of rewards by group. A group has the completions of one prompt. Unjudged completions are
    skipped."""

    def __init__(self, rewards: PerCompletion, groups: GroupIndex, right: CompletionMask | None = None) -> None:
        """Group the rewards [B] of completions; NaN marks a completion that could not be judged.

        groups: the number of each completion's group, [B]. right: whether each completion is right, [B]; by default,
        whether its reward is above 1/2. Raises ValueError if the shapes differ.
        """
        if rewards.shape != groups.shape or rewards.dim() != 1:
            raise ValueError(f"rewards {tuple(rewards.shape)} and groups {tuple(groups.shape)} must both be [B]")
        self.judged: CompletionMask = ~rewards.isnan()
        self.rewards: PerCompletion = torch.where(self.judged, rewards, 0)
        """The rewards, 0 for unjudged completions."""
        self.right: CompletionMask = (self.rewards > 0.5 if right is None else right) & self.judged
        """Whether each completion was judged and is right."""
        names, index = torch.unique(groups, return_inverse=True)
        self.index: GroupIndex = index
        """The position of each completion's group among all groups."""
        self._count = len(names)
        self.judged_count: PerGroup = self.sum(torch.ones_like(self.rewards))
        """The number of judged completions of each group."""

    def sum(self, values: PerCompletion) -> PerGroup:
        """Return the sum of `values` over the judged completions of each group, [groups]."""
        return values.new_zeros(self._count).index_add(0, self.index, values * self.judged)

    def mean(self, values: PerCompletion) -> PerCompletion:
        """Return for each completion the mean of `values` over the judged completions of its group, [B]."""
        return (self.sum(values) / self.judged_count.clamp(min=1))[self.index]

    @property
    def size(self) -> PerCompletion:
        """The number of judged completions in the group of each completion, [B]."""
        return self.judged_count[self.index]

    @property
    def centred(self) -> PerCompletion:
        """The reward less the mean reward of the group, [B]."""
        return self.comparable(self.rewards - self.mean(self.rewards))

    def comparable(self, values: PerCompletion) -> PerCompletion:
        """Return `values` with 0 for unjudged completions and in groups with fewer than two judged completions."""
        return torch.where(self.judged & (self.size > 1), values, 0)


def grpo(groups: Groups) -> PerCompletion:
    """Return (r - mean) / (std + 1e-4) in the group, std unbiased. DeepSeekMath, arXiv 2402.03300, section 4.1.2."""
    centred = groups.centred
    variance = groups.mean(centred**2) * groups.size / (groups.size - 1).clamp(min=1)
    return groups.comparable(centred / (variance.sqrt() + STD_EPSILON))


def dr_grpo(groups: Groups) -> PerCompletion:
    """Return r - mean of the group. Dr. GRPO, arXiv 2503.20783, section 3.2."""
    return groups.centred


def rloo(groups: Groups) -> PerCompletion:
    """Return r - mean of the group's other completions. RLOO, arXiv 2402.14740."""
    return groups.centred * groups.size / (groups.size - 1).clamp(min=1)


def reinforce_pp(groups: Groups) -> PerCompletion:
    """Return r, whitened over the batch, so that groups of one completion work too.

    REINFORCE++, arXiv 2501.03262, without a KL term in the reward. In the mean and standard deviation all completions
    weigh the same, long or short.
    """
    return _whitened(groups.rewards, groups.judged)


def reinforce_pp_baseline(groups: Groups) -> PerCompletion:
    """Return r - mean of the group, whitened over the batch. REINFORCE++-baseline, arXiv 2501.03262."""
    return _whitened(groups.centred, groups.judged & (groups.size > 1))


def _whitened(values: PerCompletion, counted: CompletionMask) -> PerCompletion:
    chosen = values[counted]
    if not len(chosen):
        return torch.zeros_like(values)
    white = (values - chosen.mean()) / (chosen.std(correction=0) + WHITEN_EPSILON)
    return torch.where(counted, white, 0)


def batch_std(groups: Groups) -> PerCompletion:
    """Return (r - mean of the group) / (std of the batch + 1e-4), std unbiased. Lite PPO, arXiv 2508.08221."""
    judged = groups.rewards[groups.judged]
    spread = judged.std() if len(judged) > 1 else judged.new_zeros(())
    return groups.centred / (spread + STD_EPSILON)


def maxrl(groups: Groups) -> PerCompletion:
    """Return (r - mean of the group) / pass rate of the group, or 0 in groups without a right completion.

    MaxRL, arXiv 2602.02710. The paper divides by the mean reward, which is the pass rate if rewards are 0 or 1. The
    pass rate is used here because the mean of rewards with other values may be 0 or negative.
    """
    rate = groups.mean(groups.right.to(groups.rewards))
    return torch.where(rate > 0, groups.centred / torch.where(rate > 0, rate, 1), 0)


def _by_counts(function: Callable[[int, int, int], tuple[float, float]], groups: Groups, k: int) -> PerCompletion:
    """Return advantages from the counts of each group. k is lowered in groups with fewer than k judged completions."""
    right_counts = groups.sum(groups.right.to(groups.rewards)).int().tolist()
    pairs = [
        function(n, c, min(k, n)) if n > 1 else (0.0, 0.0)
        for n, c in zip(groups.judged_count.int().tolist(), right_counts, strict=True)
    ]
    table = torch.tensor(pairs, dtype=groups.rewards.dtype, device=groups.rewards.device)[groups.index]
    return torch.where(groups.judged, torch.where(groups.right, table[:, 0], table[:, 1]), 0)


# Pass@k is the probability that at least one of k completions is right. The functions below take the number n of a
# prompt's completions and the number c of right completions among them, with 1 <= k <= n. All except `rho` return two
# numbers: the value of each right completion, and of each wrong one.


def rho(n: int, c: int, k: int) -> float:
    """Return the share of the k-subsets of n completions with at least one of the c right completions; 0 if k is 0.

    rho(n, c, k) = 1 - C(n - c, k) / C(n, k): Chen et al. 2021, arXiv 2107.03374, eq. 1.
    """
    return 1.0 - comb(n - c, k) / comb(n, k)


def chen(n: int, c: int, k: int) -> tuple[float, float]:
    """Return the mean z-score of the rewards of the k-subsets that contain a given right completion; then for a wrong
    one.

    Pass@k training, arXiv 2508.10751. A subset's reward is 1 if it has a right completion. With R = rho(n, c, k) and
    s = sqrt(R (1 - R)) + 1e-6, a right completion gets (1 - R) / s and a wrong one (1 - R - C(n - c - 1, k - 1) /
    C(n - 1, k - 1)) / s. Both are 0 if all subsets have the same reward.
    """
    mean = rho(n, c, k)
    spread = sqrt(mean * (1.0 - mean)) + CHEN_EPSILON
    all_wrong = comb(n - c - 1, k - 1) / comb(n - 1, k - 1) if c < n else 0.0
    return (1.0 - mean) / spread, (1.0 - mean - all_wrong) / spread if c < n else 0.0


def walder_rewards(n: int, c: int, k: int) -> tuple[float, float]:
    """Return the rewards whose policy gradient, summed over the n completions, is an unbiased gradient of pass@k.

    Walder and Karkhanis, arXiv 2505.15201. A right completion gets k / n, a wrong one (k / n) rho(n - 1, c, k - 1).
    """
    return k / n, k / n * rho(n - 1, c, k - 1) if c < n else 0.0


def walder(n: int, c: int, k: int) -> tuple[float, float]:
    """Return n times the rewards of `walder_rewards`, less a baseline, for a loss that averages over completions.

    The baseline is the mean reward of the subsets of k - 1 other completions (arXiv 2505.15201, "leave one out minus
    one"). A right completion gets k (1 - rho(n - 1, c - 1, k - 1)), from the subsets in which it is the only right one,
    and a wrong completion gets 0. With k = 1 these subsets are empty, and the baseline is the mean of the other
    completions (RLOO).
    """
    if k == 1:
        return ((n - c) / (n - 1), -c / (n - 1)) if n > 1 else (0.0, 0.0)
    return k * (1.0 - rho(n - 1, c - 1, k - 1)) if c else 0.0, 0.0


ADVANTAGES: Mapping[str, Callable[[Groups], Tensor]] = {
    function.__name__: function
    for function in (grpo, dr_grpo, rloo, reinforce_pp, reinforce_pp_baseline, batch_std, maxrl)
}
"""The advantage functions by their names in `objective.advantage`."""
PASS_AT_K: Mapping[str, Callable[[int, int, int], tuple[float, float]]] = {
    "pass_at_k_chen": chen,
    "pass_at_k_walder": walder,
}
"""The pass@k functions by their names in `objective.advantage`."""


def advantages(
    kind: str, rewards: PerCompletion, groups: GroupIndex, k: int = 1, right: CompletionMask | None = None
) -> PerCompletion:
    """Return the advantages of `kind`, one of `ADVANTAGES` or `PASS_AT_K`.

    rewards, groups, right: [B], as in `Groups`. Only maxrl and pass@k use `right`, only pass@k uses `k`. Raises
    KeyError for an unknown kind, ValueError if the shapes differ.
    """
    compared = Groups(rewards, groups, right)
    return _by_counts(PASS_AT_K[kind], compared, k) if kind in PASS_AT_K else ADVANTAGES[kind](compared)

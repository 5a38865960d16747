"""The loss of one optimizer step: the policy loss of every sampled token, times corrections and masks, and what is
added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.model.segment import Batch
from truegold.train.objective import (
    LOSSES,
    TokenLoss,
    Totals,
    clip_causes,
    distillation_weights,
    engine_weights,
    interpolated_proximal,
    kl_penalty,
    off_policy_sequence_mask,
    self_distillation,
    shaped_imitation,
    token_weights,
    top_entropy_mask,
)
from truegold.train.rollout.mismatch import mismatch_sums

PPO_BOUNDS, GSPO_BOUNDS = (0.2, 0.28), (3e-4, 4e-4)
"""The bounds of `objective.clip` where they are left out. Losses without a clip are measured by PPO's."""


@dataclass(frozen=True)
class PreparedBatch:
    """What is known of a batch before its first step."""

    entropy_threshold: float
    """The entropy from which tokens are trained on."""
    old: Sequence[Tensor] | None
    """Each segment's log-probabilities under the old policy; None where the current one is the old one."""
    reference: Sequence[Tensor] | None
    """Each segment's log-probabilities under the reference, if there is one."""
    covariant: Sequence[Tensor] | None = None
    """Which tokens of each segment lower the entropy most, as 1 and 0; None where nothing is done with them."""
    teacher: Sequence[Tensor] | None = None
    """Each segment's log-probabilities under the policy as its own teacher, NaN for segments without one; None where
    there is no self-distillation."""

    def select(self, indices: Sequence[int]) -> PreparedBatch:
        """Return the same of some of the segments."""

        def select_rows(logprobs: Sequence[Tensor] | None) -> Sequence[Tensor] | None:
            return None if logprobs is None else [logprobs[index] for index in indices]

        return PreparedBatch(
            self.entropy_threshold,
            select_rows(self.old),
            select_rows(self.reference),
            select_rows(self.covariant),
            select_rows(self.teacher),
        )


@dataclass(frozen=True)
class StepLoss:
    """The loss of one optimizer step, called with each of its micro-batches (`engine.LossFunction`)."""

    config: ObjectiveConfig
    max_tokens: int
    totals: Totals
    advantages: Tensor
    """[N]: of the step's segments on this rank."""
    prepared: PreparedBatch
    staleness: Tensor | None = None
    """[N]: by how many versions the weights that sampled a segment are older than those in training; None for none."""
    engine_difference: float = 0.0
    """The usual difference of the two engines, as `Updater` has it."""
    is_distilled: Tensor | None = None
    """[N] bool: which segments were sampled with more in the context than their prompt; None for none."""
    episode_tokens: Tensor | None = None
    """[N]: the tokens of the episode that a segment is of, where episodes count as sequences."""
    token_staleness: Mapping[int, Tensor] = field(default_factory=dict)
    """`staleness` of each output token, [T], of those of the segments that several versions have sampled."""

    def __call__(
        self, current: Tensor, entropy: Tensor, batch: Batch, indices: list[int]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        config, mask, rollout = self.config, batch.mask, batch.rollout_logprobs
        advantages = self.advantages[indices].to(current)
        detached = current.detach()
        old = _pad_rows(self.prepared.old, indices, detached)
        if config.proximal == "interpolated":
            old = interpolated_proximal(detached, rollout, self._staleness_by_token(detached, indices))
        token = _policy_loss(config, current, old, advantages, mask)
        factors = mask
        for correction in config.corrections:
            factors = factors * engine_weights(
                old, rollout, mask, correction.kind, correction.high, correction.low or 0.0
            )
        if config.masks.off_policy is not None:
            kept = off_policy_sequence_mask(detached, rollout, advantages, mask, config.masks.off_policy)
            factors = factors * kept.unsqueeze(1)
        if config.masks.top_entropy is not None:
            factors = factors * top_entropy_mask(entropy, mask, self.prepared.entropy_threshold)
        token_loss = token.loss
        sampled = mask
        if self.is_distilled is not None and self.is_distilled[indices].any():
            joined = self.is_distilled[indices].to(mask).unsqueeze(1)
            sampled = mask * (1 - joined)
            token_loss, factors = self._distil(current, old, batch, advantages, joined, token_loss, factors)
        if self.prepared.covariant is not None:
            covariant = _pad_rows(self.prepared.covariant, indices, detached)
            if config.covariance.kind == "clip":
                factors = factors * (1.0 - covariant)
            else:
                token_loss = token_loss + config.covariance.weight * covariant * (current - old).abs()
        tokens = None if self.episode_tokens is None else self.episode_tokens[indices]
        weights = token_weights(mask, config.resolved_aggregation, self.totals, self.max_tokens, tokens)
        loss = (token_loss * factors * weights).sum()
        reported = {
            "clipped_low": (token.clipped_low * mask).sum(),
            "clipped_high": (token.clipped_high * mask).sum(),
            "ratio": (token.ratio * mask).sum(),
            "entropy": (entropy * mask).sum(),
            "kept_tokens": ((factors > 0) * sampled).sum(),
            "correction": (factors * sampled).sum(),
            "distilled_weight": (factors * (mask - sampled)).sum(),
            **mismatch_sums(rollout, old, sampled, self._staleness_by_token(detached, indices) <= 0),
            **self._clip_causes(detached, old, batch, sampled, advantages, indices),
        }
        if self.prepared.reference is not None:
            kl = kl_penalty(current, _pad_rows(self.prepared.reference, indices, detached), config.kl.estimator)
            loss = loss + config.kl.weight * (kl * weights).sum()
            reported["kl"] = (kl.detach() * mask).sum()
        if self.prepared.teacher is not None:
            teacher = _pad_rows(self.prepared.teacher, indices, detached)
            distillation = config.self_distillation
            loss = (
                loss
                + distillation.weight
                * (self_distillation(current, teacher, old, distillation.max_gap) * sampled * weights).sum()
            )
            reported["teacher_gap"] = ((detached - teacher).nan_to_num() * sampled).sum()
        return loss, reported

    def _distil(
        self,
        current: Tensor,
        old: Tensor,
        batch: Batch,
        advantages: Tensor,
        joined: Tensor,
        token_loss: Tensor,
        factors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return losses and factors with those of distilled segments, by their own weights, in place.

        `old` is this engine's, on the bare prompt; the batch's rollout log-probabilities are the sampler's, with the
        context. joined: [B, 1], 1 for distilled ones.
        """
        config = self.config.distilled
        if config.weight == "shaped":
            token_loss = torch.where(joined > 0, shaped_imitation(current, advantages), token_loss)
            return token_loss, torch.where(joined > 0, batch.mask, factors)
        weights = distillation_weights(old, batch.rollout_logprobs, batch.mask, config.weight, config.cap)
        return token_loss, torch.where(joined > 0, weights * batch.mask, factors)

    def _staleness_by_token(self, like: Tensor, indices: list[int]) -> Tensor:
        """Return by how many versions the weights that sampled each token are older than those in training, [B, T]."""
        staleness = torch.zeros_like(like)
        if self.staleness is not None:
            staleness += self.staleness[indices].to(like).unsqueeze(1)
        for row, index in enumerate(indices):
            if index in self.token_staleness:
                ages = self.token_staleness[index]
                staleness[row, : len(ages)] = ages.to(like)
        return staleness

    def _clip_causes(
        self, current: Tensor, old: Tensor, batch: Batch, mask: Tensor, advantages: Tensor, indices: list[int]
    ) -> dict[str, Tensor]:
        """Return how many tokens are clipped, and by what; for text that no policy sampled there is nothing to say."""
        sampled = (batch.rollout_logprobs != 0).any(1, keepdim=True)
        clip, is_gspo = self.config.clip, self.config.loss.startswith("gspo")
        low, high = GSPO_BOUNDS if is_gspo else PPO_BOUNDS
        is_stale = torch.zeros(len(indices)) > 0 if self.staleness is None else self.staleness[indices] > 0
        return clip_causes(
            current,
            old,
            batch.rollout_logprobs,
            advantages,
            mask * sampled,
            is_stale.to(current.device),
            (clip.low or low, clip.high or high),
            self.engine_difference,
            is_gspo,
        )


def _policy_loss(config: ObjectiveConfig, current: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> TokenLoss:
    """Compute the configured loss with its parameters."""
    clip = config.clip
    if config.loss == "cispo":
        return LOSSES["cispo"](current, old, advantages, mask, is_max=clip.is_max)
    bounds = {"low": clip.low, "high": clip.high, "dual": clip.dual}
    configured = {name: bound for name, bound in bounds.items() if bound is not None}
    return LOSSES[config.loss](current, old, advantages, mask, **configured)


def _pad_rows(logprobs: Sequence[Tensor] | None, indices: Sequence[int], like: Tensor) -> Tensor:
    """Return log-probabilities of segments as [B, T]; `like` where there are none."""
    if logprobs is None:
        return like
    padded = torch.zeros_like(like)
    for row, index in enumerate(indices):
        padded[row, : len(logprobs[index])] = logprobs[index].to(like)
    return padded

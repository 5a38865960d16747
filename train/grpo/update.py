"""From scored completions to optimizer steps: what each weighs, and the loss of one step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.model.distributed import gathered
from truegold.train.model.engine import FrozenPolicy, TrainingEngine
from truegold.train.model.segment import Batch, Segment
from truegold.train.objective import (
    LOSSES,
    Aggregation,
    TokenLoss,
    Totals,
    advantages,
    engine_weights,
    entropy_threshold,
    kl_penalty,
    length_outliers,
    off_policy_sequence_mask,
    positive_weight,
    token_weights,
    top_entropy_mask,
    weigh,
)
from truegold.train.rollout.mismatch import mismatch_sums
from truegold.verifiers import ConfigError

C = TypeVar("C", bound=ObjectiveConfig)


@dataclass(frozen=True)
class Weighed:
    """advantages: [N], of the segments of this rank, 0 for what is not trained on. trained: [N] bool, what contributes
    to the loss. metrics: of the whole batch."""

    advantages: Tensor
    trained: Tensor
    metrics: dict[str, float]


def weigh_segments(segments: Sequence[Segment], config: ObjectiveConfig, kinds: Sequence[str]) -> Weighed:
    """Advantages within the whole batch over all ranks, and which of this rank's segments are trained on.

    kinds: each segment's kind of advantage, one for a group. Segments of one kind are compared with each other.
    Negatives are weighted down after the masks, and then positives up, by what is left.
    """
    own = [
        (
            segment.group,
            float("nan") if segment.reward is None else segment.reward,
            segment.right,
            len(segment.output_ids),
            segment.truncated,
            kind,
        )
        for segment, kind in zip(segments, kinds, strict=True)
    ]
    parts = gathered(own)
    if not any(parts):
        return Weighed(torch.zeros(0), torch.zeros(0, dtype=torch.bool), {})
    *columns, everyones_kinds = zip(*chain(*parts), strict=True)
    groups, rewards, right, lengths, truncated = (torch.tensor(column) for column in columns)
    found = torch.zeros(len(rewards), dtype=torch.float64)
    for kind in sorted(set(everyones_kinds)):
        of_kind = torch.tensor([other == kind for other in everyones_kinds])
        found[of_kind] = advantages(kind, rewards[of_kind].double(), groups[of_kind], config.pass_at_k, right[of_kind])
    # Without an advantage there is nothing to learn, but for the penalty on leaving the reference.
    trained = ~rewards.isnan() if config.kl.weight else found != 0
    if config.mask_truncated:
        trained &= ~truncated
    outliers = length_outliers(lengths.double())
    if config.mask_outliers:
        trained &= ~outliers
    found = weigh(found * trained, negative=config.negative_weight)
    mass = lengths.double() if config.positive_by == "tokens" else torch.ones_like(found)
    positive = positive_weight(found, mass, config.positive_floor, config.positive_max)
    found = weigh(found, positive)
    up, down = float((found * lengths).clamp(min=0).sum()), float(-(found * lengths).clamp(max=0).sum())
    metrics = {
        "positive_weight": positive,
        "positive_token_mass": up / (up + down) if up + down else 0.0,
        "length_outliers": float(outliers.double().mean()),
    }
    start = sum(len(part) for part in parts[: torch.distributed.get_rank()])
    here = slice(start, start + len(own))
    return Weighed(found[here].float(), trained[here], metrics)


@dataclass
class Updater:
    """Takes the optimizer steps of a rollout batch. reference: the model that training began from, for the KL penalty.

    total: optimizer steps of the whole run, if every batch has something to train on. steps: those taken so far, to be
    restored on resume. Both set the learning rate.
    """

    engine: TrainingEngine
    config: ObjectiveConfig
    max_tokens: int
    total: int
    reference: FrozenPolicy | None = None
    steps: int = 0

    def train_on(self, batch: Sequence[Segment], weighed: Weighed, seed: str) -> list[dict[str, float]]:
        """All steps of one batch, `weighed` as `weigh_segments` has it. Every rank calls it, also one that has no
        segments. Returns each step's metrics. seed: decides the minibatches.

        What is not trained on is counted in the denominators, and costs nothing else.
        """
        config = self.config
        whole = self.engine.totals(batch)
        totals = Totals(whole.tokens / config.minibatches, whole.sequences / config.minibatches)
        segments = [segment for segment, trained in zip(batch, weighed.trained, strict=True) if trained]
        advantages = weighed.advantages[weighed.trained]
        prepared = self._prepare(segments)
        found = []
        for number in range(config.updates):
            iteration, part = divmod(number, config.minibatches)
            order = list(range(len(segments)))
            random.Random(f"{seed}-{iteration}").shuffle(order)
            chosen = order[part :: config.minibatches]
            if any(gathered(bool(chosen))):
                loss = StepLoss(config, self.max_tokens, totals, advantages[chosen], prepared.take(chosen))
                found.append(self.engine.update([segments[i] for i in chosen], loss, self.steps, self.total))
                self.steps += 1
        return found

    def _prepare(self, segments: Sequence[Segment]) -> Prepared:
        """What has to be known of the whole batch before its first step."""
        config = self.config
        # With one optimizer step a batch, the old policy is the current one: its log-probs come with the update.
        needed = config.updates > 1 or config.top_entropy is not None
        measured = self.engine.measure(segments) if needed else None
        threshold = float("-inf")
        if measured is not None and config.top_entropy is not None:
            own = torch.cat([torch.empty(0), *(entropy for _, entropy in measured)])
            threshold = entropy_threshold(torch.cat(gathered(own)), config.top_entropy)
        return Prepared(
            threshold,
            [logprobs for logprobs, _ in measured] if measured is not None and config.updates > 1 else None,
            self.reference.logprobs(segments) if self.reference is not None else None,
        )


@dataclass(frozen=True)
class Prepared:
    """threshold: the entropy from which tokens are trained on. old, reference: log-probs of each segment, or None."""

    threshold: float
    old: Sequence[Tensor] | None
    reference: Sequence[Tensor] | None

    def take(self, indices: Sequence[int]) -> Prepared:
        def some(values: Sequence[Tensor] | None) -> Sequence[Tensor] | None:
            return None if values is None else [values[i] for i in indices]

        return Prepared(self.threshold, some(self.old), some(self.reference))


@dataclass(frozen=True)
class StepLoss:
    """The loss of one optimizer step, called with each of its micro-batches (`engine.LossFunction`).

    advantages: [N], of the step's segments on this rank.
    """

    config: ObjectiveConfig
    max_tokens: int
    totals: Totals
    advantages: Tensor
    prepared: Prepared

    def __call__(
        self, current: Tensor, entropy: Tensor, batch: Batch, indices: list[int]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        config, mask = self.config, batch.mask
        own = self.advantages[indices].to(current)
        now = current.detach()
        old = _padded(self.prepared.old, indices, now)
        token = policy_loss(config, current, old, own, mask)
        factors = mask
        for correction in config.corrections:
            factors = factors * engine_weights(
                old, batch.rollout, mask, correction.kind, correction.high, correction.low or 0.0
            )
        if config.off_policy_mask is not None:
            kept = off_policy_sequence_mask(now, batch.rollout, own, mask, config.off_policy_mask)
            factors = factors * kept.unsqueeze(1)
        if config.top_entropy is not None:
            factors = factors * top_entropy_mask(entropy, mask, self.prepared.threshold)
        weights = token_weights(mask, aggregation(config), self.totals, self.max_tokens)
        loss = (token.loss * factors * weights).sum()
        reported = {
            "clipped_low": (token.clipped_low * mask).sum(),
            "clipped_high": (token.clipped_high * mask).sum(),
            "ratio": (token.ratio * mask).sum(),
            "entropy": (entropy * mask).sum(),
            "kept_tokens": (factors > 0).to(mask).sum(),
            "correction": factors.sum(),
            **mismatch_sums(batch.rollout, old, mask),
        }
        if self.prepared.reference is not None:
            kl = kl_penalty(current, _padded(self.prepared.reference, indices, now), config.kl.estimator)
            loss = loss + config.kl.weight * (kl * weights).sum()
            reported["kl"] = (kl.detach() * mask).sum()
        return loss, reported


def policy_loss(config: ObjectiveConfig, current: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> TokenLoss:
    """The configured loss, with its own parameters."""
    given = {"low": config.clip_low, "high": config.clip_high, "dual": config.dual_clip}
    if config.loss == "cispo":
        given = {"is_max": config.is_max}
    parameters = {name: value for name, value in given.items() if value is not None}
    return LOSSES[config.loss](current, old, advantages, mask, **parameters)


def resolved(config: C, model: object) -> C:
    """The configuration with the loss that `auto` means for a model, given its Hugging Face configuration. Raises
    ConfigError where that loss does not go with the other settings."""
    experts = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    inner = getattr(model, "text_config", model)
    mixture = any((getattr(inner, name, 0) or 0) > 1 for name in experts)
    if config.loss != "auto":
        return config
    try:
        return config.model_validate({**config.model_dump(), "loss": "gspo" if mixture else "ppo"})
    except ValidationError as error:
        told = "; ".join(one["msg"].removeprefix("Value error, ") for one in error.errors())
        raise ConfigError(f"This model is a mixture of experts, for which train.loss is gspo: {told}.") from error


def aggregation(config: ObjectiveConfig) -> Aggregation:
    if config.aggregation != "auto":
        return config.aggregation
    return "sequence" if config.loss.startswith("gspo") else "token"


def _padded(values: Sequence[Tensor] | None, indices: Sequence[int], like: Tensor) -> Tensor:
    """Log-probs of segments as [B, T]; `like` where there are none."""
    if values is None:
        return like
    result = torch.zeros_like(like)
    for place, index in enumerate(indices):
        result[place, : len(values[index])] = values[index].to(like)
    return result

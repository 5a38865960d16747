"""From scored completions to optimizer steps: what each weighs, and the loss of one step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from truegold.train.distributed import gathered
from truegold.train.engine import FrozenPolicy, TrainingEngine
from truegold.train.mismatch import mismatch_sums
from truegold.train.objective import (
    LOSSES,
    Aggregation,
    TokenLoss,
    Totals,
    advantages,
    engine_weights,
    entropy_threshold,
    kl_estimate,
    length_outliers,
    off_policy_sequence_mask,
    positive_weight,
    token_weights,
    top_entropy_mask,
    weigh,
)
from truegold.train.objective_config import Loss, ObjectiveConfig
from truegold.train.segment import Batch, Segment


@dataclass(frozen=True)
class Weighed:
    """advantages: [N], of the segments of this rank, 0 for what is not trained on. trained: [N] bool.
    metrics: of the whole batch."""

    advantages: Tensor
    trained: Tensor
    metrics: dict[str, float]


def weigh_segments(segments: Sequence[Segment], config: ObjectiveConfig, kinds: Sequence[str]) -> Weighed:
    """Advantages within the whole batch over all ranks, and which of this rank's segments are trained on.

    kinds: each segment's kind of advantage, one for a group. Segments of one kind are compared with each other.
    Positives are weighted up after the masks, by what is left.
    """
    own = [
        (
            segment.group,
            float("nan") if segment.reward is None else segment.reward,
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
    groups, rewards, lengths, truncated = (torch.tensor(column) for column in columns)
    found = torch.zeros(len(rewards), dtype=torch.float64)
    for kind in sorted(set(everyones_kinds)):
        of_kind = torch.tensor([other == kind for other in everyones_kinds])
        found[of_kind] = advantages(kind, rewards[of_kind].double(), groups[of_kind], config.pass_at_k)
    trained = found != 0
    if config.mask_truncated:
        trained &= ~truncated
    outliers = length_outliers(lengths.double())
    if config.mask_outliers:
        trained &= ~outliers
    found = found * trained
    mass = lengths.double() if config.positive_by == "tokens" else torch.ones_like(found)
    positive = positive_weight(found, mass, config.positive_floor, config.positive_max)
    found = weigh(found, positive, config.negative_weight)
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

    def train_on(self, segments: Sequence[Segment], weighed: Tensor, seed: str) -> list[dict[str, float]]:
        """All steps of one batch, `weighed` [N] being the segments' advantages. Every rank calls it, also one that has
        no segments. Returns each step's metrics. seed: decides the minibatches."""
        config = self.config
        prepared = self._prepare(segments)
        found = []
        for number in range(config.updates):
            iteration, part = divmod(number, config.minibatches)
            order = list(range(len(segments)))
            random.Random(f"{seed}-{iteration}").shuffle(order)
            chosen = order[part :: config.minibatches]
            own = [segments[i] for i in chosen]
            totals = self.engine.totals(own)
            if totals.tokens:
                loss = StepLoss(config, self.max_tokens, totals, weighed[chosen], prepared.take(chosen))
                found.append(self.engine.update(own, loss, self.steps, self.total))
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
        weights = token_weights(mask, aggregation(config), self.totals, self.max_tokens)
        for correction in config.corrections:
            weights = weights * engine_weights(
                old, batch.rollout, mask, correction.kind, correction.high, correction.low
            )
        if config.off_policy_mask is not None:
            kept = off_policy_sequence_mask(now, batch.rollout, own, mask, config.off_policy_mask)
            weights = weights * kept.unsqueeze(1)
        if config.top_entropy is not None:
            weights = weights * top_entropy_mask(entropy, mask, self.prepared.threshold)
        loss = (token.loss * weights).sum()
        reported = {
            "clipped_low": (token.clipped_low * mask).sum(),
            "clipped_high": (token.clipped_high * mask).sum(),
            "ratio": (token.ratio * mask).sum(),
            "entropy": (entropy * mask).sum(),
            "weight": (weights > 0).to(mask).sum(),
            **mismatch_sums(batch.rollout, old, mask),
        }
        if self.prepared.reference is not None:
            kl = kl_estimate(current, _padded(self.prepared.reference, indices, now), config.kl.estimator)
            loss = loss + config.kl.weight * (kl * token_weights(mask, "token", self.totals)).sum()
            reported["kl"] = (kl.detach() * mask).sum()
        return loss, reported


def policy_loss(config: ObjectiveConfig, current: Tensor, old: Tensor, advantages: Tensor, mask: Tensor) -> TokenLoss:
    """The configured loss, with its own parameters."""
    given = {"low": config.clip_low, "high": config.clip_high, "dual": config.dual_clip}
    if config.loss == "cispo":
        given = {"is_max": config.is_max}
    parameters = {name: value for name, value in given.items() if value is not None}
    return LOSSES[config.loss](current, old, advantages, mask, **parameters)


def resolved(config: ObjectiveConfig, model: object) -> Loss:
    """The loss that `auto` means for a model, given its Hugging Face configuration."""
    if config.loss != "auto":
        return config.loss
    experts = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    inner = getattr(model, "text_config", model)
    return "gspo" if any((getattr(inner, name, 0) or 0) > 1 for name in experts) else "ppo"


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

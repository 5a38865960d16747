"""From scored completions to optimizer steps: what each weighs, and the steps of a batch. Their loss is in
`step_loss`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import torch
from pydantic import ValidationError
from torch import Tensor

from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.step_loss import PreparedBatch, StepLoss
from truegold.train.model.distributed import all_sum, gathered
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.policy import FrozenPolicy
from truegold.train.model.segment import Segment
from truegold.train.objective import (
    Totals,
    advantages,
    choose_covariant,
    covariances,
    effective_size,
    entropy_threshold,
    length_outliers,
    positive_weight,
    weigh,
)
from truegold.verifiers import ConfigError

EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Under these names Hugging Face configurations have how many experts a layer has."""


@dataclass(frozen=True)
class WeighedBatch:
    """What the N segments of this rank weigh."""

    advantages: Tensor
    """[N]: 0 for what is not trained on."""
    trained: Tensor
    """[N] bool: what contributes to the loss."""
    metrics: dict[str, float]
    """Of the whole batch over all ranks."""
    distilled: Tensor | None = None
    """[N] bool: which segments no rollout of this step has sampled (`distilled`); None for none."""
    teachers: Sequence[Segment | None] = ()
    """Each segment's output behind the prompt of the policy as its own teacher (`self_teacher`); empty for none."""
    episode_tokens: Tensor | None = None
    """[N]: the tokens of the episode that a segment is of, where episodes count as sequences; else None."""
    episodes: int = 0
    """How many episodes the segments are of, where those count."""


def weigh_segments(segments: Sequence[Segment], config: ObjectiveConfig, kinds: Sequence[str]) -> WeighedBatch:
    """Compute advantages within the whole batch over all ranks, and which of this rank's segments are trained on.

    kinds: each segment's kind of advantage, one for a group. Segments of one kind are compared with each other.
    Negatives are weighted down after the masks, and then positives up, by what is left.
    """
    local_records = [
        (
            segment.group,
            float("nan") if segment.reward is None else segment.reward,
            segment.right,
            segment.sampled_tokens,
            segment.truncated,
            kind,
        )
        for segment, kind in zip(segments, kinds, strict=True)
    ]
    records_of_ranks = gathered(local_records)
    if not any(records_of_ranks):
        return WeighedBatch(torch.zeros(0), torch.zeros(0, dtype=torch.bool), {})
    *columns, batch_kinds = zip(*chain(*records_of_ranks), strict=True)
    groups, rewards, right, lengths, truncated = (torch.tensor(column) for column in columns)
    batch_advantages = torch.zeros(len(rewards), dtype=torch.float64)
    for kind in sorted(set(batch_kinds)):
        has_kind = torch.tensor([other == kind for other in batch_kinds])
        batch_advantages[has_kind] = advantages(
            kind, rewards[has_kind].double(), groups[has_kind], config.pass_at_k, right[has_kind]
        )
    # Without an advantage there is nothing to learn, but for the penalty on leaving the reference.
    trained = ~rewards.isnan() if config.kl.weight else batch_advantages != 0
    if config.masks.truncated is not False:
        trained &= ~truncated
    outliers = length_outliers(lengths.double())
    if config.masks.outliers:
        trained &= ~outliers
    positives = config.positives
    batch_advantages = weigh(batch_advantages * trained, negative=positives.negative_weight)
    units = lengths.double() if positives.unit == "tokens" else torch.ones_like(batch_advantages)
    weight = positive_weight(batch_advantages, units, positives.floor, positives.max_weight)
    batch_advantages = weigh(batch_advantages, weight)
    token_mass = batch_advantages * lengths
    up, down = float(token_mass.clamp(min=0).sum()), float(-token_mass.clamp(max=0).sum())
    metrics = {
        "positive_weight": weight,
        "positive_token_mass": up / (up + down) if up + down else 0.0,
        "length_outliers": float(outliers.double().mean()),
        "effective_completions": effective_size(token_mass),
    }
    start = sum(len(records) for records in records_of_ranks[: torch.distributed.get_rank()])
    local = slice(start, start + len(local_records))
    return WeighedBatch(batch_advantages[local].float(), trained[local], metrics)


@dataclass
class Updater:
    """Takes the optimizer steps of a rollout batch. `total` and `steps` set the learning rate."""

    engine: TrainingEngine
    config: ObjectiveConfig
    max_tokens: int
    total: int
    """Optimizer steps of the whole run, if every batch has something to train on."""
    reference: FrozenPolicy | None = None
    """The model that training began from, for the KL penalty."""
    steps: int = 0
    """Optimizer steps taken so far; to be restored on resume."""
    engine_difference: float = 0.0
    """The mean |Δ log p| of the two engines at the same weights, as the last probe measured it."""

    def train_on(
        self,
        batch: Sequence[Segment],
        weighed: WeighedBatch,
        seed: str,
        version: int | None = None,
        share_entered: float = 1.0,
    ) -> list[dict[str, float]]:
        """Take all steps of one batch, `weighed` by `weigh_segments`, and return each step's metrics.

        Every rank calls it, also one that has no segments. seed: decides the minibatches. version: that of the weights
        that are trained; segments of older ones are stale. share_entered: which part of a whole batch the groups in
        `batch` are, so that the weights are relative to a whole one. What is not trained on is counted in the
        denominators, and costs nothing else.
        """
        config = self.config
        is_distilled = torch.zeros(len(batch), dtype=torch.bool) if weighed.distilled is None else weighed.distilled
        # What joins from elsewhere must not change what a sampled token weighs.
        whole = self.engine.totals([each for each, joins in zip(batch, is_distilled, strict=True) if not joins])
        if weighed.episode_tokens is not None:
            whole = Totals(whole.tokens, all_sum(weighed.episodes)[0])
        parts = config.minibatches * share_entered
        totals = Totals(whole.tokens / parts, whole.sequences / parts)
        segments = [segment for segment, trained in zip(batch, weighed.trained, strict=True) if trained]
        advantages, is_distilled = weighed.advantages[weighed.trained], is_distilled[weighed.trained]
        episode_tokens = None if weighed.episode_tokens is None else weighed.episode_tokens[weighed.trained]
        teachers = [each for each, is_trained in zip(weighed.teachers, weighed.trained, strict=False) if is_trained]
        prepared = self._prepare(segments, advantages, int(self.steps), teachers)
        metrics = []
        for update in range(config.updates):
            iteration, minibatch = divmod(update, config.minibatches)
            order = list(range(len(segments)))
            random.Random(f"{seed}-{iteration}").shuffle(order)
            chosen = order[minibatch :: config.minibatches]
            if any(gathered(bool(chosen))):
                chosen_segments = [segments[index] for index in chosen]
                ages = [0 if version is None else version - segment.version for segment in chosen_segments]
                # What another context has sampled is no older policy's.
                staleness = torch.tensor(ages, dtype=torch.float32) * ~is_distilled[chosen]
                loss = StepLoss(
                    config,
                    self.max_tokens,
                    totals,
                    advantages[chosen],
                    prepared.select(chosen),
                    staleness,
                    self.engine_difference,
                    is_distilled[chosen],
                    None if episode_tokens is None else episode_tokens[chosen],
                    _token_staleness(chosen_segments, version),
                )
                metrics.append(self.engine.update(chosen_segments, loss, self.steps, self.total))
                self.steps += 1
        return metrics

    def _prepare(
        self, segments: Sequence[Segment], advantages: Tensor, seed: int, teachers: Sequence[Segment | None]
    ) -> PreparedBatch:
        """Find out what has to be known of the whole batch before its first step."""
        top_entropy, covariance = self.config.masks.top_entropy, self.config.covariance.kind
        # With one optimizer step a batch, the old policy is the current one: its log-probs come with the update.
        is_off_policy = self.config.updates > 1 and self.config.proximal == "recomputed"
        measured = self.engine.measure(segments) if is_off_policy or top_entropy is not None or covariance else []
        threshold = float("-inf")
        if top_entropy is not None:
            local_entropies = torch.cat([torch.empty(0), *(entropy for _, entropy in measured)])
            threshold = entropy_threshold(torch.cat(gathered(local_entropies)), top_entropy)
        return PreparedBatch(
            threshold,
            [logprobs for logprobs, _ in measured] if is_off_policy else None,
            self.reference.logprobs(segments) if self.reference is not None else None,
            self._choose_covariant([logprobs for logprobs, _ in measured], advantages, seed) if covariance else None,
            self._teacher_logprobs(segments, teachers) if self.config.self_distillation.weight else None,
        )

    def _teacher_logprobs(self, segments: Sequence[Segment], teachers: Sequence[Segment | None]) -> list[Tensor]:
        """Return log-probabilities of each segment's output under its teacher, NaN where it has none."""
        logprobs = iter(self.engine.logprobs([teacher for teacher in teachers if teacher is not None]))
        return [
            next(logprobs) if teacher is not None else torch.full((len(segment.output_ids),), float("nan"))
            for segment, teacher in zip_longest(segments, teachers)
        ]

    def _choose_covariant(self, logprobs: Sequence[Tensor], advantages: Tensor, seed: int) -> list[Tensor]:
        """Return which tokens of each segment have the covariance that the objective means, of all ranks' tokens."""
        lengths = [len(values) for values in logprobs]
        local_tokens = torch.cat([torch.empty(0), *logprobs])
        local_advantages = advantages.cpu().repeat_interleave(torch.tensor(lengths, dtype=torch.int64))
        tensors_by_rank = gathered((local_tokens, local_advantages))
        tokens, token_advantages = (torch.cat(parts) for parts in zip(*tensors_by_rank, strict=True))
        chosen = choose_covariant(covariances(tokens, token_advantages), self.config.covariance, seed)
        start = sum(len(part) for part, _ in tensors_by_rank[: torch.distributed.get_rank()])
        return list(torch.split(chosen[start : start + sum(lengths)], lengths))


def _token_staleness(segments: Sequence[Segment], version: int | None) -> dict[int, Tensor]:
    """Return how many versions older than `version` each output token is, [T], of those of the segments that several
    versions have sampled."""
    if version is None:
        return {}
    return {
        index: version - torch.tensor(segment.token_versions, dtype=torch.float32)
        for index, segment in enumerate(segments)
        if segment.versions
    }


def resolve_loss(config: ObjectiveConfig, model_config: object) -> ObjectiveConfig:
    """Return the objective with the loss that `auto` means for a model, by its Hugging Face configuration.

    Raises ConfigError where that loss does not go with the other settings.
    """
    text_config = getattr(model_config, "text_config", model_config)
    is_mixture = any((getattr(text_config, name, 0) or 0) > 1 for name in EXPERT_COUNTS)
    if config.loss != "auto":
        return config
    try:
        return config.model_validate({**config.model_dump(), "loss": "gspo" if is_mixture else "ppo"})
    except ValidationError as error:
        mistakes = "; ".join(mistake["msg"].removeprefix("Value error, ") for mistake in error.errors())
        raise ConfigError(
            f"This model is a mixture of experts, for which train.objective.loss is gspo: {mistakes}."
        ) from error

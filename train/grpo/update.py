"""Training on the scored completions of a batch: advantages and weights, the loss, and the optimizer steps.

A segment is a completion with its prompt, or a part of a dialogue (`model.segment`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from math import nan

import torch
from pydantic import ValidationError
from torch import Tensor

from truegold.pipeline.config.mistakes import plain_words
from truegold.train import objective
from truegold.train.config.objective import ObjectiveConfig
from truegold.train.model.distributed import all_sum, gathered
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.policy import FrozenPolicy
from truegold.train.model.segment import Segment, SegmentBatch
from truegold.train.objective import GSPO_BOUNDS, LOSSES, PPO_BOUNDS, TokenLoss, Totals, advantages, kl_penalty
from truegold.verifiers import ConfigError

EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Names that Hugging Face configurations have for the number of experts per layer."""


@dataclass(frozen=True)
class WeighedBatch:
    """The advantages and weights of this rank's N segments."""

    advantages: Tensor
    """Float [N]: the advantage of each segment, 0 for segments that are not trained on."""
    trained: Tensor
    """Bool [N]: whether each segment is trained on."""
    metrics: dict[str, float]
    """The metrics of the whole batch over all ranks."""
    distilled: Tensor | None = None
    """Bool [N]: whether each segment is a distilled positive (sampled with a longer prompt). None without such
    segments."""
    teachers: Sequence[Segment | None] = ()
    """The teacher's segment for each segment (`self_teachers`), or None. Empty without self-distillation."""
    episode_tokens: Tensor | None = None
    """Float [N]: the number of tokens of each segment's episode. None if episodes do not count as sequences."""
    episodes: int = 0
    """The number of episodes, or 0 if episodes do not count as sequences."""


def weigh_segments(segments: Sequence[Segment], config: ObjectiveConfig, kinds: Sequence[str]) -> WeighedBatch:
    """Return the advantages of this rank's segments, computed in the whole batch over all ranks.

    Advantages are computed separately for each kind. The advantages of masked segments are set to 0. Then negative
    advantages are multiplied by `positives.negative_weight`, and positive ones by the weight for `positives.floor`.

    kinds: the kind of advantage of each segment, the same within a group.
    """
    local_records = [
        (each.group, nan if each.reward is None else each.reward, each.right, each.sampled_tokens, each.truncated, kind)
        for each, kind in zip(segments, kinds, strict=True)
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
    # Segments without an advantage have no gradient, except from the KL penalty.
    trained = ~rewards.isnan() if config.kl.weight else batch_advantages != 0
    if config.masks.truncated is not False:
        trained &= ~truncated
    outliers = objective.length_outliers(lengths.double())
    if config.masks.outliers:
        trained &= ~outliers
    positives = config.positives
    batch_advantages = objective.weigh(batch_advantages * trained, negative=positives.negative_weight)
    units = lengths.double() if positives.unit == "tokens" else torch.ones_like(batch_advantages)
    weight = objective.positive_weight(batch_advantages, units, positives.floor, positives.max_weight)
    batch_advantages = objective.weigh(batch_advantages, weight)
    token_mass = batch_advantages * lengths
    up, down = float(token_mass.clamp(min=0).sum()), float(-token_mass.clamp(max=0).sum())
    metrics = {
        "positive_weight": weight,
        "positive_token_mass": up / (up + down) if up + down else 0.0,
        "length_outliers": float(outliers.double().mean()),
        "effective_completions": objective.effective_size(token_mass),
    }
    start = sum(len(records) for records in records_of_ranks[: torch.distributed.get_rank()])
    local = slice(start, start + len(local_records))
    return WeighedBatch(batch_advantages[local].float(), trained[local], metrics)


@dataclass
class Updater:
    """Takes the optimizer steps of a rollout batch. The learning rate depends on `steps` of `total`."""

    engine: TrainingEngine
    config: ObjectiveConfig
    max_tokens: int
    total: int
    """The number of optimizer steps of the whole run, if every batch is trained on."""
    reference: FrozenPolicy | None = None
    """The model at the start of the training, for the KL penalty."""
    steps: int = 0
    """The number of optimizer steps so far, part of a checkpoint."""
    engine_difference: float = 0.0
    """The mean |Δ log p| of sampling and training engine at the same weights, in nats, as measured by the last
    probe."""

    def train_on(
        self,
        batch: Sequence[Segment],
        weighed: WeighedBatch,
        seed: str,
        version: int | None = None,
        share_entered: float = 1.0,
    ) -> list[dict[str, float]]:
        """Take all optimizer steps of one batch, and return the metrics of each step. All ranks call this together.

        weighed: the result of `weigh_segments` for the batch. seed: determines the minibatches. version: the version of
        the weights in training. Segments of older versions are stale. share_entered: the size of `batch` as a share of
        a whole batch. Losses are divided by counts of a whole batch. These counts include segments that are not trained
        on, which have no forward pass.
        """
        config = self.config
        is_distilled = torch.zeros(len(batch), dtype=torch.bool) if weighed.distilled is None else weighed.distilled
        # Distilled positives do not count in the denominators. So the weights of sampled tokens stay the same.
        whole = self.engine.totals([each for each, joins in zip(batch, is_distilled, strict=True) if not joins])
        if weighed.episode_tokens is not None:
            whole = Totals(whole.tokens, all_sum(weighed.episodes)[0])
        parts = config.minibatches * share_entered
        totals = Totals(whole.tokens / parts, whole.sequences / parts)
        segments = [segment for segment, trained in zip(batch, weighed.trained, strict=True) if trained]
        advantages, is_distilled = weighed.advantages[weighed.trained], is_distilled[weighed.trained]
        episode_tokens = None if weighed.episode_tokens is None else weighed.episode_tokens[weighed.trained]
        teachers = [each for each, is_trained in zip(weighed.teachers, weighed.trained, strict=False) if is_trained]
        with self._breakable():
            prepared = self._prepare(segments, advantages, int(self.steps), teachers)
        metrics: list[dict[str, float]] = []
        for update in range(config.updates):
            iteration, minibatch = divmod(update, config.minibatches)
            order = list(range(len(segments)))
            random.Random(f"{seed}-{iteration}").shuffle(order)
            chosen = order[minibatch :: config.minibatches]
            if any(gathered(bool(chosen))):
                chosen_segments = [segments[index] for index in chosen]
                ages = [0 if version is None else version - segment.version for segment in chosen_segments]
                # Distilled positives are not stale. They have weights of their own.
                staleness = torch.tensor(ages, dtype=torch.float32) * ~is_distilled[chosen]
                loss = StepLoss(
                    config=config,
                    max_tokens=self.max_tokens,
                    totals=totals,
                    advantages=advantages[chosen],
                    prepared=prepared.select(chosen),
                    staleness=staleness,
                    engine_difference=self.engine_difference,
                    is_distilled=is_distilled[chosen],
                    episode_tokens=None if episode_tokens is None else episode_tokens[chosen],
                    token_staleness=_token_staleness(chosen_segments, version),
                )
                with nullcontext() if metrics else self._breakable():
                    metrics.append(self.engine.update(chosen_segments, loss, self.steps, self.total))
                if not self.steps and "kl" in metrics[0]:
                    metrics[0]["kl_at_start"] = metrics[0]["kl"]
                self.steps += 1
        return metrics

    @contextmanager
    def _breakable(self) -> Iterator[None]:
        """Within this context, a signal or a lack of memory may end the computation. The weights are not changed
        yet."""
        self.engine.may_end = True
        yield
        self.engine.may_end = False

    def _prepare(
        self, segments: Sequence[Segment], advantages: Tensor, seed: int, teachers: Sequence[Segment | None]
    ) -> PreparedBatch:
        """Return the values that need forward passes over the whole batch before the first step."""
        top_entropy, covariance = self.config.masks.top_entropy, self.config.covariance.kind
        # With one optimizer step per batch, the old policy is the current one. No extra forward pass is needed.
        is_off_policy = self.config.updates > 1 and self.config.proximal == "recomputed"
        measured = self.engine.measure(segments) if is_off_policy or top_entropy is not None or covariance else []
        logprobs = [token_logprobs for token_logprobs, _ in measured]
        threshold = float("-inf")
        if top_entropy is not None:
            local_entropies = torch.cat([torch.empty(0), *(entropy for _, entropy in measured)])
            threshold = objective.entropy_threshold(torch.cat(gathered(local_entropies)), top_entropy)
        return PreparedBatch(
            entropy_threshold=threshold,
            old=logprobs if is_off_policy else None,
            reference=self.reference.logprobs(segments) if self.reference is not None else None,
            covariant=self._choose_covariant(logprobs, advantages, seed) if covariance else None,
            teacher=self._teacher_logprobs(segments, teachers) if self.config.self_distillation.weight else None,
        )

    def _teacher_logprobs(self, segments: Sequence[Segment], teachers: Sequence[Segment | None]) -> list[Tensor]:
        """Return the log-probabilities of each segment's output under its teacher, NaN for segments without one."""
        logprobs = iter(self.engine.logprobs([teacher for teacher in teachers if teacher is not None]))
        return [
            next(logprobs) if teacher is not None else torch.full((len(segment.output_ids),), float("nan"))
            for segment, teacher in zip_longest(segments, teachers)
        ]

    def _choose_covariant(self, logprobs: Sequence[Tensor], advantages: Tensor, seed: int) -> list[Tensor]:
        """Return a mask for each segment of the tokens that `objective.covariance` treats. All ranks' tokens are
        compared."""
        lengths = [len(values) for values in logprobs]
        local_tokens = torch.cat([torch.empty(0), *logprobs])
        local_advantages = advantages.cpu().repeat_interleave(torch.tensor(lengths, dtype=torch.int64))
        tensors_by_rank = gathered((local_tokens, local_advantages))
        tokens, token_advantages = (torch.cat(parts) for parts in zip(*tensors_by_rank, strict=True))
        values = objective.covariances(tokens, token_advantages)
        chosen = objective.choose_covariant(values, self.config.covariance, seed)
        start = sum(len(part) for part, _ in tensors_by_rank[: torch.distributed.get_rank()])
        return list(torch.split(chosen[start : start + sum(lengths)], lengths))


def _token_staleness(segments: Sequence[Segment], version: int | None) -> dict[int, Tensor]:
    """Return the staleness of each output token, [T], by index of the segment. Only segments that several versions have
    sampled are included."""
    if version is None:
        return {}
    return {
        index: version - torch.tensor(segment.token_versions, dtype=torch.float32)
        for index, segment in enumerate(segments)
        if segment.versions
    }


def resolve_loss(config: ObjectiveConfig, model_config: object) -> ObjectiveConfig:
    """Return the objective with `auto` replaced: gspo for mixture-of-experts models, ppo for all others.

    model_config: the model's Hugging Face configuration. Raises ConfigError if the loss contradicts other settings.
    """
    text_config = getattr(model_config, "text_config", model_config)
    is_mixture = any((getattr(text_config, name, 0) or 0) > 1 for name in EXPERT_COUNTS)
    if config.loss != "auto":
        return config
    try:
        return config.model_validate({**config.model_dump(), "loss": "gspo" if is_mixture else "ppo"})
    except ValidationError as error:
        mistakes = "; ".join(plain_words(mistake["msg"]) for mistake in error.errors())
        raise ConfigError(
            f"This model is a mixture of experts, for which train.objective.loss is gspo: {mistakes}."
        ) from error


@dataclass(frozen=True)
class PreparedBatch:
    """Values of a batch that are computed before its first step, one tensor [T] for each segment."""

    entropy_threshold: float
    """The lowest entropy, in nats, of tokens that are trained on."""
    old: Sequence[Tensor] | None
    """Log-probabilities under the old policy, or None if the old policy is the current one."""
    reference: Sequence[Tensor] | None
    """Log-probabilities under the reference model, or None without a KL penalty."""
    covariant: Sequence[Tensor] | None = None
    """1 for tokens that `objective.covariance` treats, else 0, or None if it is off."""
    teacher: Sequence[Tensor] | None = None
    """Log-probabilities under the teacher, NaN for segments without one. None without self-distillation."""

    def select(self, indices: Sequence[int]) -> PreparedBatch:
        """Return the values of the segments at these indices."""
        columns = (self.old, self.reference, self.covariant, self.teacher)
        chosen = [None if column is None else [column[index] for index in indices] for column in columns]
        return PreparedBatch(self.entropy_threshold, *chosen)


@dataclass(frozen=True)
class StepLoss:
    """The loss of one optimizer step, called with each of its micro-batches (`engine.LossFunction`)."""

    config: ObjectiveConfig
    max_tokens: int
    totals: Totals
    advantages: Tensor
    """Float [N]: the advantages of this rank's segments in the step."""
    prepared: PreparedBatch
    staleness: Tensor | None = None
    """Float [N]: how many versions the weights that sampled a segment are behind the weights in training. None if all
    are fresh."""
    engine_difference: float = 0.0
    """The usual |Δ log p| of the two engines, in nats (`Updater.engine_difference`)."""
    is_distilled: Tensor | None = None
    """Bool [N]: whether each segment is a distilled positive; None without such segments."""
    episode_tokens: Tensor | None = None
    """Float [N]: the number of tokens of each segment's episode. None if episodes do not count as sequences."""
    token_staleness: Mapping[int, Tensor] = field(default_factory=dict)
    """The staleness of each output token, [T], for segments that several versions have sampled, by segment index."""

    def __call__(
        self, current: Tensor, entropy: Tensor, batch: SegmentBatch, indices: list[int]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        config, mask, rollout = self.config, batch.mask, batch.rollout_logprobs
        advantages = self.advantages[indices].to(current)
        detached = current.detach()
        old = _pad_rows(self.prepared.old, indices, detached)
        if config.proximal == "interpolated":
            old = objective.interpolated_proximal(detached, rollout, self._staleness_by_token(detached, indices))
        token = _policy_loss(config, current, old, advantages, mask)
        factors = mask
        for correction in config.resolved_corrections:
            factors = factors * objective.engine_weights(
                old, rollout, mask, correction.kind, correction.high, correction.low or 0.0
            )
        if config.masks.off_policy is not None:
            kept = objective.off_policy_sequence_mask(detached, rollout, advantages, mask, config.masks.off_policy)
            factors = factors * kept.unsqueeze(1)
        if config.masks.top_entropy is not None:
            factors = factors * objective.top_entropy_mask(entropy, mask, self.prepared.entropy_threshold)
        token_loss = token.loss
        sampled = mask
        if self.is_distilled is not None and self.is_distilled[indices].any():
            joined = self.is_distilled[indices].to(mask).unsqueeze(1)
            sampled = mask * (1 - joined)
            if config.distilled.weight == "shaped":
                token_loss = torch.where(joined > 0, objective.shaped_imitation(current, advantages), token_loss)
            factors = torch.where(joined > 0, self._distilled_factors(old, batch), factors)
        if self.prepared.covariant is not None:
            covariant = _pad_rows(self.prepared.covariant, indices, detached)
            if config.covariance.kind == "clip":
                factors = factors * (1.0 - covariant)
            else:
                token_loss = token_loss + config.covariance.weight * covariant * (current - old).abs()
        tokens = None if self.episode_tokens is None else self.episode_tokens[indices]
        weights = objective.token_weights(mask, config.resolved_aggregation, self.totals, self.max_tokens, tokens)
        loss = (token_loss * factors * weights).sum()
        reported = {
            "clipped_low": (token.clipped_low * mask).sum(),
            "clipped_high": (token.clipped_high * mask).sum(),
            "ratio": (token.ratio * mask).sum(),
            "entropy": (entropy * mask).sum(),
            "kept_tokens": ((factors > 0) * sampled).sum(),
            "correction": (factors * sampled).sum(),
            "distilled_weight": (factors * (mask - sampled)).sum(),
            **objective.mismatch_sums(rollout, old, sampled, self._staleness_by_token(detached, indices) <= 0),
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
                * (objective.self_distillation(current, teacher, old, distillation.max_gap) * sampled * weights).sum()
            )
            reported["teacher_gap"] = ((detached - teacher).nan_to_num() * sampled).sum()
        return loss, reported

    def _distilled_factors(self, old: Tensor, batch: SegmentBatch) -> Tensor:
        """Return the weights [B, T] of distilled positives.

        old: log-probabilities of the training engine after the bare prompt. The rollout log-probabilities in `batch`
        come from the sampler, with a context added to the prompt.
        """
        kind, cap = self.config.distilled.weight, self.config.distilled.cap
        if kind == "shaped":
            return batch.mask
        return objective.distillation_weights(old, batch.rollout_logprobs, batch.mask, kind, cap) * batch.mask

    def _staleness_by_token(self, like: Tensor, indices: list[int]) -> Tensor:
        """Return the staleness of each token, in versions of the weights, [B, T]."""
        staleness = torch.zeros_like(like)
        if self.staleness is not None:
            staleness += self.staleness[indices].to(like).unsqueeze(1)
        for row, index in enumerate(indices):
            if index in self.token_staleness:
                ages = self.token_staleness[index]
                staleness[row, : len(ages)] = ages.to(like)
        return staleness

    def _clip_causes(
        self, current: Tensor, old: Tensor, batch: SegmentBatch, mask: Tensor, advantages: Tensor, indices: list[int]
    ) -> dict[str, Tensor]:
        """Return the number of clipped tokens, in total and by cause. Text that no policy sampled does not count."""
        sampled = (batch.rollout_logprobs != 0).any(1, keepdim=True)
        clip, is_gspo = self.config.clip, self.config.loss.startswith("gspo")
        low, high = GSPO_BOUNDS if is_gspo else PPO_BOUNDS
        is_stale = torch.zeros(len(indices)) > 0 if self.staleness is None else self.staleness[indices] > 0
        return objective.clip_causes(
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
    clip = config.clip
    if config.loss == "cispo":
        return LOSSES["cispo"](current, old, advantages, mask, max_rho=clip.is_max)
    bounds = {"low": clip.low, "high": clip.high, "dual": clip.dual}
    configured = {name: bound for name, bound in bounds.items() if bound is not None}
    return LOSSES[config.loss](current, old, advantages, mask, **configured)


def _pad_rows(logprobs: Sequence[Tensor] | None, indices: Sequence[int], like: Tensor) -> Tensor:
    """Return the values of the segments at `indices`, padded with 0 to [B, T]; `like` if `logprobs` is None."""
    if logprobs is None:
        return like
    padded = torch.zeros_like(like)
    for row, index in enumerate(indices):
        padded[row, : len(logprobs[index])] = logprobs[index].to(like)
    return padded

"""A step of RL with verifiable rewards, top to bottom: sample groups, verify, compare within the group, update, sync.

Rewards are composed of the terms in the configuration (`rewards`), by default the verifier's score alone; a completion
that could not be judged leaves its group and is counted. Groups without advantages, such as those that are all right or
all wrong, carry no gradient and never enter. Every rank takes its share of the step's rows, samples with an engine of
its own and trains on what it sampled; what a step is compared with is the whole batch (`update`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.batch_metrics import Metrics, diversity_metrics, group_completions, reward_metrics
from truegold.train.grpo.completions import write_completions
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.group_choice import GroupScore, choose_groups, count_missing_groups, right_share, score_group
from truegold.train.grpo.rewards import CompletionScore, StepCompletion, score_completions
from truegold.train.grpo.update import Updater, weigh_segments
from truegold.train.model.distributed import all_sum, gathered, rank, world_size
from truegold.train.model.segment import Segment
from truegold.train.rollout.rollout import Rollout


@dataclass
class Trainer:
    """What a step needs."""

    feed: Feed
    heldout: Sequence[Row]
    config: GrpoConfig
    updater: Updater
    rollout: Rollout
    max_tokens: int
    """Tokens of a completion at most."""
    evaluation: SamplingParams
    """How held-out rows are sampled."""
    out_dir: Path

    def step(self, step: int) -> Metrics:
        """Take one step: rollout, verdicts, advantages, update, sync. Returns the step's metrics, of all ranks."""
        config = self.config
        started = time.monotonic()
        completions = self._roll_out(step)
        sampled = updated = time.monotonic()
        scores = self._score_groups(completions)
        groups = list(scores)
        chosen = choose_groups(list(scores.values()), config.prompts_per_step, config.sampling.right_share)
        entered = {groups[index] for index in chosen}
        batch = [
            completion
            for completion in completions
            if completion.segment.group in entered and completion.segment.reward is not None
        ]
        segments = [completion.segment for completion in batch]
        kinds = [config.objective.advantage_for(completion.row["pass_rate"]) for completion in batch]
        weighed = weigh_segments(segments, config.objective, kinds)
        for completion, advantage, trained in zip(batch, weighed.advantages, weighed.trained, strict=True):
            completion.advantage, completion.trained = float(advantage), bool(trained)
        updates, probe = [], None
        if any(gathered(bool(weighed.trained.any()))):
            self.rollout.engine.sleep()
            updates = self.updater.train_on(segments, weighed, f"{config.seed}-{step}")
            updated = time.monotonic()
            self.rollout.engine.wake()
            probe = self.rollout.sync(step + 1)
        synced = time.monotonic()
        all_completions = list(chain(*gathered(completions)))
        terms = config.reward.composition
        if rank() == 0:
            write_completions(self.out_dir, step, all_completions, terms, self.rollout.encoder)
        return {
            **reward_metrics(all_completions, terms),
            **diversity_metrics(all_completions),
            **weighed.metrics,
            **_mean_metrics(updates),
            **({"probe_mean_abs": probe.mean_abs} if probe else {}),
            "right_share": right_share([scores[group] for group in entered]),
            "trained_completions": float(sum(completion.trained for completion in all_completions)),
            "seconds_rollout": sampled - started,
            "seconds_update": updated - sampled,
            "seconds_sync": synced - updated,
        }

    def _roll_out(self, step: int) -> list[StepCompletion]:
        """Return this rank's scored completions of the step: its share of the next rows, and of the refills for groups
        that teach nothing or for a share of right answers out of its bounds."""
        size, sampling = self.config.prompts_per_step, self.config.sampling
        completions = self._sample_and_score(self.feed.take(size), step, 0)
        next_group = size
        for _ in range(sampling.refills):
            scores = list(self._score_groups(completions).values())
            missing = count_missing_groups(scores, size, sampling.right_share)
            if not missing:
                break
            completions += self._sample_and_score(self.feed.refill(missing), step, next_group)
            next_group += missing
        return completions

    def _sample_and_score(self, rows: Sequence[Row], step: int, first_group: int) -> list[StepCompletion]:
        """Return the groups of this rank's share of `rows`, which are numbered from `first_group` on."""
        config, encoder, version = self.config, self.rollout.encoder, self.rollout.version
        groups = list(range(first_group + rank(), first_group + len(rows), world_size()))
        local_rows = [rows[group - first_group] for group in groups]
        temperatures = [config.sampling.temperature_for(step, row["pass_rate"]) for row in local_rows]
        sampling = [
            SamplingParams(temperature, 1.0, self.max_tokens, encoder.stop_token_ids) for temperature in temperatures
        ]
        prompts, completions = self.rollout.sample(local_rows, sampling, step, groups, config.group_size)
        scores = iter(score_completions(local_rows, completions, encoder, config.reward))
        return [
            StepCompletion(row, _to_segment(prompt, completion, score, group, temperature, version), score)
            for row, prompt, group, temperature, members in zip(
                local_rows, prompts, groups, temperatures, completions, strict=True
            )
            for completion, score in zip(members, scores, strict=False)
        ]

    def _score_groups(self, completions: Sequence[StepCompletion]) -> dict[int, GroupScore]:
        """Return the scores of the groups of all ranks, by group, in order."""
        objective = self.config.objective
        scores = {}
        for members in group_completions(completions):
            segments = [completion.segment for completion in members]
            rewards = [segment.reward for segment in segments if segment.reward is not None]
            right = [segment.right for segment in segments if segment.reward is not None]
            kind = objective.advantage_for(members[0].row["pass_rate"])
            scores[segments[0].group] = score_group(rewards, right, kind, objective.pass_at_k)
        all_scores = {group: score for rank_scores in gathered(scores) for group, score in rank_scores.items()}
        return dict(sorted(all_scores.items()))

    def evaluate(self) -> Metrics:
        """Return the held-out pass rate of the weights in force, at the evaluation's own settings."""
        positions = list(range(rank(), len(self.heldout), world_size()))
        rows = [self.heldout[position] for position in positions]
        seed_step = -1 - self.rollout.version
        samples = self.config.evaluation.samples
        _, groups = self.rollout.sample(rows, [self.evaluation] * len(rows), seed_step, positions, samples)
        scores = score_completions(rows, groups, self.rollout.encoder, self.config.reward, correctness_only=True)
        passed = [score.correct.passed for score in scores if score.correct.score is not None]
        right, judged = all_sum(sum(passed), len(passed))
        return {"heldout_pass_rate": right / judged if judged else None}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the engine's state."""
        return {
            "weights_version": self.rollout.version,
            "updates": self.updater.steps,
            "probe_floor": self.rollout.probe.floor,
            **self.feed.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a checkpoint's state; the version of the weights is restored by the sync before."""
        self.updater.steps = state["updates"]
        self.rollout.probe.floor = state["probe_floor"]
        self.feed.restore(state)


def _to_segment(
    prompt: tuple[int, ...],
    completion: Completion,
    score: CompletionScore,
    group: int,
    temperature: float,
    version: int,
) -> Segment:
    """Return the training record of one completion."""
    return Segment(
        prompt_ids=prompt,
        output_ids=completion.token_ids,
        rollout_logprobs=completion.logprobs,
        version=version,
        temperature=temperature,
        reward=score.reward.value,
        reward_terms=score.reward.parts,
        right=score.correct.passed,
        group=group,
        truncated=completion.finish_reason == "length",
    )


def _mean_metrics(updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the optimizer steps of one batch."""
    return {name: sum(step[name] for step in updates) / len(updates) for name in updates[0]} if updates else {}

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
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.completions import write_completions
from truegold.train.grpo.diversity import distinct_ngrams, distinct_share
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.group_choice import GroupScore, choose_groups, missing_groups, right_share, score_group
from truegold.train.grpo.rewards import Metrics, Sampled, Scored, judge, reward_metrics
from truegold.train.grpo.update import Updater, weigh_segments
from truegold.train.model.distributed import all_sum, gathered, rank, world_size
from truegold.train.model.segment import Segment
from truegold.train.rollout.rollout import Rollout


@dataclass
class Trainer:
    """What a step needs. max_tokens: of a completion. evaluation: how held-out rows are sampled."""

    feed: Feed
    heldout: Sequence[Row]
    config: GrpoConfig
    updater: Updater
    rollout: Rollout
    max_tokens: int
    evaluation: SamplingParams
    out_dir: Path

    def step(self, step: int) -> Metrics:
        """Rollout, verdicts, advantages, update, sync. Returns the step's metrics, of all ranks."""
        config = self.config
        began = time.monotonic()
        sampled = self._rollouts(step)
        sampled_at = time.monotonic()
        scores = self._scores(sampled)
        numbers = list(scores)
        places = choose_groups(list(scores.values()), config.prompts_per_step, config.right_share)
        entered = {numbers[place] for place in places}
        batch = [one for one in sampled if one.segment.group in entered and one.segment.reward is not None]
        weighed = weigh_segments([one.segment for one in batch], config, self._kinds(batch))
        for one, advantage, trained in zip(batch, weighed.advantages, weighed.trained, strict=True):
            one.advantage, one.trained = float(advantage), bool(trained)
        updates, probe = [], None
        updated_at = sampled_at
        if any(gathered(bool(weighed.trained.any()))):
            self.rollout.engine.sleep()
            updates = self.updater.train_on([one.segment for one in batch], weighed, f"{config.seed}-{step}")
            updated_at = time.monotonic()
            self.rollout.engine.wake()
            probe = self.rollout.sync(step + 1)
        synced_at = time.monotonic()
        everyone = [one for part in gathered(sampled) for one in part]
        if rank() == 0:
            write_completions(self.out_dir, step, everyone, config.terms, self.rollout.encoder)
        return {
            **reward_metrics(everyone, config.terms),
            **diversity(everyone),
            **weighed.metrics,
            **_mean(updates),
            **({"probe_mean_abs": probe.mean_abs} if probe else {}),
            "right_share": right_share([scores[group] for group in entered]),
            "trained_completions": float(sum(one.trained for one in everyone)),
            "seconds_rollout": sampled_at - began,
            "seconds_update": updated_at - sampled_at,
            "seconds_sync": synced_at - updated_at,
        }

    def _rollouts(self, step: int) -> list[Sampled]:
        """This rank's judged completions of the step: its share of the next rows, and of the refills for groups that
        teach nothing or for a share of right answers out of its bounds."""
        wanted = self.config.prompts_per_step
        sampled = self._judged(self.feed.take(wanted), step, 0)
        number = wanted
        for _ in range(self.config.refills):
            missing = missing_groups(list(self._scores(sampled).values()), wanted, self.config.right_share)
            if not missing:
                break
            sampled += self._judged(self.feed.refill(missing), step, number)
            number += missing
        return sampled

    def _judged(self, rows: Sequence[Row], step: int, number: int) -> list[Sampled]:
        """Groups for this rank's share of `rows`, which are numbered from `number` on."""
        config = self.config
        places = list(range(number + rank(), number + len(rows), world_size()))
        own = [rows[place - number] for place in places]
        temperatures = [config.temperature_of(step, row["pass_rate"]) for row in own]
        stops = self.rollout.encoder.stop_token_ids
        sampling = [SamplingParams(temperature, 1.0, self.max_tokens, stops) for temperature in temperatures]
        prompts, groups = self.rollout.sample(own, sampling, (step, places), config.group_size)
        scored = iter(judge(own, groups, self.rollout.encoder, config.terms, config.reward_clip, config.workers))
        return [
            Sampled(row, to_segment(prompt, done, one, place, temperature, self.rollout.version), one)
            for row, prompt, place, temperature, group in zip(own, prompts, places, temperatures, groups, strict=True)
            for done, one in zip(group, scored, strict=False)
        ]

    def _scores(self, sampled: Sequence[Sampled]) -> dict[int, GroupScore]:
        """By group, in order, of the groups of all ranks."""
        own: dict[int, list[Sampled]] = {}
        for one in sampled:
            own.setdefault(one.segment.group, []).append(one)
        scores = {}
        for group, members in own.items():
            judged = [one.segment for one in members if one.segment.reward is not None]
            rewards = [segment.reward for segment in judged if segment.reward is not None]
            kind = self.config.advantage_of(members[0].row["pass_rate"])
            scores[group] = score_group(rewards, [one.right for one in judged], kind, self.config.pass_at_k)
        everyone = {group: score for part in gathered(scores) for group, score in part.items()}
        return dict(sorted(everyone.items()))

    def _kinds(self, batch: Sequence[Sampled]) -> list[str]:
        return [self.config.advantage_of(one.row["pass_rate"]) for one in batch]

    def evaluate(self) -> Metrics:
        """The held-out pass rate of the weights in force, at the evaluation's own settings."""
        places = list(range(rank(), len(self.heldout), world_size()))
        own = [self.heldout[place] for place in places]
        sampling = [self.evaluation] * len(own)
        _, groups = self.rollout.sample(own, sampling, (-1 - self.rollout.version, places), self.config.eval_samples)
        verdicts = [scored.correct for scored in judge(own, groups, self.rollout.encoder, workers=self.config.workers)]
        judged = [verdict.passed for verdict in verdicts if verdict.score is not None]
        right, total = all_sum(sum(judged), len(judged))
        return {"heldout_pass_rate": right / total if total else None}

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the engine's own."""
        return {
            "weights_version": self.rollout.version,
            "updates": self.updater.steps,
            "probe_floor": self.rollout.probe.floor,
            **self.feed.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.updater.steps = state["updates"]
        self.rollout.probe.floor = state["probe_floor"]
        self.feed.restore(state)


def to_segment(
    prompt: tuple[int, ...], done: Completion, one: Scored, group: int, temperature: float, version: int
) -> Segment:
    """The training record of one completion."""
    return Segment(
        prompt_ids=prompt,
        output_ids=done.token_ids,
        rollout_logprobs=done.logprobs,
        version=version,
        temperature=temperature,
        reward=one.reward.value,
        reward_terms=one.reward.parts,
        right=one.correct.passed,
        group=group,
        truncated=done.finish_reason == "length",
    )


def diversity(sampled: Sequence[Sampled]) -> Metrics:
    """Distinct answers and n-grams within groups (`diversity`)."""
    groups: dict[int, list[Sampled]] = {}
    for one in sampled:
        groups.setdefault(one.segment.group, []).append(one)
    return {
        "distinct_answers": distinct_share([[one.scored.correct.extracted for one in own] for own in groups.values()]),
        "distinct_ngrams": distinct_ngrams([[one.segment.output_ids for one in own] for own in groups.values()]),
    }


def _mean(updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each metric over the optimizer steps of one batch."""
    return {name: sum(one[name] for one in updates) / len(updates) for name in updates[0]} if updates else {}

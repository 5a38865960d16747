"""A step of RL with verifiable rewards: sample groups, verify, compare within groups, update, sync.

The groups come from a `GroupSource`: single answers (`groups`), dialogues (`dialogues`), or either of them sampled in
the background (`asynchronous`). Rewards are the weighted sum of the configured terms, by default the verifier's score
alone. A completion that could not be judged is left out of its group and counted. A group teaches if its completions
have advantages. Other groups, such as groups that are all right or all wrong, have no gradient and are not trained on.

Each rank takes its share of the step's rows, samples them with its engine and trains on its completions. Losses are
divided by counts of the whole batch over all ranks (`update`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, repeat
from math import isclose
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.chat import encode_row
from truegold.pipeline.running.stage import SCRATCH
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.asynchronous import AsynchronousGroups, make_asynchronous_groups
from truegold.train.grpo.batch_metrics import Metrics, group_completions, mean_metrics, measure_batch
from truegold.train.grpo.belonging import StoredVerdicts, count_apart, make_stored_verdicts
from truegold.train.grpo.dialogues import make_dialogue_groups
from truegold.train.grpo.evaluation import EvaluationRows, measure_evaluation
from truegold.train.grpo.feed import Feed, GroupScore
from truegold.train.grpo.groups import (
    CompletionScorer,
    SampledGroups,
    StepCompletion,
    choose_groups,
    count_missing_groups,
    write_completions,
)
from truegold.train.grpo.self_distillation import Distilled, Member, join, self_teachers
from truegold.train.grpo.start_checks import COMPARED, check_prompts_have_stayed, digest_prompts
from truegold.train.grpo.update import Updater, WeighedBatch, weigh_segments
from truegold.train.model.distributed import all_max, all_sum, gathered, rank, world_size
from truegold.train.model.ending import is_end_asked, write_anyway
from truegold.train.model.engine import NotFiniteError
from truegold.train.model.segment import Segment
from truegold.train.model.step_effects import compare_weights
from truegold.train.objective import Mismatch
from truegold.train.rollout.rollout import RolloutSampler

GroupSource = SampledGroups | AsynchronousGroups
"""The source of a step's groups, which are sampled when the step asks for them, or in the background."""


@dataclass
class Trainer:
    """The state of a training, and its steps and evaluations."""

    feed: Feed
    heldout: EvaluationRows
    config: GrpoConfig
    updater: Updater
    rollout: RolloutSampler
    groups: GroupSource
    evaluation: SamplingParams
    """The sampling parameters of held-out rows."""
    out_dir: Path
    distilled: Distilled | None = None
    """Distilled positives: right completions made by the stage `synth`, which join the groups of their rows."""
    version: int = 0
    """The version of the weights in training. Each step with an update raises it. The sampler gets the weights every
    `sync_every` steps."""
    profile: Metrics = field(default_factory=dict)
    """Metrics of the profile. Guards compare them with the metrics of steps."""
    may_train: Callable[[int, Metrics], bool] = lambda step, metrics: True
    """A function of a step and its metrics before the update, which returns whether the batch may be trained on."""
    stored: StoredVerdicts = field(init=False)

    def __post_init__(self) -> None:
        scorer, rows = self.groups.answers.scorer, self.feed.all_rows()
        self.stored = make_stored_verdicts(scorer, self.config, self.out_dir, rows)

    @cached_property
    def prompts(self) -> str:
        """A digest of the prompts of the first rows. It changes with the chat template and the tokenizer."""
        return digest_prompts(self.feed.first_rows(COMPARED), self.rollout.encoder, self.groups.answers.template)

    def step(self, step: int) -> Metrics:
        """Take one step: groups, verdicts, advantages, update, sync. Returns the step's metrics over all ranks."""
        config, version = self.config, self.version
        started = time.monotonic()
        completions = self.groups.collect(version, step, self._count_missing)
        scores = self._score_groups(completions)
        positives: Sequence[Member] = ()
        if self.distilled is not None:
            # Advantages of the positives use pass rates from before this step.
            positives = self.distilled.members(completions, self.feed.pass_rates(scores), step)
        joining = int(all_sum(len(positives))[0])
        ranks_apart = count_apart(self.feed.drawn_ids(), [(done.segment.group, done.row["id"]) for done in completions])
        feed_metrics = self.feed.finish_step(scores)
        bounds, groups = config.sampling.right_share, list(scores)
        entered = {groups[index] for index in choose_groups([*scores.values()], config.prompts_per_step, bounds)}
        # If no group teaches, losses of distilled positives are averaged over the sampled completions of all groups.
        in_batch = entered if entered or not joining else scores.keys()
        batch = [done for done in completions if done.segment.reward is not None and done.segment.group in in_batch]
        segments, weighed = self._weigh(batch)
        metrics = measure_batch(completions, scores, entered, config.reward.composition, self.rollout.encoder)
        metrics |= weighed.metrics | feed_metrics | self.profile
        metrics |= {
            "trained_completions": float(all_sum(sum(done.trained for done in completions))[0] + joining),
            "distilled_members": float(joining),
            "staleness": float(version - self.rollout.version),
            "ranks_apart": float(ranks_apart),
            "prompts_moved": self._count_prompts_moved(completions),
        }
        sampled = updated = time.monotonic()
        updates: list[dict[str, float]] = []
        is_sync_due = (step + 1) % config.sync_every == 0
        is_trained = self.may_train(step, metrics) and bool(metrics["trained_completions"])
        if is_trained:
            self.rollout.engine.sleep(weights_follow=is_sync_due)
            try:
                share = self._share_entered(completions, entered)
                if joining:
                    segments, weighed = join(segments, weighed, positives)
                engine = self.updater.engine
                before = engine.weights_state()
                updates = self.updater.train_on(segments, weighed, f"{config.seed}-{step}", version, share)
                metrics |= compare_weights(before, engine.weights_state(), updates, is_whole=engine.is_whole)
            except NotFiniteError:
                metrics["not_finite"] = 1.0
                is_trained = False
            self.version += 1
            updated = time.monotonic()
        # After a signal to end, the sampler does not get new weights.
        probe = self.update_sampler() if is_sync_due and not all_max(float(is_end_asked())) else None
        synced = time.monotonic()
        metrics |= self._note_outcome(completions, entered if is_trained else None, version, step)
        rollouts = (step, completions, config.reward.composition, self.rollout.encoder, rank())
        write_anyway(self.out_dir, partial(write_completions, self.out_dir, *rollouts))
        metrics |= self.stored.check(step)
        metrics |= mean_metrics(updates)
        metrics |= self._push_missing(metrics, joining)
        if probe is not None:
            metrics["probe_mean_abs"] = probe.mean_abs
        return metrics | {
            "seconds_rollout": sampled - started,
            "seconds_update": updated - sampled,
            "seconds_sync": synced - updated,
        }

    def _count_missing(self, completions: Sequence[StepCompletion]) -> int:
        """Return the number of groups that the completions of all ranks lack for a batch."""
        scores = list(self._score_groups(completions).values())
        return count_missing_groups(scores, self.config.prompts_per_step, self.config.sampling.right_share)

    def _score_groups(self, completions: Sequence[StepCompletion]) -> dict[int, GroupScore]:
        """Return the scores of the groups of all ranks by group number, in ascending order."""
        objective = self.config.objective
        scores = {}
        for members in group_completions(completions):
            kind = objective.advantage_for(members[0].row["pass_rate"])
            scores[members[0].segment.group] = self.groups.answers.score_group(members, kind, objective.pass_at_k)
        all_scores = {group: score for rank_scores in gathered(scores) for group, score in rank_scores.items()}
        return dict(sorted(all_scores.items()))

    def _weigh(self, batch: Sequence[StepCompletion]) -> tuple[list[Segment], WeighedBatch]:
        """Return the segments of a batch with their advantages. Sets `advantage` and `trained` of its completions."""
        objective = self.config.objective
        compared = [self.groups.answers.compared_segments(completion) for completion in batch]
        kinds = [objective.advantage_for(completion.row["pass_rate"]) for completion in batch]
        repeated_kinds = [*chain(*map(repeat, kinds, map(len, compared)))]
        weighed = weigh_segments([*chain(*compared)], objective, repeated_kinds)
        start = 0
        for completion, segments in zip(batch, compared, strict=True):
            part = slice(start, start + len(segments))
            completion.advantage = float(weighed.advantages[part].sum()) / max(len(segments), 1)
            completion.trained = bool(weighed.trained[part].any())
            start = part.stop
        if objective.self_distillation.weight:
            template, longest = objective.self_distillation.template, self.rollout.engine.max_model_len
            weighed = replace(weighed, teachers=self_teachers(batch, self.rollout.encoder, template, longest))
        return self.groups.answers.trained_segments(batch, weighed)

    def _count_prompts_moved(self, completions: Sequence[StepCompletion]) -> float:
        """Return the number of changed prompts over all ranks, or 0 for dialogues. A group counts if it was sampled
        from another prompt than that of its row. A rank adds 1 if the digest of its prompts has changed since the
        start."""
        if self.config.turns is not None:
            return 0.0
        encoder = self.rollout.encoder
        sampled = [members[0] for members in group_completions(completions)]
        moved = sum(tuple(encode_row(encoder, done.row)) != done.segment.prompt_ids for done in sampled)
        now = digest_prompts(self.feed.first_rows(COMPARED), encoder, self.groups.answers.template)
        return all_sum(moved + (now != self.prompts))[0]

    def _push_missing(self, metrics: Metrics, joining: int) -> Metrics:
        """Return `push_missing`, the amount by which `push_gap` (`step_effects`) is below its lower bound of 1.

        The bound holds if only advantages enter the loss, and the reward is correctness alone. Then every right
        completion is pushed up, and every wrong one down. Returns an empty dict in other cases. It is also empty for a
        negative gap, because the guard `update_sign` reports it.
        """
        objective, gap = self.config.objective, metrics.get("push_gap")
        is_else = objective.kl.weight or objective.self_distillation.weight or objective.covariance.kind == "kl"
        spread, reward_gap = metrics.get("reward_spread"), metrics.get("reward_gap")
        is_right_alone = bool(spread) and reward_gap is not None and isclose(reward_gap, spread or 0.0)
        if gap is None or gap < 0 or is_else or joining or self.config.turns is not None or not is_right_alone:
            return {}
        return {"push_missing": max(0.0, 1.0 - gap)}

    def _share_entered(self, completions: Sequence[StepCompletion], entered: Collection[int]) -> float:
        """Return the share of a whole batch that has entered. The share is 1 if losses are divided by the entered
        groups, or if no group has entered."""
        if self.config.objective.relative_to == "teaching" or not entered:
            return 1.0
        count = all_sum(sum(completion.segment.group in entered for completion in completions))[0]
        return min(1.0, count / (self.config.prompts_per_step * self.config.group_size))

    def _note_outcome(
        self, completions: Sequence[StepCompletion], entered: Collection[int] | None, version: int, step: int
    ) -> Metrics:
        """Record which completions and groups were trained on, and return metrics of the group source.

        entered: the groups that were trained on, or None if the whole batch was left out. version: the version of the
        weights before the update.
        """
        if entered is not None:
            return {**self.groups.finish(entered, version, step)}
        for completion in completions:
            completion.trained = False
        return {"trained_completions": 0.0, **self.groups.finish((), version, step)}

    def update_sampler(self) -> Mismatch | None:
        """Send the weights in training to the sampler if it has older ones.

        Returns the difference of the two engines that the probe measures, or None if nothing was sent or measured.
        """
        if self.rollout.version == self.version:
            return None
        probe = self.groups.send_weights(self.version)
        if probe is not None:
            self.updater.engine_difference = probe.mean_abs
        return probe

    def evaluate(self) -> Metrics:
        """Return the pass rates of the weights in training on all held-out sets, with the settings of evaluations."""
        self.update_sampler()
        positions = list(range(rank(), len(self.heldout.rows), world_size()))
        rows, samples = [self.heldout.rows[position] for position in positions], self.config.evaluation.samples
        scores = self.groups.evaluate(rows, positions, samples, self.evaluation)
        passed = [
            [score.correct.passed for score in scores[start : start + samples] if score.correct.score is not None]
            for start in range(0, len(scores), samples)
        ]
        measured = measure_evaluation([self.heldout.names[position] for position in positions], passed, samples)
        return measured | self.stored.check_evaluation(self.groups.answers.evaluated)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the training engine's state."""
        return {
            "weights_version": self.version,
            "prompts": self.prompts,
            "updates": self.updater.steps,
            "probe_floor": self.rollout.probe.floor,
            "canaries": self.stored.canaries,
            **self.feed.state(),
            **self.groups.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint. Raises GuardError if the prompts have changed.

        The sync before has set the version of the sampler's weights.
        """
        check_prompts_have_stayed(state.get("prompts"), self.prompts, self.config.guards.off)
        self.updater.steps = state["updates"]
        self.version = state["weights_version"]
        self.rollout.probe.floor = state["probe_floor"]
        self.stored.canaries = list(state["canaries"])
        self.feed.restore(state)
        self.groups.restore(state)


def make_group_source(
    feed: Feed, config: GrpoConfig, rollout: RolloutSampler, max_tokens: int, out_dir: Path
) -> GroupSource:
    """Return the source of a training's groups. Raises ConfigError if its environment cannot be created."""
    scorer = CompletionScorer(config.reward, rollout.encoder, out_dir / SCRATCH / f"rank-{rank()}")
    answers = SampledGroups(feed, config, rollout, scorer, max_tokens, None)
    if config.turns is not None:
        answers = make_dialogue_groups(answers, config.turns, out_dir)
    return answers if config.asynchronous is None else make_asynchronous_groups(answers, out_dir)

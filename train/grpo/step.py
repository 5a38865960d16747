"""A step of RL with verifiable rewards, top to bottom: sample groups, verify, compare within the group, update, sync.

Rewards are composed of the terms in the configuration (`rewards`), by default the verifier's score alone; a completion
that could not be judged leaves its group and is counted. Groups without advantages, such as those that are all right or
all wrong, carry no gradient and never enter. Every rank takes its share of the step's rows, samples with an engine of
its own and trains on what it sampled; what a step is compared with is the whole batch (`update`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.objective import DistilledConfig
from truegold.train.grpo.background import Background, make_background
from truegold.train.grpo.batch_metrics import (
    Metrics,
    diversity_metrics,
    group_completions,
    group_ngrams,
    mean_metrics,
    reward_metrics,
    tokens_per_teaching_group,
)
from truegold.train.grpo.completions import write_completions
from truegold.train.grpo.distilled import Distilled, join
from truegold.train.grpo.episode_scores import any_turn_teaches, segments_to_weigh, spread_advantages
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.group_choice import GroupScore, choose_groups, count_missing_groups, right_share, score_group
from truegold.train.grpo.player import Player, make_player
from truegold.train.grpo.profile_prompts import COMPARED, check_prompts_have_stayed, digest_prompts
from truegold.train.grpo.rewards import (
    CompletionScore,
    CompletionScorer,
    StepCompletion,
    scored_segment,
    without_contents,
)
from truegold.train.grpo.self_teacher import self_teachers
from truegold.train.grpo.text_metrics import text_metrics
from truegold.train.grpo.update import Updater, WeighedBatch, weigh_segments
from truegold.train.guards.canaries import Canaries
from truegold.train.model.distributed import all_sum, gathered, rank, world_size
from truegold.train.model.engine import NotFiniteError
from truegold.train.model.segment import Segment
from truegold.train.rollout.mismatch import Mismatch
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
    version: int = 0
    """That of the weights in training, which the sampler has at most `sync_every` steps later. Each update makes one:
    a step that trains nothing makes nothing older."""
    may_train: Callable[[int, Metrics], bool] = lambda step, metrics: True
    """Asked before each update, with what is known of the batch: a guard may keep it from the optimizer."""
    distilled: Distilled = field(default_factory=lambda: Distilled([], DistilledConfig()))
    """Positives that join the groups of their rows."""
    scorer: CompletionScorer = field(init=False)
    """Judges the completions of all steps."""
    player: Player | None = field(init=False, default=None)
    """Plays episodes, where answers are dialogues (`turns`)."""
    background: Background | None = field(init=False, default=None)
    """The groups on their way, where they are sampled beside the update (`asynchronous`)."""
    episode_metrics: list[dict[str, float]] = field(default_factory=list)
    """Of the episodes of the step so far."""
    canaries: Canaries[StepCompletion] = field(init=False)
    """Completions of the first step, judged again at each step."""

    def __post_init__(self) -> None:
        self.canaries = Canaries(self.judge_again)
        self.scorer = CompletionScorer(self.config.reward, self.rollout.encoder)
        if self.config.turns is not None:
            self.player = make_player(self.rollout, self.config, self.config.turns, self.scorer, self.out_dir)
        if self.config.asynchronous is not None:
            self.background = make_background(
                self.feed, self.config, self.rollout, self.scorer, self.player, self.max_tokens, self.out_dir
            )

    @cached_property
    def prompts(self) -> str:
        """What changes with the way in which prompts are written."""
        template = self.player.template if self.player is not None else None
        return digest_prompts(self.feed.first_rows(COMPARED), self.rollout.encoder, template)

    def begin(self) -> None:
        """Start what runs beside the steps."""
        if self.background is not None:
            self.background.begin()

    def close(self) -> None:
        """End what runs beside the steps."""
        if self.background is not None:
            self.background.pool.close()
        self.scorer.close()

    def step(self, step: int) -> Metrics:
        """Take one step: rollout, verdicts, advantages, update, sync. Returns the step's metrics, of all ranks."""
        config = self.config
        started = time.monotonic()
        completions = self._roll_out(step)
        scores = self._score_groups(completions)
        members = self.distilled.members(completions, self.feed.pass_rates(scores), step)
        foretold = self.feed.finish_step(scores)
        groups = list(scores)
        chosen = choose_groups(list(scores.values()), config.prompts_per_step, config.sampling.right_share)
        entered = {groups[index] for index in chosen}
        batch = [
            completion
            for completion in completions
            if completion.segment.group in entered and completion.segment.reward is not None
        ]
        joining = len(list(chain(*gathered([member.strength for member in members]))))
        if not entered and joining:
            # Their weights are relative to what was sampled, though nothing of it teaches.
            batch = [completion for completion in completions if completion.segment.reward is not None]
        segments, weighed = self._weigh(batch)
        if config.objective.self_distillation.weight:
            template = config.objective.self_distillation.template
            longest = self.rollout.engine.max_model_len
            weighed = replace(weighed, teachers=self_teachers(batch, self.rollout.encoder, template, longest))
        # Tokens, texts and rows stay with the rank that has them.
        all_completions = list(chain(*gathered([without_contents(completion) for completion in completions])))
        terms = config.reward.composition
        metrics: Metrics = {
            **reward_metrics(all_completions, terms),
            **diversity_metrics(all_completions, chain(*gathered(group_ngrams(completions)))),
            **text_metrics(completions, self.rollout.encoder),
            **weighed.metrics,
            **foretold,
            "tokens_per_teaching_group": tokens_per_teaching_group(all_completions, scores.values()),
            "groups_entered": float(len(entered)),
            "groups_teaching": sum(score.teaches for score in scores.values()) / max(len(scores), 1),
            "right_share": right_share([scores[group] for group in entered]),
            "trained_completions": float(sum(completion.trained for completion in all_completions) + joining),
            "distilled_members": float(joining),
            "staleness": float(self.version - self.rollout.version),
            "canaries_changed": self._check_canaries(completions) if self.player is None else None,
            **mean_metrics([metrics for metrics in chain(*gathered(self.episode_metrics)) if metrics]),
        }
        self.episode_metrics = []
        sampled = updated = time.monotonic()
        updates, probe = [], None
        version = self.version
        is_sync_due = (step + 1) % config.sync_every == 0
        is_trained = self.may_train(step, metrics) and bool(metrics["trained_completions"])
        if is_trained:
            if is_sync_due:
                self.rollout.engine.sleep()
            try:
                share = self._share_entered(all_completions, entered) if entered else 1.0
                segments, weighed = join(segments, weighed, members)
                seed = f"{config.seed}-{step}"
                updates = self.updater.train_on(segments, weighed, seed, self.version, share)
            except NotFiniteError:
                metrics["not_finite"] = 1.0
                is_trained = False
            self.version += 1
            updated = time.monotonic()
            if is_sync_due:
                self.rollout.engine.wake()
        if is_sync_due:
            probe = self.bring_sampler_up()
        synced = time.monotonic()
        metrics |= self._note_outcome(completions, entered if is_trained else None, version, step)
        write_completions(self.out_dir, step, completions, terms, self.rollout.encoder, rank())
        return {
            **metrics,
            **mean_metrics(updates),
            **({"probe_mean_abs": probe.mean_abs} if probe else {}),
            "seconds_rollout": sampled - started,
            "seconds_update": updated - sampled,
            "seconds_sync": synced - updated,
        }

    def _note_outcome(
        self, completions: Sequence[StepCompletion], entered: Container[int] | None, version: int, step: int
    ) -> Metrics:
        """Note what came of a step's completions and groups, and return what is measured of that.

        entered: the groups that were trained on with the weights `version`; None where the whole batch was left out.
        """
        metrics: Metrics = {}
        if entered is None:
            metrics["trained_completions"] = 0.0
            for completion in completions:
                completion.trained = False
        if self.background is not None:
            metrics |= self.background.finish(() if entered is None else entered, version, step)
        return metrics

    def bring_sampler_up(self) -> Mismatch | None:
        """Give the sampler the weights in training, where it has older ones; return what the probe measured then."""
        if self.rollout.version == self.version:
            return None
        if self.background is not None:
            self.rollout.send(self.version)
            return None
        probe = self.rollout.sync(self.version)
        self.updater.engine_difference = probe.mean_abs
        return probe

    def _weigh(self, batch: Sequence[StepCompletion]) -> tuple[list[Segment], WeighedBatch]:
        """Return the segments of a batch and what each weighs, which its completions take note of."""
        objective, turns = self.config.objective, self.config.turns
        segments = [completion.segment for completion in batch]
        sizes = [1] * len(batch)
        if turns is not None:
            segments, sizes = segments_to_weigh(batch, turns)
        kinds = [objective.advantage_for(completion.row["pass_rate"]) for completion in batch]
        weighed = weigh_segments(segments, objective, [*chain(*map(repeat, kinds, sizes))])
        start = 0
        for completion, size in zip(batch, sizes, strict=True):
            part = slice(start, start + size)
            completion.advantage = float(weighed.advantages[part].sum()) / max(size, 1)
            completion.trained = bool(weighed.trained[part].any())
            start += size
        return (segments, weighed) if turns is None else spread_advantages(batch, weighed, turns)

    def _share_entered(self, completions: Sequence[StepCompletion], entered: Container[int]) -> float:
        """Return what part of a whole batch has entered, as far as token weights are relative to a whole one."""
        if self.config.objective.relative_to == "teaching":
            return 1.0
        count = sum(completion.segment.group in entered for completion in completions)
        return min(1.0, count / (self.config.prompts_per_step * self.config.group_size))

    def _check_canaries(self, completions: Sequence[StepCompletion]) -> float | None:
        """Return the share of the first step's completions that are judged otherwise now; rank 0 judges them."""
        changed = None
        if rank() == 0:
            changed = self.canaries.changed_share()
            self.canaries.choose(completions, [_judgement(completion.score) for completion in completions])
        share: float | None = gathered(changed)[0]
        return share

    def judge_again(self, completions: Sequence[StepCompletion]) -> list[tuple[float | None, float | None]]:
        """Return reward and correctness of completions as the verifiers judge them now."""
        rows = [completion.row for completion in completions]
        groups = [[Completion(done.segment.output_ids, done.segment.rollout_logprobs, "stop")] for done in completions]
        scores = self.scorer.score(rows, groups)
        return [_judgement(score) for score in scores]

    def _roll_out(self, step: int) -> list[StepCompletion]:
        """Return this rank's scored completions of the step: its share of the next rows, and of the refills for groups
        that teach nothing or for a share of right answers out of its bounds."""
        size, sampling = self.config.prompts_per_step, self.config.sampling
        if self.background is not None:
            completions = self.background.collect(self.version, step, self._count_missing)
            self.episode_metrics += self.background.episode_metrics
            return completions
        completions = self._sample_and_score(self.feed.take(size), step, 0)
        next_group = size
        for _ in range(sampling.refills or 0):
            missing = self._count_missing(completions)
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
        if self.player is not None:
            temperature = config.sampling.temperature_for(step, None)
            sampling_params = SamplingParams(temperature, 1.0, self.max_tokens, encoder.stop_token_ids)
            episodes, metrics = self.player.play(local_rows, groups, config.group_size, step, sampling_params)
            self.episode_metrics.append(metrics)
            return episodes
        temperatures = [config.sampling.temperature_for(step, row["pass_rate"]) for row in local_rows]
        sampling = [
            SamplingParams(temperature, 1.0, self.max_tokens, encoder.stop_token_ids) for temperature in temperatures
        ]
        prompts, completions = self.rollout.sample(local_rows, sampling, step, groups, config.group_size)
        scores = iter(self.scorer.score(local_rows, completions))
        return [
            StepCompletion(row, scored_segment(prompt, completion, score, group, temperature, [(version, 0)]), score)
            for row, prompt, group, temperature, members in zip(
                local_rows, prompts, groups, temperatures, completions, strict=True
            )
            for completion, score in zip(members, scores, strict=False)
        ]

    def _count_missing(self, completions: Sequence[StepCompletion]) -> int:
        """Return how many groups the completions of all ranks are short of a batch."""
        scores = list(self._score_groups(completions).values())
        return count_missing_groups(scores, self.config.prompts_per_step, self.config.sampling.right_share)

    def _score_groups(self, completions: Sequence[StepCompletion]) -> dict[int, GroupScore]:
        """Return the scores of the groups of all ranks, by group, in order."""
        objective, turns = self.config.objective, self.config.turns
        scores = {}
        for members in group_completions(completions):
            segments = [completion.segment for completion in members]
            rewards = [segment.reward for segment in segments if segment.reward is not None]
            right = [segment.right for segment in segments if segment.reward is not None]
            kind = objective.advantage_for(members[0].row["pass_rate"])
            score = score_group(rewards, right, kind, objective.pass_at_k)
            if turns is not None and turns.credit != "equal":
                # Episodes that have earned the same as a whole may differ turn by turn, and the other way round.
                score = replace(score, teaches=any_turn_teaches(members, turns, kind, objective.pass_at_k))
            scores[segments[0].group] = score
        all_scores = {group: score for rank_scores in gathered(scores) for group, score in rank_scores.items()}
        return dict(sorted(all_scores.items()))

    def evaluate(self) -> Metrics:
        """Return the held-out pass rate of the weights in training, at the evaluation's own settings."""
        self.bring_sampler_up()
        if self.background is not None:
            # Between two evaluations nobody asks the sampler, which is never idle for it.
            self.rollout.probe.check(self.version)
        positions = list(range(rank(), len(self.heldout), world_size()))
        rows = [self.heldout[position] for position in positions]
        seed_step = -1 - self.rollout.version
        samples = self.config.evaluation.samples
        if self.player is not None:
            episodes, _ = self.player.play(rows, positions, samples, seed_step, self.evaluation)
            scores = [episode.score for episode in episodes]
        else:
            _, groups = self.rollout.sample(rows, [self.evaluation] * len(rows), seed_step, positions, samples)
            scores = self.scorer.score(rows, groups, correctness_only=True)
        passed = [
            [score.correct.passed for score in scores[start : start + samples] if score.correct.score is not None]
            for start in range(0, len(scores), samples)
        ]
        right, judged = all_sum(sum(map(sum, passed)), sum(map(len, passed)))
        # The same problems come at each evaluation, so that only their samples vary.
        variances = [sum(group) * (len(group) - sum(group)) / len(group) for group in passed if group]
        variance = all_sum(sum(variances))[0] * samples / max(samples - 1, 1)
        if not judged:
            return {"heldout_pass_rate": None}
        if samples == 1:
            variance = right * (judged - right) / judged
        return {"heldout_pass_rate": right / judged, "heldout_error": math.sqrt(variance) / judged}

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps beside the engine's state."""
        return {
            "weights_version": self.version,
            "prompts": self.prompts,
            "updates": self.updater.steps,
            "probe_floor": self.rollout.probe.floor,
            "canaries": (self.canaries.completions, self.canaries.judgements),
            **self.feed.state(),
            **(self.background.state() if self.background is not None else {}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a checkpoint's state; the version of the weights is restored by the sync before. Raises GuardError
        where prompts are written otherwise now."""
        check_prompts_have_stayed(state.get("prompts"), self.prompts, self.config.guards.off)
        self.updater.steps = state["updates"]
        self.version = state["weights_version"]
        self.rollout.probe.floor = state["probe_floor"]
        self.canaries.completions, self.canaries.judgements = state["canaries"]
        self.feed.restore(state)
        if self.background is not None:
            self.background.restore(state)


def _judgement(score: CompletionScore) -> tuple[float | None, float | None]:
    return score.reward.value, score.correct.score

"""What every rank sees of groups that are sampled beside the update: its share of what rank 0's pipeline hands out.

Rank 0 asks for groups, keeps them and writes down how they end. The others draw from their feeds what it has drawn, so
that all of them know the same, and score and train the groups that it sends them: every so many, as many as ranks, as
if they had sampled them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.asynchronous import Group, Pipeline
from truegold.train.grpo.feed import Draw, Feed
from truegold.train.grpo.player import Player
from truegold.train.grpo.rewards import CompletionScorer, StepCompletion, scored_segment
from truegold.train.model.distributed import from_first_rank, rank, scattered, world_size
from truegold.train.rollout.rollout import Rollout
from truegold.train.rollout.sampler_child import Usage
from truegold.train.rollout.sampler_pool import SamplerPool
from truegold.train.turns.episodes import Episode

CountMissing = Callable[[Sequence[StepCompletion]], int]
"""Returns how many groups the completions of a step are short of, over all ranks."""


@dataclass
class Background:
    """The groups of a training that are sampled beside it. Every rank calls these together."""

    feed: Feed
    config: GrpoConfig
    rollout: Rollout
    scorer: CompletionScorer
    player: Player | None
    """Judges episodes, where answers are dialogues."""
    pipeline: Pipeline | None
    """Rank 0's."""
    pool: SamplerPool
    draws: list[Draw] = field(default_factory=list)
    """Those of the step's groups."""
    episode_metrics: list[dict[str, float]] = field(default_factory=list)
    """Of the episodes of the step so far."""

    def begin(self) -> None:
        """Start to sample."""
        if self.pipeline is not None:
            self.pipeline.begin()
        self._follow()

    def collect(self, version: int, step: int, count_missing: CountMissing) -> list[StepCompletion]:
        """Return this rank's scored completions of a step from groups that were sampled meanwhile, and as many more in
        place of groups that teach nothing as refills allow.

        version: of the weights in training.
        """
        missing, refills = self.config.prompts_per_step, self.config.sampling.refills or 0
        completions: list[StepCompletion] = []
        self.draws, self.episode_metrics = [], []
        for _ in range(refills + 1):
            shares: list[tuple[list[Draw], list[Group], Usage]] = []
            if self.pipeline is not None:
                taken = self.pipeline.take(missing, version, step)
                draws = [group.draw for group in taken]
                shares = [(draws, taken[other :: world_size()], self.pool.usage) for other in range(world_size())]
            draws, groups, usage = scattered(shares)
            completions += self._score(groups, len(self.draws), step, usage)
            self.draws += draws
            missing = count_missing(completions)
            if not missing:
                break
        self._follow()
        self.feed.adopt(self.draws)
        return completions

    def finish(self, entered: Container[int], version: int, step: int) -> dict[str, float]:
        """Have it written down what became of the step's groups, and return what is measured of them.

        entered: the indices of those that are trained on.
        """
        measured = self.pipeline.finish(entered, version, step) if self.pipeline is not None else {}
        metrics: dict[str, float] = from_first_rank(measured)
        return metrics

    def forget_before(self, version: int) -> None:
        """Leave out what older weights than these have sampled, from which the run has returned."""
        if self.pipeline is not None:
            self.pipeline.oldest_version = version

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        kept: dict[str, Any] = from_first_rank(self.pipeline.state() if self.pipeline is not None else {})
        return kept

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        if self.pipeline is not None:
            self.pipeline.restore(state)

    def _follow(self) -> None:
        """Draw from the feeds of other ranks what rank 0 has drawn from its own."""
        drawn: list[int] = from_first_rank(self.pipeline.drawn if self.pipeline is not None else [])
        if self.pipeline is not None:
            self.pipeline.drawn = []
            return
        for count in drawn:
            self.feed.draw(count)

    def _score(self, groups: Sequence[Group], first_group: int, step: int, usage: Usage) -> list[StepCompletion]:
        """Return the completions of this rank's share of groups, which are numbered from `first_group` on."""
        indices = range(first_group + rank(), first_group + rank() + world_size() * len(groups), world_size())
        temperature = self.config.sampling.temperature_for(0, None)
        if self.player is not None:
            episodes = [
                replace(cast("Episode", done.answer), group=index)
                for index, group in zip(indices, groups, strict=True)
                for done in group.ordered()
            ]
            waited_share = usage.environments_s / max(usage.stream_s, 1e-9)
            judged, metrics = self.player.judge(episodes, step, temperature, usage.faults, waited_share)
            self.episode_metrics.append(metrics)
            return judged
        answers = [[cast("Completion", done.answer) for done in group.ordered()] for group in groups]
        scores = iter(self.scorer.score([group.row for group in groups], answers))
        return [
            StepCompletion(
                group.row, scored_segment(group.prompt, answer, score, index, temperature, done.versions), score
            )
            for index, group, members in zip(indices, groups, answers, strict=True)
            for answer, done, score in zip(members, group.ordered(), scores, strict=False)
        ]


def make_background(
    feed: Feed,
    config: GrpoConfig,
    rollout: Rollout,
    scorer: CompletionScorer,
    player: Player | None,
    max_tokens: int,
    out_dir: Path,
) -> Background:
    """Return what a training takes its groups from."""
    pool = rollout.engine
    assert isinstance(pool, SamplerPool)
    pipeline = None
    if rank() == 0:
        temperature = config.sampling.temperature_for(0, None)
        sampling = SamplingParams(temperature, 1.0, max_tokens, rollout.encoder.stop_token_ids)
        pipeline = Pipeline(feed, config, rollout, pool, sampling, out_dir)
    return Background(feed, config, rollout, scorer, player, pipeline, pool)

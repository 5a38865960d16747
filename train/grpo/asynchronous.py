"""Groups that are sampled in the background, while the trainer updates the weights.

    state         groups in this state
    requested     at most prompts_per_step x (max_staleness + 1) groups that no step has taken yet; if the trainer falls
                  behind, the sampler waits
    ready         sampled groups, which wait in a buffer until a step takes them or they become too old
    ended         groups whose end is recorded in groups.jsonl:
                  {"group": 17, "id": "...", "event": "trained", "step": 4, "staleness": 1}

Each group has a unique key, is requested once and ends once, in one of three ways:

    event     cause
    trained   the group was trained on
    idle      its completions have no advantages, its step was skipped, or it was not needed
    stale     it is too old, or was sampled by weights that were rolled back

A checkpoint has the keys of unfinished groups. A resumed run requests these groups again.

Rank 0 requests groups, buffers them and records their ends (`Pipeline`). It sends each rank a share of a step's groups,
which the rank scores and trains on (`AsynchronousGroups`). Each rank has a copy of the feed, the stream of problems.
Other ranks repeat rank 0's draws, so that all copies stay equal.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from truegold.pipeline.engines.base import Request, SamplingParams, sample_seed
from truegold.pipeline.engines.chat import encode_row
from truegold.pipeline.running.disk import append_lines, read_whole_lines, write_whole
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import AsynchronousConfig, GrpoConfig
from truegold.train.grpo.feed import Draw, Feed
from truegold.train.grpo.groups import CompletionScore, CountMissing, RequestedGroup, SampledGroups, StepCompletion
from truegold.train.model.distributed import from_first_rank, rank, scattered, world_size
from truegold.train.model.ending import interruptible, write_anyway
from truegold.train.rollout.rollout import RolloutSampler
from truegold.train.rollout.sampler import FinishedSample
from truegold.train.rollout.sampler_child import Usage
from truegold.train.rollout.samplers import SamplerPool
from truegold.train.turns.episodes import Episode


@dataclass
class AsynchronousGroups:
    """One rank's share of the groups that are sampled in the background."""

    answers: SampledGroups
    """Scores completions. It also samples completions for evaluations."""
    pool: SamplerPool
    pipeline: Pipeline | None
    """The requested and buffered groups; None except on rank 0."""
    draws: list[Draw] = field(default_factory=list)
    """The draws of the step's groups."""

    def begin(self) -> None:
        """Start to sample in the background."""
        if self.pipeline is not None:
            self.pipeline.begin()
        self._follow()

    def collect(self, version: int, step: int, count_missing: CountMissing) -> list[StepCompletion]:
        """Return this rank's scored completions of a step.

        Groups without advantages are replaced by further groups, in at most `sampling.refills` rounds.
        """
        config = self.answers.config
        missing = config.prompts_per_step
        completions: list[StepCompletion] = []
        self.draws = []
        for _ in range((config.sampling.refills or 0) + 1):
            shares: list[tuple[list[Draw], list[RequestedGroup], Usage]] = []
            taken: list[RequestedGroup] = []
            with interruptible():
                if self.pipeline is not None:
                    taken = self.pipeline.take(missing, version, step)
            if self.pipeline is not None:
                draws = [group.draw for group in taken]
                shares = [(draws, taken[other :: world_size()], self.pool.usage) for other in range(world_size())]
            draws, groups, usage = scattered(shares)
            first = len(self.draws)
            indices = range(first + rank(), first + rank() + world_size() * len(groups), world_size())
            completions += self.answers.score_finished(groups, indices, step, usage)
            self.draws += draws
            missing = count_missing(completions)
            if not missing:
                break
        self._follow()
        self.answers.feed.adopt(self.draws)
        return completions

    def finish(self, entered: Collection[int], version: int, step: int) -> dict[str, float]:
        """Record the ends of the step's groups and return their metrics, the same on every rank."""
        measured = self.pipeline.finish(entered, version, step) if self.pipeline is not None else {}
        return {**self.answers.finish(entered, version, step), **from_first_rank(measured)}

    def evaluate(
        self, rows: Sequence[Row], positions: Sequence[int], samples: int, sampling: SamplingParams
    ) -> list[CompletionScore]:
        """Return `samples` scores of each held-out row. Sampling in the background pauses meanwhile."""
        # The comparison of the two engines runs here. At other times the background sampler is busy.
        self.answers.rollout.probe.check(self.answers.rollout.version)
        return self.answers.evaluate(rows, positions, samples, sampling)

    def send_weights(self, version: int) -> None:
        """Send the current weights to the samplers, which load them later."""
        self.answers.rollout.send(version)

    def forget_before(self, version: int) -> None:
        """Drop groups that were sampled by weights before `version`, after a roll-back to `version`."""
        if self.pipeline is not None:
            self.pipeline.oldest_version = version

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return from_first_rank(self.pipeline.state() if self.pipeline is not None else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a checkpoint."""
        self.answers.restore(state)
        if self.pipeline is not None:
            self.pipeline.restore(state)

    def close(self) -> None:
        """End the samplers and the processes that judge completions."""
        self.pool.close()
        self.answers.close()

    def _follow(self) -> None:
        """Repeat the draws of rank 0 from this rank's feed."""
        drawn = from_first_rank(self.pipeline.drawn if self.pipeline is not None else [])
        if self.pipeline is not None:
            self.pipeline.drawn = []
            return
        for count in drawn:
            self.answers.feed.draw(count)


def make_asynchronous_groups(answers: SampledGroups, out_dir: Path) -> AsynchronousGroups:
    """Return the source of groups of an asynchronous training, for this rank."""
    pool = answers.rollout.engine
    assert isinstance(pool, SamplerPool)
    pipeline = None
    if rank() == 0:
        sampling = answers.sampling_params(0, None)
        pipeline = Pipeline(answers.feed, answers.config, answers.rollout, pool, sampling, out_dir)
    return AsynchronousGroups(answers, pool, pipeline)


LEDGER = "groups.jsonl"
"""The file with the end of each group."""


@dataclass
class Pipeline:
    """The groups that were drawn from the feed and wait for training. Rank 0 keeps them."""

    feed: Feed
    config: GrpoConfig
    rollout: RolloutSampler
    sampler: SamplerPool
    sampling: SamplingParams
    out_dir: Path
    drawn: list[int] = field(default_factory=list)
    """The number of rows of each draw from the feed that the other ranks have not repeated yet."""
    next_key: int = 0
    asked: dict[int, RequestedGroup] = field(default_factory=dict)
    """Requested groups that are not fully sampled, by key."""
    ready: list[RequestedGroup] = field(default_factory=list)
    """Finished groups, in the order in which they finished."""
    step: int = 0
    """The next step."""
    taken: list[RequestedGroup] = field(default_factory=list)
    """The groups that the current step has taken."""
    dropped: int = 0
    """The number of groups that were dropped as stale in the current step."""
    waited_s: float = 0.0
    """Seconds that the trainer has waited for groups in the current step."""
    finished: float = field(default_factory=time.monotonic)
    """The time, by the monotonic clock, at which the previous step finished."""
    oldest_version: int = 0
    """The oldest version of weights whose samples may be trained on. Earlier versions were rolled back."""

    @property
    def settings(self) -> AsynchronousConfig:
        """The section `asynchronous` of the configuration."""
        assert self.config.asynchronous is not None
        return self.config.asynchronous

    def begin(self) -> None:
        """Start to sample in the background."""
        self.sampler.start(self.sampling, in_flight=self.settings.in_flight)
        self.fill()

    def fill(self) -> None:
        """Request groups up to the limit of `groups_ahead`."""
        ahead = self.settings.groups_ahead(self.config.steps, self.config.prompts_per_step)
        missing = ahead - len(self.asked) - len(self.ready)
        if missing <= 0:
            return
        self.drawn.append(missing)
        for draw in self.feed.draw(missing):
            self._ask(self.next_key, draw)
            self.next_key += 1

    def take(self, count: int, version: int, step: int) -> list[RequestedGroup]:
        """Return `count` groups that are fresh enough for the weights of `version`, and request further groups.

        Waits until enough groups are sampled.
        """
        taken: list[RequestedGroup] = []
        began = time.monotonic()
        while len(taken) < count:
            self._take_up(self.sampler.poll())
            self._drop_stale(version, step)
            if self.settings.order == "fresh":
                self.ready.sort(key=lambda group: (group.staleness(version), group.key))
            missing = count - len(taken)
            taken, self.ready = [*taken, *self.ready[:missing]], self.ready[missing:]
            self.fill()
            if len(taken) < count:
                self._take_up(self.sampler.poll(None))
        self.waited_s += time.monotonic() - began
        self.taken += taken
        return taken

    def finish(self, entered: Collection[int], version: int, step: int) -> dict[str, float]:
        """Record the ends of the step's groups and return their metrics.

        entered: the positions, in the list of the step's groups, of the groups that were trained on.
        """
        ages = [group.staleness(version) for group in self.taken]
        for event, is_meant in (("trained", True), ("idle", False)):
            members = [group for index, group in enumerate(self.taken) if (index in entered) == is_meant]
            self._write(members, event, version, step)
        usage, now = self.sampler.usage, time.monotonic()
        metrics = {
            "staleness": fmean(ages) if ages else 0.0,
            "staleness_max": float(max(ages, default=0)),
            "stale_groups": float(self.dropped),
            "seconds_waited": self.waited_s,
            "trainer_waiting": self.waited_s / max(now - self.finished, 1e-9),
            "sampler_starved": usage.starved_s / max(usage.stream_s, 1e-9),
        }
        self.finished = now
        self.step, self.taken, self.dropped, self.waited_s = step + 1, [], 0, 0.0
        return metrics

    def _write(self, groups: Sequence[RequestedGroup], event: str, version: int, step: int) -> None:
        """Append the ends of groups to the ledger."""
        ends = {"event": event, "step": step}
        records = [
            {"group": group.key, "id": group.row["id"], **ends, "staleness": group.staleness(version)}
            for group in groups
        ]
        write_anyway(self.out_dir, partial(append_lines, self.out_dir / LEDGER, *records))

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: the unfinished groups, in the order of their requests."""
        pending = sorted([*self.asked.values(), *self.ready], key=lambda group: group.key)
        return {
            "next_group": self.next_key,
            "pipeline_step": self.step,
            "pending_groups": [
                (group.key, group.draw.index, group.draw.chance, group.draw.teaching) for group in pending
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint: request its unfinished groups again, and cut later lines from the ledger."""
        self.next_key = state["next_group"]
        for key, index, chance, teaching in state["pending_groups"]:
            self._ask(key, Draw(index, chance, teaching))
        ledger, self.step = self.out_dir / LEDGER, state["pipeline_step"]
        kept = [record for record in read_whole_lines(ledger) if record["step"] < self.step] if ledger.exists() else []
        write_whole(ledger, "".join(json.dumps(record) + "\n" for record in kept).encode())

    def _ask(self, key: int, draw: Draw) -> None:
        row, size, seed = self.feed.row(draw), self.config.group_size, self.config.seed
        if self.config.turns is not None:
            self.asked[key] = RequestedGroup(key, draw, row, ())
            episodes = [(key * size + index, Episode(row, key, index)) for index in range(size)]
            self.sampler.submit_episodes(episodes, (seed, "group"))
            return
        prompt = tuple(encode_row(self.rollout.encoder, row))
        self.asked[key] = RequestedGroup(key, draw, row, prompt)
        seeds = [sample_seed(seed, "group", key, row["id"], index) for index in range(size)]
        self.sampler.submit([Request(prompt, seeds[index], key * size + index) for index in range(size)])

    def _take_up(self, finished: Sequence[FinishedSample]) -> None:
        size = self.config.group_size
        for done in finished:
            key, index = divmod(done.sample, size)
            group = self.asked[key]
            group.done[index] = done
            if len(group.done) == size:
                self.ready.append(self.asked.pop(key))

    def _drop_stale(self, version: int, step: int) -> None:
        bound = min(self.settings.max_staleness, version - self.oldest_version)
        stale = [group for group in self.ready if group.staleness(version) > bound]
        if stale:
            self.ready = [group for group in self.ready if group.staleness(version) <= bound]
            self.dropped += len(stale)
            self._write(stale, "stale", version, step)

"""Rollouts beside the update: groups that are asked for ahead, a buffer of those that are done, and a ledger of all.

    asked for     prompts_per_step x (max_staleness + 1) groups ahead of what has been taken, and no more: where the
                  trainer falls behind, the sampler waits
    done          scored, and in the buffer, until a step takes it or it is too old
    groups.jsonl  {"group": 17, "id": "...", "event": "trained", "step": 4, "staleness": 1}

A group is asked for once, under a key of its own, and ends once: `trained`, `idle` (its completions have no
advantages, its step was left out, or there was no need for it) or `stale` (older than the bound, or sampled by weights
that the run has returned from). A checkpoint keeps which ones have not ended; whoever goes on from it asks for them
again. All of this is rank 0's; what the others see of it is in `background`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from truegold.pipeline.engines.base import Request, SamplingParams, sample_seed
from truegold.pipeline.running.disk import read_whole_lines, write_whole
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.feed import Draw, Feed
from truegold.train.rollout.rollout import Rollout
from truegold.train.rollout.sampler import Done
from truegold.train.rollout.sampler_pool import SamplerPool
from truegold.train.turns.episodes import Episode

LEDGER = "groups.jsonl"
"""What became of every group."""


@dataclass
class Group:
    """A row's group of completions or episodes, from the moment when it is asked for."""

    key: int
    """It tells groups apart, and rises in the order in which they were asked for."""
    draw: Draw
    row: Row
    prompt: tuple[int, ...]
    """Empty where it is of episodes, which have prompts of their own."""
    done: dict[int, Done] = field(default_factory=dict)
    """What has been sampled, by its index in the group."""

    def staleness(self, version: int) -> int:
        """Return how many versions its oldest token is older than `version`."""
        versions = [oldest for done in self.done.values() for oldest, _ in done.versions]
        # Environments may have spoilt all of its episodes before anything was sampled.
        return version - min(versions, default=version)

    def ordered(self) -> list[Done]:
        """Return what was sampled, by its index."""
        return [done for _, done in sorted(self.done.items())]


@dataclass
class Pipeline:
    """The groups between the feed and a step."""

    feed: Feed
    config: GrpoConfig
    rollout: Rollout
    sampler: SamplerPool
    sampling: SamplingParams
    out_dir: Path
    drawn: list[int] = field(default_factory=list)
    """How many rows each draw from the feed took that other ranks have not made yet."""
    next_key: int = 0
    asked: dict[int, Group] = field(default_factory=dict)
    """Groups that are not done, by their key."""
    ready: list[Group] = field(default_factory=list)
    """Groups that are done, in the order in which they were."""
    step: int = 0
    """The step that comes next."""
    taken: list[Group] = field(default_factory=list)
    """The step's groups."""
    dropped: int = 0
    """Groups of the step that were too old."""
    waited_s: float = 0.0
    """Seconds that the trainer has waited for groups in the step."""
    finished: float = field(default_factory=time.monotonic)
    """When the step before was finished."""
    oldest_version: int = 0
    """What weights before these have sampled is not trained on: the run has returned from them."""

    @property
    def capacity(self) -> int:
        """How many groups may be asked for and not taken."""
        assert self.config.asynchronous is not None
        return self.config.asynchronous.groups_ahead(self.config.steps, self.config.prompts_per_step)

    def begin(self) -> None:
        """Start to sample in the background."""
        assert self.config.asynchronous is not None
        self.sampler.start(self.sampling, in_flight=self.config.asynchronous.in_flight)
        self.fill()

    def fill(self) -> None:
        """Ask for as many groups as may be asked for."""
        missing = self.capacity - len(self.asked) - len(self.ready)
        if missing <= 0:
            return
        self.drawn.append(missing)
        for draw in self.feed.draw(missing):
            self._ask(self.next_key, draw)
            self.next_key += 1

    def take(self, count: int, version: int, step: int) -> list[Group]:
        """Return so many groups for the weights in training, and ask for others in their place."""
        taken: list[Group] = []
        began = time.monotonic()
        while len(taken) < count:
            self._take_up(self.sampler.poll())
            self._drop_stale(version, step)
            taken += self._choose(count - len(taken), version)
            self.fill()
            if len(taken) < count:
                self._take_up(self.sampler.poll(None))
        self.waited_s += time.monotonic() - began
        self.taken += taken
        return taken

    def finish(self, entered: Container[int], version: int, step: int) -> dict[str, float]:
        """Write down what became of the step's groups, and return what is measured of them.

        entered: which of them are trained on, by their position among those that were taken.
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

    def _write(self, groups: Sequence[Group], event: str, version: int, step: int) -> None:
        """Write down what became of groups."""
        with (self.out_dir / LEDGER).open("a", encoding="utf-8") as ledger:
            for group in groups:
                record = {
                    "group": group.key,
                    "id": group.row["id"],
                    "event": event,
                    "step": step,
                    "staleness": group.staleness(version),
                }
                ledger.write(json.dumps(record) + "\n")

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: the groups that have not ended, in the order in which they were asked for."""
        pending = sorted([*self.asked.values(), *self.ready], key=lambda group: group.key)
        return {
            "next_group": self.next_key,
            "pipeline_step": self.step,
            "pending_groups": [
                (group.key, group.draw.index, group.draw.chance, group.draw.teaching) for group in pending
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint: what had not ended is asked for again, and the ledger forgets what came later."""
        self.next_key = state["next_group"]
        for key, index, chance, teaching in state["pending_groups"]:
            self._ask(key, Draw(index, chance, teaching))
        ledger, self.step = self.out_dir / LEDGER, state["pipeline_step"]
        kept = [record for record in read_whole_lines(ledger) if record["step"] < self.step] if ledger.exists() else []
        write_whole(ledger, "".join(json.dumps(record) + "\n" for record in kept).encode())

    def _ask(self, key: int, draw: Draw) -> None:
        row, size, seed = self.feed.row(draw), self.config.group_size, self.config.seed
        if self.config.turns is not None:
            self.asked[key] = Group(key, draw, row, ())
            episodes = [(key * size + index, Episode(row, key, index)) for index in range(size)]
            self.sampler.submit_episodes(episodes, (seed, "group"))
            return
        prompt = tuple(self.rollout.encoder.encode(row["prompt"]))
        self.asked[key] = Group(key, draw, row, prompt)
        seeds = [sample_seed(seed, "group", key, row["id"], index) for index in range(size)]
        self.sampler.submit([Request(prompt, seeds[index], key * size + index) for index in range(size)])

    def _take_up(self, finished: Sequence[Done]) -> None:
        size = self.config.group_size
        for done in finished:
            key, index = divmod(done.sample, size)
            group = self.asked[key]
            group.done[index] = done
            if len(group.done) == size:
                self.ready.append(self.asked.pop(key))

    def _choose(self, count: int, version: int) -> list[Group]:
        """Take groups out of the buffer."""
        assert self.config.asynchronous is not None
        if self.config.asynchronous.order == "fresh":
            self.ready.sort(key=lambda group: (group.staleness(version), group.key))
        chosen, self.ready = self.ready[:count], self.ready[count:]
        return chosen

    def _drop_stale(self, version: int, step: int) -> None:
        assert self.config.asynchronous is not None
        bound = min(self.config.asynchronous.max_staleness, version - self.oldest_version)
        stale = [group for group in self.ready if group.staleness(version) > bound]
        if stale:
            self.ready = [group for group in self.ready if group.staleness(version) <= bound]
            self.dropped += len(stale)
            self._write(stale, "stale", version, step)

"""Rollouts beside the update: groups that are asked for ahead, a buffer of those that are done, and a ledger of all.

    asked for     prompts_per_step x (max_staleness + 1) groups ahead of what has been taken, and no more: where the
                  trainer falls behind, the sampler waits
    done          scored, and in the buffer, until a step takes it or it is too old
    groups.jsonl  {"group": 17, "id": "...", "event": "trained", "step": 4, "staleness": 1}

A group is asked for once, under a key of its own, and ends once: `trained`, `idle` (its completions have no
advantages, or there was no need for it) or `stale`. A checkpoint keeps which ones have not ended; whoever goes on from
it asks for them again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from truegold.pipeline.engines.base import Completion, Request, SamplingParams, sample_seed
from truegold.pipeline.rows import Row
from truegold.pipeline.running.json_lines import read_whole_lines
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.feed import Draw, Feed
from truegold.train.model.distributed import world_size
from truegold.train.rollout.rollout import Rollout
from truegold.train.rollout.sampler import Done, SamplerProcess
from truegold.verifiers import ConfigError

LEDGER = "groups.jsonl"
"""What became of every group."""


@dataclass
class Group:
    """A row's group of completions, from the moment when it is asked for."""

    key: int
    """It tells groups apart, and rises in the order in which they were asked for."""
    draw: Draw
    row: Row
    prompt: tuple[int, ...]
    completions: dict[int, Done] = field(default_factory=dict)
    """By their index in the group."""

    @property
    def version(self) -> int:
        """The oldest version of the weights that sampled any of its tokens."""
        return min(self.versions)

    @property
    def versions(self) -> list[int]:
        """The oldest version that sampled a token of each completion, in their order."""
        return [min(version for version, _ in done.versions) for _, done in sorted(self.completions.items())]

    def ordered(self) -> list[Completion]:
        """Return its completions in their order."""
        return [done.completion for _, done in sorted(self.completions.items())]


@dataclass
class Pipeline:
    """The groups between the feed and a step, on one rank."""

    feed: Feed
    config: GrpoConfig
    rollout: Rollout
    sampler: SamplerProcess
    sampling: SamplingParams
    out_dir: Path
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

    @property
    def capacity(self) -> int:
        """How many groups may be asked for and not taken."""
        assert self.config.asynchronous is not None
        return self.config.prompts_per_step * (self.config.asynchronous.max_staleness + 1)

    def begin(self) -> None:
        """Start to sample in the background."""
        assert self.config.asynchronous is not None
        self.sampler.start(self.sampling, in_flight=self.config.asynchronous.in_flight)
        self.fill()

    def fill(self) -> None:
        """Ask for as many groups as may be asked for."""
        missing = self.capacity - len(self.asked) - len(self.ready)
        for draw in self.feed.draw(max(0, missing)):
            self._ask(self.next_key, draw)
            self.next_key += 1

    def take(self, count: int, version: int, step: int) -> list[Group]:
        """Return so many groups for the weights in training, and ask for others in their place."""
        taken: list[Group] = []
        began = time.monotonic()
        while len(taken) < count:
            self._drop_stale(version, step)
            taken += self._choose(count - len(taken))
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
        ages = [version - group.version for group in self.taken]
        for event, is_meant in (("trained", True), ("idle", False)):
            members = [group for index, group in enumerate(self.taken) if (index in entered) == is_meant]
            self._write(members, event, version, step)
        stream_s, starved_s = self.sampler.stream_s, self.sampler.starved_s
        metrics = {
            "staleness": fmean(ages) if ages else 0.0,
            "staleness_max": float(max(ages, default=0)),
            "stale_groups": float(self.dropped),
            "seconds_waited": self.waited_s,
            "sampler_starved": starved_s / stream_s if stream_s else 0.0,
        }
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
                    "staleness": version - group.version,
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
        ledger.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")

    def _ask(self, key: int, draw: Draw) -> None:
        row = self.feed.row(draw)
        group = Group(key, draw, row, tuple(self.rollout.encoder.encode(row["prompt"])))
        self.asked[key] = group
        size = self.config.group_size
        self.sampler.submit(
            [
                Request(
                    group.prompt,
                    sample_seed(self.config.seed, "group", key, row["id"], index),
                    key * size + index,
                )
                for index in range(size)
            ]
        )

    def _take_up(self, finished: Sequence[Done]) -> None:
        size = self.config.group_size
        for done in finished:
            key, index = divmod(done.sample, size)
            group = self.asked[key]
            group.completions[index] = done
            if len(group.completions) == size:
                self.ready.append(self.asked.pop(key))

    def _choose(self, count: int) -> list[Group]:
        """Take groups out of the buffer."""
        assert self.config.asynchronous is not None
        self._take_up(self.sampler.poll())
        if self.config.asynchronous.order == "fresh":
            self.ready.sort(key=lambda group: (-group.version, group.key))
        chosen, self.ready = self.ready[:count], self.ready[count:]
        return chosen

    def _drop_stale(self, version: int, step: int) -> None:
        assert self.config.asynchronous is not None
        bound = self.config.asynchronous.max_staleness
        stale = [group for group in self.ready if version - group.version > bound]
        if stale:
            self.ready = [group for group in self.ready if version - group.version <= bound]
            self.dropped += len(stale)
            self._write(stale, "stale", version, step)


def make_pipeline(
    feed: Feed, config: GrpoConfig, rollout: Rollout, sampling: SamplingParams, out_dir: Path
) -> Pipeline:
    """Return the pipeline of a training. Raises ConfigError for what it cannot do."""
    if world_size() > 1:
        raise ConfigError(
            f"Asynchronous rollouts have one rank, and there are {world_size()}.",
            "Leave train.asynchronous out, or set train.launch.ranks: 1.",
        )
    assert isinstance(rollout.engine, SamplerProcess)
    return Pipeline(feed, config, rollout, rollout.engine, sampling, out_dir)

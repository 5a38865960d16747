"""The samplers of a training: rank 0 has them, and every rank uses them.

How many there are does not depend on the number of ranks. What is asked for in the background goes to the one with the
least to do, a group as a whole, so that its prompt is computed once. New weights are written once, and every sampler
reads them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.pipeline.engines.base import Completion, Request, SamplingParams, check_room
from truegold.train.model.distributed import from_first_rank, gathered, rank, scattered
from truegold.train.rollout.sampler import Done, Sampler
from truegold.train.rollout.sampler_child import SamplerSetup, Usage
from truegold.train.rollout.weight_files import claim_folder, write_weights
from truegold.train.turns.episodes import EnvironmentFaults, Episode


class SamplerPool:
    """A rollout engine for all ranks together, which samples in the background too.

    Every rank calls its methods, except for those of the background, which are rank 0's.
    """

    def __init__(self, setups: Sequence[SamplerSetup], weights_dir: str | None = None) -> None:
        """Start the samplers on rank 0. weights_dir: the folder that weights pass through, where it is not one in
        memory."""
        self.samplers: list[Sampler] = []
        self.version = 0
        """The version of the weights that were sent last."""
        self._folder: Path | None = None
        self._lock: int | None = None
        """What holds the folder."""
        room = 0
        if rank() == 0:
            self._folder, self._lock = _weights_folder(weights_dir)
            self.samplers = [Sampler(setup) for setup in setups]
            room = min(sampler.await_ready() for sampler in self.samplers)
        self.max_model_len: int = from_first_rank(room)

    # What every rank calls.

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample one completion for each prompt of this rank, in order; what runs in the background pauses."""
        check_room(prompts, self.max_model_len)
        params = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        local = list(zip(map(tuple, prompts), params, seeds, strict=True))
        completions: list[Completion] = self._spread(
            local, lambda asked: asked[0], lambda part: ("generate", *map(list, zip(*part, strict=True)))
        )
        return completions

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> list[Episode]:
        """Bring this rank's episodes to their end, as `EpisodeRunner.run` does; the background pauses."""
        played: list[Episode] = self._spread(
            episodes, lambda episode: episode.group, lambda part: ("run", part, sampling, tuple(seeded_by), version)
        )
        return played

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Send new weights; in the background they are loaded when it is their time, else before this returns."""
        self.version = version
        if self._folder is None:
            # Under ZeRO 3 each tensor is gathered from all ranks.
            for _ in named_tensors:
                pass
            return
        folder = self._folder / f"version-{version}"
        write_weights(named_tensors, folder, [sampler.name for sampler in self.samplers])
        for sampler in self.samplers:
            sampler.send_weights(folder, version)
        for sampler in self.samplers:
            if not sampler.is_streaming:
                sampler.answer()
                sampler.version = version

    def forget_prefixes(self) -> None:
        """Put every cached prefix out of reach."""
        self._ask_all("forget_prefixes")

    def sleep(self) -> None:
        """Do nothing: they go on."""

    def wake(self) -> None:
        """Do nothing, as `sleep`."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of the output heads for hidden states [N, H], their mean where those differ."""
        logits = self._ask_all("head_logits", hidden.detach().cpu())
        mean: Tensor | None = from_first_rank(_mean(logits) if logits and logits[0] is not None else None)
        return mean

    def vectors(self) -> dict[str, Tensor]:
        """Return the one-dimensional weights by their Hugging Face names, their mean where samplers differ."""
        vectors: list[Mapping[str, Tensor]] = self._ask_all("vectors")
        means = {name: _mean([each[name] for each in vectors]) for name in (vectors[0] if vectors else ())}
        shared: dict[str, Tensor] = from_first_rank(means)
        return shared

    def close(self) -> None:
        """End the samplers, and remove weights that they have not read."""
        for sampler in self.samplers:
            sampler.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # The background, of rank 0 alone.

    @property
    def usage(self) -> Usage:
        """How the samplers' streams have spent their time, together."""
        usages = [sampler.usage for sampler in self.samplers]
        return Usage(
            sum(usage.stream_s for usage in usages),
            sum(usage.starved_s for usage in usages),
            sum(usage.environments_s for usage in usages),
            sum((usage.faults for usage in usages), EnvironmentFaults()),
        )

    def start(self, sampling: SamplingParams, *, in_flight: bool = False) -> None:
        """Begin to sample what is submitted. in_flight: whether new weights change completions that have begun."""
        for sampler in self.samplers:
            sampler.start(sampling, in_flight)

    def submit(self, requests: Sequence[Request]) -> None:
        """Hand over a group's requests, whose `sample` tells them apart from all others."""
        check_room([request.prompt for request in requests], self.max_model_len)
        self._least_busy().submit_requests(requests)

    def submit_episodes(self, episodes: Sequence[tuple[int, Episode]], seeded_by: Sequence[object]) -> None:
        """Hand over a group's episodes by their keys; `seeded_by` decides their seeds (`EpisodeRunner.run`)."""
        self._least_busy().submit_episodes(episodes, seeded_by)

    @property
    def faults(self) -> EnvironmentFaults:
        """What environments have done wrong beside their episodes, on rank 0."""
        return self.usage.faults

    @property
    def waited_share(self) -> float:
        """The share of the streams' time in which every episode waited for its environment, on rank 0."""
        return self.usage.environments_s / max(self.usage.stream_s, 1e-9)

    def poll(self, timeout_s: float | None = 0.0) -> list[Done]:
        """Return what has been finished since the last time. Where that is nothing, wait for it at most `timeout_s`;
        None: as long as it takes."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not (done := [each for sampler in self.samplers for each in sampler.take_done()]):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not wait([sampler.connection for sampler in self.samplers], left):
                break
        return done

    def _least_busy(self) -> Sampler:
        return min(self.samplers, key=lambda sampler: sampler.outstanding)

    def _spread(
        self, local: Sequence[Any], key: Callable[[Any], object], call: Callable[[list[Any]], tuple[Any, ...]]
    ) -> list[Any]:
        """Have all ranks' requests answered, and return the answers to this rank's, in order.

        Those with one key stay together. call: the method, and its arguments for a part of the requests.
        """
        by_rank = gathered(list(local))
        requests = list(chain.from_iterable(by_rank))
        if not requests:
            return []
        if not self.samplers:
            return list(scattered(()))
        parts: list[list[int]] = [[] for _ in self.samplers]
        owners: dict[object, int] = {}
        for index, request in enumerate(requests):
            parts[owners.setdefault(key(request), len(owners) % len(parts))].append(index)
        called = [call([requests[index] for index in part]) if part else None for part in parts]
        in_order: list[Any] = [None] * len(requests)
        for part, part_answers in zip(parts, self._call(called), strict=True):
            for index, answer in zip(part, part_answers or (), strict=True):
                in_order[index] = answer
        ends = list(accumulate(len(asked) for asked in by_rank))
        answers = scattered([in_order[end - len(asked) : end] for end, asked in zip(ends, by_rank, strict=True)])
        return list(answers)

    def _ask_all(self, *call: Any) -> list[Any]:
        """Return every sampler's answer; none on other ranks than the first."""
        return self._call([call] * len(self.samplers))

    def _call(self, calls: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Have methods called, one of each sampler at the same time, while the background pauses."""
        for sampler in self.samplers:
            sampler.pause()
        for sampler in self.samplers:
            sampler.await_pause()
        for sampler, call in zip(self.samplers, calls, strict=True):
            if call is not None:
                sampler.ask(*call)
        answers = []
        for sampler, call in zip(self.samplers, calls, strict=True):
            answers.append(None if call is None else sampler.answer())
            sampler.resume()
        return answers


def _weights_folder(weights_dir: str | None) -> tuple[Path, int | None]:
    """Return the folder that weights pass through, and what holds it."""
    if weights_dir is None:
        return claim_folder()
    folder = Path(weights_dir).resolve() / "samplers"
    # What a training that was killed has left there.
    shutil.rmtree(folder, ignore_errors=True)
    return folder, None


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors, to the bit where they are equal."""
    first = tensors[0]
    return first + torch.stack([tensor - first for tensor in tensors]).mean(0).to(first.dtype)

"""The samplers of a training: rank 0 has them, and every rank uses them.

How many there are does not depend on the number of ranks. What is asked for in the background goes to the one with the
least to do, a group as a whole, so that its prompt is computed once. New weights are written once, and every sampler
reads them.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, check_room
from truegold.train.model.distributed import from_first_rank, gathered, rank, scattered
from truegold.train.model.ending import interruptible
from truegold.train.model.segment import Versions
from truegold.train.rollout import sampler_child
from truegold.train.rollout.sampler_child import SamplerSetup, Usage
from truegold.train.rollout.weight_transfer import claim_folder, write_weights
from truegold.train.turns.episodes import EnvironmentFaults, Episode
from truegold.verifiers import GuardError, SetupError

MARGIN_S = 5.0
"""What a sampler may take to see that it is to end."""
GO_ON = "The same command goes on from the last checkpoint; where it dies again, see the log of the stage."


class SamplerPool:
    """A rollout engine for all ranks together, which samples in the background too.

    Every rank calls its methods, except for those of the background, which are rank 0's.
    """

    def __init__(self, setups: Sequence[SamplerSetup], weights_dir: str | None = None) -> None:
        """Start the samplers on rank 0. weights_dir: the folder that weights pass through, where it is not one in
        memory."""
        self.samplers: list[Sampler] = []
        self._folder: Path | None = None
        self._lock: int | None = None
        """What holds the folder."""
        room = 0
        if rank() == 0:
            if weights_dir is None:
                self._folder, self._lock = claim_folder()
            else:
                self._folder = Path(weights_dir).resolve() / "samplers"
                # What a training that was killed has left there.
                shutil.rmtree(self._folder, ignore_errors=True)
            self.samplers = [Sampler(setup) for setup in setups]
            room = min(sampler.await_ready() for sampler in self.samplers)
        self.max_model_len: int = from_first_rank(room)

    # What every rank calls.

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        """Sample one completion for each prompt of this rank, in order; what runs in the background pauses."""
        check_room(prompts, self.max_model_len)
        local = list(zip(map(tuple, prompts), sampling, seeds, strict=True))
        return self._spread(
            local, lambda asked: asked[0], lambda part: ("generate", *map(list, zip(*part, strict=True)))
        )

    def run(
        self, episodes: Sequence[Episode], sampling: SamplingParams, seeded_by: Sequence[object], version: int
    ) -> list[Episode]:
        """Bring this rank's episodes to their end, as `EpisodeRunner.run` does; the background pauses."""
        return self._spread(
            episodes, lambda episode: episode.group, lambda part: ("run", part, sampling, tuple(seeded_by), version)
        )

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Send new weights; in the background they are loaded when it is their time, else before this returns."""
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

    def sleep(self, weights_follow: bool = True) -> None:
        """Do nothing: they go on."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of the output heads for hidden states [N, H], their mean where those differ."""
        logits = self._ask_all("head_logits", hidden.detach().cpu())
        return from_first_rank(_mean(logits) if logits and logits[0] is not None else None)

    def vectors(self) -> dict[str, Tensor]:
        """Return the one-dimensional weights by their Hugging Face names, their mean where samplers differ."""
        vectors: list[Mapping[str, Tensor]] = self._ask_all("vectors")
        return from_first_rank({name: _mean([each[name] for each in vectors]) for name in (vectors or [{}])[0]})

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
        self._least_busy().submit("requests", list(requests))

    def submit_episodes(self, episodes: Sequence[tuple[int, Episode]], seeded_by: Sequence[object]) -> None:
        """Hand over a group's episodes by their keys; `seeded_by` decides their seeds (`EpisodeRunner.run`)."""
        self._least_busy().submit("episodes", list(episodes), tuple(seeded_by))

    @property
    def faults(self) -> EnvironmentFaults:
        """What environments have done wrong beside their episodes, on rank 0."""
        return self.usage.faults

    @property
    def waited_share(self) -> float:
        """The share of the streams' time in which every episode waited for its environment, on rank 0."""
        return self.usage.environments_s / max(self.usage.stream_s, 1e-9)

    def poll(self, timeout_s: float | None = 0.0) -> list[FinishedSample]:
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
            self._call(())
            return scattered(())
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
        return scattered([in_order[end - len(asked) : end] for end, asked in zip(ends, by_rank, strict=True)])

    def _ask_all(self, *call: Any) -> list[Any]:
        """Return every sampler's answer; none on other ranks than the first."""
        return self._call([call] * len(self.samplers))

    def _call(self, calls: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Have methods called, one of each sampler at the same time, while the background pauses. A signal breaks it
        off, for which every rank comes here."""
        with interruptible():
            return self._ask_each(calls)

    def _ask_each(self, calls: Sequence[tuple[Any, ...] | None]) -> list[Any]:
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


def _mean(tensors: Sequence[Tensor]) -> Tensor:
    """Return the mean of tensors, to the bit where they are equal."""
    first = tensors[0]
    return first + torch.stack([tensor - first for tensor in tensors]).mean(0).to(first.dtype)


@dataclass(frozen=True)
class FinishedSample:
    """What was sampled in the background."""

    sample: int
    """The request's, or the episode's key."""
    answer: Completion | Episode
    versions: Versions


class Sampler:
    """The trainer's end of a sampler: a process with vLLM, or a thread that asks a server. It ends with this process.

    It has things done while it waits (`ask`, `answer`), and has what it submits sampled in the background (`start`,
    `submit`, `take_done`), which `ask` interrupts for as long as it takes.
    """

    def __init__(self, setup: SamplerSetup) -> None:
        """Start it; `await_ready` has to follow."""
        self.name = setup.name
        self.outstanding = 0
        """Completions or episodes that were submitted and are not done."""
        self.usage = Usage()
        """Of its stream, when it last took weights or paused."""
        self.version = 0
        """The version of the weights that it samples with, as far as it has said."""
        self.process: BaseProcess | None = None
        self._closing_s = setup.turns.deadline_s + MARGIN_S if setup.turns is not None else 0.0
        """How long its environments may take to be closed."""
        self._done: list[FinishedSample] = []
        self._stream: tuple[SamplingParams, bool] | None = None
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, child = context.Pipe()
        if isinstance(setup.engine, ServerEngineConfig):
            # It does nothing but wait for the server.
            threading.Thread(target=sampler_child.serve, args=(child, setup), name="sampler", daemon=True).start()
            return
        self.process = context.Process(target=sampler_child.main, args=(child, os.getpid(), setup), daemon=True)
        self.process.start()
        child.close()

    @property
    def is_streaming(self) -> bool:
        """Whether it samples in the background."""
        return self._stream is not None

    def await_ready(self) -> int:
        """Wait until it can sample, and return the longest prompt plus completion, in tokens."""
        return int(self._receive("ready")[0])

    def start(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Begin to sample what is submitted. in_flight: whether new weights change completions that have begun."""
        self._stream = (sampling, in_flight)
        self._send("stream", sampling, in_flight)

    def submit(self, kind: Literal["requests", "episodes"], samples: Sequence[object], *arguments: object) -> None:
        """Hand over requests, whose `sample` tells them apart, or episodes by their keys with what seeds them."""
        self.outstanding += len(samples)
        self._send(kind, samples, *arguments)

    def take_done(self) -> list[FinishedSample]:
        """Return what has been finished since the last time, without waiting."""
        while self.connection.poll():
            self._take_message()
        done, self._done = self._done, []
        self.outstanding -= len(done)
        return done

    def send_weights(self, folder: Path, version: int) -> None:
        """Say where new weights are; in a stream they are loaded when it is their time, else `answer` has to follow."""
        self._send("weights", folder, version)

    def pause(self) -> None:
        """Have the stream, where there is one, finish what it has begun; `await_pause` has to follow."""
        if self._stream is not None:
            self._send("pause")

    def await_pause(self) -> None:
        """Wait until the stream is at rest; what it finishes is kept."""
        if self._stream is not None:
            (self.usage,) = self._receive("paused")

    def resume(self) -> None:
        """Go on with the stream where there was one."""
        if self._stream is not None:
            self._send("stream", *self._stream)

    def ask(self, method: str, *arguments: Any) -> None:
        """Have a method of the engine called, while the stream pauses; `answer` has to follow."""
        self._send("call", method, *arguments)

    def answer(self) -> Any:
        """Wait for what was asked for."""
        (answer,) = self._receive("answer")
        return answer

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self.connection.send(("close",))
        if self.process is not None:
            self.process.join(self._closing_s)
            self.process.kill()
        self.connection.close()

    def _send(self, *message: object) -> None:
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            # What it died of may be on its way.
            self._receive("")
            raise self._died() from error

    def _receive(self, expected: str) -> tuple[Any, ...]:
        """Return the arguments of the next message of a kind; those of completions and weights are taken up."""
        while True:
            message = self._take_message()
            if message is not None and message[0] == expected:
                return message[1:]

    def _take_message(self) -> tuple[Any, ...] | None:
        """Read a message and return it, unless it is of a completion or of weights, which are taken up."""
        try:
            message: tuple[Any, ...] = self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise self._died() from error
        if message[0] == "error":
            raise SetupError(*message[1:])
        if message[0] == "failed":
            raise GuardError(f"The sampling engine failed: {message[1]}", GO_ON, "engine")
        if message[0] == "done":
            self._done.append(FinishedSample(*message[1:]))
            return None
        if message[0] == "loaded":
            self.version, self.usage = message[1:]
            return None
        return message

    def _died(self) -> GuardError:
        ending = ""
        if self.process is not None:
            self.process.join(5)
            ending = f" (exit code {self.process.exitcode})"
        return GuardError(f"The sampling process died{ending}.", GO_ON, "engine")

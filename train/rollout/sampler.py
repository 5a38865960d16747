"""A sampler beside the trainer, in a process of its own: while the trainer updates, it goes on.

It is a rollout engine like the others, which samples what it is given and waits for it (`generate`). And it samples in
the background what is submitted (`start`, `submit`, `poll`), which `generate` interrupts for as long as it takes.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests, check_room
from truegold.train.rollout import sampler_child
from truegold.train.rollout.weight_files import write_weights
from truegold.verifiers import GuardError, SetupError

SHARED_MEMORY = Path("/dev/shm")
"""Where weights pass through, if there is such a folder: they touch no disk."""


@dataclass(frozen=True)
class Done:
    """A completion that was sampled in the background."""

    sample: int
    """The request's."""
    completion: Completion
    versions: tuple[tuple[int, int], ...]
    """(version of the weights, tokens) of each stretch of it, in order."""


class SamplerProcess:
    """vLLM in a child process, which ends with this one."""

    def __init__(self, model: Path, config: VllmEngineConfig, devices: str | None = None) -> None:
        """Start it on the checkpoint in folder `model`. devices: the GPUs it may see, where not this process's."""
        shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="truegold-weights-", dir=shared))
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        arguments = (child, os.getpid(), model, config, devices)
        self._process = context.Process(target=sampler_child.main, args=arguments, daemon=True)
        self._process.start()
        child.close()
        self._done: list[Done] = []
        self._stream: tuple[SamplingParams, bool] | None = None
        self.version = 0
        """The version of the weights that it samples with, as far as it has said."""
        self.stream_s = self.starved_s = 0.0
        """Seconds of its stream, and those of them without anything to sample, when it last took weights or paused."""
        self.max_model_len = int(self._receive("ready")[0])

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample one completion for each prompt, in order; what runs in the background is finished first."""
        check_room(prompts, self.max_model_len)
        completions: list[Completion] = self._call("generate", list(prompts), sampling, list(seeds))
        return completions

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Yield each completion as soon as it is finished, as `Engine.stream` does."""
        requests: dict[int, Request] = {}
        self.start(sampling)
        while True:
            more = take(2 * sampler_child.AHEAD)
            self.submit(more or [])
            requests |= {request.sample: request for request in more or ()}
            for done in self.poll(0.0 if not requests else None):
                yield requests.pop(done.sample), done.completion
            if more is None and not requests:
                break
        self._pause()
        self._stream = None

    def start(self, sampling: SamplingParams, *, in_flight: bool = False) -> None:
        """Begin to sample what is submitted. in_flight: whether new weights change completions that have begun."""
        self._stream = (sampling, in_flight)
        self._send("stream", sampling, in_flight)

    def submit(self, requests: Sequence[Request]) -> None:
        """Hand over requests, whose `sample` tells them apart."""
        if requests:
            check_room([request.prompt for request in requests], self.max_model_len)
            self._send("requests", list(requests))

    def poll(self, timeout_s: float | None = 0.0) -> list[Done]:
        """Return what has been finished since the last time. Where that is nothing, wait for it at most `timeout_s`;
        None: as long as it takes."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._done:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._connection.poll(left):
                break
            self._take_message()
        while self._connection.poll():
            self._take_message()
        done, self._done = self._done, []
        return done

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Send new weights; in the background they are loaded when it is their time, else before this returns."""
        folder = self._folder / f"version-{version}"
        write_weights(named_tensors, folder)
        self._send("weights", folder, version)
        if self._stream is None:
            self._receive("answer")
            self.version = version

    def forget_prefixes(self) -> None:
        """Put every cached prefix out of reach."""
        self._call("forget_prefixes")

    def sleep(self) -> None:
        """Do nothing: it goes on."""

    def wake(self) -> None:
        """Do nothing, as `sleep`."""

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of its output head for hidden states [N, H]."""
        logits: Tensor = self._call("head_logits", hidden.detach().cpu())
        return logits

    def vectors(self) -> dict[str, Tensor]:
        """Return its one-dimensional weights by their Hugging Face names."""
        vectors: dict[str, Tensor] = self._call("vectors")
        return vectors

    def close(self) -> None:
        """End the process."""
        if self._process.is_alive():
            self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Have a method of the engine called; a stream pauses for it, and what it finishes is kept."""
        stream = self._stream
        if stream is not None:
            self._pause()
        self._send("call", method, *arguments)
        (answer,) = self._receive("answer")
        if stream is not None:
            self._send("stream", *stream)
        return answer

    def _pause(self) -> None:
        self._send("pause")
        self.stream_s, self.starved_s = self._receive("paused")

    def _send(self, *message: object) -> None:
        try:
            self._connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
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
            message: tuple[Any, ...] = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise self._died() from error
        if message[0] == "error":
            raise SetupError(*message[1:])
        if message[0] == "done":
            self._done.append(Done(*message[1:]))
            return None
        if message[0] == "loaded":
            self.version, self.stream_s, self.starved_s = message[1:]
            return None
        return message

    def _died(self) -> GuardError:
        self._process.join(5)
        return GuardError(
            f"The sampling process died (exit code {self._process.exitcode}).",
            "The same command goes on from the last checkpoint; where it dies again, see the log of the stage.",
            "engine",
        )

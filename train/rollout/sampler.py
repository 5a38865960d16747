"""The trainer's end of a sampler that goes on while it updates: a process with vLLM, or a thread that asks a server.

It has things done while it waits (`ask`, `answer`), and has what it submits sampled in the background (`start`,
`submit`, `take_done`), which `ask` interrupts for as long as it takes.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.train.rollout import sampler_child
from truegold.train.rollout.sampler_child import SamplerSetup, Usage, Versions
from truegold.train.turns.episodes import Episode
from truegold.verifiers import GuardError, SetupError

MARGIN_S = 5.0
"""What a sampler may take to see that it is to end."""
GO_ON = "The same command goes on from the last checkpoint; where it dies again, see the log of the stage."


@dataclass(frozen=True)
class Done:
    """What was sampled in the background."""

    sample: int
    """The request's, or the episode's key."""
    answer: Completion | Episode
    versions: Versions
    """(version of the weights, tokens) of each stretch of it, in order."""


class Sampler:
    """A sampler, which ends with this process."""

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
        self._done: list[Done] = []
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

    def submit_requests(self, requests: Sequence[Request]) -> None:
        """Hand over requests, whose `sample` tells them apart."""
        self.outstanding += len(requests)
        self._send("requests", list(requests))

    def submit_episodes(self, episodes: Sequence[tuple[int, Episode]], seeded_by: Sequence[object]) -> None:
        """Hand over episodes by their keys; `seeded_by` decides their seeds (`EpisodeRunner.run`)."""
        self.outstanding += len(episodes)
        self._send("episodes", list(episodes), tuple(seeded_by))

    def take_done(self) -> list[Done]:
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
            self._done.append(Done(*message[1:]))
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

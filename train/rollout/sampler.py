"""The trainer's end of a sampler, and what comes out of it."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.train.model.segment import Versions
from truegold.train.rollout import ray_sampler, sampler_child
from truegold.train.rollout.sampler_child import SamplerSetup, Usage
from truegold.train.turns.episodes import Episode
from truegold.verifiers import GuardError, SetupError

MARGIN_S = 5.0
"""Seconds that a sampler may take to see that it is to end."""
LONGEST_SILENCE_S = 1800.0
"""A sampler with work that sends nothing for so many seconds hangs: it sends a sign of life each minute."""
GO_ON = "The same command goes on from the last checkpoint; where it dies again, see the log of the stage."


@dataclass(frozen=True)
class Submitted:
    """A request or an episode that is to be sampled in the background."""

    kind: Literal["requests", "episodes"]
    key: int
    """The request's `sample`, or the episode's key."""
    sample: Request | tuple[int, Episode]
    arguments: tuple[object, ...] = ()
    """The seed's arguments for an episode."""

    @property
    def group(self) -> object:
        """The key that all samples of its group share."""
        return self.sample.prompt if isinstance(self.sample, Request) else self.sample[1].group


@dataclass(frozen=True)
class FinishedSample:
    """A sample that was finished in the background."""

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
        """Start it; it can sample when `take_signal` has returned ("ready", the longest prompt plus completion)."""
        self.name = setup.name
        self.outstanding: dict[int, Submitted] = {}
        """Maps the key of a submitted request or episode to it, until it is done."""
        self.usage = Usage()
        """The usage of its stream, when it last took weights or paused."""
        self.max_model_len = 0
        """The longest prompt plus completion, in tokens; 0 before it has started."""
        self.version = 0
        """The version of the weights that it samples with, as far as it has said."""
        self.process: BaseProcess | None = None
        self._closing_s = setup.turns.deadline_s + MARGIN_S if setup.turns is not None else 0.0
        """How long its environments may take to be closed."""
        self._done: list[FinishedSample] = []
        self._stream: tuple[SamplingParams, bool] | None = None
        self._heard = time.monotonic()
        """When it said something last, or was given work that it did not have."""
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, child = context.Pipe()
        if isinstance(setup.engine, ServerEngineConfig):
            # It does nothing but wait for the server.
            threading.Thread(target=sampler_child.serve, args=(child, setup), name="sampler", daemon=True).start()
            return
        if setup.engine.data_parallel_size > 1:
            threading.Thread(target=ray_sampler.serve, args=(child, setup), name="sampler", daemon=True).start()
            return
        self.process = context.Process(target=sampler_child.main, args=(child, os.getpid(), setup), daemon=True)
        self.process.start()
        child.close()

    @property
    def is_streaming(self) -> bool:
        """Whether it samples in the background."""
        return self._stream is not None

    def take_signal(self) -> tuple[Any, ...] | None:
        """Return a message that says how far its start is, without waiting, or None if none has arrived."""
        return self._take_message() if self.connection.poll() else None

    def start(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Begin to sample what is submitted. in_flight: whether new weights change completions that have begun."""
        self._stream = (sampling, in_flight)
        self.resume()

    def submit(self, submitted: Sequence[Submitted]) -> None:
        """Hand over requests or episodes."""
        if not self.outstanding:
            self._heard = time.monotonic()
        self.outstanding |= {each.key: each for each in submitted}
        for kind, arguments in dict.fromkeys((each.kind, each.arguments) for each in submitted):
            alike = [each.sample for each in submitted if (each.kind, each.arguments) == (kind, arguments)]
            self._send(kind, alike, *arguments)

    def take_done(self) -> list[FinishedSample]:
        """Return what has been finished since the last time, without waiting. Raises GuardError where it hangs."""
        while self.connection.poll():
            self._take_message()
        if self._stream is not None and self.outstanding and time.monotonic() - self._heard > LONGEST_SILENCE_S:
            raise self._hangs()
        return self.take_back()[0]

    def take_back(self) -> tuple[list[FinishedSample], list[Submitted]]:
        """Return what was read of a sampler that is lost, and what it has not done."""
        done, self._done = self._done, []
        for each in done:
            del self.outstanding[each.sample]
        return done, list(self.outstanding.values())

    def send_weights(self, folder: Path, version: int) -> None:
        """Say where new weights are; in a stream they are loaded when it is their time, else `answer` has to follow."""
        self._send("weights", folder, version)

    def pause(self) -> None:
        """Have the stream, if there is one, finish what it has begun; `await_pause` has to follow."""
        if self._stream is not None:
            self._send("pause")

    def await_pause(self) -> None:
        """Wait until the stream is at rest; what it finishes is kept."""
        if self._stream is not None:
            (self.usage,) = self._receive("paused")

    def resume(self) -> None:
        """Go on with the stream where there was one."""
        if self._stream is not None:
            self._heard = time.monotonic()
            self._send("stream", *self._stream)

    def ask(self, method: str, *arguments: Any) -> None:
        """Have a method of the engine called, while the stream pauses; `answer` has to follow."""
        self._send("call", method, *arguments)

    def answer(self) -> Any:
        """Wait for what was asked for. Raises GuardError where the sampler hangs."""
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
            if not self.connection.poll(LONGEST_SILENCE_S):
                raise self._hangs()
            message = self._take_message()
            if message is not None and message[0] == expected:
                return message[1:]

    def _take_message(self) -> tuple[Any, ...] | None:
        """Read a message and return it, unless it is of a completion or of weights, which are taken up, or says that
        it goes on."""
        try:
            message: tuple[Any, ...] = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        self._heard = time.monotonic()
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
        return None if message[0] == "alive" else message

    def _hangs(self) -> GuardError:
        hanging = "The sampler" if self.process is None else f"The sampling process {self.process.pid}"
        return GuardError(
            f"{hanging} hangs: it has said nothing for {LONGEST_SILENCE_S:.0f} seconds, though it has work.",
            GO_ON,
            "engine",
        )

    def _died(self) -> GuardError:
        ending = ""
        if self.process is not None:
            self.process.join(5)
            ending = f" (exit code {self.process.exitcode})"
        return GuardError(f"The sampling process died{ending}.", GO_ON, "engine")

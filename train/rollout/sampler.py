"""The trainer's end of the connection to a sampler, which is a process with vLLM or a thread that calls a server.

A sampler may be on a GPU or node that Ray chooses, possibly of another machine:

    trainer  <- pipe ->  thread in the trainer's process  <- calls of Ray ->  actor  <- pipe ->  process with vLLM

The thread passes messages on unchanged. If the actor, its process or its node is lost, the trainer's pipe is closed.
The same happens after the death of a local process.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.pipeline.engines.vllm_ray import resources
from truegold.pipeline.running.ray_cluster import join_cluster
from truegold.train.model.segment import Versions
from truegold.train.rollout import sampler_child
from truegold.train.rollout.sampler_child import SamplerSetup, Usage
from truegold.train.turns.episodes import Episode
from truegold.verifiers import GuardError, SetupError

LISTEN_S = 1.0
"""The longest time in seconds that the actor waits for messages of its process in one call."""
LOOK_EVERY_S = 0.02
"""Seconds between two checks for messages of the trainer."""


class _Actor:
    """The actor, which runs a sampler in a child process."""

    def __init__(self, setup: SamplerSetup) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        context.Process(target=sampler_child.main, args=(child, os.getpid(), setup), daemon=True).start()
        child.close()

    def send(self, message: bytes) -> None:
        self._connection.send_bytes(message)

    def receive(self) -> list[bytes]:
        """Return the messages of the process, or an empty list after `LISTEN_S`. Raises EOFError if it has ended."""
        messages: list[bytes] = []
        while self._connection.poll(0 if messages else LISTEN_S):
            messages.append(self._connection.recv_bytes())
        return messages


def serve_by_ray(connection: Connection, setup: SamplerSetup) -> None:
    """Connect the trainer, at the other end of `connection`, with a new actor, until one of them ends."""
    engine = setup.engine
    assert isinstance(engine, VllmEngineConfig)
    actor = None
    try:
        ray, _ = join_cluster(engine.ray_address, "engine.ray_address")
        alone = engine.model_copy(update={"data_parallel_size": 1, "ray_address": None, "weights_dir": None})
        # Two calls run at a time: one waits for messages of the process, the other one sends messages of the trainer.
        make: Any = ray.remote(max_concurrency=2, **resources(ray.cluster_resources(), engine))(_Actor)
        actor = make.remote(replace(setup, engine=alone))
        _pass_on(ray, actor, connection)
    except EOFError:
        # The trainer has ended.
        pass
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        connection.send(("failed", lines[-1]))
    finally:
        connection.close()
        if actor is not None:
            ray.kill(actor)


def _pass_on(ray: Any, actor: Any, connection: Connection) -> None:
    """Pass messages on in both directions until one side ends, with EOFError or an error of Ray."""
    arriving = actor.receive.remote()
    while True:
        done, _ = ray.wait([arriving], timeout=LOOK_EVERY_S)
        if done:
            for message in ray.get(arriving):
                connection.send_bytes(message)
            arriving = actor.receive.remote()
        while connection.poll():
            ray.get(actor.send.remote(connection.recv_bytes()))


MARGIN_S = 5.0
"""Seconds that a sampler has to notice that it should end."""
LONGEST_SILENCE_S = 1800.0
"""The longest time in seconds without a message of a sampler with work. Such a sampler sends one every minute."""
GO_ON = "The same command continues from the last checkpoint; if the engine dies again, see the log of the stage."
"""The advice after the death of an engine."""


@dataclass(frozen=True)
class Submitted:
    """A request or an episode that was submitted for sampling in the background."""

    kind: Literal["requests", "episodes"]
    key: int
    """The request's `sample`, or the episode's key."""
    sample: Request | tuple[int, Episode]
    """The request, or the episode with its key."""
    arguments: tuple[object, ...] = ()
    """For an episode, the values from which its seeds are computed."""

    @property
    def group(self) -> object:
        """A value that all samples of one group have in common: the prompt, or the number of the group."""
        return self.sample.prompt if isinstance(self.sample, Request) else self.sample[1].group


@dataclass(frozen=True)
class FinishedSample:
    """A sample that was finished in the background."""

    sample: int
    """The request's `sample`, or the episode's key."""
    answer: Completion | Episode
    """The completion of a request, or the finished episode."""
    versions: Versions
    """The versions of the weights that sampled the answer."""


class Sampler:
    """The trainer's end of a sampler: a process with vLLM, or a thread that calls a server. It ends with this process.

    Methods of the engine are called with `ask` and `answer`. Sampling in the background uses `start`, `submit` and
    `take_done`; it pauses during a call of `ask`.
    """

    def __init__(self, setup: SamplerSetup) -> None:
        """Start the sampler. It can sample after `take_signal` returns ("ready", longest prompt plus completion)."""
        self.name = setup.name
        self.outstanding: dict[int, Submitted] = {}
        """Submitted requests and episodes that are not finished, by key."""
        self.usage = Usage()
        """The usage of the sampler's stream, when the sampler last loaded weights or paused."""
        self.max_model_len = 0
        """The longest prompt plus completion, in tokens. 0 before the sampler has started."""
        self.version = 0
        """The last version of weights that the sampler reported."""
        self.process: BaseProcess | None = None
        self._closing_s = setup.turns.deadline_s + MARGIN_S if setup.turns is not None else 0.0
        """The time in seconds that the sampler has to close its environments."""
        self._done: list[FinishedSample] = []
        self._stream: tuple[SamplingParams, bool] | None = None
        self._heard = time.monotonic()
        """The time of the sampler's last message, or of work that it got while it was idle."""
        context = multiprocessing.get_context("spawn")
        self.connection: Connection
        self.connection, child = context.Pipe()
        if isinstance(setup.engine, ServerEngineConfig):
            # The sampler only waits for the server, so a thread is enough.
            threading.Thread(target=sampler_child.serve, args=(child, setup), name="sampler", daemon=True).start()
            return
        if setup.engine.data_parallel_size > 1:
            threading.Thread(target=serve_by_ray, args=(child, setup), name="sampler", daemon=True).start()
            return
        self.process = context.Process(target=sampler_child.main, args=(child, os.getpid(), setup), daemon=True)
        self.process.start()
        child.close()

    @property
    def is_streaming(self) -> bool:
        """Whether it samples in the background."""
        return self._stream is not None

    def take_signal(self) -> tuple[Any, ...] | None:
        """Return a message about the progress of the start, without waiting. Return None if there is none."""
        return self._take_message() if self.connection.poll() else None

    def start(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Begin to sample submitted requests. in_flight: whether weights are loaded in the middle of completions."""
        self._stream = (sampling, in_flight)
        self.resume()

    def submit(self, submitted: Sequence[Submitted]) -> None:
        """Send requests or episodes to the sampler."""
        if not self.outstanding:
            self._heard = time.monotonic()
        self.outstanding |= {each.key: each for each in submitted}
        for kind, arguments in dict.fromkeys((each.kind, each.arguments) for each in submitted):
            alike = [each.sample for each in submitted if (each.kind, each.arguments) == (kind, arguments)]
            self._send(kind, alike, *arguments)

    def take_done(self) -> list[FinishedSample]:
        """Return the samples finished since the last call, without waiting. Raises GuardError if the sampler hangs."""
        while self.connection.poll():
            self._take_message()
        if self._stream is not None and self.outstanding and time.monotonic() - self._heard > LONGEST_SILENCE_S:
            raise self._hangs()
        return self.take_back()[0]

    def take_back(self) -> tuple[list[FinishedSample], list[Submitted]]:
        """Return the finished samples that were received, and the submitted ones that are not finished."""
        done, self._done = self._done, []
        for each in done:
            del self.outstanding[each.sample]
        return done, list(self.outstanding.values())

    def send_weights(self, folder: Path, version: int) -> None:
        """Tell the sampler to load new weights from a folder. A stream loads them later. Without a stream, call
        `answer` next."""
        self._send("weights", folder, version)

    def pause(self) -> None:
        """Tell the stream, if there is one, to finish running samples and pause. Call `await_pause` next."""
        if self._stream is not None:
            self._send("pause")

    def await_pause(self) -> None:
        """Wait until the stream has paused. Samples that it finishes are kept."""
        if self._stream is not None:
            (self.usage,) = self._receive("paused")

    def resume(self) -> None:
        """Continue the stream after a pause, if there is one."""
        if self._stream is not None:
            self._heard = time.monotonic()
            self._send("stream", *self._stream)

    def ask(self, method: str, *arguments: Any) -> None:
        """Call a method of the engine while the stream is paused. Call `answer` next for its result."""
        self._send("call", method, *arguments)

    def answer(self) -> Any:
        """Wait for the result of `ask` or `send_weights` and return it. Raises GuardError if the sampler hangs."""
        (answer,) = self._receive("answer")
        return answer

    def close(self) -> None:
        """End the sampler."""
        with suppress(OSError):
            self.connection.send(("close",))
        if self.process is not None:
            self.process.join(self._closing_s)
            self.process.kill()
        self.connection.close()

    def _send(self, *message: object) -> None:
        """Send a message. Raises GuardError if the sampler has died."""
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            # The sampler's last message may have the cause. It raises an error here.
            self._receive("")
            raise self._died() from error

    def _receive(self, expected: str) -> tuple[Any, ...]:
        """Return the arguments of the next message of the kind `expected`. Other messages are processed meanwhile."""
        while True:
            if not self.connection.poll(LONGEST_SILENCE_S):
                raise self._hangs()
            message = self._take_message()
            if message is not None and message[0] == expected:
                return message[1:]

    def _take_message(self) -> tuple[Any, ...] | None:
        """Read a message and return it. Return None if it was processed here: finished samples, loaded weights,
        `alive`."""
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
            f"{hanging} hangs: it has work, but has sent no message for {LONGEST_SILENCE_S:.0f} seconds.",
            GO_ON,
            "engine",
        )

    def _died(self) -> GuardError:
        ending = ""
        if self.process is not None:
            self.process.join(5)
            ending = f" (exit code {self.process.exitcode})"
        return GuardError(f"The sampling process died{ending}.", GO_ON, "engine")

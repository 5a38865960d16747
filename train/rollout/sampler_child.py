"""The sampler's end of its connection to the trainer: an engine that samples while the trainer updates the weights.

The engine is vLLM in a child process, or a thread of the trainer's process that calls a vLLM server. Messages are
tuples of a kind and arguments:

    from the trainer     arguments                              answered by
    call                 method, *arguments of it               answer
    requests             [Request, ...]                         done, for each request, in a stream
    episodes             [(key, Episode), ...], seeded_by       done, for each episode, in a stream
    weights              folder, version                        answer; in a stream loaded, unless newer weights arrive
    stream               SamplingParams, in_flight              paused, at the end of the stream
    pause                                                       paused
    close

    from the sampler     arguments                              remarks
    ready                the longest prompt plus completion     sent once, when the engine is loaded
    answer               the result of the method; None for weights
    done                 the request's sample or the episode's key, Completion or Episode, Versions
    loaded               version, Usage
    paused               Usage
    alive                                                       sent every minute while there is work
    error                line, hint                             a TruegoldError, which ends the sampler
    failed               line                                   any other exception, which ends the sampler

In a stream, requests and episodes are sampled until `pause` arrives. Those that are running then are finished. With
in_flight, new weights are loaded at once, between two steps of the engine. Running completions continue with the new
weights, and the version of each token is recorded. Without in_flight, new weights are loaded when all running
completions are finished. Episodes are played here, so that turns do not wait for the trainer.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.pipeline.running.isolation import GC_THRESHOLDS
from truegold.train.config.turns import TurnsConfig
from truegold.train.model.segment import Versions
from truegold.train.rollout.weight_transfer import ServerRollouts, read_weights, release_weights
from truegold.train.turns.episodes import EnvironmentFaults, EpisodeRunner, OpenEpisodes, make_runner
from truegold.verifiers.sandbox.child_process import die_with_process
from truegold.verifiers.sandbox.errors import TruegoldError

ALIVE_EVERY_S = 60.0
"""Seconds between two `alive` messages of a sampler with work."""
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables of ranks. They are removed, because the sampler is not a rank."""


@dataclass(frozen=True)
class SamplerSetup:
    """The settings that a sampler is started with."""

    name: str
    """The name of the sampler, unique in a training."""
    model: Path
    engine: VllmEngineConfig | ServerEngineConfig
    chat: ChatConfig = field(default_factory=ChatConfig)
    turns: TurnsConfig | None = None
    """The settings of episodes, or None if the sampler plays none."""
    devices: str | None = None
    """The GPUs that the sampler may use, as in CUDA_VISIBLE_DEVICES, or None for the trainer's GPUs."""


@dataclass(frozen=True)
class Usage:
    """The time that a sampler's stream has spent, in seconds."""

    stream_s: float = 0.0
    """The total time."""
    starved_s: float = 0.0
    """The time without work, because nothing was requested."""
    environments_s: float = 0.0
    """The time without work, because all episodes waited for their environments."""
    faults: EnvironmentFaults = field(default_factory=EnvironmentFaults)
    """Faults of environments outside of episodes."""


def main(connection: Connection, parent: int, setup: SamplerSetup) -> None:
    """Serve the trainer at the other end of `connection`, as the main function of a child process, until it ends."""
    die_with_process(parent)
    gc.set_threshold(*GC_THRESHOLDS)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # Signals are passed on to the trainer. The trainer ends this process in order.
        signal.signal(signum, lambda signum, _: os.kill(parent, signum))
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)
    if setup.devices is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = setup.devices
    try:
        serve(connection, setup)
    finally:
        # A normal exit of the interpreter sometimes hangs when engines are destroyed.
        os._exit(0)


def serve(connection: Connection, setup: SamplerSetup) -> None:
    """Serve the trainer at the other end of `connection` until it sends `close` or ends."""
    outbox = Outbox(connection)
    engine = None
    try:
        engine, load_weights = _load_engine(setup)
        child = SamplerChild(connection, outbox, engine, load_weights, setup.name, _make_runner(setup, engine))
        outbox.send("ready", engine.max_model_len)
        child.serve()
    except EOFError:
        # The trainer has ended.
        pass
    except TruegoldError as error:
        outbox.send("error", error.message, error.hint)
    except Exception as error:
        line = str(error).strip().partition("\n")[0]
        outbox.send("failed", f"{type(error).__name__}: {line}")
    finally:
        outbox.close()
        connection.close()
        if isinstance(engine, ServerRollouts):
            engine.close()


class Outbox:
    """Sends messages in a separate thread. So the sampler does not wait for a trainer that reads messages late."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._messages: queue.SimpleQueue[tuple[object, ...] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="truegold-outbox", daemon=True)
        self._thread.start()

    def send(self, *message: object) -> None:
        """Send a message after all earlier ones, without waiting."""
        self._messages.put(message)

    def close(self) -> None:
        """Send the remaining messages and end the thread."""
        self._messages.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                self._connection.send(message)
            except OSError:
                # The trainer has ended. The reader of messages notices this, too.
                return
            except Exception as error:
                line = f"Samples cannot be sent to the trainer: {type(error).__name__}: {error}"
                self._connection.send(("error", line, None))
                return


@dataclass
class _Stream:
    """The state of a running stream. Times are in seconds, by the monotonic clock."""

    in_flight: bool
    """Whether weights are loaded in the middle of completions."""
    is_pausing: bool = False
    """Whether `pause` has arrived."""
    spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """The versions of each running request, by its `sample`, as pairs of first token and version. [(0, 4), (120, 5)]:
    version 4 sampled tokens 0 to 119, version 5 those from 120 on."""
    began: float = field(default_factory=time.monotonic)
    said_alive: float = field(default_factory=time.monotonic)
    """The time of the last `alive` message."""
    starved_s: float = 0.0
    environments_s: float = 0.0
    """See `Usage`."""
    idle_since: float | None = None
    """The time since which all episodes have waited for their environments, or None."""

    def count_idle_time(self, is_idle: bool) -> None:
        """If all episodes waited since the last call, add this time to `environments_s`. is_idle: whether all wait
        now."""
        now = time.monotonic()
        if self.idle_since is not None:
            self.environments_s += now - self.idle_since
        self.idle_since = now if is_idle else None

    def usage(self, runner: EpisodeRunner | None) -> Usage:
        """Return the usage so far, with the faults of the runner's environments."""
        faults = runner.faults if runner is not None else EnvironmentFaults()
        return Usage(time.monotonic() - self.began, self.starved_s, self.environments_s, faults)


@dataclass
class SamplerChild:
    """The engine, its work, and the weights that it has or will load."""

    connection: Connection
    outbox: Outbox
    engine: Any
    load_weights: Callable[[Path, int], None]
    """A function that makes the engine load the weights of a version from a folder."""
    name: str = ""
    runner: EpisodeRunner | None = None
    """Plays episodes; None if the sampler plays none."""
    version: int = 0
    """The version of the loaded weights."""
    waiting: deque[Request] = field(default_factory=deque)
    """Requests that have not begun."""
    episodes: OpenEpisodes | None = field(init=False)
    """The unfinished episodes of the background; None if the sampler plays none."""
    arrived: tuple[Path, int] | None = None
    """The folder and version of weights that are not loaded yet."""
    has_streamed: bool = False
    """Whether there was a stream. A stream reports its own usage."""
    held: Path | None = None
    """The folder of weights that a server would need after a restart."""

    def __post_init__(self) -> None:
        self.episodes = None if self.runner is None else OpenEpisodes(self.runner)

    def serve(self) -> None:
        """Process messages until the trainer sends `close`, and then close all open environments."""
        try:
            self._answer_messages()
        finally:
            if self.episodes is not None:
                self.episodes.abandon()

    def _answer_messages(self) -> None:
        """Process messages until the trainer sends `close`."""
        while True:
            kind, *arguments = self.connection.recv()
            if kind == "close":
                return
            if kind == "stream":
                self._run_stream(*arguments)
            elif kind == "weights":
                with self._signs_of_life():
                    self._load(*arguments)
                self.outbox.send("answer", None)
            elif kind in ("requests", "episodes"):
                self._keep(kind, *arguments)
            elif kind == "call":
                method, *rest = arguments
                # `run`, which plays episodes, is a method of the runner. All other methods are those of the engine.
                called = self.runner if method == "run" else self.engine
                began = time.monotonic()
                with self._signs_of_life():
                    answer = getattr(called, method)(*rest)
                if self.runner is not None and method == "run" and not self.has_streamed:
                    took = time.monotonic() - began
                    usage = Usage(took, 0.0, took * self.runner.waited_share, self.runner.faults)
                    self.outbox.send("loaded", self.version, usage)
                self.outbox.send("answer", answer)
            else:
                raise ValueError(f"unexpected message outside of a stream: {kind}")

    @contextmanager
    def _signs_of_life(self) -> Iterator[None]:
        """Send `alive` every ALIVE_EVERY_S seconds within the context, like a stream does.

        So the trainer can tell a long evaluation from a stopped process or a lost node. It does not notice an engine
        that blocks within the call.
        """
        is_done = threading.Event()

        def send() -> None:
            while not is_done.wait(ALIVE_EVERY_S):
                self.outbox.send("alive")

        sending = threading.Thread(target=send, name="truegold-signs-of-life", daemon=True)
        sending.start()
        try:
            yield
        finally:
            is_done.set()
            sending.join()

    def _keep(self, kind: str, samples: Iterable[Any], seeded_by: Sequence[object] = ()) -> None:
        """Store requests, or episodes with their keys, for sampling in a stream."""
        if kind == "requests":
            self.waiting.extend(samples)
            return
        assert self.episodes is not None
        for key, episode in samples:
            self.episodes.open(key, episode, seeded_by)

    def _load(self, folder: Path, version: int) -> None:
        """Load weights, and release folders that are not needed any more."""
        self.load_weights(folder, version)
        done = folder
        if isinstance(self.engine, ServerRollouts):
            done, self.held = self.held or folder, folder
        if done != self.held:
            release_weights(done, self.name)
        self.version = version

    def _run_stream(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Sample until `pause` arrives and all running samples are finished."""
        stream, self.has_streamed = _Stream(in_flight), True
        for request, completion in self.engine.stream(partial(self._take, stream), sampling):
            versions = _versions(stream.spans.pop(request.sample), completion)
            if self.episodes is None:
                self.outbox.send("done", request.sample, completion, versions)
            else:
                oldest = min((version for version, _ in versions), default=self.version)
                self.episodes.take_up(request.sample, completion, oldest, versions)
        self.outbox.send("paused", stream.usage(self.runner))

    def _take(self, stream: _Stream, count: int) -> list[Request] | None:
        """Return at most `count` requests to sample next, or None to end the stream (`TakeRequests`)."""
        if not (stream.spans or self.waiting or self.episodes or self.arrived or stream.is_pausing):
            began = time.monotonic()
            self.connection.poll(None)
            stream.starved_s += time.monotonic() - began
        if time.monotonic() - stream.said_alive >= ALIVE_EVERY_S:
            stream.said_alive = time.monotonic()
            self.outbox.send("alive")
        self._receive(stream)
        if self.arrived is not None and (stream.in_flight or not stream.spans):
            self._load_arrived(stream, *self.arrived)
        if stream.is_pausing:
            return None
        if self.arrived is not None:
            # No new requests until running ones are finished and the weights are loaded.
            return []
        requests = self._next_requests(count)
        stream.spans |= {request.sample: [(0, self.version)] for request in requests}
        stream.count_idle_time(bool(self.episodes) and not stream.spans)
        return requests

    def _receive(self, stream: _Stream) -> None:
        """Process the messages that have arrived during a stream."""
        while self.connection.poll():
            kind, *arguments = self.connection.recv()
            if kind in ("requests", "episodes"):
                self._keep(kind, *arguments)
            elif kind == "weights":
                if self.arrived is not None:
                    # These weights replace the earlier ones, which were not loaded.
                    release_weights(self.arrived[0], self.name)
                self.arrived = (arguments[0], arguments[1])
            elif kind == "pause":
                stream.is_pausing = True
            elif kind == "close":
                # Handled like the end of the trainer: running samples are not needed.
                raise EOFError

    def _load_arrived(self, stream: _Stream, folder: Path, version: int) -> None:
        """Load weights that arrived during a stream, and record the number of tokens of each running request so far."""
        self._load(folder, version)
        self.arrived = None
        self.outbox.send("loaded", version, stream.usage(self.runner))
        lengths = self.engine.lengths() if stream.spans else {}
        for sample, spans in stream.spans.items():
            spans.append((lengths.get(sample, 0), version))

    def _next_requests(self, count: int) -> list[Request]:
        """Return waiting requests or the next turns of episodes, and send finished episodes to the trainer."""
        if self.episodes is None:
            return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        requests = self.episodes.take_requests(count)
        for key, episode in self.episodes.take_ended():
            segments = episode.dialogue.segments if episode.dialogue is not None else []
            self.outbox.send("done", key, episode, tuple(chain(*(segment.versions for segment in segments))))
        return requests


def _load_engine(setup: SamplerSetup) -> tuple[Any, Callable[[Path, int], None]]:
    """Return the engine, and a function that makes it load the weights of a version from a folder."""
    if isinstance(setup.engine, ServerEngineConfig):
        server = ServerRollouts(setup.engine)
        return server, server.load
    from truegold.pipeline.engines.vllm_local import VllmEngine

    engine = VllmEngine(setup.model, setup.engine)
    return engine, lambda folder, version: engine.update_weights(read_weights(folder), version)


def _make_runner(setup: SamplerSetup, engine: Any) -> EpisodeRunner | None:
    if setup.turns is None:
        return None
    from truegold.pipeline.engines.chat import load_encoder

    encoder = load_encoder(setup.model, setup.chat)
    return make_runner(engine, encoder.tokenizer, encoder.stop_token_ids, setup.chat.system, setup.turns)


def _versions(spans: list[tuple[int, int]], completion: Completion) -> Versions:
    """Return the versions of a completion with their numbers of tokens, from its spans (`_Stream.spans`).

    [(0, 4), (120, 5)] and 200 tokens -> ((4, 120), (5, 80))
    """
    length = len(completion.token_ids)
    ends = [*(min(first, length) for first, _ in spans[1:]), length]
    return tuple((version, end - first) for (first, version), end in zip(spans, ends, strict=True) if end > first)

"""Samples in parallel with the trainer: an engine, the requests or episodes that wait, and weights that arrive
meanwhile.

It is vLLM in a process of its own, or a thread of the trainer's that asks a vLLM server. These are the messages, each
a tuple of its kind and its arguments:

    from the trainer     arguments                              is answered by
    call                 method, *arguments of it               answer
    requests             [Request, ...]                         done, for each, in a stream
    episodes             [(key, Episode), ...], seeded_by       done, for each, in a stream
    weights              folder, version                        answer; in a stream loaded, unless newer ones overtake
    stream               SamplingParams, in_flight              paused, when it has ended
    pause                                                       paused
    close

    from the sampler     arguments
    ready                the longest prompt plus completion     once, when the engine is loaded
    answer               what the method returned; None of weights
    done                 the request's sample or the episode's key, Completion or Episode, Versions
    loaded               version, Usage
    paused               Usage
    error                line, hint                             a TruegoldError, which ends the sampler
    failed               line                                   any other exception, which ends it too

In a stream it samples what requests and episodes ask for until `pause` arrives, and finishes what it has begun. New
weights are loaded between two of the engine's steps: at once (in_flight), so that completions go on under the new ones
and know which token is whose, or when those that were begun are done. Episodes are played here, from turn to turn, so
that no turn waits for the trainer.
"""

from __future__ import annotations

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
from truegold.train.config.turns import TurnsConfig
from truegold.train.model.segment import Versions
from truegold.train.rollout.weight_transfer import ServerRollouts, read_weights, release_weights
from truegold.train.turns.episodes import EnvironmentFaults, EpisodeRunner, OpenEpisodes, make_runner
from truegold.verifiers.sandbox.child_process import die_with_process
from truegold.verifiers.sandbox.errors import TruegoldError

ALIVE_EVERY_S = 60.0
"""Seconds between two signs of life of a sampler with work, whether anything is finished or not."""
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables by which a process knows that it is one of several ranks. The sampler is not a rank."""


@dataclass(frozen=True)
class SamplerSetup:
    """The arguments that a sampler is started with."""

    name: str
    """It tells a training's samplers apart."""
    model: Path
    engine: VllmEngineConfig | ServerEngineConfig
    chat: ChatConfig = field(default_factory=ChatConfig)
    turns: TurnsConfig | None = None
    """The settings of episodes, if it plays any."""
    devices: str | None = None
    """The GPUs that it may see, where not the trainer's."""


@dataclass(frozen=True)
class Usage:
    """How a sampler's stream has spent its time."""

    stream_s: float = 0.0
    starved_s: float = 0.0
    """Seconds without anything to sample, because nothing was asked for."""
    environments_s: float = 0.0
    """Seconds without anything to sample, because every episode waited for its environment."""
    faults: EnvironmentFaults = field(default_factory=EnvironmentFaults)
    """Faults of environments outside of their episodes."""


def main(connection: Connection, parent: int, setup: SamplerSetup) -> None:
    """Serve the trainer at the other end of `connection`, in a process of its own, until it ends."""
    die_with_process(parent)
    for signum in (signal.SIGTERM, signal.SIGINT):
        # The trainer has to hear it too, and ends this process when it is done.
        signal.signal(signum, lambda signum, _: os.kill(parent, signum))
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)
    if setup.devices is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = setup.devices
    try:
        serve(connection, setup)
    finally:
        # Engines that are torn down at the interpreter's exit hang now and then.
        os._exit(0)


def serve(connection: Connection, setup: SamplerSetup) -> None:
    """Serve the trainer at the other end of `connection` until it says `close` or ends."""
    outbox = Outbox(connection)
    engine = None
    try:
        engine, load_weights = _load_engine(setup)
        child = SamplerChild(connection, outbox, engine, load_weights, setup.name, _make_runner(setup, engine))
        outbox.send("ready", engine.max_model_len)
        child.serve()
    except EOFError:
        # The trainer has gone.
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
    """Sends messages in a thread of its own, so that a trainer who reads them late does not hold the sampler up."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._messages: queue.SimpleQueue[tuple[object, ...] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="truegold-outbox", daemon=True)
        self._thread.start()

    def send(self, *message: object) -> None:
        """Send a message after those before it."""
        self._messages.put(message)

    def close(self) -> None:
        """Send what is left, and end."""
        self._messages.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                self._connection.send(message)
            except OSError:
                # The trainer has gone, as the reader of its messages sees too.
                return
            except Exception as error:
                line = f"What was sampled cannot be sent: {type(error).__name__}: {error}"
                self._connection.send(("error", line, None))
                return


@dataclass
class _Stream:
    """A stream while it runs: how it takes weights, what is being sampled, and how it has spent its time."""

    in_flight: bool
    """Whether weights are loaded while completions are being sampled."""
    is_pausing: bool = False
    spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """The versions of each request that is being sampled, keyed by its `sample`: (its tokens by then, version)
    for each version of the weights, such as [(0, 4), (120, 5)]."""
    began: float = field(default_factory=time.monotonic)
    said_alive: float = field(default_factory=time.monotonic)
    """When it last said that it goes on."""
    starved_s: float = 0.0
    environments_s: float = 0.0
    idle_since: float | None = None
    """When the sampler last saw that all episodes wait for their environments, or None if they do not."""

    def count_idle_time(self, is_idle: bool) -> None:
        """Add the time since the last call where all episodes waited then. is_idle: whether all do now."""
        now = time.monotonic()
        if self.idle_since is not None:
            self.environments_s += now - self.idle_since
        self.idle_since = now if is_idle else None

    def usage(self, runner: EpisodeRunner | None) -> Usage:
        """Return how it has spent its time so far, with the faults of the runner's environments."""
        faults = runner.faults if runner is not None else EnvironmentFaults()
        return Usage(time.monotonic() - self.began, self.starved_s, self.environments_s, faults)


@dataclass
class SamplerChild:
    """The engine and what it is to do."""

    connection: Connection
    outbox: Outbox
    engine: Any
    load_weights: Callable[[Path, int], None]
    """Have the engine load the weights in a folder, under their version."""
    name: str = ""
    """The sampler's."""
    runner: EpisodeRunner | None = None
    """Plays episodes, where it samples those."""
    version: int = 0
    """The version of the weights that it samples with."""
    waiting: deque[Request] = field(default_factory=deque)
    """Requests that are not begun."""
    episodes: OpenEpisodes | None = field(init=False)
    """The episodes of the background that are not over."""
    arrived: tuple[Path, int] | None = None
    """Weights that are not loaded yet, and their version."""
    has_streamed: bool = False
    """Whether a stream has been asked for, which has a usage of its own."""
    held: Path | None = None
    """The folder of weights that a server needs for when it is started again."""

    def __post_init__(self) -> None:
        self.episodes = None if self.runner is None else OpenEpisodes(self.runner)

    def serve(self) -> None:
        """Answer messages until the trainer is done, and close the environments that are open then."""
        try:
            self._answer_messages()
        finally:
            if self.episodes is not None:
                self.episodes.abandon()

    def _answer_messages(self) -> None:
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
                # Only `run`, which plays episodes to their end, is not a method of the engine's.
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
                raise ValueError(f"no message outside a stream: {kind}")

    @contextmanager
    def _signs_of_life(self) -> Iterator[None]:
        """Send `alive` every ALIVE_EVERY_S while a call is answered, as a stream does.

        The trainer then tells a long evaluation from a process that is stopped or a node that is gone. An engine that
        blocks within the call is not noticed.
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
        """Keep what is to be sampled in a stream: requests, or episodes with their keys."""
        if kind == "requests":
            self.waiting.extend(samples)
            return
        assert self.episodes is not None
        for key, episode in samples:
            self.episodes.open(key, episode, seeded_by)

    def _load(self, folder: Path, version: int) -> None:
        self.load_weights(folder, version)
        done = folder
        if isinstance(self.engine, ServerRollouts):
            done, self.held = self.held or folder, folder
        if done != self.held:
            release_weights(done, self.name)
        self.version = version

    def _run_stream(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Sample until it is to pause, and everything begun is done."""
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
        """Return what is sampled next, at most `count` requests, or None if the stream is to pause (`TakeRequests`)."""
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
            # They are loaded when everything begun is done.
            return []
        requests = self._next_requests(count)
        stream.spans |= {request.sample: [(0, self.version)] for request in requests}
        stream.count_idle_time(bool(self.episodes) and not stream.spans)
        return requests

    def _receive(self, stream: _Stream) -> None:
        """Read the messages that have arrived in a stream."""
        while self.connection.poll():
            kind, *arguments = self.connection.recv()
            if kind in ("requests", "episodes"):
                self._keep(kind, *arguments)
            elif kind == "weights":
                if self.arrived is not None:
                    # Newer ones have overtaken them.
                    release_weights(self.arrived[0], self.name)
                self.arrived = (arguments[0], arguments[1])
            elif kind == "pause":
                stream.is_pausing = True
            elif kind == "close":
                # As where the trainer has gone: the samples in progress are not wanted any more.
                raise EOFError

    def _load_arrived(self, stream: _Stream, folder: Path, version: int) -> None:
        """Load weights that have arrived in a stream, and note how many tokens were sampled before them."""
        self._load(folder, version)
        self.arrived = None
        self.outbox.send("loaded", version, stream.usage(self.runner))
        lengths = self.engine.lengths() if stream.spans else {}
        for sample, spans in stream.spans.items():
            spans.append((lengths.get(sample, 0), version))

    def _next_requests(self, count: int) -> list[Request]:
        """Return requests that wait, or the next turns of episodes, and send the episodes that have ended."""
        if self.episodes is None:
            return [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        requests = self.episodes.take_requests(count)
        for key, episode in self.episodes.take_ended():
            segments = episode.dialogue.segments if episode.dialogue is not None else []
            self.outbox.send("done", key, episode, tuple(chain(*(segment.versions for segment in segments))))
        return requests


def _load_engine(setup: SamplerSetup) -> tuple[Any, Callable[[Path, int], None]]:
    """Return the engine, and the function that has it load weights."""
    if isinstance(setup.engine, ServerEngineConfig):
        server = ServerRollouts(setup.engine)
        return server, server.load
    from truegold.pipeline.engines.vllm_local import VllmEngine

    engine = VllmEngine(setup.model, setup.engine)
    return engine, lambda folder, version: engine.update_weights(read_weights(folder), version)


def _make_runner(setup: SamplerSetup, engine: Any) -> EpisodeRunner | None:
    """Return what plays episodes, where the sampler is to."""
    if setup.turns is None:
        return None
    from truegold.pipeline.engines.chat import load_encoder

    encoder = load_encoder(setup.model, setup.chat)
    return make_runner(engine, encoder.tokenizer, encoder.stop_token_ids, setup.chat.system, setup.turns)


def _versions(spans: list[tuple[int, int]], completion: Completion) -> Versions:
    """Return the stretches of a completion, by its spans (`_Stream.spans`).

    [(0, 4), (120, 5)] and 200 tokens -> ((4, 120), (5, 80))
    """
    length = len(completion.token_ids)
    ends = [*(min(first, length) for first, _ in spans[1:]), length]
    return tuple((version, end - first) for (first, version), end in zip(spans, ends, strict=True) if end > first)

"""The process that samples beside the trainer: vLLM, the requests that wait, and weights that arrive while it samples.

It reads messages and answers them, one after another (`call`), or samples whatever is asked for until it is to pause
(`stream`). In a stream weights are taken between two of the engine's steps: at once, so that completions go on under
the new ones and know which token is whose, or when those that were begun are done.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.verifiers.errors import TruegoldError
from truegold.verifiers.processes.lifetime import die_with_process

AHEAD = 256
"""Requests that are handed over at a time."""
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What tells a process that it is one of several ranks. The sampler is none."""


def main(connection: Connection, parent: int, model: Path, config: VllmEngineConfig, devices: str | None) -> None:
    """Serve the trainer at the other end of `connection` until it says `close` or ends."""
    die_with_process(parent)
    for name in RANK_VARIABLES:
        os.environ.pop(name, None)
    if devices is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = devices
    try:
        from truegold.pipeline.engines.vllm_local import VllmEngine

        child = SamplerChild(connection, VllmEngine(model, config))
        connection.send(("ready", child.engine.max_model_len))
        child.serve()
    except (EOFError, BrokenPipeError):
        return
    except TruegoldError as error:
        connection.send(("error", str(error), error.hint))
    except Exception as error:
        connection.send(("error", f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}", None))
    finally:
        # Engines that are torn down at the interpreter's exit hang now and then.
        connection.close()
        os._exit(0)


@dataclass
class SamplerChild:
    """The engine and what it is to do."""

    connection: Connection
    engine: Any
    version: int = 0
    waiting: deque[Request] = field(default_factory=deque)
    """Requests that are not begun."""
    arrived: tuple[Path, int] | None = None
    """Weights that are not loaded yet, and their version."""
    is_pausing: bool = False
    takes_weights_in_flight: bool = False
    spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """For each running request: how many tokens it had when each version came, as (first token, version)."""
    began: float = 0.0
    """When the stream began."""
    starved_s: float = 0.0
    """Its seconds without anything to sample."""

    def serve(self) -> None:
        """Answer messages until the trainer is done."""
        while True:
            kind, *arguments = self.connection.recv()
            if kind == "close":
                return
            if kind == "stream":
                self._stream(*arguments)
            elif kind == "weights":
                self._load(*arguments)
                self.connection.send(("answer", None))
            elif kind == "requests":
                self.waiting.extend(arguments[0])
            else:
                method, *rest = arguments
                self.connection.send(("answer", getattr(self.engine, method)(*rest)))

    def _load(self, folder: Path, version: int) -> None:
        from truegold.train.rollout.weight_files import read_weights

        self.engine.update_weights(read_weights(folder), version)
        shutil.rmtree(folder)
        self.version = version

    def _stream(self, sampling: SamplingParams, in_flight: bool) -> None:
        """Sample until it is to pause, and everything begun is done."""
        self.takes_weights_in_flight, self.is_pausing = in_flight, False
        self.began, self.starved_s = time.monotonic(), 0.0
        for request, completion in self.engine.stream(self._take, sampling):
            spans = self.spans.pop(request.sample)
            self.connection.send(("done", request.sample, completion, _versions(spans, completion)))
        self.connection.send(("paused", time.monotonic() - self.began, self.starved_s))

    def _take(self, count: int) -> list[Request] | None:
        """Read what has arrived, take weights where it is time, and return what is sampled next."""
        if not self.spans and not self.waiting and not self.arrived and not self.is_pausing:
            self._wait()
        while self.connection.poll():
            kind, *arguments = self.connection.recv()
            if kind == "requests":
                self.waiting.extend(arguments[0])
            elif kind == "weights":
                self.arrived = (arguments[0], arguments[1])
            elif kind == "pause":
                self.is_pausing = True
        if self.arrived is not None and (self.takes_weights_in_flight or not self.spans):
            self._load(*self.arrived)
            self.connection.send(("loaded", self.version, time.monotonic() - self.began, self.starved_s))
            self.arrived = None
            lengths = self.engine.lengths()
            for sample, spans in self.spans.items():
                spans.append((lengths.get(sample, 0), self.version))
        if self.is_pausing:
            return None
        if self.arrived is not None:
            return []
        requests = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        self.spans |= {request.sample: [(0, self.version)] for request in requests}
        return requests

    def _wait(self) -> None:
        """Wait until there is something to do."""
        began = time.monotonic()
        self.connection.poll(None)
        self.starved_s += time.monotonic() - began


def _versions(spans: list[tuple[int, int]], completion: Completion) -> tuple[tuple[int, int], ...]:
    """Return (version, tokens) of each stretch of a completion, in order."""
    length = len(completion.token_ids)
    ends = [*(min(first, length) for first, _ in spans[1:]), length]
    return tuple((version, end - first) for (first, version), end in zip(spans, ends, strict=True) if end > first)

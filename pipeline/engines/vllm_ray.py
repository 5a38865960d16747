"""Several vLLM engines in parallel through Ray, each on separate GPUs or on a separate node.

    requests  ->  engine on node A, GPU 0   ->  completions
              ->  engine on node A, GPU 1   ->
              ->  engine on node B, GPU 0   ->

Every engine is a Ray actor, because vLLM does not support data parallelism within one process. The actors end with this
process, even if it is killed. If an engine is lost, the other engines get its requests. The engine is restarted as soon
as Ray has a node with room for it, such as one that joins later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import POLL_S, Completion, Request, SamplingParams, TakeRequests, collect, hand_out
from truegold.pipeline.engines.vllm_local import QUEUED_PER_SEQUENCE, VllmEngine
from truegold.pipeline.running.ray_cluster import join_cluster
from truegold.verifiers import SetupError

WORK_S = 0.25
"""An engine samples for this number of seconds. Then it returns finished completions and takes new requests."""
MOST_LOSSES = 4
"""An engine that was lost this number of times is not restarted."""
LONGEST_START_S = 1800.0
"""The run ends after this number of seconds without a ready engine."""
LONGEST_SILENCE_S = 3600.0
"""An engine counts as lost after this number of seconds without a finished request."""
HANDFUL = 16
"""An engine gets this number of requests at a time. Then the next engine gets some."""


class Replica:
    """One engine. Runs in a Ray actor."""

    def __init__(self, model: str, config: VllmEngineConfig) -> None:
        self._engine = VllmEngine(Path(model), config)
        self._todo: list[tuple[int, Request]] = []
        self._outstanding: dict[Request, int] = {}
        self._stream: Iterator[tuple[Request, Completion]] | None = None
        self._sampling: SamplingParams | None = None

    def work(self, requests: list[tuple[int, Request]], sampling: SamplingParams) -> list[tuple[int, Completion]]:
        """Add requests, sample for WORK_S, and return the finished completions with the numbers of their requests."""
        self._todo.extend(requests)
        self._outstanding.update((request, index) for index, request in requests)
        if self._stream is None or sampling != self._sampling:
            # The previous stream has ended. The caller changes sampling parameters only between streams.
            self._stream, self._sampling = self._engine.stream(self._take, sampling), sampling
        ended = time.monotonic() + WORK_S
        finished: list[tuple[int, Completion]] = []
        while self._outstanding and (not finished or time.monotonic() < ended):
            request, completion = next(self._stream)
            finished.append((self._outstanding.pop(request), completion))
        return finished

    def facts(self) -> dict[str, Any]:
        """Return the facts of the engine (`Engine.facts`)."""
        return self._engine.facts()

    def _take(self, count: int) -> list[Request]:
        taken, self._todo = self._todo[:count], self._todo[count:]
        return [request for _, request in taken]


@dataclass
class _Worker:
    """The calling process's record of an engine."""

    name: str
    actor: Any
    running: dict[int, Request] = field(default_factory=dict)
    completions: int = 0
    tokens: int = 0
    is_ready: bool = False
    """Whether the engine takes requests. If not, it is starting or lost."""
    asked: float = 0.0
    """The time when the engine was last asked for finished completions."""
    losses: list[str] = field(default_factory=list)
    """The reason for each loss of the engine."""


class RayEngine:
    """An engine that distributes requests over `config.data_parallel_size` engines on the checkpoint in `model`."""

    def __init__(self, model: Path, config: VllmEngineConfig) -> None:
        ray, self._joined = join_cluster(config.ray_address, "engine.ray_address")
        self._ray: Any = ray
        self.max_model_len = config.max_model_len
        self._most_requests = QUEUED_PER_SEQUENCE * config.max_num_seqs
        """The maximum number of requests of one engine at a time."""
        self._next_index = 0
        options = resources(ray.cluster_resources(), config)
        alone = config.model_copy(update={"data_parallel_size": 1, "ray_address": None})
        make: Any = ray.remote(**options)(Replica)
        self._make_actor: Callable[[], Any] = lambda: make.remote(str(model.resolve()), alone)
        self._starting: dict[Any, _Worker] = {}
        """The engines that are starting. The key is a Ray object that is ready when the engine has started."""
        self._had_one = time.monotonic()
        """The last time at which any engine was ready."""
        self._workers = [
            self._start(_Worker(f"engine {index}", self._make_actor())) for index in range(config.data_parallel_size)
        ]

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Sample as `Engine.generate` describes."""
        take = hand_out(prompts, seeds, self.max_model_len)
        return collect(self.stream(take, sampling), len(prompts))

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` describes."""
        working: dict[Any, _Worker] = {}
        orphans: list[Request] = []
        while True:
            ended = self._hand_out(take, sampling, working, orphans)
            if not working and ended and not orphans:
                return
            references = [*self._starting, *working]
            if not references:
                time.sleep(POLL_S)
                continue
            # While a ready engine is idle, do not wait long for engines that are starting.
            is_idle = not working and any(worker.is_ready for worker in self._workers)
            done, _ = self._ray.wait(references, num_returns=1, timeout=POLL_S if is_idle else WORK_S)
            self._check_starts()
            for reference in done:
                worker = self._starting.get(reference) or working[reference]
                try:
                    outcome = self._ray.get(reference)
                except self._ray.exceptions.RayError as error:
                    self._starting.pop(reference, None)
                    working.pop(reference, None)
                    orphans += self._lose(worker, error)
                    continue
                if self._starting.pop(reference, None) is not None:
                    worker.is_ready = True
                    continue
                del working[reference]
                for index, completion in outcome:
                    worker.completions += 1
                    worker.tokens += len(completion.token_ids)
                    yield worker.running.pop(index), completion
            for reference, worker in list(working.items()):
                if time.monotonic() - worker.asked > LONGEST_SILENCE_S:
                    del working[reference]
                    hangs = f"it hangs: it has finished nothing for {LONGEST_SILENCE_S:.0f} seconds"
                    orphans += self._lose(worker, TimeoutError(hangs))

    def facts(self) -> dict[str, Any]:
        """Return the completions, tokens and losses of each engine."""
        return {
            "engines": [
                {"engine": each.name, "completions": each.completions, "tokens": each.tokens, "lost": each.losses}
                for each in self._workers
            ]
        }

    def close(self) -> None:
        """End the engines, and also Ray if it was started here."""
        for worker in self._workers:
            self._ray.kill(worker.actor)
        if not self._joined:
            self._ray.shutdown()

    def _hand_out(
        self, take: TakeRequests, sampling: SamplingParams, working: dict[Any, _Worker], orphans: list[Request]
    ) -> bool:
        """Give requests to the idle engines, HANDFUL at a time to each. So even a few requests are spread. Return
        whether `take` has no more requests."""
        busy = {worker.name for worker in working.values()}
        idle = [worker for worker in self._workers if worker.is_ready and worker.name not in busy]
        batches: dict[str, list[tuple[int, Request]]] = {worker.name: [] for worker in idle}
        turns, ended = deque(idle), False
        while turns:
            worker = turns.popleft()
            count = min(HANDFUL, self._most_requests - len(worker.running))
            requests = [orphans.pop() for _ in range(min(count, len(orphans)))]
            if len(requests) < count:
                taken = take(count - len(requests))
                ended = ended or taken is None
                requests += taken or []
            for request in requests:
                worker.running[self._next_index] = request
                batches[worker.name].append((self._next_index, request))
                self._next_index += 1
            if requests:
                turns.append(worker)
        for worker in idle:
            if worker.running:
                worker.asked = time.monotonic()
                working[worker.actor.work.remote(_strip(batches[worker.name]), sampling)] = worker
        return ended

    def _start(self, worker: _Worker) -> _Worker:
        """Add a worker to the starting ones. It is ready once its actor has loaded the model and answered a call."""
        self._starting[worker.actor.facts.remote()] = worker
        return worker

    def _check_starts(self) -> None:
        """Raise SetupError if no engine has been ready for LONGEST_START_S."""
        if any(worker.is_ready for worker in self._workers):
            self._had_one = time.monotonic()
        elif time.monotonic() - self._had_one > LONGEST_START_S:
            raise SetupError(
                f"No vLLM engine has started in {LONGEST_START_S:.0f} seconds: Ray may have no node for it.",
                "Finished samples are kept: look at `ray status`, and run again.",
            )

    def _lose(self, worker: _Worker, error: Exception) -> list[Request]:
        """Restart a lost engine, and return its unfinished requests.

        An engine that never worked, or was lost too often, is not restarted.
        """
        worker.losses.append(str(error).strip().splitlines()[-1][:300])
        has_worked, worker.is_ready = worker.is_ready or len(worker.losses) > 1, False
        # The actor's process may still run: perhaps only its engine failed, or its node did not answer.
        self._ray.kill(worker.actor)
        if has_worked and len(worker.losses) < MOST_LOSSES:
            worker.actor = self._make_actor()
            self._start(worker)
        elif not self._starting and not any(other.is_ready for other in self._workers):
            raise SetupError(
                f"All vLLM engines are lost; the last for {worker.losses[-1]}.",
                "Finished samples are kept: run again.",
            ) from error
        requests = list(worker.running.values())
        worker.running.clear()
        return requests


def _strip(numbered: Sequence[tuple[int, Request]]) -> list[tuple[int, Request]]:
    """Return plain requests to send, without the additional data of subclasses of Request.

    The `sample` of each request is its number. No two requests are equal then, as `Replica._outstanding` needs.
    """
    return [(index, Request(request.prompt, request.seed, index)) for index, request in numbered]


def resources(cluster: dict[str, float], config: VllmEngineConfig) -> dict[str, Any]:
    """Return the Ray options of an actor: its number of GPUs or, on a cluster without GPUs, of CPUs.

    Raises SetupError if the cluster has too few GPUs for all engines.
    """
    gpus, engines = int(cluster.get("GPU", 0)), config.data_parallel_size
    if not gpus and config.tensor_parallel_size == 1:
        return {"num_cpus": min(1.0, cluster.get("CPU", 1.0) / engines)}
    if engines * config.tensor_parallel_size > gpus:
        raise SetupError(
            f"{engines} engines on {config.tensor_parallel_size} GPUs each need {engines * config.tensor_parallel_size}"
            f" GPUs; Ray has {gpus}.",
            "Lower engine.data_parallel_size or engine.tensor_parallel_size, or set engine.ray_address.",
        )
    return {"num_gpus": config.tensor_parallel_size}

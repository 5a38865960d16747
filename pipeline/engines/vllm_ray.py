"""Several in-process vLLM engines side by side, each on GPUs of its own or on a node of its own, through Ray.

    take  ->  requests  ->  engine on node A, GPU 0   ->  completions
                        ->  engine on node A, GPU 1   ->
                        ->  engine on node B, GPU 0   ->

vLLM itself refuses data parallelism in one process. Here every engine is an actor that Ray places; it ends with this
process, even if that is killed. The requests of an engine that is lost go to the others. It starts anew where Ray has
room for it, also on a node that joins later, and takes requests again when it has loaded the model.
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
"""How long an engine samples before it hands over what is finished and takes new requests."""
MOST_LOSSES = 4
"""An engine that is lost this many times does not start anew."""
LONGEST_START_S = 1800.0
"""How long engines may take to start while none samples."""
LONGEST_SILENCE_S = 3600.0
"""The time that an engine may take without finishing a request."""
HANDFUL = 16
"""The requests that an engine gets at a time, before it is the next one's turn."""


class Replica:
    """One engine, in an actor."""

    def __init__(self, model: str, config: VllmEngineConfig) -> None:
        self._engine = VllmEngine(Path(model), config)
        self._todo: list[tuple[int, Request]] = []
        self._outstanding: dict[Request, int] = {}
        self._stream: Iterator[tuple[Request, Completion]] | None = None
        self._sampling: SamplingParams | None = None

    def work(self, requests: list[tuple[int, Request]], sampling: SamplingParams) -> list[tuple[int, Completion]]:
        """Take requests, sample for a while, and return the finished completions with the callers' numbers."""
        self._todo.extend(requests)
        self._outstanding.update((request, index) for index, request in requests)
        if self._stream is None or sampling != self._sampling:
            # Other sampling comes with another stream of the caller, who has waited for the end of the first.
            self._stream, self._sampling = self._engine.stream(self._take, sampling), sampling
        ended = time.monotonic() + WORK_S
        finished: list[tuple[int, Completion]] = []
        while self._outstanding and (not finished or time.monotonic() < ended):
            request, completion = next(self._stream)
            finished.append((self._outstanding.pop(request), completion))
        return finished

    def facts(self) -> dict[str, Any]:
        """Return what the engine says of its work."""
        return self._engine.facts()

    def _take(self, count: int) -> list[Request]:
        taken, self._todo = self._todo[:count], self._todo[count:]
        return [request for _, request in taken]


@dataclass
class _Worker:
    """An engine, as this process sees it."""

    name: str
    actor: Any
    running: dict[int, Request] = field(default_factory=dict)
    completions: int = 0
    tokens: int = 0
    is_ready: bool = False
    """Whether it takes requests; else it starts, or is lost."""
    asked: float = 0.0
    """When it was last asked for what is finished."""
    losses: list[str] = field(default_factory=list)
    """The reasons for which it was lost."""


class RayEngine:
    """Samples from `config.data_parallel_size` engines on the checkpoint in folder `model`."""

    def __init__(self, model: Path, config: VllmEngineConfig) -> None:
        ray, self._joined = join_cluster(config.ray_address, "engine.ray_address")
        self._ray: Any = ray
        self.max_model_len = config.max_model_len
        self._most_requests = QUEUED_PER_SEQUENCE * config.max_num_seqs
        """The requests that one engine may hold."""
        self._next_index = 0
        """The number of the next request that is handed out."""
        options = resources(ray.cluster_resources(), config)
        alone = config.model_copy(update={"data_parallel_size": 1, "ray_address": None})
        make: Any = ray.remote(**options)(Replica)
        self._make_actor: Callable[[], Any] = lambda: make.remote(str(model.resolve()), alone)
        self._starting: dict[Any, _Worker] = {}
        """Maps the object that Ray completes when an engine has started to the engine."""
        self._had_one = time.monotonic()
        """The time at which an engine was ready last."""
        self._workers = [
            self._start(_Worker(f"engine {index}", self._make_actor())) for index in range(config.data_parallel_size)
        ]

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Sample as `Engine.generate` says."""
        take = hand_out(prompts, seeds, self.max_model_len)
        return collect(self.stream(take, sampling), len(prompts))

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` says."""
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
            # Engines that wait for requests get them at once, also while another one starts.
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
        """Return what each engine has done."""
        return {
            "engines": [
                {"engine": each.name, "completions": each.completions, "tokens": each.tokens, "lost": each.losses}
                for each in self._workers
            ]
        }

    def close(self) -> None:
        """End the engines, and Ray where it was started here."""
        for worker in self._workers:
            self._ray.kill(worker.actor)
        if not self._joined:
            self._ray.shutdown()

    def _hand_out(
        self, take: TakeRequests, sampling: SamplingParams, working: dict[Any, _Worker], orphans: list[Request]
    ) -> bool:
        """Give requests to the idle workers, a handful in turn, so that a few requests are spread as well; return
        whether no further ones will come."""
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
        """Have an engine take requests when its actor has loaded the model."""
        self._starting[worker.actor.facts.remote()] = worker
        return worker

    def _check_starts(self) -> None:
        """Raise SetupError if no engine is ready, and none has been for long."""
        if any(worker.is_ready for worker in self._workers):
            self._had_one = time.monotonic()
        elif time.monotonic() - self._had_one > LONGEST_START_S:
            raise SetupError(
                f"No vLLM engine has started in {LONGEST_START_S:.0f} seconds: Ray may have no node for it.",
                "Finished samples are kept: look at `ray status`, and run again.",
            )

    def _lose(self, worker: _Worker, error: Exception) -> list[Request]:
        """Start a lost engine anew, unless it has never worked or was lost often, and return the requests that it
        had."""
        worker.losses.append(str(error).strip().splitlines()[-1][:300])
        has_worked, worker.is_ready = worker.is_ready or len(worker.losses) > 1, False
        # Its process may be there yet, where its engine has failed or its node does not answer.
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
    """Return plain requests to send: subclasses of Request carry data of the caller's that the engine does not need.

    The number stands for the sample, so that no two requests of an engine are equal: they are the keys of
    `Replica._outstanding`.
    """
    return [(index, Request(request.prompt, request.seed, index)) for index, request in numbered]


def resources(cluster: dict[str, float], config: VllmEngineConfig) -> dict[str, Any]:
    """Return the options of an actor: its GPUs or, on a cluster without any, its CPUs.

    Raises SetupError if the cluster has too few for all engines.
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

"""Engines side by side: what cannot be had is one line, and a lost engine costs no sample."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines import vllm_ray
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.pipeline.engines.vllm_ray import LONGEST_START_S, RayEngine, _Worker, resources
from truegold.verifiers import SetupError

SAMPLING = SamplingParams(logprobs=False)


class LostError(Exception):
    """What Ray raises for an actor that has died."""


HANGS = object()
"""The outcome that never comes."""


class Reference(tuple[Any, Any]):
    """An outcome that can be a key."""

    def __hash__(self) -> int:
        return id(self)


class FakeActor:
    """An actor that works at once, and dies, or hangs, in its `dies`-th turn; with -1 when it starts."""

    def __init__(self, dies: int = 0, *, hangs: bool = False) -> None:
        self.turns, self.dies, self.hangs = 0, dies, hangs
        self.had: list[tuple[int, Request]] = []
        self.work = SimpleNamespace(remote=self._work)
        self.facts = SimpleNamespace(remote=self._start)

    def _start(self) -> Reference:
        return Reference((object(), LostError("no room") if self.dies == -1 else {}))

    def _work(self, requests: list[tuple[int, Request]], _: SamplingParams) -> Reference:
        """Return the outcome that `FakeRay.get` shows."""
        self.turns += 1
        self.had += requests
        if self.turns == self.dies:
            return Reference((object(), HANGS if self.hangs else LostError("the node is gone")))
        done, self.had = self.had[:3], self.had[3:]
        return Reference((object(), [(index, Completion((request.seed,), (), "stop")) for index, request in done]))


class FakeRay:
    """As much of Ray as the engine asks."""

    class exceptions:
        """Ray's errors."""

        RayError = LostError

    def wait(self, references: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        """Return the first that does not hang."""
        return [reference for reference in references if reference[1] is not HANGS][:1], references[1:]

    def get(self, reference: Any) -> Any:
        """Return or raise an outcome."""
        if isinstance(reference[1], Exception):
            raise reference[1]
        return reference[1]

    def kill(self, _: FakeActor) -> None:
        """Do nothing."""


def engine_on(*actors: FakeActor, then: Iterable[FakeActor] = ()) -> RayEngine:
    """Return an engine on some actors, and on those that Ray places `then`."""
    engine = RayEngine.__new__(RayEngine)
    engine._ray, engine.max_model_len, engine._most_requests, engine._next_index = FakeRay(), 64, 8, 0
    engine._starting, engine._had_one, later = {}, time.monotonic(), iter(then)
    engine._make_actor = lambda: next(later)
    engine._workers = [engine._start(_Worker(f"engine {index}", actor)) for index, actor in enumerate(actors)]
    return engine


def draw(engine: RayEngine) -> list[dict[str, Any]]:
    """Draw 50 samples, check that each is there once, and return what the report says of the engines."""
    drawn = engine.generate([[1]] * 50, SAMPLING, range(50))
    assert [completion.token_ids for completion in drawn] == [(seed,) for seed in range(50)]
    facts = engine.facts()["engines"]
    assert sum(worker["completions"] for worker in facts) == 50
    return facts


@pytest.mark.parametrize("dies", [0, 1, 2, 4])
def test_each_request_is_sampled_once_and_a_lost_engine_starts_anew(dies: int) -> None:
    anew = FakeActor()
    facts = draw(engine_on(FakeActor(dies), FakeActor(), then=[anew]))
    assert facts[0]["lost"] == (["the node is gone"] if dies else [])
    assert bool(anew.turns) == bool(dies)


def test_an_engine_that_hangs_is_lost_and_others_do_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_ray, "LONGEST_SILENCE_S", 2)
    facts = draw(engine_on(FakeActor(2, hangs=True), FakeActor(), then=[FakeActor()]))
    assert facts[0]["lost"] == ["it hangs: it has finished nothing for 2 seconds"]


def test_an_engine_that_is_lost_again_and_again_is_done_without() -> None:
    facts = draw(engine_on(FakeActor(1), FakeActor(), then=[FakeActor(1), FakeActor(-1), FakeActor(1), FakeActor()]))
    assert facts[0]["lost"] == ["the node is gone", "the node is gone", "no room", "the node is gone"]
    assert facts[0]["completions"] == 0


def test_an_engine_that_cannot_start_is_not_tried_again() -> None:
    facts = draw(engine_on(FakeActor(-1), FakeActor()))
    assert facts[0]["lost"] == ["no room"]
    with pytest.raises(SetupError, match="All vLLM engines are lost; the last for no room"):
        draw(engine_on(FakeActor(-1), FakeActor(-1)))


def test_when_all_engines_are_lost_the_run_ends() -> None:
    with pytest.raises(SetupError, match="All vLLM engines are lost; the last for the node is gone"):
        draw(engine_on(FakeActor(1), FakeActor(2), then=[FakeActor(1) for _ in range(6)]))


def test_a_cluster_without_room_for_any_engine_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_on(FakeActor())
    engine._had_one -= LONGEST_START_S
    monkeypatch.setattr(engine._ray, "wait", lambda references, **_: ([], references), raising=False)
    with pytest.raises(SetupError, match=r"No vLLM engine has started in 1800 seconds: Ray may have no node"):
        draw(engine)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SetupError, match=r"Ray is not installed.*truegold\[ray\]"):
        RayEngine(Path("m"), VllmEngineConfig(data_parallel_size=2))


def test_more_gpus_than_there_are_is_one_line() -> None:
    with pytest.raises(SetupError, match="2 engines on 4 GPUs each need 8 GPUs; Ray has 4"):
        resources({"GPU": 4}, VllmEngineConfig(data_parallel_size=2, tensor_parallel_size=4))
    assert resources({"GPU": 8}, VllmEngineConfig(data_parallel_size=2, tensor_parallel_size=4)) == {"num_gpus": 4}
    assert resources({"CPU": 1}, VllmEngineConfig(data_parallel_size=2)) == {"num_cpus": 0.5}

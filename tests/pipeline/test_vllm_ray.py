"""Engines side by side: what cannot be had is one line, and a lost engine costs no sample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams
from truegold.pipeline.engines.vllm_ray import RayEngine, _resources, _Worker
from truegold.verifiers import SetupError

SAMPLING = SamplingParams(logprobs=False)


class LostError(Exception):
    """What Ray raises for an actor that has died."""


class FakeActor:
    """An actor that works at once, and dies in its `dies`-th turn."""

    def __init__(self, dies: int = 0) -> None:
        self.turns, self.dies = 0, dies
        self.had: list[tuple[int, Request]] = []
        self.work = self

    def remote(self, requests: list[tuple[int, Request]], _: SamplingParams) -> Any:
        """Return the outcome that `FakeRay.get` shows."""
        self.turns += 1
        self.had += requests
        if self.turns == self.dies:
            return object(), LostError("the node is gone")
        done, self.had = self.had[:3], self.had[3:]
        return object(), [(index, Completion((request.seed,), (), "stop")) for index, request in done]


class FakeRay:
    """As much of Ray as the engine asks."""

    class exceptions:
        """Ray's errors."""

        RayError = LostError

    def wait(self, references: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        """Return the first."""
        return references[:1], references[1:]

    def get(self, reference: Any) -> Any:
        """Return or raise an outcome."""
        if isinstance(reference[1], Exception):
            raise reference[1]
        return reference[1]


class Reference(tuple[Any, Any]):
    """An outcome that can be a key."""

    def __hash__(self) -> int:
        return id(self)


def engine_on(*actors: FakeActor) -> RayEngine:
    engine = RayEngine.__new__(RayEngine)
    engine._ray, engine.max_model_len, engine._most_requests, engine._next_index = FakeRay(), 64, 8, 0
    engine._workers = [_Worker(f"engine {index}", actor) for index, actor in enumerate(actors)]
    for actor in actors:
        remote = actor.remote
        actor.work = type("Work", (), {"remote": staticmethod(lambda *a, remote=remote: Reference(remote(*a)))})()
    return engine


@pytest.mark.parametrize("dies", [0, 1, 2, 4])
def test_each_request_is_sampled_once_whichever_engine_is_lost(dies: int) -> None:
    engine = engine_on(FakeActor(dies), FakeActor())
    drawn = engine.generate([[1]] * 50, SAMPLING, range(50))
    assert [completion.token_ids for completion in drawn] == [(seed,) for seed in range(50)]
    facts = engine.facts()["engines"]
    assert sum(worker["completions"] for worker in facts) == 50
    assert facts[0]["lost"] == ("the node is gone" if dies else None)


def test_when_all_engines_are_lost_the_run_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="All vLLM engines are lost; the last for the node is gone"):
        engine_on(FakeActor(1), FakeActor(2)).generate([[1]] * 50, SAMPLING, range(50))


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SetupError, match=r"Ray is not installed.*truegold\[ray\]"):
        RayEngine(Path("m"), VllmEngineConfig(data_parallel_size=2))


def test_more_gpus_than_there_are_is_one_line() -> None:
    with pytest.raises(SetupError, match="2 engines on 4 GPUs each need 8 GPUs; Ray has 4"):
        _resources({"GPU": 4}, VllmEngineConfig(data_parallel_size=2, tensor_parallel_size=4))
    assert _resources({"GPU": 8}, VllmEngineConfig(data_parallel_size=2, tensor_parallel_size=4)) == {"num_gpus": 4}
    assert _resources({"CPU": 1}, VllmEngineConfig(data_parallel_size=2)) == {"num_cpus": 0.5}

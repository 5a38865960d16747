"""Two real vLLM engines side by side draw what one draws."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
import ray

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Request, SamplingParams
from truegold.pipeline.engines.vllm_ray import RayEngine, Replica

pytestmark = [pytest.mark.real, pytest.mark.long_run, pytest.mark.filterwarnings("default")]


def await_all(engine: RayEngine) -> None:
    """Sample until all engines have started: the first ones take what there is."""
    while not all(worker.is_ready for worker in engine._workers):
        engine.generate([[5, 7, 9]], SamplingParams(max_tokens=1, logprobs=False), [0])


def test_two_engines_draw_what_one_draws(tiny_model: Path) -> None:
    config = VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1, data_parallel_size=2)
    sampling = SamplingParams(max_tokens=12, logprobs=False)
    prompts = [[5 + index % 60, 7, 9] for index in range(96)]
    with closing(RayEngine(tiny_model, config)) as engine:
        await_all(engine)
        drawn = engine.generate(prompts, sampling, range(96))
        assert all(worker["completions"] and not worker["lost"] for worker in engine.facts()["engines"])
    with closing(Replica(str(tiny_model), config.model_copy(update={"data_parallel_size": 1}))._engine) as alone:
        expected = alone.generate(prompts, sampling, range(96))
    assert [done.token_ids for done in drawn] == [done.token_ids for done in expected]


def test_an_engine_whose_process_is_killed_starts_anew(tiny_model: Path) -> None:
    config = VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1, data_parallel_size=2)
    sampling = SamplingParams(max_tokens=12, logprobs=False)
    waiting = [Request((5 + index % 60, 7, 9), index, index) for index in range(400)][::-1]
    drawn: dict[int, tuple[int, ...]] = {}
    with closing(RayEngine(tiny_model, config)) as engine:
        await_all(engine)
        first = engine._workers[0]

        def take(count: int) -> list[Request] | None:
            # The last ones are held back until the engine is back.
            back = bool(first.losses) and first.is_ready
            free = len(waiting) if back else max(0, len(waiting) - 100)
            return [waiting.pop() for _ in range(min(count, free))] if waiting else None

        for request, completion in engine.stream(take, sampling):
            assert request.sample not in drawn
            drawn[request.sample] = completion.token_ids
            if len(drawn) == 50:
                ray.kill(first.actor)
        before = first.completions
        assert len(first.losses) == 1
        assert sorted(drawn) == list(range(400))
        prompts = [[5 + index % 60, 7, 9] for index in range(400)]
        again = engine.generate(prompts, sampling, range(400))
        assert first.completions > before
    assert [completion.token_ids for completion in again] == [drawn[index] for index in range(400)]

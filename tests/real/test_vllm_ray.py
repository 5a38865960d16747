"""Two real vLLM engines side by side draw what one draws."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.vllm_ray import RayEngine, Replica

pytestmark = [pytest.mark.real, pytest.mark.long_run, pytest.mark.filterwarnings("default")]


def test_two_engines_draw_what_one_draws(tiny_model: Path) -> None:
    config = VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1, data_parallel_size=2)
    sampling = SamplingParams(max_tokens=12, logprobs=False)
    prompts = [[5 + index % 60, 7, 9] for index in range(96)]
    with closing(RayEngine(tiny_model, config)) as engine:
        drawn = engine.generate(prompts, sampling, range(96))
        assert all(worker["completions"] and worker["lost"] is None for worker in engine.facts()["engines"])
    with closing(Replica(str(tiny_model), config.model_copy(update={"data_parallel_size": 1}))._engine) as alone:
        expected = alone.generate(prompts, sampling, range(96))
    assert [done.token_ids for done in drawn] == [done.token_ids for done in expected]

"""Samplers of a training that Ray places: each token is of the weights in training, also after an actor was killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import ray
import torch
from transformers import AutoModelForCausalLM

from truegold.pipeline.engines.base import Request, SamplingParams
from truegold.train.config.grpo import GrpoConfig
from truegold.train.model.distributed import init_distributed
from truegold.train.rollout import samplers
from truegold.train.rollout.rollout import build_rollout_engine
from truegold.train.rollout.samplers import SamplerPool

pytestmark = [pytest.mark.real, pytest.mark.long_run, pytest.mark.filterwarnings("default")]


def weights(model: Path, factor: float) -> Iterator[tuple[str, torch.Tensor]]:
    for name, tensor in AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32).state_dict().items():
        yield name, tensor * factor


def kill_an_actor() -> None:
    actors = [child for child in psutil.process_iter() if child.name().startswith("ray::_Actor")]
    mine = [actor for actor in actors if os.getpid() in [parent.pid for parent in actor.parents()]]
    os.kill(mine[0].pid, signal.SIGKILL)


def test_a_sampler_of_ray_that_is_killed_starts_again_with_the_weights_in_training(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samplers, "FIRST_PAUSE_S", 0.1)
    init_distributed()
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    engine = {"dtype": "float32", "max_model_len": 128, "cpu_kv_cache_gib": 1, "data_parallel_size": 2}
    engine |= {"ray_address": "auto", "weights_dir": str(tmp_path / "weights")}
    notes: list[str] = []
    pool = build_rollout_engine(
        tiny_model, GrpoConfig.model_validate({"engine": engine, "asynchronous": {}}), notes.append
    )
    assert isinstance(pool, SamplerPool)
    try:
        assert len(pool.samplers) == 2
        prompts, short = [(5, 6), (7, 8), (9, 10), (11, 12)], [SamplingParams(max_tokens=4)] * 4
        pool.update_weights(weights(tiny_model, 1.0), 1)
        at_first = pool.generate(prompts, short, [0, 1, 2, 3])
        pool.update_weights(weights(tiny_model, 1.2), 2)
        expected = pool.generate(prompts, short, [0, 1, 2, 3])
        assert expected != at_first
        pool.start(SamplingParams(max_tokens=100))
        requests = [Request((5, 6, 7 + index // 4), index, index) for index in range(40)]
        for first in range(0, 40, 4):
            pool.submit(requests[first : first + 4])
        done = pool.poll(None)
        kill_an_actor()
        while len(done) < len(requests) or len(pool.samplers) < 2:
            done += pool.poll(1.0)
        assert sorted(each.sample for each in done) == list(range(40))
        assert {version for each in done for version, _ in each.versions} == {2}
        # By both samplers, and by the one that is new.
        assert pool.generate(prompts, short, [0, 1, 2, 3]) == expected
        assert "is lost" in notes[0]
        assert notes[-1].endswith("samples, with the weights of version 2")
    finally:
        pool.close()
        ray.shutdown()

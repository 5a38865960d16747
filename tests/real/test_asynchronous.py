"""Rollouts beside the update: bounded staleness, a ledger in which every group ends once, and the same after a stop."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from parity_problems import write_parity_problems
from transformers import AutoModelForCausalLM

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import Request, SamplingParams
from truegold.pipeline.running.isolate import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.rollout.sampler import SamplerProcess
from truegold.verifiers import GuardError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


@pytest.fixture
def inputs(tiny_model: Path, tmp_path: Path) -> dict[str, Path]:
    return write_parity_problems(tiny_model, tmp_path, 16, 8)


def train(inputs: dict[str, Path], out: Path, steps: int, asynchronous: dict[str, Any]) -> list[dict[str, float]]:
    config = GrpoConfig.model_validate(
        {
            "steps": steps,
            "prompts_per_step": 4,
            "group_size": 4,
            "asynchronous": asynchronous,
            "sampling": {"max_tokens": 10, "refills": 1},
            "objective": {"masks": {"truncated": False}, "loss": "ppo"},
            "evaluation": {"every": 3, "samples": 1},
            "checkpoint_every": 2,
            "engine": VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1),
            "optimizer": OptimizerConfig(lr=1e-3, dtype="float32"),
        }
    )
    out.mkdir(exist_ok=True)
    fn = "truegold.train.grpo:grpo"
    call_isolated(fn, inputs, config, out, NullProgress(), out.with_suffix(".log"), LaunchConfig(), out / "scratch")
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def ledger(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "groups.jsonl").read_text().splitlines()]


@pytest.mark.long_run
def test_every_group_ends_once_and_none_is_too_old_also_after_a_stop(inputs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    train(inputs, out, 4, {"max_staleness": 2, "order": "fresh"})
    metrics = train(inputs, out, 7, {"max_staleness": 2, "order": "fresh"})
    steps = [step for step in metrics if "staleness_max" in step]
    assert [step["step"] for step in steps] == list(range(7))
    assert max(step["staleness_max"] for step in steps) in (1, 2)
    records = ledger(out)
    ends = Counter(record["group"] for record in records)
    assert set(ends.values()) == {1}
    by_step = Counter((record["step"], record["event"]) for record in records)
    for step in range(7):
        assert 4 <= by_step[step, "trained"] + by_step[step, "idle"] <= 8
    completions = pl.concat(pl.read_parquet(path) for path in sorted((out / "completions").glob("*.parquet")))
    trained = {(record["step"], record["id"]) for record in records if record["event"] == "trained"}
    assert trained == set(completions.filter(pl.col("trained")).select("step", "id").unique().iter_rows())


@pytest.fixture(scope="module")
def sampler(tiny_model: Path) -> Iterator[SamplerProcess]:
    config = VllmEngineConfig(dtype="float32", max_model_len=256, max_num_seqs=4, cpu_kv_cache_gib=1)
    made = SamplerProcess(tiny_model, config)
    yield made
    made.close()


def weights(model: Path, factor: float) -> Iterator[tuple[str, torch.Tensor]]:
    causal_lm = AutoModelForCausalLM.from_pretrained(str(model), dtype=torch.float32)
    for name, tensor in causal_lm.state_dict().items():
        yield name, tensor * factor


LONG = SamplingParams(max_tokens=200)


def test_weights_in_flight_leave_each_token_with_its_version(sampler: SamplerProcess, tiny_model: Path) -> None:
    newer = list(weights(tiny_model, 1.1))
    requests = [Request((5, 6, 7 + index), index, index) for index in range(40)]
    sampler.start(LONG, in_flight=True)
    sampler.submit(requests)
    done = sampler.poll(None)
    # Four are sampled at a time, so that others have just begun, and most have not.
    sampler.update_weights(iter(newer), 1)
    while len(done) < len(requests):
        done += sampler.poll(None)
    assert sampler.version == 1
    for each in done:
        assert sum(tokens for _, tokens in each.versions) == len(each.completion.token_ids)
    counts = Counter(tuple(version for version, _ in each.versions) for each in done)
    assert set(counts) == {(0,), (0, 1), (1,)}
    assert counts[0, 1] <= 4


def test_generate_interrupts_the_background_and_loses_nothing(sampler: SamplerProcess) -> None:
    alone = sampler.generate([(5, 6)], LONG, [3])
    sampler.submit([Request((8, 9, 10), index, 100 + index) for index in range(5)])
    assert sampler.generate([(5, 6)], LONG, [3]) == alone
    done = []
    while len(done) < 5:
        done += sampler.poll(None)
    assert sorted(each.sample for each in done) == [100, 101, 102, 103, 104]


@pytest.mark.long_run
def test_a_sampler_that_dies_is_named(tiny_model: Path) -> None:
    made = SamplerProcess(tiny_model, VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1))
    os.kill(made._process.pid or 0, signal.SIGKILL)
    with pytest.raises(GuardError, match=r"The sampling process died \(exit code -9\)"):
        made.generate([(5, 6)], SamplingParams(max_tokens=4), [0])
    made.close()

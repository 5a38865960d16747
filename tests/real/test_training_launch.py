"""RL on one rank and on two, each with a vLLM of its own: the same rollouts, the same weights, one set of files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest
import torch
from parity_problems import write_parity_problems
from transformers import AutoModelForCausalLM

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.running.disk import read_whole_lines
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import OptimizerConfig
from truegold.train.model.training_log import changes_of
from truegold.verifiers import GuardError

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]


@pytest.fixture
def inputs(tiny_model: Path, tmp_path: Path) -> dict[str, Path]:
    return write_parity_problems(tiny_model, tmp_path, 12, 12)


def config(**changes: object) -> GrpoConfig:
    settings = {
        "steps": 2,
        "prompts_per_step": 5,
        "group_size": 4,
        "sampling": {"max_tokens": 10, "refills": 1},
        "objective": {"masks": {"truncated": False}},
        "evaluation": {"every": 1, "samples": 1},
        "engine": VllmEngineConfig(dtype="float32", max_model_len=64, cpu_kv_cache_gib=1),
        "optimizer": OptimizerConfig(lr=1e-3, dtype="float32", zero_stage=2),
    }
    return GrpoConfig.model_validate({**settings, **changes})


def train(inputs: dict[str, Path], settings: GrpoConfig, out: Path, launch: LaunchConfig) -> Path:
    out.mkdir(exist_ok=True)
    log = out.with_suffix(".log")
    fn = "truegold.train.grpo:grpo"
    call_isolated(fn, inputs, settings, out, NullProgress(), log, launch, out / "scratch")
    return out


def weights(out: Path) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_pretrained(str(out / "checkpoint"), dtype=torch.float32)
    return {name: value.detach() for name, value in model.named_parameters()}


SAME_METRICS = ("pass_rate", "reward", "length_mean", "length_max", "distinct_answers", "distinct_ngrams", "repetition")
"""What is put together of all ranks' completions."""


@pytest.mark.long_run
def test_two_ranks_roll_out_and_train_as_one_does(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stage forms a group of its own, whatever group the process that starts it is in.
    for name, value in {"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    one_rank = train(inputs, config(), tmp_path / "one_rank", LaunchConfig())
    two_ranks = train(inputs, config(), tmp_path / "two_ranks", LaunchConfig(ranks=2))
    for step in (0, 1):
        name = f"completions/step-{step:06d}*.parquet"
        alone, shared = (pl.read_parquet(out / name).sort("group", "completion") for out in (one_rank, two_ranks))
        assert len(list(two_ranks.glob(name))) == 2
        assert alone["completion"].to_list() == shared["completion"].to_list()
        assert alone["trained"].any()
        assert alone["advantage"].to_list() == pytest.approx(shared["advantage"].to_list(), abs=1e-6)
    first, second = (
        [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()] for out in (one_rank, two_ranks)
    )
    for metrics_alone, metrics_shared in zip(first, second, strict=True):
        assert metrics_alone["heldout_pass_rate"] == metrics_shared["heldout_pass_rate"]
        for metric in SAME_METRICS:
            assert metrics_alone.get(metric) == pytest.approx(metrics_shared.get(metric), abs=1e-6), metric
        assert metrics_alone.get("loss") == pytest.approx(metrics_shared.get("loss"), abs=1e-4)
    expected = weights(one_rank)
    for name, value in weights(two_ranks).items():
        torch.testing.assert_close(value, expected[name], atol=2e-4, rtol=0)


@pytest.mark.long_run
def test_a_training_goes_on_from_its_checkpoint_with_another_rate_and_more_steps(
    inputs: dict[str, Path], tmp_path: Path
) -> None:
    out = train(inputs, config(), tmp_path / "out", LaunchConfig())
    earlier = read_whole_lines(out / "metrics.jsonl")[:2]
    slower = config(steps=4, optimizer=OptimizerConfig(lr=1e-5, dtype="float32", zero_stage=2))
    later = read_whole_lines(train(inputs, slower, out, LaunchConfig()) / "metrics.jsonl")
    assert [step["lr"] for step in later[:4]] == [1e-3, 1e-3, 1e-5, 1e-5]
    assert later[:2] == earlier
    assert changes_of(out) == [{"step": 2, "changed": ["optimizer.lr: 0.001 -> 1e-05", "steps: 2 -> 4"]}]


SSH = """#!/bin/sh
while :; do case "$1" in -o) shift 2;; -*) shift;; *) break;; esac; done
shift
exec sh -c "$*"
"""
"""Runs a command for this machine where it is, so that DeepSpeed's launcher needs no ssh server."""


@pytest.mark.long_run
def test_an_error_under_the_deepspeed_launcher_ends_all_ranks_and_is_told(
    inputs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ssh").write_text(SSH)
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2\n")
    launch = LaunchConfig(hostfile=str(hosts))
    assert weights(train(inputs, config(), tmp_path / "whole", launch))
    # Completions of one token that no verifier can read: nothing is trained.
    idle = config(sampling={"max_tokens": 1, "refills": 1}, objective={"masks": {"truncated": True}}, steps=8)
    with pytest.raises(GuardError):
        train(inputs, idle, tmp_path / "out", launch)
    log = (tmp_path / "out.log").read_text()
    assert "RANK" in log or "launch.py" in log

"""What vLLM, the model or the machine cannot serve is refused before any stage runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from truegold.train.config.grpo import GrpoConfig
from truegold.train.model import machine_checks
from truegold.train.model.machine_checks import (
    check_engine,
    check_gpus,
    check_lengths,
    count_ranks,
    gpu_sizes,
    positions_of,
)
from truegold.verifiers import ConfigError

FOUR = [80.0] * 4
RAY = {"ray_address": "auto", "weights_dir": "w"}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"engine": {"tensor_parallel_size": 2}}, "tensor_parallel_size is 2"),
        ({"engine": {"data_parallel_size": 2}}, "data_parallel_size is 2"),
        ({"engine": {"data_parallel_size": 2, **RAY}, "asynchronous": {}}, None),
        (
            {"engine": {"data_parallel_size": 2, "tensor_parallel_size": 2, **RAY}, "asynchronous": {}},
            "parallel_size is",
        ),
        ({"engine": {}}, None),
        ({"engine": {"type": "server", "url": "http://u", "weights_dir": "w"}}, None),
        (
            {"engine": {"max_model_len": 4097}},
            "is 4097, but the model takes at most 4096 tokens .max_position_embeddings",
        ),
        (
            {"engine": {"max_model_len": 4096}, "sampling": {"max_tokens": 4096}},
            "prompt and completion have 4096 tokens",
        ),
        ({"engine": {"max_model_len": 4096}}, None),
        ({"sampling": {"max_tokens": 2048}}, "leaves no room for a prompt"),
        ({"sampling": {"max_tokens": 2047}}, None),
        ({"launch": {"ranks": 5}}, "this machine has 4 GPUs"),
        ({"launch": {"ranks": 4}}, None),
        ({"asynchronous": {"devices": ["2", "3"]}}, None),
        ({"asynchronous": {"devices": ["3,4"]}}, "names GPU 4"),
        ({"asynchronous": {"devices": ["GPU-5f2"]}}, None),
    ],
)
def test_what_cannot_be_served_is_refused(settings: dict[str, Any], error: str | None) -> None:
    config = GrpoConfig.model_validate(settings)

    def check() -> None:
        check_engine(config)
        most = "train.sampling.max_tokens", config.sampling.max_tokens
        check_lengths(config.engine, most, {"max_position_embeddings": 4096}, "train.engine")
        check_gpus(config, FOUR)

    if error is None:
        check()
        return
    with pytest.raises(ConfigError, match=error):
        check()


def test_without_a_gpu_ranks_are_processes_and_named_gpus_are_refused() -> None:
    check_gpus(GrpoConfig.model_validate({"launch": {"ranks": 2}}), [])
    with pytest.raises(ConfigError, match="this machine has no GPUs"):
        check_gpus(GrpoConfig.model_validate({"asynchronous": {"devices": ["0"]}}), [])


@pytest.mark.parametrize(
    ("settings", "positions"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 8192}, "max_position_embeddings": 1}, 8192),
        ({"max_position_embeddings": 131072, "rope_scaling": LLAMA3}, 131072),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0}}, 8192),
        (
            {
                "max_position_embeddings": 32768,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
            },
            131072,
        ),
        (
            {
                "max_position_embeddings": 131072,
                "rope_parameters": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32768},
            },
            131072,
        ),
        ({"max_position_embeddings": 512, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, 512),
        ({"model_type": "mamba"}, None),
    ],
)
def test_a_model_says_how_many_tokens_it_takes(settings: dict[str, Any], positions: int | None) -> None:
    assert positions_of(settings) == positions


def test_a_hostfile_says_how_many_processes_train(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# ours\nworker-1 slots=8\n#worker-2 slots=8\nworker-3  slots = 4\n")
    assert count_ranks(GrpoConfig.model_validate({"launch": {"hostfile": str(hosts)}}).launch) == 12
    assert count_ranks(GrpoConfig.model_validate({"launch": {"ranks": 3}}).launch) == 3
    hosts.write_text("worker-1\n")
    with pytest.raises(ConfigError, match="names no machine"):
        count_ranks(GrpoConfig.model_validate({"launch": {"hostfile": str(hosts)}}).launch)
    with pytest.raises(ConfigError, match="does not exist"):
        count_ranks(GrpoConfig.model_validate({"launch": {"hostfile": "nowhere"}}).launch)


@pytest.mark.parametrize(
    ("visible", "sizes"),
    [(None, [85.9, 25.8]), ("1", [25.8]), ("1,0", [25.8, 85.9]), ("", []), ("GPU-3f", [25.8])],
)
def test_gpus_are_those_that_are_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, sizes: list[float]
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 81920\necho 24576\n")
    tool.chmod(0o755)
    monkeypatch.setattr(machine_checks.shutil, "which", lambda name: str(tool))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [round(size, 1) for size in gpu_sizes()] == sizes

"""Refusals before any stage runs: settings of a training that vLLM, the model or this machine cannot serve.

tensor_parallel_size: 2      next to the trainer, where each rank has an engine of its own
max_model_len: 40960         of a model with 32,768 positions
ranks: 8                     on a machine with four GPUs
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truegold.pipeline.config.base import LaunchConfig
from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import ModelConfig, PathModel, TinyModel
from truegold.train.model.checkpoints import check_local, is_local
from truegold.verifiers import ConfigError

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""Names that configurations have for the longest sequence that a model takes."""
STRETCHED = ("yarn", "linear", "dynamic", "ntk")
"""Kinds of rope scaling whose factor is not in the number of positions yet."""
NVIDIA_SMI = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")
_SLOTS = re.compile(r"^\s*[^#\s]\S*\s+slots\s*=\s*(\d+)", re.MULTILINE)


def check_training(config: GrpoConfig, model: ModelConfig) -> None:
    """Raise ConfigError for a training that could not begin, by its settings and the model's alone."""
    check_engine(config)
    check_lengths(config, positions_of(settings_of(model)))


def check_engine(config: GrpoConfig) -> None:
    """Raise ConfigError for an engine that could not take new weights."""
    engine = config.engine
    if isinstance(engine, ServerEngineConfig):
        return
    name = "tensor_parallel_size" if engine.tensor_parallel_size > 1 else "data_parallel_size"
    if getattr(engine, name) > 1 and (name == "tensor_parallel_size" or config.asynchronous is None):
        raise ConfigError(
            f"Beside the trainer vLLM takes one GPU a rank, and engine.{name} is {getattr(engine, name)}.",
            f"Set train.engine with {name}: 1, or sample from a vLLM server.",
        )


def check_lengths(config: GrpoConfig, positions: int | None) -> None:
    """Raise ConfigError for completions or prompts of more tokens than there is room for. positions: what the model
    takes, or None if that is not known."""
    if not isinstance(config.engine, VllmEngineConfig):
        return
    longest, most = config.engine.max_model_len, config.sampling.max_tokens
    is_set = "max_model_len" in config.engine.model_fields_set
    if is_set and positions is not None and longest > positions:
        raise ConfigError(
            f"train.engine.max_model_len is {longest}, and the model takes {positions} tokens.",
            f"Set it to {positions} at most: --set train.engine.max_model_len={positions}",
        )
    if most is not None and most >= longest:
        raise ConfigError(
            f"train.sampling.max_tokens ({most}) leaves no room for a prompt: engine.max_model_len is {longest}.",
            "Raise the latter, or lower the former.",
        )


def positions_of(settings: Mapping[str, Any]) -> int | None:
    """Return how many tokens a model takes by its config.json: its positions, stretched as `rope_scaling` says, or None
    if it does not say."""
    text: Mapping[str, Any] = settings.get("text_config") or settings
    stated = [text[name] for name in POSITIONS if isinstance(text.get(name), int)]
    if not stated:
        return None
    scaling = text.get("rope_scaling") or text.get("rope_parameters") or {}
    if scaling.get("rope_type", scaling.get("type")) not in STRETCHED:
        return int(stated[0])
    factor = float(scaling.get("factor") or 1.0)
    return int(max(stated[0], (scaling.get("original_max_position_embeddings") or stated[0]) * factor))


def settings_of(model: ModelConfig) -> Mapping[str, Any]:
    """Return a model's config.json, as far as it is known before the model is fetched or made."""
    if isinstance(model, TinyModel):
        return {"max_position_embeddings": model.max_positions}
    if isinstance(model, PathModel) and is_local(model.path):
        path = check_local(model.path) / "config.json"
        try:
            settings: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{path} is not JSON ({error}).") from error
        return settings
    return {}


def count_ranks(launch: LaunchConfig) -> int:
    """Return how many processes train. Raises ConfigError for a hostfile that is not there or names none."""
    if launch.hostfile is None:
        return launch.ranks
    path = Path(launch.hostfile).expanduser()
    if not path.is_file():
        raise ConfigError(f"launch.hostfile: {path} does not exist.", "Write a line a machine: worker-1 slots=8")
    if not (slots := _SLOTS.findall(path.read_text(encoding="utf-8"))):
        raise ConfigError(f"launch.hostfile: {path} names no machine.", "Write a line a machine: worker-1 slots=8")
    return sum(map(int, slots))


def gpu_sizes() -> list[float]:
    """Return the memory of each GPU that this process may use, in GB; nothing without a GPU."""
    if (tool := shutil.which("nvidia-smi")) is None:
        return []
    listing = subprocess.run([tool, *NVIDIA_SMI], capture_output=True, text=True, check=False, timeout=30)
    sizes = [int(line) * 2**20 / 1e9 for line in listing.stdout.split() if line.isdecimal()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return sizes
    names = [name.strip() for name in visible.split(",") if name.strip()]
    return [sizes[int(name)] if name.isdecimal() and int(name) < len(sizes) else min(sizes) for name in names if sizes]


def check_gpus(config: GrpoConfig, sizes: Sequence[float]) -> None:
    """Raise ConfigError if this machine has fewer GPUs than ranks, or not those that samplers are to have. Ranks
    without any GPU train on the CPU."""
    ranks, devices = config.launch.ranks, config.asynchronous.devices if config.asynchronous is not None else ()
    if config.launch.hostfile is not None:
        return
    if sizes and ranks > len(sizes):
        raise ConfigError(
            f"train.launch.ranks is {ranks}, and this machine has {_gpus(len(sizes))}, one for each rank.",
            f"--set train.launch.ranks={len(sizes)}",
        )
    indices = [int(name) for entry in devices for name in entry.split(",") if name.strip().isdecimal()]
    if missing := [index for index in indices if index >= len(sizes)]:
        raise ConfigError(
            f"train.asynchronous.devices names GPU {missing[0]}, and this machine has {_gpus(len(sizes))}.",
            "Name those that there are, counted from 0, or leave devices out for the trainer's.",
        )


def free_for_checkpoints(run_dir: Path) -> int:
    """Return how many bytes a run's checkpoints may take: what its disk has free, and what those of its unfinished
    training take already, which give way to the next ones."""
    folder = next(each for each in (run_dir.absolute(), *run_dir.absolute().parents) if each.exists())
    there = [path for path in run_dir.glob(".partial/train-*/checkpoints/**/*") if path.is_file()]
    return shutil.disk_usage(folder).free + sum(path.stat().st_size for path in there)


def _gpus(count: int) -> str:
    return f"{count or 'no'} GPU{'' if count == 1 else 's'}"

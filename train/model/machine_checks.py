"""Checks that a training's settings fit vLLM, the model and this machine, before any stage runs. Examples of errors:

tensor_parallel_size: 2      because each rank has one engine on its GPU
max_model_len: 40960         for a model with 32,768 positions
ranks: 8                     on a machine with four GPUs
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truegold.pipeline.config.base import LaunchConfig, StageConfig
from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.checkpoint_files import read_settings
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import ModelConfig, PathModel, TinyModel
from truegold.train.model.checkpoints import check_local, is_local
from truegold.verifiers import ConfigError

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""Names of the longest sequence of a model in Hugging Face configurations."""
STRETCHED = ("yarn", "linear", "dynamic", "ntk")
"""Kinds of rope scaling whose factor the number of positions does not include."""
NVIDIA_SMI = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")
"""Arguments of nvidia-smi that print the memory of each GPU in MiB."""
_SLOTS = re.compile(r"^\s*[^#\s]\S*\s+slots\s*=\s*(\d+)", re.MULTILINE)
"""A line of a hostfile: `worker-1 slots=8`."""


def check_training(config: GrpoConfig, model: ModelConfig, setting: str = "train.engine") -> None:
    """Raise ConfigError if the settings contradict each other or the model. The machine is not checked.

    setting: that of the engine, as it is typed.
    """
    check_engine(config)
    check_lengths(config.engine, ("train.sampling.max_tokens", config.sampling.max_tokens), settings_of(model), setting)


def check_engine(config: GrpoConfig) -> None:
    """Raise ConfigError for an engine that cannot load new weights during the training."""
    engine = config.engine
    if isinstance(engine, ServerEngineConfig):
        return
    name = "tensor_parallel_size" if engine.tensor_parallel_size > 1 else "data_parallel_size"
    if getattr(engine, name) > 1 and (name == "tensor_parallel_size" or config.asynchronous is None):
        raise ConfigError(
            f"In a training vLLM uses one GPU per rank, but engine.{name} is {getattr(engine, name)}.",
            f"Set train.engine with {name}: 1, or sample from a vLLM server.",
        )


def check_lengths(engine: StageConfig, most: tuple[str, int | None], settings: Mapping[str, Any], setting: str) -> None:
    """Raise ConfigError if the context is longer than the model allows, or completions leave no room for a prompt.

    most: the setting of the longest completion, and its value. settings: the model's config.json. setting: that of
    the engine.
    """
    if not isinstance(engine, VllmEngineConfig):
        return
    longest, positions, (name, tokens) = engine.max_model_len, positions_of(settings), most
    if positions is not None and longest > positions:
        stated = next(key for key in POSITIONS if key in (settings.get("text_config") or settings))
        raise ConfigError(
            f"{setting}.max_model_len is {longest}, but the model takes at most {positions} tokens ({stated} in its "
            "config.json).",
            f"--set {setting}.max_model_len={positions}"
            + (f" --set {name}={positions // 2}" if tokens is not None and tokens >= positions else ""),
        )
    if tokens is not None and tokens >= longest:
        raised = "" if longest == positions else f"Raise {setting}.max_model_len, or lower {name}."
        raise ConfigError(
            f"{name} ({tokens}) leaves no room for a prompt: {setting}.max_model_len is {longest}.",
            raised or f"Lower {name}: prompt and completion have {positions} tokens in this model.",
        )


def positions_of(settings: Mapping[str, Any]) -> int | None:
    """Return the longest sequence of a model, in tokens, or None if it is unknown.

    settings: the model's config.json. The number of positions is multiplied by the factor of `rope_scaling`.
    """
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
    """Return the known part of a model's config.json; empty for a model that is not downloaded yet."""
    if isinstance(model, TinyModel):
        return {"max_position_embeddings": model.max_positions}
    if isinstance(model, PathModel) and is_local(model.path):
        return read_settings(check_local(model.path, weights=False) / "config.json", f"model.path: {model.path}")
    return {}


def count_ranks(launch: LaunchConfig) -> int:
    """Return the number of training processes. Raises ConfigError if the hostfile is missing or names no machine."""
    if launch.hostfile is None:
        return launch.ranks
    path = Path(launch.hostfile).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"launch.hostfile: {path} does not exist.", "Write one line for each machine: worker-1 slots=8"
        )
    if not (slots := _SLOTS.findall(path.read_text(encoding="utf-8"))):
        raise ConfigError(
            f"launch.hostfile: {path} names no machine.", "Write one line for each machine: worker-1 slots=8"
        )
    return sum(map(int, slots))


def gpu_sizes() -> list[float]:
    """Return the memory in GB of each GPU that this process may use. The list is empty without GPUs."""
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
    """Raise ConfigError if this machine has fewer GPUs than ranks, or lacks a GPU in `asynchronous.devices`.

    sizes: the memory of each GPU. Without any GPU, ranks train on the CPU.
    """
    ranks, devices = config.launch.ranks, config.asynchronous.devices if config.asynchronous is not None else ()
    if config.launch.hostfile is not None:
        return
    if sizes and ranks > len(sizes):
        raise ConfigError(
            f"train.launch.ranks is {ranks}, but this machine has {_gpus(len(sizes))}, and each rank needs one.",
            f"--set train.launch.ranks={len(sizes)}",
        )
    indices = [int(name) for entry in devices for name in entry.split(",") if name.strip().isdecimal()]
    if missing := [index for index in indices if index >= len(sizes)]:
        raise ConfigError(
            f"train.asynchronous.devices names GPU {missing[0]}, but this machine has {_gpus(len(sizes))}.",
            "Name existing GPUs, counted from 0, or leave devices out to use the trainer's GPUs.",
        )


def free_for_checkpoints(run_dir: Path) -> int:
    """Return the number of bytes that a run's checkpoints may take.

    This is the free space of the disk, plus the size of the run's present checkpoints. Later checkpoints replace these.
    """
    folder = next(each for each in (run_dir.absolute(), *run_dir.absolute().parents) if each.exists())
    there = [path for path in run_dir.glob(".partial/train-*/checkpoints/**/*") if path.is_file()]
    return shutil.disk_usage(folder).free + sum(path.stat().st_size for path in there)


def _gpus(count: int) -> str:
    """Return a number of GPUs as a text: "no GPUs", "1 GPU", "4 GPUs"."""
    return f"{count or 'no'} GPU{'' if count == 1 else 's'}"

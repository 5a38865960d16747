"""Weights on their way to another process: safetensors files in a folder that both see."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

SHARD_BYTES = 4 * 2**30
"""Weights are written in files of about so many bytes, so that no more is held in memory."""


def write_weights(named_tensors: Iterator[tuple[str, Tensor]], folder: Path) -> None:
    """Write tensors by their names into a new folder, as safetensors files of about `SHARD_BYTES` each."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shard: dict[str, Tensor] = {}
    shard_index = 0

    def write_shard() -> None:
        save_file(shard, str(folder / f"model-{shard_index:05d}.safetensors"), metadata={"format": "pt"})
        shard.clear()

    for name, tensor in named_tensors:
        shard[name] = tensor.detach().to("cpu", copy=True).contiguous()
        if sum(value.numel() * value.element_size() for value in shard.values()) >= SHARD_BYTES:
            write_shard()
            shard_index += 1
    if shard:
        write_shard()


def read_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors that `write_weights` has written."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(str(path), framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118
                yield name, shard.get_tensor(name)

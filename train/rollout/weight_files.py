"""Weights on their way to other processes: safetensors files in a folder that all see, written once and removed by the
last one who reads them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

SHARD_BYTES = 4 * 2**30
"""Weights are written in files of about so many bytes, so that no more is held in memory."""
SHARED_MEMORY = Path("/dev/shm")
"""Where weights pass through, if there is such a folder: they touch no disk."""
PREFIX = "truegold-weights-"
"""Of the folders that they pass through."""
CLAIM_S = 60.0
"""A folder that nobody holds is given so many seconds to be held by the process that has just made it."""
READER = "reader-"
"""Files of this prefix beside the weights stand for those who have not read them yet."""


def claim_folder() -> tuple[Path, int]:
    """Return a new folder for weights and the descriptor that holds it until this process ends. What a training that
    was killed has left in memory goes."""
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    for earlier in parent.glob(f"{PREFIX}*"):
        _remove_abandoned(earlier)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder, descriptor


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder that no process holds."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        if time.time() - os.fstat(descriptor).st_mtime > CLAIM_S:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        # Its training goes on.
        pass
    finally:
        os.close(descriptor)


def write_weights(named_tensors: Iterator[tuple[str, Tensor]], folder: Path, readers: Iterable[str] = ()) -> None:
    """Write tensors by their names into a new folder, as safetensors files of about `SHARD_BYTES` each.

    readers: those who will read them and say so (`release_weights`).
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for reader in readers:
        (folder / f"{READER}{reader}").touch()
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


def release_weights(folder: Path, reader: str) -> None:
    """Say that a reader is done with a folder of weights, which goes where it was the last."""
    (folder / f"{READER}{reader}").unlink(missing_ok=True)
    if not any(folder.glob(f"{READER}*")):
        shutil.rmtree(folder, ignore_errors=True)

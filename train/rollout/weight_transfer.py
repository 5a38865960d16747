"""Hands the trainer's weights to engines elsewhere: as safetensors files in a folder that both sides see.

A sampler beside the trainer reads them and says so; the last one removes them. A running vLLM server is told to
load them (`ServerRollouts`). Start it with `VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs
--generation-config vllm`; in that mode it takes the call that reloads weights, so that nobody but the trainer may reach
it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.train.model.distributed import barrier, rank
from truegold.verifiers import ConfigError


class ServerRollouts(ServerEngine):
    """The server at `config.url`, shared by all ranks. Raises ConfigError where `weights_dir` is not set."""

    def __init__(self, config: ServerEngineConfig) -> None:
        if config.weights_dir is None:
            raise ConfigError(
                "train.engine.weights_dir is not set.", "Name a folder that the trainer and the server both see."
            )
        if len(config.all_urls) > 1:
            raise ConfigError(
                f"train.engine.urls has {len(config.all_urls)} servers, and training hands its weights to one.",
                "Set train.engine.url; vLLM itself spreads a server over GPUs (--data-parallel-size).",
            )
        super().__init__(config)
        self._folder = Path(config.weights_dir).resolve()
        self._root = str(httpx.URL(config.all_urls[0]).copy_with(path="/")).rstrip("/")
        # What an earlier run left in the server's prefix cache is of other weights.
        self._run_id = uuid.uuid4().hex
        self._version = 0
        self._times_forgotten = 0
        self._salt()

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Write new weights, by their Hugging Face names, and have the server load them. Every rank calls it, since the
        tensors may have to be gathered; rank 0 writes."""
        folder = self._folder / f"weights-{version:06d}"
        if rank() == 0:
            write_weights(named_tensors, folder)
            self._reload(folder)
            shutil.rmtree(folder)
        else:
            for _ in named_tensors:
                pass
        barrier()
        self._version = version
        self._salt()

    def load(self, folder: Path, version: int) -> None:
        """Have the server load the weights in a folder that it sees. Whoever calls it has the server to itself."""
        self._reload(folder)
        self._version = version
        self._salt()

    def sleep(self, weights_follow: bool = True) -> None:
        """Do nothing: the server has its own GPUs."""

    def forget_prefixes(self) -> None:
        """Make every cached prefix unreachable, whatever weights computed it."""
        self._times_forgotten += 1
        self._salt()

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return None: a server does not show its output head."""
        return None

    def vectors(self) -> dict[str, Tensor]:
        """Return nothing: a server does not show its weights."""
        return {}

    def _reload(self, folder: Path) -> None:
        call = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        self.request("POST", f"{self._root}/collective_rpc", call)

    def _salt(self) -> None:
        self._extra_body = {"cache_salt": f"{self._run_id}-{self._version}-{self._times_forgotten}"}


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

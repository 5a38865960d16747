"""Hands the trainer's weights to engines elsewhere: as safetensors files in a folder that both sides see.

Samplers read them and say so; the last one removes them. The pool of samplers is a reader too, which keeps the newest
for those that are started again. A running vLLM server is told to load them (`ServerRollouts`). Start it with
`VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm`; in that mode it
takes the call that reloads weights, so that only the trainer may be able to reach it.
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

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.endpoint import Failure
from truegold.pipeline.engines.server_client import Server
from truegold.pipeline.engines.server_pool import STARTED_AGAIN
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.verifiers import ConfigError


class ServerRollouts(ServerEngine):
    """The servers of `config`, which take weights. Raises ConfigError if `weights_dir` is not set.

    A server that is started again has the weights of its start: it gets those in training before it samples. What it
    has sampled before that is seen (`_WeightKeeper.is_prepared`) is thrown away, and sampled again.
    """

    def __init__(self, config: ServerEngineConfig) -> None:
        if config.weights_dir is None:
            raise ConfigError(
                "train.engine.weights_dir is not set.", "Name a folder that the trainer and the servers all see."
            )
        self._keeper = _WeightKeeper()
        super().__init__(config, preparation=self._keeper)
        # What an earlier run left in the server's prefix cache is of other weights.
        self._run_id = uuid.uuid4().hex
        self._version = 0
        self._times_forgotten = 0
        self._salt()

    def load(self, folder: Path, version: int) -> None:
        """Have the servers load the weights in a folder, which stays as it is until the next call. Nothing else is
        sampled meanwhile."""
        self._keeper.folder = folder
        self._loop.run(self._pool.prepare_again(self._keeper))
        self._version = version
        self._salt()

    def forget_prefixes(self) -> None:
        """Make every cached prefix unreachable, no matter which weights computed it."""
        self._times_forgotten += 1
        self._salt()

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return None: a server does not show its output head."""
        return None

    def vectors(self) -> dict[str, Tensor]:
        """Return nothing: a server does not show its weights."""
        return {}

    def _salt(self) -> None:
        self._extra_body = {"cache_salt": f"{self._run_id}-{self._version}-{self._times_forgotten}"}


class _WeightKeeper:
    """Sees to it that servers sample with the weights in training, as `Preparation` says."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        """The folder of the weights in training; None before the first."""
        self._instances: dict[Server, str | None] = {}
        """The start of each server that has them."""

    async def prepare(self, server: Server) -> None:
        """Have a server load the weights."""
        loaded, instance = None, await server.look_up_instance()
        while loaded != self.folder:
            loaded = self.folder
            call = {"method": "reload_weights", "kwargs": {"weights_path": str(loaded)}}
            await server.call("POST", f"{server.root}/collective_rpc", call)
        if loaded is not None and await server.look_up_instance() != instance:
            raise Failure(STARTED_AGAIN)
        self._instances[server] = instance

    async def is_prepared(self, server: Server) -> bool:
        """Return whether a server is the one that has loaded them."""
        return await server.look_up_instance() == self._instances[server]


SHARD_BYTES = 4 * 2**30
"""Weights are written in files of about this many bytes, so that no more is held in memory."""
SHARED_MEMORY = Path("/dev/shm")
"""The folder that weights pass through, if there is one: they touch no disk."""
PREFIX = "truegold-weights-"
"""The prefix of the folders that weights pass through."""
CLAIM_S = 60.0
"""Seconds in which a new folder that is not held yet is left to the process that has just made it."""
READER = "reader-"
"""The prefix of files next to the weights that stand for readers which have not read them yet."""


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
        hold_weights(folder, reader)
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


def hold_weights(folder: Path, reader: str) -> None:
    """Say that a reader needs a folder of weights, until it says that it is done (`release_weights`)."""
    (folder / f"{READER}{reader}").touch()


def release_weights(folder: Path, reader: str) -> None:
    """Say that a reader is done with a folder of weights, which goes where it was the last."""
    (folder / f"{READER}{reader}").unlink(missing_ok=True)
    if not any(folder.glob(f"{READER}*")):
        shutil.rmtree(folder, ignore_errors=True)

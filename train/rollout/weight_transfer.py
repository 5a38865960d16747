"""Transfer of the trainer's weights to other processes, as safetensors files in a folder that both sides can read.

Each sampler is a reader: it marks in the folder that it has read the weights, and the last reader removes the folder.
The pool of samplers is a reader, too. It keeps the newest weights for restarted samplers. A running vLLM server is told
to load the weights (`ServerRollouts`). Start it with

    VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm

In this mode the server accepts calls that load weights, so only the trainer should be able to reach it.
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
    """The servers of `config`, with new weights of a training. Raises ConfigError if `weights_dir` is not set.

    A restarted server has its first weights again, and gets the current ones before it samples. Completions that it
    sampled before the restart was noticed (`_WeightKeeper.is_prepared`) are discarded and sampled again.
    """

    def __init__(self, config: ServerEngineConfig) -> None:
        if config.weights_dir is None:
            raise ConfigError(
                "train.engine.weights_dir is not set.", "Set it to a folder that the trainer and all servers can read."
            )
        self._keeper = _WeightKeeper()
        super().__init__(config, preparation=self._keeper)
        # The server's prefix cache may have entries of other weights. This cache salt belongs to the run.
        self._run_id = uuid.uuid4().hex
        self._version = 0
        self._times_forgotten = 0
        self._salt()

    def load(self, folder: Path, version: int) -> None:
        """Make the servers load the weights in a folder, which must not change until the next call.

        Nothing is sampled meanwhile.
        """
        self._keeper.folder = folder
        self._loop.run(self._pool.prepare_again(self._keeper))
        self._version = version
        self._salt()

    def forget_prefixes(self) -> None:
        """Make the servers ignore all cached prefixes."""
        self._times_forgotten += 1
        self._salt()

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return None, because a server does not show its output head."""
        return None

    def vectors(self) -> dict[str, Tensor]:
        """Return an empty dict, because a server does not show its weights."""
        return {}

    def _salt(self) -> None:
        """Set the salt of the servers' prefix cache, so that entries of other weights are not used."""
        self._extra_body = {"cache_salt": f"{self._run_id}-{self._version}-{self._times_forgotten}"}


class _WeightKeeper:
    """The `Preparation` of servers: it makes each server load the current weights before it samples."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        """The folder of the current weights; None before the first ones."""
        self._instances: dict[Server, str | None] = {}
        """The id of the process of each server that has loaded the current weights."""

    async def prepare(self, server: Server) -> None:
        """Make a server load the current weights. Raises Failure if the server is restarted meanwhile."""
        loaded, instance = None, await server.look_up_instance()
        while loaded != self.folder:
            loaded = self.folder
            call = {"method": "reload_weights", "kwargs": {"weights_path": str(loaded)}}
            await server.call("POST", f"{server.root}/collective_rpc", call)
        if loaded is not None and await server.look_up_instance() != instance:
            raise Failure(STARTED_AGAIN)
        self._instances[server] = instance

    async def is_prepared(self, server: Server) -> bool:
        """Return whether a server has not been restarted since it loaded the current weights."""
        return await server.look_up_instance() == self._instances[server]


SHARD_BYTES = 4 * 2**30
"""The approximate size in bytes of a file of weights. The copy in memory has the same size."""
SHARED_MEMORY = Path("/dev/shm")
"""The parent of the folder of weights, if it exists. It keeps weights off the disk."""
PREFIX = "truegold-weights-"
"""The prefix of the names of folders of weights."""
CLAIM_S = 60.0
"""An unlocked folder of a lower age in seconds is not removed. Its process may be about to lock it."""
READER = "reader-"
"""The prefix of empty files in a folder of weights. There is one for each reader that has not read the weights yet."""


def claim_folder() -> tuple[Path, int]:
    """Return a new folder for weights, and a file descriptor that locks it until this process ends.

    Folders of killed trainings are removed.
    """
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    for earlier in parent.glob(f"{PREFIX}*"):
        _remove_abandoned(earlier)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder, descriptor


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder of weights if no process has locked it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        if time.time() - os.fstat(descriptor).st_mtime > CLAIM_S:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        # Its training is running.
        pass
    finally:
        os.close(descriptor)


def write_weights(named_tensors: Iterator[tuple[str, Tensor]], folder: Path, readers: Iterable[str] = ()) -> None:
    """Write named tensors into a new folder, as safetensors files of about `SHARD_BYTES` each.

    readers: the names of the readers, which will call `release_weights`.
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
    """Yield the names and tensors that `write_weights` wrote into a folder."""
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(str(path), framework="pt") as shard:
            for name in shard.keys():  # noqa: SIM118
                yield name, shard.get_tensor(name)


def hold_weights(folder: Path, reader: str) -> None:
    """Mark a folder of weights as needed by a reader, until the reader calls `release_weights`."""
    (folder / f"{READER}{reader}").touch()


def release_weights(folder: Path, reader: str) -> None:
    """Mark a folder of weights as read by a reader, and remove the folder if this was the last reader."""
    (folder / f"{READER}{reader}").unlink(missing_ok=True)
    if not any(folder.glob(f"{READER}*")):
        shutil.rmtree(folder, ignore_errors=True)

"""Rollouts from a running vLLM server: the weights go through a folder that both sides see.

Start the server with `VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs --generation-config
vllm`; in that mode it takes the call that reloads weights, so that nobody but the trainer may reach it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.train.model.distributed import barrier, rank
from truegold.train.rollout.weight_files import write_weights
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

    def sleep(self) -> None:
        """Do nothing: the server has its own GPUs."""

    def wake(self) -> None:
        """Do nothing, as `sleep`."""

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

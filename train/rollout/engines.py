"""What RL needs of an engine that samples: new weights, and a look inside where the two engines disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, SamplingParams
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.train.config.asynchronous import AsynchronousConfig
from truegold.train.config.grpo import GrpoConfig
from truegold.train.rollout.sampler_child import SamplerSetup
from truegold.train.rollout.sampler_pool import SamplerPool
from truegold.train.rollout.server import ServerRollouts
from truegold.verifiers import ConfigError


class RolloutEngine(Protocol):
    """An engine whose weights can be replaced. Every rank calls these together."""

    @property
    def max_model_len(self) -> int:
        """The longest prompt plus completion, in tokens."""
        ...

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sequence[SamplingParams], seeds: Sequence[int]
    ) -> list[Completion]:
        """Sample one completion for each prompt by its own sampling and seed, in order."""
        ...

    def update_weights(self, named_tensors: Iterator[tuple[str, Tensor]], version: int) -> None:
        """Load weights by their Hugging Face names; what was cached with older ones is out of reach then."""
        ...

    def sleep(self) -> None:
        """Give memory back until `wake`, that of the weights too: `update_weights` has to follow `wake`."""
        ...

    def wake(self) -> None:
        """Take memory again after `sleep`."""
        ...

    def forget_prefixes(self) -> None:
        """Put every cached prefix out of reach."""
        ...

    def head_logits(self, hidden: Tensor) -> Tensor | None:
        """Return the logits [N, V] of the engine's own output head for hidden states [N, H]; None where it cannot
        tell."""
        ...

    def vectors(self) -> dict[str, Tensor]:
        """Return the engine's one-dimensional weights by their Hugging Face names, as far as it can tell."""
        ...


def check_engine(config: VllmEngineConfig | ServerEngineConfig) -> None:
    """Raise ConfigError for an engine that could not take new weights."""
    if isinstance(config, VllmEngineConfig) and config.tensor_parallel_size * config.data_parallel_size > 1:
        name = "tensor_parallel_size" if config.tensor_parallel_size > 1 else "data_parallel_size"
        raise ConfigError(
            f"Beside the trainer vLLM takes one GPU a rank, and engine.{name} is {getattr(config, name)}.",
            f"Set train.engine with {name}: 1, or sample from a vLLM server.",
        )


def build_rollout_engine(model: Path, config: GrpoConfig) -> RolloutEngine:
    """Return what a training samples with: vLLM in this process on the checkpoint in folder `model`, or the running
    server; or what does so beside the trainer."""
    engine, asynchronous = config.engine, config.asynchronous
    if asynchronous is None:
        return ServerRollouts(engine) if isinstance(engine, ServerEngineConfig) else VllmEngine(model, engine)
    if isinstance(engine, ServerEngineConfig):
        setups = [
            SamplerSetup(str(index), model, server, config.chat, config.turns)
            for index, server in enumerate(split_servers(engine))
        ]
        return SamplerPool(setups, engine.weights_dir)
    return SamplerPool(
        [
            SamplerSetup(str(index), model, engine, config.chat, config.turns, devices)
            for index, devices in enumerate(asynchronous.sampler_devices)
        ]
    )


def split_servers(config: ServerEngineConfig) -> list[ServerEngineConfig]:
    """Return the configuration of each server alone."""
    return [config.model_copy(update={"url": url, "urls": ()}) for url in config.all_urls]


def max_length(config: VllmEngineConfig | ServerEngineConfig, asynchronous: AsynchronousConfig | None = None) -> int:
    """Return the longest prompt plus completion, in tokens, of the engine that `config` describes, without loading
    it."""
    if isinstance(config, VllmEngineConfig):
        return config.max_model_len
    if asynchronous is not None:
        config = split_servers(config)[0]
    server = ServerRollouts(config)
    server.close()
    return server.max_model_len

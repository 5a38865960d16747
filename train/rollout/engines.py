"""What RL needs of an engine that samples: new weights, and a look inside where the two engines disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from torch import Tensor

from truegold.pipeline.config.engines import ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.engines.base import Completion, Request, SamplingParams, TakeRequests
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.train.config.asynchronous import AsynchronousConfig
from truegold.train.rollout.sampler import SamplerProcess
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

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Yield each completion as soon as it is finished, as `Engine.stream` does."""
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


def build_rollout_engine(
    model: Path, config: VllmEngineConfig | ServerEngineConfig, asynchronous: AsynchronousConfig | None = None
) -> RolloutEngine:
    """Start vLLM in this process on the checkpoint in folder `model`, or beside it, or connect to the running
    server."""
    if isinstance(config, ServerEngineConfig):
        return ServerRollouts(config)
    if asynchronous is not None:
        return SamplerProcess(model, config, asynchronous.devices)
    return VllmEngine(model, config)


def max_length(config: VllmEngineConfig | ServerEngineConfig) -> int:
    """Return the longest prompt plus completion, in tokens, of the engine that `config` describes, without loading
    it."""
    if isinstance(config, VllmEngineConfig):
        return config.max_model_len
    server = ServerRollouts(config)
    server.close()
    return server.max_model_len

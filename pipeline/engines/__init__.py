"""Where completions come from: one interface, three engines. Token ids go in and token ids come out."""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.config.engines import ChatConfig, EngineConfig, ScriptedEngineConfig, ServerEngineConfig
from truegold.pipeline.engines.base import Completion, Engine, SamplingParams
from truegold.pipeline.engines.chat import ByteEncoder, PromptEncoder, load_encoder
from truegold.verifiers import ConfigError

__all__ = ["Completion", "Engine", "PromptEncoder", "SamplingParams", "build_encoder", "build_engine", "load_encoder"]


def build_encoder(config: EngineConfig, chat: ChatConfig, model: Path | None) -> PromptEncoder:
    """Return the encoder of the checkpoint in folder `model`.

    Only a scripted engine does without a model; raises ConfigError where another has none.
    """
    if isinstance(config, ScriptedEngineConfig):
        return ByteEncoder(chat)
    return load_encoder(_required(model), chat)


def build_engine(config: EngineConfig, chat: ChatConfig, model: Path | None) -> tuple[Engine, PromptEncoder]:
    """Return the configured engine with its encoder, on the checkpoint in folder `model`. Raises as `build_encoder`."""
    encoder = build_encoder(config, chat, model)
    if isinstance(config, ScriptedEngineConfig):
        from truegold.pipeline.engines.scripted import ScriptedEngine, load_script

        return ScriptedEngine(load_script(Path(config.path)), encoder), encoder
    if isinstance(config, ServerEngineConfig):
        from truegold.pipeline.engines.vllm_server import ServerEngine

        return ServerEngine(config, encoder), encoder
    if config.data_parallel_size > 1:
        from truegold.pipeline.engines.vllm_ray import RayEngine

        return RayEngine(_required(model), config), encoder
    from truegold.pipeline.engines.vllm_local import VllmEngine

    return VllmEngine(_required(model), config), encoder


def _required(model: Path | None) -> Path:
    if model is None:
        raise ConfigError("A vLLM engine needs a model.", "Set model.path in the configuration.")
    return model

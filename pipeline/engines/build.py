"""From configuration to an engine and the encoder that goes with it."""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.config.engines import ChatConfig, EngineConfig, ScriptedEngineConfig, ServerEngineConfig
from truegold.pipeline.engines.base import Engine
from truegold.pipeline.engines.chat import ByteEncoder, PromptEncoder, load_encoder
from truegold.verifiers import ConfigError


def build_engine(config: EngineConfig, chat: ChatConfig, model: Path | None) -> tuple[Engine, PromptEncoder]:
    """The engine and its encoder. `model` is the folder of the checkpoint; only a scripted engine does without."""
    if isinstance(config, ScriptedEngineConfig):
        from truegold.pipeline.engines.scripted import ScriptedEngine, load_script

        encoder = ByteEncoder(chat)
        return ScriptedEngine(load_script(Path(config.path)), encoder), encoder
    if model is None:
        raise ConfigError("A vLLM engine needs a model.", "Set model.path in the configuration.")
    if isinstance(config, ServerEngineConfig):
        from truegold.pipeline.engines.vllm_server import ServerEngine

        return ServerEngine(config), load_encoder(model, chat)
    from truegold.pipeline.engines.vllm_local import VllmEngine

    return VllmEngine(model, config), load_encoder(model, chat)

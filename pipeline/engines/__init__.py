"""Builds the configured engine, which samples completions from a language model.

All engines take the token ids of prompts and return token ids (`base.Engine`). For a server that takes and returns only
text (type `chat`), the tokens are the bytes of the text.
"""

from __future__ import annotations

from pathlib import Path

from truegold.pipeline.config.engines import (
    AskedEngineConfig,
    ChatConfig,
    ChatEngineConfig,
    RepliesEngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
)
from truegold.pipeline.engines.base import Completion, Engine, SamplingParams
from truegold.pipeline.engines.chat import ByteEncoder, MessageEncoder, PromptEncoder, load_encoder
from truegold.verifiers import ConfigError

__all__ = ["Completion", "Engine", "PromptEncoder", "SamplingParams", "build_encoder", "build_engine", "load_encoder"]


def build_encoder(config: AskedEngineConfig, chat: ChatConfig, model: Path | None) -> PromptEncoder:
    """Return the encoder of the checkpoint in folder `model`.

    Engines of the types scripted, chat and replies need no model. Raises ConfigError if an engine of another type has
    no model.
    """
    if isinstance(config, ChatEngineConfig | RepliesEngineConfig):
        return MessageEncoder(chat)
    if isinstance(config, ScriptedEngineConfig):
        return ByteEncoder(chat)
    return load_encoder(_required(model), chat)


def build_engine(
    config: AskedEngineConfig, chat: ChatConfig, model: Path | None, replies: Path | None = None
) -> tuple[Engine, PromptEncoder]:
    """Return the configured engine with its encoder, on the checkpoint in folder `model`.

    `replies` is the folder in which an engine of the type chat stores its replies. Raises the errors of
    `build_encoder`.
    """
    encoder = build_encoder(config, chat, model)
    if isinstance(config, ScriptedEngineConfig):
        from truegold.pipeline.engines.scripted import ScriptedEngine, load_script

        return ScriptedEngine(load_script(Path(config.path)), encoder), encoder
    if isinstance(config, RepliesEngineConfig):
        from truegold.pipeline.engines.scripted import RepliesEngine, load_replies

        return RepliesEngine(load_replies(Path(config.path), config.model)), encoder
    if isinstance(config, ChatEngineConfig):
        from truegold.pipeline.engines.chat_engine import ChatEngine

        return ChatEngine(config, replies), encoder
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

"""Where samples come from, and what tells the samples of one model and setting apart from those of another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import (
    ChatConfig,
    EngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.engines import build_encoder, build_engine
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.pipeline.profile.drawing import SampleSource
from truegold.pipeline.running.disk import DigestCache


def sample_source(config: EngineConfig, chat: ChatConfig, model: Path | None) -> SampleSource:
    """Return where samples come from. An engine in this process starts when the first sample is to be drawn."""
    if isinstance(config, VllmEngineConfig):
        encoder = build_encoder(config, chat, model)
        return SampleSource(encoder, config.max_model_len, lambda: build_engine(config, chat, model)[0])
    engine, encoder = build_engine(config, chat, model)
    served_model = engine.model if isinstance(engine, ServerEngine) else None
    return SampleSource(encoder, engine.max_model_len, lambda: engine, engine, served_model)


def sampling_identity(
    settings: Mapping[str, Any], config: EngineConfig, source: SampleSource, model: Path | None, scratch: Path
) -> dict[str, Any]:
    """Return all that decides a sample but its prompt and number.

    `settings` are temperature, top_p, max_tokens, seed, logprobs and stop_loops; `scratch` keeps digests of files.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    digests = DigestCache(scratch / "digests.json")
    identity: dict[str, Any] = {
        **settings,
        "max_model_len": source.max_model_len,
        "stop_token_ids": source.encoder.stop_token_ids,
        "model": digests.path(model) if model is not None else None,
    }
    match config:
        case VllmEngineConfig(dtype=dtype):
            identity["dtype"] = dtype
        case ServerEngineConfig():
            identity["served_model"] = source.served_model
        case ScriptedEngineConfig(path=path):
            identity["script"] = digests.path(Path(path))
    return identity

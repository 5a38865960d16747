"""Stores each sample on disk as soon as it is finished, so that no sample is drawn twice.

    runs/demo/.samples/3f2a.../identity.json            the model, the sampling settings and the seed
                               000000.jsonl             {"prompt": "9c0e...", "sample": 3, "token_ids": [...], ...}
                               part-000000.parquet      the samples of earlier lines, 65,536 in a part (`sample_parts`)

Samples are stored by prompt (its token ids). They can be used again after rows were added to the data set,
and with another verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from truegold.pipeline.config.engines import (
    AskedEngineConfig,
    ChatConfig,
    ChatEngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.engines import Completion, Engine, PromptEncoder, build_encoder, build_engine
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.pipeline.profile.sample_parts import SampleKey, SampleParts
from truegold.pipeline.running.disk import DigestCache, digest_bytes, digest_json, write_whole
from truegold.pipeline.running.record_log import Position, RecordLog

PART_SAMPLES = 65_536
"""Lines are moved to a part once they have this number of samples, or PART_BYTES bytes."""
PART_BYTES = 256 * 2**20


def prompt_key(prompt: Sequence[int]) -> str:
    """Return a digest of a prompt's token ids."""
    return digest_bytes(np.array(prompt, np.int32).tobytes())


class SampleStore:
    """The samples of one model with the same sampling settings."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Open the samples that were drawn with the settings `identity` (see `sampling_identity`).

        A folder may be open in only one process at a time.
        """
        self.name = digest_json(dict(identity))[:16]
        """The name of the store's folder, a digest of its identity."""
        folder /= self.name
        self._log = RecordLog(folder)
        write_whole(folder / "identity.json", orjson.dumps(dict(identity)))
        self._parts = SampleParts(folder)
        self._lines: dict[SampleKey, Position] = {}
        self._bytes = 0
        lines = 0
        for position, record in self._log.scan():
            lines += 1
            if (key := (record["prompt"], record["sample"])) not in self:
                self._take_in(key, position)
        if lines > len(self._lines):  # Some lines are also in parts. Delete them, or each start reads them.
            self._make_part()
            self._log.clear()

    def __contains__(self, key: SampleKey) -> bool:
        """Return True if the store has this sample."""
        return key in self._lines or self._parts.find(key) is not None

    def add(self, prompt: str, sample: int, completion: Completion) -> None:
        """Store a sample. Raises ValueError if the store has it already."""
        if (prompt, sample) in self:
            raise ValueError(f"sample {sample} of prompt {prompt} is stored already")
        record = {
            "prompt": prompt,
            "sample": sample,
            "token_ids": completion.token_ids,
            "logprobs": np.array(completion.logprobs, np.float32),
            "finish_reason": completion.finish_reason,
            **({} if completion.counted is None else {"counted": completion.counted}),
        }
        self._take_in((prompt, sample), self._log.append(record))
        if not self._lines:
            self._log.clear()

    def read(self, prompt: str, sample: int) -> Completion:
        """Return a sample. Raises KeyError if it does not exist."""
        if (position := self._lines.get((prompt, sample))) is None:
            if (location := self._parts.find((prompt, sample))) is None:
                raise KeyError((prompt, sample))
            return self._parts.read(location)
        record = self._log.read(position)
        token_ids, logprobs, counted = tuple(record["token_ids"]), tuple(record["logprobs"]), record.get("counted")
        return Completion(token_ids, logprobs, record["finish_reason"], (), counted)

    def _take_in(self, key: SampleKey, position: Position) -> None:
        """Record the position of a sample's line, and write a part once there are enough lines."""
        self._lines[key] = position
        self._bytes += position.length
        if len(self._lines) >= PART_SAMPLES or self._bytes >= PART_BYTES:
            self._make_part()

    def _make_part(self) -> None:
        if self._lines:
            self._parts.add((key, self._log.read(position)) for key, position in self._lines.items())
        self._lines.clear()
        self._bytes = 0

    def close(self) -> None:
        """Close the files."""
        self._log.close()
        self._parts.close()


@dataclass(frozen=True)
class CompletionSource:
    """The encoder of prompts, and the engine that samples from them."""

    encoder: PromptEncoder
    max_model_len: int
    """The maximum length of prompt and completion together, in tokens."""
    start_engine: Callable[[], Engine]
    engine: Engine | None = None
    """The engine if it is running. Servers run from the start, because they report their model first."""
    served_model: str | None = None
    """The name of the model on the servers."""


def sample_source(
    config: AskedEngineConfig, chat: ChatConfig, model: Path | None, replies: Path | None = None
) -> CompletionSource:
    """Return the source of samples. vLLM in this process starts only when the first sample is drawn."""
    if isinstance(config, VllmEngineConfig):
        encoder = build_encoder(config, chat, model)
        return CompletionSource(encoder, config.max_model_len, lambda: build_engine(config, chat, model)[0])
    engine, encoder = build_engine(config, chat, model, replies)
    served_model = engine.model if isinstance(engine, ServerEngine) else None
    return CompletionSource(encoder, engine.max_model_len, lambda: engine, engine, served_model)


def sampling_identity(
    settings: Mapping[str, Any], config: AskedEngineConfig, source: CompletionSource, model: Path | None, scratch: Path
) -> dict[str, Any]:
    """Return all settings that determine a sample, except its prompt and number.

    `settings` are temperature, top_p, max_tokens, seed, logprobs and stop_loops. `scratch` caches digests of files.
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
        case ChatEngineConfig(base_url=url, model=name, body=body):
            identity |= {"endpoint": url, "served_model": name, "body": body}
        case ScriptedEngineConfig(path=path):
            identity["script"] = digests.path(Path(path))
    return identity

"""Samples on disk, for as long as the run: each one is written the moment it is finished, and never drawn twice.

    runs/demo/.samples/3f2a.../identity.json     the model, the sampling settings and the seed
                               000000.jsonl      {"prompt": "9c0e...", "sample": 3, "token_ids": [...], ...}

A sample belongs to a prompt (its token ids), not to a row: a data set that has grown finds the samples of its old rows,
and so does a run whose verifier has changed. Each process writes a file of its own, so that a line which a kill has cut
short stays the last of its file and is passed over.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson

from truegold.pipeline.config.engines import (
    ChatConfig,
    EngineConfig,
    ScriptedEngineConfig,
    ServerEngineConfig,
    VllmEngineConfig,
)
from truegold.pipeline.engines import Completion, Engine, PromptEncoder, build_encoder, build_engine
from truegold.pipeline.engines.vllm_server import ServerEngine
from truegold.pipeline.running.disk import DigestCache, digest_bytes, digest_json, write_whole


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record lies."""

    file: int
    """The number of its file in the folder."""
    offset: int
    """The byte that its line starts at."""
    length: int
    """The bytes of its line."""


class RecordLog:
    """JSON Lines in a folder, which only grow. Every process that appends has a file of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: dict[int, BinaryIO] = {}
        self._writing: int | None = None
        self._end = 0

    def scan(self) -> Iterator[tuple[Position, Any]]:
        """Yield every whole record with its position, in the order of writing. Lines that a full disk has spoilt are
        passed over."""
        for path in sorted(self._folder.glob("*.jsonl")):
            offset = 0
            with path.open("rb") as lines:
                for line in lines:
                    if isinstance(record := _read_line(line), dict):
                        yield Position(int(path.stem), offset, len(line)), record
                    offset += len(line)

    def append(self, record: Mapping[str, Any]) -> Position:
        """Write a record so that a kill of this process cannot lose it, and return its position."""
        if self._writing is None:
            self._writing = self._open_new()
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
        position = Position(self._writing, self._end, len(line))
        written = self._files[self._writing].write(line)
        self._end += written
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path(self._writing)))
        return position

    def read(self, position: Position) -> Any:
        """Return the record that lies there."""
        file = self._files.get(position.file)
        if file is None:
            file = self._files[position.file] = self._path(position.file).open("rb")
        return orjson.loads(os.pread(file.fileno(), position.length, position.offset))

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._writing = None

    def _open_new(self) -> int:
        file_number = max((int(path.stem) for path in self._folder.glob("*.jsonl")), default=-1) + 1
        # Unbuffered: every record is one write.
        self._files[file_number] = self._path(file_number).open("xb+", buffering=0)
        return file_number

    def _path(self, file_number: int) -> Path:
        return self._folder / f"{file_number:06d}.jsonl"


def _read_line(line: bytes) -> Any:
    """Return the record of a line, None where that is not whole."""
    try:
        return orjson.loads(line) if line.endswith(b"\n") else None
    except orjson.JSONDecodeError:
        return None


def prompt_key(prompt: Sequence[int]) -> str:
    """Return what tells this prompt apart from others."""
    return digest_bytes(np.array(prompt, np.int32).tobytes())


class SampleStore:
    """The samples of one model under one way of sampling."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Open the samples of this identity, which says all that decides a sample but for prompt and number."""
        folder /= digest_json(dict(identity))[:16]
        self._log = RecordLog(folder)
        write_whole(folder / "identity.json", orjson.dumps(dict(identity)))
        self._positions = {(record["prompt"], record["sample"]): position for position, record in self._log.scan()}

    def __contains__(self, key: tuple[str, int]) -> bool:
        """Return whether there is a sample of this number for this prompt."""
        return key in self._positions

    def add(self, prompt: str, sample: int, completion: Completion) -> None:
        """Keep a sample. Raises ValueError where there is one already, which may have been judged."""
        if (prompt, sample) in self._positions:
            raise ValueError(f"sample {sample} of prompt {prompt} is kept already")
        record = {
            "prompt": prompt,
            "sample": sample,
            "token_ids": completion.token_ids,
            "logprobs": np.array(completion.logprobs, np.float32),
            "finish_reason": completion.finish_reason,
        }
        self._positions[prompt, sample] = self._log.append(record)

    def read(self, prompt: str, sample: int) -> Completion:
        """Return a sample."""
        record = self._log.read(self._positions[prompt, sample])
        return Completion(tuple(record["token_ids"]), tuple(record["logprobs"]), record["finish_reason"])

    def close(self) -> None:
        """Close the files."""
        self._log.close()


@dataclass(frozen=True)
class CompletionSource:
    """The encoder of prompts and the engine that they are sent to."""

    encoder: PromptEncoder
    max_model_len: int
    """The longest prompt plus completion, in tokens."""
    start_engine: Callable[[], Engine]
    engine: Engine | None = None
    """The engine, where it has been started: servers say what they are before the first sample."""
    served_model: str | None = None
    """The name of the model on the servers."""


def sample_source(config: EngineConfig, chat: ChatConfig, model: Path | None) -> CompletionSource:
    """Return where samples come from. An engine in this process starts when the first sample is to be drawn."""
    if isinstance(config, VllmEngineConfig):
        encoder = build_encoder(config, chat, model)
        return CompletionSource(encoder, config.max_model_len, lambda: build_engine(config, chat, model)[0])
    engine, encoder = build_engine(config, chat, model)
    served_model = engine.model if isinstance(engine, ServerEngine) else None
    return CompletionSource(encoder, engine.max_model_len, lambda: engine, engine, served_model)


def sampling_identity(
    settings: Mapping[str, Any], config: EngineConfig, source: CompletionSource, model: Path | None, scratch: Path
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

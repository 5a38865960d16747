"""Engines without a model, which answer from a file.

`ScriptedEngine`, for tests, reads a script. The samples of a problem are its completions in turn. A problem that is not
in the script gets an empty completion:

    {"prompt": "What is 2+3?", "completions": ["\\boxed{5}", "\\boxed{6}"]}

`RepliesEngine` reads a file of earlier replies, or the folder in which a chat engine stores its replies. The `id` is a
hash of the prompt (`prompt_id`). Prompts without a reply get an empty completion with the finish reason `abort`. They
are collected in `missing`, so that another model can answer them later:

    {"id": "5feceb66ffc86f38d952786c6d696c79", "model": "gpt-4o-mini", "reply": "NONE"}
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.engines.base import (
    POLL_S,
    Completion,
    FinishReason,
    Request,
    SamplingParams,
    TakeRequests,
    check_room,
)
from truegold.pipeline.engines.chat import BYTES_A_TOKEN, ByteEncoder, PromptEncoder, prompt_id
from truegold.pipeline.sources.data_files import check_file
from truegold.verifiers import InputError

SCRIPTED_LOGPROB = -1.0
"""The log-probability of every token."""
STREAMED = 64
"""The number of requests that are taken at a time."""


class ScriptedEngine:
    """An engine that answers from `script`, which maps problems to completions.

    A prompt gets a completion of the longest problem in it.
    """

    def __init__(self, script: Mapping[str, Sequence[str]], encoder: PromptEncoder, max_model_len: int = 2**20) -> None:
        self.max_model_len = max_model_len
        self._script = script
        self._encoder = encoder
        self._draws: dict[str, int] = {}
        """The number of completions drawn for each problem."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Return the next completion of each prompt's problem; the seeds have no effect."""
        del seeds
        check_room(prompts, self.max_model_len)
        completions = []
        for prompt in prompts:
            problem = self._problem(prompt)
            draw = self._draws.get(problem, 0)
            self._draws[problem] = draw + 1
            completions.append(self._answer(problem, draw, sampling))
        if sampling.prompt_logprobs:
            scored = zip(prompts, completions, strict=True)
            return [replace(done, prompt_logprobs=(SCRIPTED_LOGPROB,) * (len(text) - 1)) for text, done in scored]
        return completions

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Answer as `Engine.stream` describes. Sample i of n completions is completion i modulo n."""
        while (requests := take(STREAMED)) is not None:
            if not requests:
                time.sleep(POLL_S)
            for request in requests:
                yield request, self._answer(self._problem(request.prompt), request.sample, sampling)

    def facts(self) -> dict[str, Any]:
        """Return an empty dictionary."""
        return {}

    def close(self) -> None:
        """Do nothing."""

    def _problem(self, prompt: Sequence[int]) -> str:
        text = self._encoder.decode(prompt)
        return max((problem for problem in self._script if problem in text), key=len, default="")

    def _answer(self, problem: str, draw: int, sampling: SamplingParams) -> Completion:
        completions = self._script.get(problem) or [""]
        text = completions[draw % len(completions)]
        token_ids = self._encoder.encode_completion(text)
        sampled = token_ids[: sampling.max_tokens]
        finish: FinishReason = "stop" if len(sampled) == len(token_ids) else "length"
        return Completion(tuple(sampled), (SCRIPTED_LOGPROB,) * len(sampled), finish)


class RepliesEngine:
    """An engine that answers from `replies`, which maps prompt ids (`prompt_id`) to replies.

    A reply that was cut off is None.
    """

    max_model_len = 2**20

    def __init__(self, replies: Mapping[str, str | None]) -> None:
        self._replies = replies
        self._replayed: set[str] = set()
        self.missing: dict[str, str] = {}
        """The prompts without a reply, by their ids."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Return the stored reply to each prompt; `sampling` and `seeds` have no effect."""
        del sampling, seeds
        return [self._answer(prompt) for prompt in prompts]

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Answer as `Engine.stream` describes."""
        del sampling
        while (requests := take(STREAMED)) is not None:
            for request in requests:
                yield request, self._answer(request.prompt)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of prompts with and without a reply."""
        return {"replayed": len(self._replayed), "not_replayed": len(self.missing)}

    def close(self) -> None:
        """Do nothing."""

    def write_missing(self, path: Path) -> None:
        """Write the prompts without a reply as JSON Lines of `id` and `prompt`."""
        lines = (orjson.dumps({"id": name, "prompt": text}) for name, text in self.missing.items())
        path.write_bytes(b"".join(line + b"\n" for line in lines))

    def _answer(self, prompt: Sequence[int]) -> Completion:
        text = json.loads(bytes(prompt))[-1]["content"]
        name = prompt_id(text)
        if name not in self._replies:
            self.missing[name] = text
            return Completion((), (), "abort", (), 0)
        self._replayed.add(name)
        reply = self._replies[name]
        if reply is None:
            return Completion((), (), "length", (), 0)
        token_ids = (*reply.encode(errors="replace"), ByteEncoder.END)
        return Completion(token_ids, (), "stop", (), len(reply) // BYTES_A_TOKEN)


def read_replies(path: Path) -> dict[str, dict[str, str | None]]:
    """Return the replies in a file, or in the files of a folder, by model and prompt id.

    If a prompt has several replies, the last one is used. Raises InputError with the number of a malformed line.
    """
    replies: dict[str, dict[str, str | None]] = {}
    for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
        check_file(file, may_be_empty=True)
        with file.open("rb") as lines:
            for line_number, line in enumerate(lines, 1):
                try:
                    entry = orjson.loads(line)
                    reply = str(entry["reply"] if "reply" in entry else entry["text"])
                    is_whole = entry.get("finish_reason", "stop") == "stop"
                    replies.setdefault(str(entry["model"]), {})[str(entry["id"])] = reply if is_whole else None
                except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                    example = '{"id": ..., "model": ..., "reply": ...}'
                    raise InputError(f"{file}, line {line_number}: expected {example} ({error}).") from error
    return replies


def name_model(path: Path, model: str | None = None) -> str:
    """Return the name of the model whose replies are used: `model`, or the only model of the file.

    For a file without replies, the name is `model` or "unanswered". Raises InputError if the file has replies of
    several models and `model` is None, or if it has no reply of `model`.
    """
    models = sorted(read_replies(path)) or [model or "unanswered"]
    if model is None and len(models) == 1:
        return models[0]
    if model is None or model not in models:
        raise InputError(
            f"{path} has the replies of {', '.join(models)}.", "Name one: --set flag.model.engine.model=NAME."
        )
    return model


def load_replies(path: Path, model: str | None = None) -> dict[str, str | None]:
    """Return a mapping of prompt ids to the replies of `model`.
    Raises the errors of `read_replies` and `name_model`."""
    return read_replies(path).get(name_model(path, model), {})


def load_script(path: Path) -> dict[str, list[str]]:
    """Read a script file. Raises InputError with the number of a malformed line."""
    script: dict[str, list[str]] = {}
    if not path.exists():
        raise InputError(f"{path}: no such script file.")
    with path.open("rb") as lines:
        for line_number, line in enumerate(lines, 1):
            try:
                entry = orjson.loads(line)
                script[entry["prompt"]] = [str(text) for text in entry["completions"]]
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise InputError(
                    f'{path}, line {line_number}: expected {{"prompt": ..., "completions": [...]}} ({error}).'
                ) from error
    return script

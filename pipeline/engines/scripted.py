"""A deterministic engine for tests of flows and verifiers: no model, the same completions every time.

    {"prompt": "What is 2+3?", "completions": ["\\boxed{5}", "\\boxed{6}"]}

The samples of a problem get its completions in turn; a problem that is not in the script gets an empty completion.
"""

from __future__ import annotations

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
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.verifiers import InputError

SCRIPTED_LOGPROB = -1.0
"""The log-probability that every token has."""
STREAMED = 64
"""Requests that are taken at a time."""


class ScriptedEngine:
    """Answers from `script`, which has the completions of each problem.

    A problem matches a prompt that contains it; of several, the longest.
    """

    def __init__(self, script: Mapping[str, Sequence[str]], encoder: PromptEncoder, max_model_len: int = 2**20) -> None:
        self.max_model_len = max_model_len
        self._script = script
        self._encoder = encoder
        self._draws: dict[str, int] = {}
        """How many completions of each problem have been drawn."""

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
        """Answer as `Engine.stream` says: the i-th sample of a prompt is the problem's i-th completion, going round."""
        while (requests := take(STREAMED)) is not None:
            if not requests:
                time.sleep(POLL_S)
            for request in requests:
                yield request, self._answer(self._problem(request.prompt), request.sample, sampling)

    def facts(self) -> dict[str, Any]:
        """Return nothing: no work is done."""
        return {}

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""

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


def load_script(path: Path) -> dict[str, list[str]]:
    """Read a script file. Raises InputError naming the line that is wrong."""
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

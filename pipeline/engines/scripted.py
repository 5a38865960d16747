"""A deterministic engine for tests of flows and verifiers: no model, the same completions every time.

    {"prompt": "What is 2+3?", "completions": ["\\boxed{5}", "\\boxed{6}"]}

The samples of a problem get its completions in turn; a problem that is not in the script gets an empty completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from truegold.pipeline.engines.base import Completion, SamplingParams, check_room
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.verifiers import InputError

SCRIPTED_LOGPROB = -1.0


class ScriptedEngine:
    """Answers from `script`: prompt text to its completions. A prompt matches where the encoded prompt contains it."""

    def __init__(self, script: Mapping[str, Sequence[str]], encoder: PromptEncoder, max_model_len: int = 2**20) -> None:
        self.max_model_len = max_model_len
        self._script = script
        self._encoder = encoder
        self._asked: dict[str, int] = {}

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        del seeds
        check_room(prompts, self.max_model_len)
        return [self._answer(self._encoder.decode(prompt), sampling) for prompt in prompts]

    def close(self) -> None:
        pass

    def _answer(self, prompt: str, sampling: SamplingParams) -> Completion:
        matches = [known for known in self._script if known in prompt]
        text = ""
        if matches:
            known = max(matches, key=len)
            number = self._asked.get(known, 0)
            self._asked[known] = number + 1
            completions = self._script[known]
            text = completions[number % len(completions)]
        token_ids = self._encoder.encode_completion(text)
        cut = token_ids[: sampling.max_tokens]
        finish = "stop" if len(cut) == len(token_ids) else "length"
        return Completion(tuple(cut), (SCRIPTED_LOGPROB,) * len(cut), finish)  # type: ignore[arg-type]


def load_script(path: Path) -> dict[str, list[str]]:
    """Read a script file. Raises InputError naming the line that is wrong."""
    script: dict[str, list[str]] = {}
    if not path.exists():
        raise InputError(f"{path}: no such script file.")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = orjson.loads(line)
                script[entry["prompt"]] = [str(text) for text in entry["completions"]]
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise InputError(
                    f'{path}, line {number}: expected {{"prompt": ..., "completions": [...]}} ({error}).'
                ) from error
    return script

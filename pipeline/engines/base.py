"""The engine interface. Text is never tokenized again on the way: what was sampled is what is judged and trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one batch is sampled. `stop_token_ids` end a completion and stay in it as its last token. top_k: 0 for
    all."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop_token_ids: tuple[int, ...] = ()
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """What was sampled after one prompt.

    token_ids: the sampled ids, the end-of-sequence token included where it was sampled.
    logprobs: natural-log probabilities of those tokens under the distribution that was sampled from (temperature
    applied), one for each token; empty where the engine gives none.
    finish_reason: `stop` at a stop token, `length` at `max_tokens` or the model's limit, `abort` otherwise.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason


class Engine(Protocol):
    """Samples completions. `max_model_len` bounds prompt plus completion, in tokens."""

    @property
    def max_model_len(self) -> int: ...

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """One completion for each prompt, in order. `seeds` has one seed a prompt, so that a completion depends on
        its own seed and not on what else is in the batch. Raises ValueError for a prompt that leaves no room."""
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


def sample_seed(*parts: object) -> int:
    """A 31-bit seed from what identifies one sample, such as (run seed, step, row id, sample number)."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") & 0x7FFFFFFF


def check_room(prompts: Sequence[Sequence[int]], max_model_len: int) -> None:
    """Raise ValueError where a prompt leaves no room for a single new token."""
    for number, prompt in enumerate(prompts):
        if len(prompt) >= max_model_len:
            raise ValueError(f"prompt {number} has {len(prompt)} tokens; max_model_len is {max_model_len}")

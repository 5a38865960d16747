"""The engine interface. Text is never tokenized again on the way: what was sampled is what is judged and trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length", "repetition", "abort"]

FINISH_REASONS: dict[str | None, FinishReason] = {"stop": "stop", "length": "length", "repetition": "repetition"}
"""vLLM's finish reasons that tell what ended a completion; all others are `abort`."""


LOOP = {"min_pattern_size": 49, "max_pattern_size": 64, "min_count": 3}
"""vLLM's detection of repetition: the last 147 to 192 tokens repeat one stretch. Every period up to 21, and most up to
32, has a multiple between 49 and 64, so that these sixteen lengths are enough, which vLLM tries after each token."""

TakeRequests = Callable[[int], "Sequence[Request] | None"]
"""Returns at most this many requests that are to be sampled next; an empty list if there may be some later, None at the
end."""

POLL_S = 0.005
"""How long an idle engine waits before it asks for requests again."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """The settings of sampling."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop_token_ids: tuple[int, ...] = ()
    """The tokens that end a completion; the one that did stays in it as its last."""
    top_k: int = 0
    """The most likely tokens that are sampled from; 0 for all."""
    logprobs: bool = True
    """Whether the engine computes the log-probability of each token."""
    stop_loops: bool = False
    """Whether a completion ends that only repeats itself (`LOOP`)."""
    prompt_logprobs: bool = False
    """Whether the engine computes the log-probability of each token of the prompt (`score`)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One sample to draw."""

    prompt: tuple[int, ...]
    """The ids of the prompt."""
    seed: int
    sample: int
    """The number of this sample among the prompt's."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A sample of one prompt."""

    token_ids: tuple[int, ...]
    """The sampled ids, the end-of-sequence token included where it was sampled."""
    logprobs: tuple[float, ...]
    """The natural-log probability of each token under the distribution that was sampled from, temperature applied;
    empty where the engine gives none."""
    finish_reason: FinishReason
    """`stop` at a stop token, `length` at `max_tokens` or the model's limit, `repetition` where only a loop would have
    followed, `abort` otherwise."""
    prompt_logprobs: tuple[float, ...] = ()
    """The log-probability of each token of the prompt but the first, at temperature 1, if they were asked for."""
    counted: int | None = None
    """The tokens that the engine has counted, where it gives none: `token_ids` are the bytes of its text then."""

    @property
    def tokens(self) -> int:
        """How many tokens were sampled."""
        return len(self.token_ids) if self.counted is None else self.counted


def join(begun: Completion, rest: Completion) -> Completion:
    """Return the completion that begins and ends so."""
    token_ids, logprobs = begun.token_ids + rest.token_ids, begun.logprobs + rest.logprobs
    return replace(rest, token_ids=token_ids, logprobs=logprobs)


class Engine(Protocol):
    """Samples completions."""

    @property
    def max_model_len(self) -> int:
        """The longest prompt plus completion, in tokens."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Return one completion for each prompt, in order. Raises ValueError for a prompt that leaves no room.

        `seeds` has one seed a prompt, so that a completion depends on its own seed and not on what else is in the
        batch.
        """

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Yield each completion as soon as it is finished, asking `take` for requests whenever there is room.

        `take` is called between two completions only, from the thread that reads them. Every request leaves room for a
        token (`check_room`).
        """

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the engine's work."""

    def close(self) -> None:
        """Give back what the engine holds."""


def score(
    engine: Engine, prompts: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> list[tuple[float, ...]]:
    """Return the natural-log probability of each output's tokens after its prompt, at temperature 1.

    The engine reads the output as a part of the prompt, and samples one token, which is ignored; an output that leaves
    no room for it loses its last ones.
    """
    texts = [(*prompt, *output)[: engine.max_model_len - 1] for prompt, output in zip(prompts, outputs, strict=True)]
    sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=False, prompt_logprobs=True)
    completions = engine.generate(texts, sampling, [0] * len(texts)) if texts else []
    return [
        completion.prompt_logprobs[len(prompt) - 1 :] for prompt, completion in zip(prompts, completions, strict=True)
    ]


def hand_out(prompts: Sequence[Sequence[int]], seeds: Sequence[int], max_model_len: int) -> TakeRequests:
    """Return what hands out a request for each prompt, in order; its `sample` is the prompt's number.

    Raises ValueError for a prompt that leaves no room.
    """
    check_room(prompts, max_model_len)
    pairs = zip(prompts, seeds, strict=True)
    waiting = [Request(tuple(prompt), seed, index) for index, (prompt, seed) in enumerate(pairs)][::-1]

    def take(count: int) -> list[Request] | None:
        return [waiting.pop() for _ in range(min(count, len(waiting)))] if waiting else None

    return take


def collect(stream: Iterator[tuple[Request, Completion]], count: int) -> list[Completion]:
    """Return the completions of this many requests of `hand_out`, in order."""
    completions = {request.sample: completion for request, completion in stream}
    return [completions[index] for index in range(count)]


def sample_seed(*parts: object) -> int:
    """Return a 31-bit seed from what identifies one sample, such as (run seed, step, row id, sample number)."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") & 0x7FFFFFFF


def check_room(prompts: Sequence[Sequence[int]], max_model_len: int) -> None:
    """Raise ValueError if a prompt leaves no room for a single new token."""
    for prompt_index, prompt in enumerate(prompts):
        if len(prompt) >= max_model_len:
            raise ValueError(f"prompt {prompt_index} has {len(prompt)} tokens; max_model_len is {max_model_len}")

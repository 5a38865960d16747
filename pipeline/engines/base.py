"""The interface of engines, which sample completions: `Engine`, `Request` and `Completion`.

Prompts and completions are token ids, so that training and verification use exactly the sampled tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

FinishReason = Literal["stop", "length", "repetition", "abort"]

FINISH_REASONS: dict[str | None, FinishReason] = {"stop": "stop", "length": "length", "repetition": "repetition"}
"""The finish reasons of vLLM that are passed on. Every other reason becomes `abort`."""
LOOP = {"min_pattern_size": 49, "max_pattern_size": 64, "min_count": 3}
"""vLLM's settings for completions that repeat themselves. A completion ends after three copies of 49 to 64 tokens. Few
sizes are configured, because vLLM tries each of them after every token. They also find most shorter patterns: a pattern
of 10 tokens repeats every 50 tokens, too."""

TakeRequests = Callable[[int], "Sequence[Request] | None"]
"""A function `take(count)` that returns at most `count` further requests.

It returns an empty list if requests may come later, and None if no more will come.
"""

POLL_S = 0.005
"""The pause of an idle engine before it asks for requests again, in seconds."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """The settings of sampling."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop_token_ids: tuple[int, ...] = ()
    """The tokens that end a completion. The completion includes its stop token."""
    top_k: int = 0
    """Only this number of the most likely tokens is sampled from; 0 stands for all tokens."""
    logprobs: bool = True
    """Whether the engine computes the log-probability of each token."""
    stop_loops: bool = False
    """Whether to end a completion that repeats itself (`LOOP`)."""
    prompt_logprobs: bool = False
    """Whether the engine computes the log-probability of each token of the prompt (`score`)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One sample to draw."""

    prompt: tuple[int, ...]
    """The ids of the prompt."""
    seed: int
    sample: int
    """The number of this sample among the samples of its prompt."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A sample of one prompt."""

    token_ids: tuple[int, ...]
    """The sampled ids, including a sampled end-of-sequence token."""
    logprobs: tuple[float, ...]
    """The natural logarithm of each token's probability, at the sampling temperature. Empty if the engine returns
    none."""
    finish_reason: FinishReason
    """`stop` at a stop token, `length` at `max_tokens` or the model's limit, `repetition` by `LOOP`, else `abort`."""
    prompt_logprobs: tuple[float, ...] = ()
    """The log-probability of each token of the prompt except the first, at temperature 1, if requested."""
    counted: int | None = None
    """The number of tokens that a text-only server reports. `token_ids` are then the bytes of the text. None for other
    servers."""

    @property
    def tokens(self) -> int:
        """The number of sampled tokens."""
        return len(self.token_ids) if self.counted is None else self.counted


def join(begun: Completion, rest: Completion) -> Completion:
    """Return the completion that consists of its beginning and the rest."""
    token_ids, logprobs = begun.token_ids + rest.token_ids, begun.logprobs + rest.logprobs
    return replace(rest, token_ids=token_ids, logprobs=logprobs)


class Engine(Protocol):
    """Samples completions."""

    @property
    def max_model_len(self) -> int:
        """The maximum number of tokens of a prompt and its completion together."""

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Return one completion for each prompt, in order.

        `seeds` has a seed for each prompt. So a completion does not depend on the rest of the batch. Raises ValueError
        for a prompt that leaves no room for a completion.
        """

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Yield each completion as soon as it is finished, and call `take` for requests whenever there is room.

        `take` is only called between two completions, in the thread that reads them. Every prompt must leave room for a
        token (`check_room`).
        """

    def facts(self) -> dict[str, Any]:
        """Return the facts about the engine's work that the report shows."""

    def close(self) -> None:
        """Release the engine's resources."""


def score(
    engine: Engine, prompts: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]
) -> list[tuple[float, ...]]:
    """Return the natural-log probabilities of each output's tokens after its prompt, at temperature 1.

    The engine reads prompt and output as one prompt. It also samples one token, which is ignored. If there is no room
    for this token, the last tokens of the output are left out.
    """
    texts = [(*prompt, *output)[: engine.max_model_len - 1] for prompt, output in zip(prompts, outputs, strict=True)]
    sampling = SamplingParams(temperature=0.0, max_tokens=1, logprobs=False, prompt_logprobs=True)
    completions = engine.generate(texts, sampling, [0] * len(texts)) if texts else []
    return [
        completion.prompt_logprobs[len(prompt) - 1 :] for prompt, completion in zip(prompts, completions, strict=True)
    ]


def hand_out(prompts: Sequence[Sequence[int]], seeds: Sequence[int], max_model_len: int) -> TakeRequests:
    """Return a function that hands out one request for each prompt, in order.

    The `sample` of a request is the prompt's number. Raises ValueError for a prompt that leaves no room for a
    completion.
    """
    check_room(prompts, max_model_len)
    pairs = zip(prompts, seeds, strict=True)
    waiting = [Request(tuple(prompt), seed, index) for index, (prompt, seed) in enumerate(pairs)][::-1]

    def take(count: int) -> list[Request] | None:
        return [waiting.pop() for _ in range(min(count, len(waiting)))] if waiting else None

    return take


def collect(stream: Iterator[tuple[Request, Completion]], count: int) -> list[Completion]:
    """Return the completions of a stream of `count` requests from `hand_out`, in the order of the requests."""
    completions = {request.sample: completion for request, completion in stream}
    return [completions[index] for index in range(count)]


def sample_seed(*parts: object) -> int:
    """Return a 31-bit seed from the parts that identify a sample, such as run seed, step, row id and sample number."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") & 0x7FFFFFFF


def check_room(prompts: Sequence[Sequence[int]], max_model_len: int) -> None:
    """Raise ValueError if a prompt leaves no room for a single new token."""
    for prompt_index, prompt in enumerate(prompts):
        if len(prompt) >= max_model_len:
            raise ValueError(f"prompt {prompt_index} has {len(prompt)} tokens; max_model_len is {max_model_len}")

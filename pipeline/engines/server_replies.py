"""Reads the replies of a vLLM server, and raises Unsound for a faulty one.

    {"model": "m", "choices": [{"token_ids": [9, 4], "text": "5", "finish_reason": "stop", ...}], ...}  ->  Completion
    {"error": {"message": "CUDA error"}}    with HTTP status 200                                        ->  Unsound
    {"model": "m", "choices": [{"token_ids": [9, 4], "text": "lorem ipsum", ...}]}                      ->  Unsound

Every reply is checked here, because later steps would verify and train on wrong tokens without noticing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from truegold.pipeline.engines.base import FINISH_REASONS, Completion, sample_seed
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import Failure, Unsound, quoted, read_json

LIKE_ENOUGH = 0.8
"""The minimum similarity of the server's text and the decoded text of its tokens. The server decodes token by token,
and here all tokens are decoded at once. So invalid bytes may make the texts differ."""
COMPARED_CHARS = 1000
"""This number of characters of both texts is compared."""

LOWEST_LOGPROB, HIGHEST_LOGPROB = -3.4e38, 1e-3
"""The bounds of a log-probability: the lowest 32-bit float, and the largest rounding error above 0."""

GIVEN_UP = ("abort", "error")
"""Finish reasons of requests that the server did not complete. A retry may succeed."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for a completion."""

    prompt: tuple[int, ...]
    max_tokens: int
    logprobs: bool
    prompt_logprobs: bool = False
    """Whether the server returns the log-probabilities of the prompt's tokens."""
    stop_token_ids: tuple[int, ...] = ()
    """The tokens that end the completion."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The other settings of the request, by vLLM's names."""
    model: str = ""
    """The model's name on the server."""
    is_streamed: bool = False
    """Whether the reply arrives token by token. If the connection breaks, the tokens that arrived can be used."""

    def body(self) -> dict[str, Any]:
        """Return the JSON body of the request."""
        return {
            "model": self.model,
            "prompt": list(self.prompt),
            "max_tokens": self.max_tokens,
            "stop_token_ids": list(self.stop_token_ids),
            **self.settings,
            "logprobs": 0 if self.logprobs else None,
            **({"prompt_logprobs": 0} if self.prompt_logprobs else {}),
            "return_token_ids": True,
            **({"stream": True, "stream_options": {"include_usage": True}} if self.is_streamed else {}),
        }

    def after(self, begun: Completion) -> CompletionRequest:
        """Return the request for the rest of a completion, given its beginning.

        The request has a new seed, because the old seed would repeat the random numbers of the beginning.
        """
        seed = sample_seed(self.settings["seed"], len(begun.token_ids))
        return replace(
            self,
            prompt=(*self.prompt, *begun.token_ids),
            max_tokens=self.max_tokens - len(begun.token_ids),
            settings={**self.settings, "seed": seed},
        )


def read_reply(
    content: bytes, request: CompletionRequest, encoder: PromptEncoder | None
) -> tuple[Completion, dict[str, Any]]:
    """Return the completion of a reply, and the choice that it was read from. Raises the errors of `check_reply`."""
    return check_reply(read_json(content), request, encoder)


def check_reply(
    reply: dict[str, Any], request: CompletionRequest, encoder: PromptEncoder | None
) -> tuple[Completion, dict[str, Any]]:
    """Return the completion of a reply, and the choice that it was read from.

    Raises Failure if the server gave the request up, and Unsound if the reply is faulty. Token ids are compared with
    the vocabulary and with the reply's text only if an encoder is given.
    """
    choice = _only_choice(reply, request.model)
    if choice.get("finish_reason") in GIVEN_UP:
        raise Failure(f"the request ended with {choice['finish_reason']}")
    token_ids = _token_ids(choice, encoder)
    _check_prompt(reply, choice, request)
    _check_end(reply, choice, token_ids, request.max_tokens)
    if encoder is not None:
        _check_text(choice.get("text"), token_ids, encoder)
        if choice["finish_reason"] == "stop" and request.stop_token_ids:
            _check_stop_token(choice, token_ids[-1], request.stop_token_ids, encoder)
    logprobs = _logprobs(choice, len(token_ids)) if request.logprobs else ()
    prompt_logprobs: tuple[float, ...] = ()
    if request.prompt_logprobs:
        prompt_logprobs = read_prompt_logprobs(choice.get("prompt_logprobs"), request.prompt)
        if len(prompt_logprobs) != len(request.prompt) - 1:
            raise Unsound("its reply has no log-probabilities of the prompt")
    return Completion(token_ids, logprobs, FINISH_REASONS[choice["finish_reason"]], prompt_logprobs), choice


class StreamedReply:
    """A reply that arrives as server-sent events. Each event has the tokens since the previous one:

    data: {"model": "m", "choices": [{"token_ids": [9], "text": "5", "finish_reason": null, ...}]}
    """

    def __init__(self) -> None:
        self._reply: dict[str, Any] = {}
        self._choice: dict[str, Any] = {"text": "", "token_ids": [], "logprobs": {"token_logprobs": []}}
        self._rest = b""
        """The part of the last line that has arrived, if the line is incomplete."""

    def take_part(self, part: bytes) -> None:
        """Add a part that has arrived.

        Raises Failure if the server reports an error in place of the rest, and Unsound if the part is faulty.
        """
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            event = line.removeprefix(b"data:").strip()
            if event.startswith(b'{"error"'):
                raise Failure(f"it breaks its reply off: {quoted(event)}")
            if line.startswith(b"data:") and event != b"[DONE]":
                self._add(read_json(event))

    def read(self, request: CompletionRequest, encoder: PromptEncoder | None) -> Completion:
        """Return the completion.

        Raises Failure if the end of the reply is missing, and the errors of `check_reply`.
        """
        if self._choice.get("finish_reason") is None:
            raise Failure("its reply breaks off")
        return check_reply({**self._reply, "choices": [self._choice]}, request, encoder)[0]

    def read_begun(self, request: CompletionRequest, encoder: PromptEncoder | None) -> Completion | None:
        """Return the part of a completion that arrived before the reply broke off, or None if it is faulty.

        The last token that arrived is left out. It may be the token that ends the completion.
        """
        begun = dict(self._choice, token_ids=self._choice["token_ids"][:-1], finish_reason="length")
        begun["logprobs"] = {"token_logprobs": self._choice["logprobs"]["token_logprobs"][:-1]}
        as_asked = replace(request, max_tokens=len(begun["token_ids"]))
        try:
            return check_reply({**self._reply, "usage": None, "choices": [begun]}, as_asked, encoder)[0]
        except Unsound:
            return None

    def _add(self, event: dict[str, Any]) -> None:
        self._reply |= {name: value for name, value in event.items() if name != "choices" and value is not None}
        if not event.get("choices"):
            return
        choice, logprobs = _only_choice(event, str(event.get("model"))), self._choice["logprobs"]["token_logprobs"]
        try:
            self._choice["text"] += choice["text"]
            self._choice["token_ids"] += choice["token_ids"]
            logprobs += (choice.get("logprobs") or {}).get("token_logprobs", ())
        except (KeyError, TypeError, AttributeError) as error:
            raise Unsound("its reply has an event without text and token ids") from error
        same = ("text", "token_ids", "logprobs")
        self._choice |= {name: value for name, value in choice.items() if name not in same and value is not None}


def _only_choice(reply: dict[str, Any], model: str) -> dict[str, Any]:
    if reply.get("model") != model:
        raise Unsound(f"it answers as the model {quoted(reply.get('model'))}, not {model!r}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Unsound("its reply does not have exactly one choice")
    return choices[0]


def _token_ids(choice: dict[str, Any], encoder: PromptEncoder | None) -> tuple[int, ...]:
    token_ids = choice.get("token_ids")
    if token_ids is None:
        raise Unsound("its reply has no token ids: truegold needs vLLM 0.11 or newer there")
    if not isinstance(token_ids, list) or not token_ids or any(type(token) is not int for token in token_ids):
        raise Unsound("the token ids of its reply are not a list of integers")
    vocabulary = encoder.vocabulary if encoder is not None else math.inf
    outside = [token for token in token_ids if not 0 <= token < vocabulary]
    if outside:
        raise Unsound(f"it returns the token id {outside[0]}; the model has {vocabulary}")
    return tuple(token_ids)


def _check_prompt(reply: dict[str, Any], choice: dict[str, Any], request: CompletionRequest) -> None:
    """Raise Unsound if the server answered another prompt, or does not say which prompt it answered."""
    prompt = choice.get("prompt_token_ids", reply.get("prompt_token_ids"))
    tokens = _usage(reply, "prompt_tokens")
    if prompt is None and tokens is None:
        raise Unsound("its reply has neither prompt_token_ids nor usage")
    if prompt is not None and prompt != list(request.prompt):
        raise Unsound("it has answered another prompt than it was sent")
    if tokens is not None and tokens != len(request.prompt):
        raise Unsound(f"it has read {tokens} tokens of a prompt that has {len(request.prompt)}")


def _check_end(reply: dict[str, Any], choice: dict[str, Any], token_ids: Sequence[int], max_tokens: int) -> None:
    """Raise Unsound if a completion is longer than `max_tokens`, or was cut before `max_tokens`."""
    reason, tokens = choice.get("finish_reason"), _usage(reply, "completion_tokens")
    if not isinstance(reason, str) or reason not in FINISH_REASONS:
        raise Unsound(f"its reply ends for the reason {quoted(reason)}")
    if len(token_ids) > max_tokens or (reason == "length" and len(token_ids) < max_tokens):
        raise Unsound(
            f"its reply ends for the reason {reason!r} after {len(token_ids)} tokens; {max_tokens} were requested"
        )
    if tokens is not None and tokens != len(token_ids):
        raise Unsound(f"it counts {tokens} tokens and returns {len(token_ids)}")


def _check_stop_token(
    choice: dict[str, Any], token: int, stop_token_ids: Sequence[int], encoder: PromptEncoder
) -> None:
    """Raise Unsound if a completion has the finish reason `stop`, but does not end with a stop token.

    Stop tokens are:
    - the stop tokens of the request;
    - the token that the server reports as `stop_reason`, which comes from the server's settings;
    - the end token of the model, which decodes to an empty text.
    """
    is_named = type(choice.get("stop_reason")) is int and choice["stop_reason"] == token
    if token not in stop_token_ids and not is_named and encoder.decode((token,)):
        raise Unsound(f"it says that its completion has ended by itself, after the token {encoder.decode((token,))!r}")


def _usage(reply: dict[str, Any], name: str) -> int | None:
    usage = reply.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    if count is not None and type(count) is not int:
        raise Unsound(f"its usage has {quoted(count)} for {name}")
    return count


def _check_text(text: object, token_ids: Sequence[int], encoder: PromptEncoder) -> None:
    if not isinstance(text, str):
        raise Unsound("its reply has no text")
    received = _comparable(text)
    # The server's text does not include the stop token, also if this is an ordinary token.
    decoded = [_comparable(encoder.decode(ids)) for ids in (token_ids, token_ids[:-1])]
    if received not in decoded:
        start, other = received[:COMPARED_CHARS], decoded[0][:COMPARED_CHARS]
        if SequenceMatcher(None, start, other, autojunk=False).ratio() < LIKE_ENOUGH:
            raise Unsound(f"its token ids do not decode to its text: {decoded[0][:40]!r}, {text[:40]!r}")


def _comparable(text: str) -> str:
    """Return a text without whitespace and replacement characters, which stand for invalid bytes."""
    return "".join(text.replace("\ufffd", "").split())


def _logprobs(choice: dict[str, Any], count: int) -> tuple[float, ...]:
    entry = choice.get("logprobs")
    logprobs = entry.get("token_logprobs") if isinstance(entry, dict) else None
    if not isinstance(logprobs, list) or len(logprobs) != count:
        raise Unsound("its reply does not have a log-probability for each token")
    if not all(is_logprob(value) for value in logprobs):
        raise Unsound("its reply has values that are not log-probabilities")
    return tuple(float(value) for value in logprobs)


def read_prompt_logprobs(values: Any, prompt: Sequence[int]) -> tuple[float, ...]:
    """Return the log-probability of each token of the prompt except the first; empty if the server sends none."""
    if values is None:
        return ()
    if not isinstance(values, list) or len(values) != len(prompt):
        raise Unsound("its log-probabilities are not those of the prompt")
    logprobs = []
    for token, entry in zip(prompt[1:], values[1:], strict=True):
        known = entry.get(str(token)) if isinstance(entry, dict) else None
        logprob: Any = known.get("logprob") if isinstance(known, dict) else None
        if not is_logprob(logprob):
            raise Unsound("its log-probabilities are not those of the prompt")
        logprobs.append(float(logprob))
    return tuple(logprobs)


def is_logprob(value: object) -> bool:
    """Return whether the value can be a log-probability, with a margin for rounding."""
    # Converting the value would overflow for a huge integer. NaN fails the comparison.
    return type(value) in (int, float) and LOWEST_LOGPROB <= value <= HIGHEST_LOGPROB  # type: ignore[operator]

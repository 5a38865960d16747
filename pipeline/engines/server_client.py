"""One vLLM server: requests to it, how many of them may be on the way, and what a sound server may reply.

    {"model": "m", "choices": [{"token_ids": [9, 4], "text": "5", "finish_reason": "stop", ...}], ...}  ->  Completion
    {"error": {"message": "CUDA error"}}    with status 200                                             ->  Unsound
    {"model": "m", "choices": [{"token_ids": [9, 4], "text": "lorem ipsum", ...}]}                      ->  Unsound

A completion whose tokens are not those of the model would be judged, trained on, and never be noticed again.

How many may be on the way follows TCP's congestion control (RFC 5681): from a few, twice as many with every round that
succeeds, half as many when the server says that it is overloaded, then one more each round. A server that takes longer
than the fastest one has fewer, in proportion: by Little's law all then answer after about the same time.

The servers of a pool are probed for their weights: each is asked the same, and those that answer otherwise are put out.

    prompt log-probabilities   A: -1.20 -0.31 -2.02    B: -1.22 -0.30 -1.99   the same weights
                                                       C: -7.10 -5.43 -6.66   others

The log-probabilities of a prompt's tokens depend on nothing but the weights: not on temperature, seed or what else is
in the batch. Another dtype changes them by .04 on average, other weights by much more. A server that does not give them
shows its weights by the first tokens that it finds most likely.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from statistics import quantiles
from typing import Any, Literal

import httpx

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import FINISH_REASONS, Completion
from truegold.pipeline.engines.chat import PromptEncoder

LIKE_ENOUGH = 0.8
"""The server decodes token by token and the tokenizer all at once, which can differ where bytes are no valid text.
Texts are compared without white space, and taken for the same where so much of their beginnings is."""
COMPARED_CHARS = 1000
QUOTED_CHARS = 200
"""So much of a reply is quoted: a server may write megabytes where a word belongs."""

LOWEST_LOGPROB, HIGHEST_LOGPROB = -3.4e38, 1e-3
"""The lowest that 32 bits hold, and the most that rounding may add to 0."""

GIVEN_UP = ("abort", "error")
"""Finish reasons of requests that the server did not finish; another try may."""


class Unsound(Exception):
    """A reply after which a server is not used any more; the message says what is wrong with it."""


class Failure(Exception):
    """A request that failed, and may succeed later or elsewhere."""

    def __init__(self, reason: str, *, overload: bool = False) -> None:
        super().__init__(reason)
        self.overload = overload
        """Whether the server was asked too much."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A completion that a server is asked for."""

    prompt: tuple[int, ...]
    max_tokens: int
    logprobs: bool
    prompt_logprobs: bool = False
    """Whether the server has to give those of the prompt's tokens."""
    stop_token_ids: tuple[int, ...] = ()
    """The tokens that it is asked to end at."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The other settings of the request, by vLLM's names."""
    model: str = ""
    """The model's name on the server that is asked."""

    def body(self) -> dict[str, Any]:
        """Return what is sent."""
        return {
            "model": self.model,
            "prompt": list(self.prompt),
            "max_tokens": self.max_tokens,
            "stop_token_ids": list(self.stop_token_ids),
            **self.settings,
            "logprobs": 0 if self.logprobs else None,
            **({"prompt_logprobs": 0} if self.prompt_logprobs else {}),
            "return_token_ids": True,
        }


def read_reply(
    content: bytes, request: CompletionRequest, encoder: PromptEncoder | None
) -> tuple[Completion, dict[str, Any]]:
    """Return the completion and the choice that it was read from.

    Without an encoder it is not checked whether the model has such tokens, and whether they are those of the text.
    """
    reply = read_json(content)
    choice = _only_choice(reply, request.model)
    if choice.get("finish_reason") in GIVEN_UP:
        raise Failure(f"the request ended with {choice['finish_reason']}")
    token_ids = _token_ids(choice, encoder)
    _check_prompt(reply, choice, request)
    _check_end(reply, choice, token_ids, request.max_tokens)
    if encoder is not None:
        _check_text(choice.get("text"), token_ids, encoder)
        if choice["finish_reason"] == "stop" and request.stop_token_ids:
            _check_last(choice, token_ids[-1], request.stop_token_ids, encoder)
    logprobs = _logprobs(choice, len(token_ids)) if request.logprobs else ()
    prompt_logprobs: tuple[float, ...] = ()
    if request.prompt_logprobs:
        prompt_logprobs = read_prompt_logprobs(choice.get("prompt_logprobs"), request.prompt)
        if len(prompt_logprobs) != len(request.prompt) - 1:
            raise Unsound("its reply has no log-probabilities of the prompt")
    return Completion(token_ids, logprobs, FINISH_REASONS[choice["finish_reason"]], prompt_logprobs), choice


def read_json(content: bytes) -> dict[str, Any]:
    """Return the object that the reply is."""
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unsound(f"its reply is no JSON: {content[:80]!r}") from error
    if not isinstance(reply, dict):
        raise Unsound(f"its reply is no object: {content[:80]!r}")
    if reply.get("error") is not None or reply.get("object") == "error":
        raise Unsound(f"it reports an error as a success: {json.dumps(reply.get('error', reply))[:200]}")
    return reply


def _only_choice(reply: dict[str, Any], model: str) -> dict[str, Any]:
    if reply.get("model") != model:
        raise Unsound(f"it answers as the model {quoted(reply.get('model'))}, not {model!r}")
    choices = reply.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Unsound("its reply has not one choice")
    return choices[0]


def _token_ids(choice: dict[str, Any], encoder: PromptEncoder | None) -> tuple[int, ...]:
    token_ids = choice.get("token_ids")
    if token_ids is None:
        raise Unsound("its reply has no token ids: truegold needs vLLM 0.11 or newer there")
    if not isinstance(token_ids, list) or not token_ids or any(type(token) is not int for token in token_ids):
        raise Unsound("the token ids of its reply are no list of integers")
    vocabulary = encoder.vocabulary if encoder is not None else math.inf
    outside = [token for token in token_ids if not 0 <= token < vocabulary]
    if outside:
        raise Unsound(f"it returns the token id {outside[0]}; the model has {vocabulary}")
    return tuple(token_ids)


def _check_prompt(reply: dict[str, Any], choice: dict[str, Any], request: CompletionRequest) -> None:
    """Raise where the server has answered another prompt, or does not say which."""
    prompt = choice.get("prompt_token_ids", reply.get("prompt_token_ids"))
    tokens = _usage(reply, "prompt_tokens")
    if prompt is None and tokens is None:
        raise Unsound("its reply has neither prompt_token_ids nor usage")
    if prompt is not None and prompt != list(request.prompt):
        raise Unsound("it has answered another prompt than it was sent")
    if tokens is not None and tokens != len(request.prompt):
        raise Unsound(f"it has read {tokens} tokens of a prompt that has {len(request.prompt)}")


def _check_end(reply: dict[str, Any], choice: dict[str, Any], token_ids: Sequence[int], max_tokens: int) -> None:
    """Raise where a completion is longer than asked for, or was cut shorter."""
    reason, tokens = choice.get("finish_reason"), _usage(reply, "completion_tokens")
    if not isinstance(reason, str) or reason not in FINISH_REASONS:
        raise Unsound(f"its reply ends for the reason {quoted(reason)}")
    if len(token_ids) > max_tokens or (reason == "length" and len(token_ids) < max_tokens):
        raise Unsound(
            f"its reply ends for the reason {reason!r} after {len(token_ids)} tokens; asked were {max_tokens}"
        )
    if tokens is not None and tokens != len(token_ids):
        raise Unsound(f"it counts {tokens} tokens and returns {len(token_ids)}")


def _check_last(choice: dict[str, Any], token: int, stop_token_ids: Sequence[int], encoder: PromptEncoder) -> None:
    """Raise where a completion that is said to have ended by itself ends with a word: it was cut off."""
    # The server's settings may name further ends of a text, which it then gives as the reason; and the model's own end
    # may be another than those that were asked for. No text is decoded of that.
    is_named = type(choice.get("stop_reason")) is int and choice["stop_reason"] == token
    if token not in stop_token_ids and not is_named and encoder.decode((token,)):
        raise Unsound(f"it says that its completion has ended by itself, after the token {encoder.decode((token,))!r}")


def quoted(value: object) -> str:
    """Return what a server wrote as it may stand in a message and in a report."""
    return repr(value)[:QUOTED_CHARS]


def _usage(reply: dict[str, Any], name: str) -> int | None:
    usage = reply.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    if count is not None and type(count) is not int:
        raise Unsound(f"its usage has {quoted(count)} for {name}")
    return count


def _check_text(text: object, token_ids: Sequence[int], encoder: PromptEncoder) -> None:
    if not isinstance(text, str):
        raise Unsound("its reply has no text")
    received = _bare(text)
    # The token that ended the completion is left out of the server's text, even where it is no special one.
    decoded = [_bare(encoder.decode(ids)) for ids in (token_ids, token_ids[:-1])]
    if received not in decoded:
        start, other = received[:COMPARED_CHARS], decoded[0][:COMPARED_CHARS]
        if SequenceMatcher(None, start, other, autojunk=False).ratio() < LIKE_ENOUGH:
            raise Unsound(f"its token ids do not decode to its text: {decoded[0][:40]!r}, {text[:40]!r}")


def _bare(text: str) -> str:
    """Return a text without white space and without what stands for bytes that are none."""
    return "".join(text.replace("\ufffd", "").split())


def _logprobs(choice: dict[str, Any], count: int) -> tuple[float, ...]:
    entry = choice.get("logprobs")
    logprobs = entry.get("token_logprobs") if isinstance(entry, dict) else None
    if not isinstance(logprobs, list) or len(logprobs) != count:
        raise Unsound("its reply has not one log-probability for each token")
    if not all(is_logprob(value) for value in logprobs):
        raise Unsound("its reply has log-probabilities that are none")
    return tuple(float(value) for value in logprobs)


def read_prompt_logprobs(values: Any, prompt: Sequence[int]) -> tuple[float, ...]:
    """Return the log-probability of each token of the prompt but the first; none where the server gives none."""
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
    """Return whether the value can be a log-probability, rounding allowed for."""
    # Integers of any length are compared, and would not convert. No comparison holds for what is no number.
    return type(value) in (int, float) and LOWEST_LOGPROB <= value <= HIGHEST_LOGPROB  # type: ignore[operator]


QUESTION = (
    "Tom has 3 boxes with 14 red pens each, and twice as many blue ones. He gives 17 of all his pens to Anna, who "
    "already has 25. How many pens does each of them have now?"
)
TOKENS = 4
"""The tokens that a server continues the question with."""
SAME_TOKENS = 2
"""Where there are no log-probabilities, so many first tokens show the weights; later ones may differ by rounding."""
SAME_WEIGHTS = 0.25
"""The mean difference of log-probabilities, in nats, above which two servers have different weights."""
MOST_DIFFERENT = 5.0
"""A single token may add so much to it: the log-probability of an unlikely one is mostly rounding."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A server's answer to the question."""

    token_ids: tuple[int, ...]
    prompt_logprobs: tuple[float, ...]
    """The log-probability of each token of the question but the first; empty where the server gives none."""

    def agrees(self, other: ProbeAnswer) -> bool:
        """Return whether both can come from the same weights."""
        if self.prompt_logprobs and len(self.prompt_logprobs) == len(other.prompt_logprobs):
            pairs = zip(self.prompt_logprobs, other.prompt_logprobs, strict=True)
            return sum(min(abs(a - b), MOST_DIFFERENT) for a, b in pairs) / len(self.prompt_logprobs) <= SAME_WEIGHTS
        return self.token_ids[:SAME_TOKENS] == other.token_ids[:SAME_TOKENS]


def make_probe(encoder: PromptEncoder, max_model_len: int) -> CompletionRequest:
    """Return what servers are asked, as far as it fits the model."""
    tokens = min(TOKENS, max_model_len // 2)
    question = tuple(encoder.encode(QUESTION)[: max_model_len - tokens])
    settings = {"temperature": 0, "ignore_eos": True, "prompt_logprobs": 0}
    return CompletionRequest(question, tokens, logprobs=False, settings=settings)


def find_largest_agreement(answers: Sequence[ProbeAnswer]) -> list[int]:
    """Return the positions of the largest group that agrees with one of its members."""
    groups = [[i for i, other in enumerate(answers) if member.agrees(other)] for member in answers]
    return max(groups, key=len, default=[])


FIRST_IN_FLIGHT = 8
DURATIONS = 64
"""The last requests that show how long the server takes."""
ENOUGH_DURATIONS = 3
MAX_REPLY_BYTES = 2**26
"""A reply that is longer is none."""
CONNECT_S = 10.0
HEALTH_S = 10.0
"""How long a server may take to say that it is healthy."""
PROBE_S = 60.0
"""How long it may take to show its weights."""
LEAST_MODEL_LEN, LONGEST_MODEL_LEN = 16, 2**31 - 1
"""The lengths that a model can be served with: less leaves no room for a question."""
LONGEST_NAME = 4096
"""The most characters that a model's name has, which may be a path."""
RETRY_STATUSES = (408, 425, 429)
"""Besides 5xx, the statuses of requests that may succeed later."""

State = Literal["starting", "up", "down", "out"]


class Server:
    """A server at `url`, as far as it is known."""

    def __init__(
        self, url: str, config: ServerEngineConfig, headers: Mapping[str, str], encoder: PromptEncoder | None
    ) -> None:
        self.url = url.rstrip("/")
        self._config, self._encoder = config, encoder
        self._root = str(httpx.URL(self.url).copy_with(path="/")).rstrip("/")
        timeout = httpx.Timeout(config.timeout_seconds, connect=min(CONNECT_S, config.timeout_seconds))
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=config.concurrency)
        self._client = httpx.AsyncClient(headers=dict(headers), timeout=timeout, limits=limits)
        self.state: State = "starting"
        """`down` servers are looked at again, those that are `out` are not."""
        self.why = ""
        """Why it is down or out."""
        self.model = ""
        self.max_model_len = 0
        self.in_flight = 0
        self.pace = 1.0
        """The fastest server's time for a request, by this one's."""
        self.completions = 0
        self.tokens = 0
        self.late = 0
        """Requests that another server answered sooner, though it was asked later."""
        self.late_in_a_row = 0
        self.failures: Counter[str] = Counter()
        self._sent = 0
        self._window = float(min(FIRST_IN_FLIGHT, config.concurrency))
        self._threshold = float(config.concurrency)
        self._shrunk = 0.0
        self._durations: deque[float] = deque(maxlen=DURATIONS)
        self._busy_s = 0.0
        self._busy_since = 0.0
        self._began = time.monotonic()

    @property
    def limit(self) -> int:
        """The requests that may be on the way."""
        return max(1, min(int(self._window), round(self._config.concurrency * self.pace)))

    @property
    def typical_s(self) -> float | None:
        """How long half of the requests take at most, None where that is not known yet."""
        return self._quantile(0.5)

    @property
    def long_s(self) -> float | None:
        """How long 95 of 100 requests take at most, None where that is not known yet."""
        return self._quantile(0.95)

    def reserve(self) -> None:
        """Count a request as on the way."""
        if not self.in_flight:
            self._busy_since = time.monotonic()
        self.in_flight += 1
        self._sent += 1

    def release(self) -> None:
        """Count a request as ended."""
        self.in_flight -= 1
        if not self.in_flight:
            self._busy_s += time.monotonic() - self._busy_since

    def note_late(self, seconds: float) -> None:
        """Count a request that another server answered sooner; it had taken so long already."""
        self.late += 1
        self.late_in_a_row += 1
        self._durations.append(seconds)
        self._shrink(time.monotonic() - seconds)

    async def sample(self, request: CompletionRequest) -> Completion:
        """Return the completion that the request brings."""
        sent = time.monotonic()
        request = replace(request, model=self.model)
        try:
            completion, _ = read_reply(await self.call("POST", "/completions", request.body()), request, self._encoder)
        except Failure as failure:
            self.failures[str(failure)] += 1
            if failure.overload:
                self._shrink(sent)
            raise
        self._window += 1 if self._window < self._threshold else 1 / self._window
        self._window = min(self._window, float(self._config.concurrency))
        self._durations.append(time.monotonic() - sent)
        self.late_in_a_row = 0
        self.completions += 1
        self.tokens += len(completion.token_ids)
        return completion

    async def probe_weights(self, probe: CompletionRequest) -> ProbeAnswer:
        """Let the server show which weights it has."""
        probe = replace(probe, model=self.model)
        limit_s = min(PROBE_S, self._config.timeout_seconds)
        content = await self.call("POST", "/completions", probe.body(), limit_s)
        completion, choice = read_reply(content, probe, self._encoder)
        return ProbeAnswer(completion.token_ids, read_prompt_logprobs(choice.get("prompt_logprobs"), probe.prompt))

    async def call(self, method: str, path: str, body: Any = None, limit_s: float | None = None) -> bytes:
        """Return what the server replies; raises Failure where it may do so later, Unsound where it refuses."""
        url = path if path.startswith("http") else self.url + path
        try:
            async with asyncio.timeout(limit_s or self._config.timeout_seconds):
                async with self._client.stream(method, url, json=body) as response:
                    content = bytearray()
                    async for part in response.aiter_bytes():
                        content += part
                        if len(content) > MAX_REPLY_BYTES:
                            raise Unsound(f"its reply is longer than {MAX_REPLY_BYTES:,} bytes")
        except (TimeoutError, httpx.TimeoutException) as error:
            raise Failure("no answer in time") from error
        except httpx.DecodingError as error:
            raise Unsound(f"its reply cannot be unpacked: {error}") from error
        except httpx.TransportError as error:
            raise Failure(f"it does not answer ({str(error) or type(error).__name__})") from error
        status = response.status_code
        if status >= 500 or status in RETRY_STATUSES:
            raise Failure(f"HTTP {status}{_excerpt(content)}", overload=status in (429, 503))
        if status >= 300:
            raise Unsound(f"it refuses {path} with HTTP {status}{_excerpt(content)}")
        return bytes(content)

    async def check_health(self) -> None:
        """Raise Failure where the server is not healthy, and Unsound where it does not serve the model."""
        try:
            await self.call("GET", f"{self._root}/health", limit_s=HEALTH_S)
        except Unsound as error:
            if "HTTP 404" not in str(error):
                raise
        await self.look_up_model()

    async def look_up_model(self) -> None:
        """Ask which models the server has, and how long prompt and completion may be."""
        reply = read_json(await self.call("GET", "/models", limit_s=min(HEALTH_S, self._config.timeout_seconds)))
        models = reply.get("data")
        if not isinstance(models, list) or not all(isinstance(m, dict) and _is_name(m.get("id")) for m in models):
            raise Unsound("it has no list of models with names")
        names: list[str] = [model["id"] for model in models]
        name = self._config.model or self.model or (names[0] if len(names) == 1 else None)
        if name is None or name not in names:
            raise Unsound(f"it serves {quoted(', '.join(names))}, not {name or 'one model'}")
        longest = models[names.index(name)].get("max_model_len")
        if type(longest) is not int or not LEAST_MODEL_LEN <= longest <= LONGEST_MODEL_LEN:
            raise Unsound(f"its max_model_len is {quoted(longest)}: truegold needs a vLLM server")
        self.model, self.max_model_len = name, longest

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def facts(self) -> dict[str, Any]:
        """Return what the report says of the server."""
        busy = self._busy_s + (time.monotonic() - self._busy_since if self.in_flight else 0.0)
        facts: dict[str, Any] = {
            "url": self.url,
            "max_model_len": self.max_model_len or None,
            "state": self.state,
            "why": self.why or None,
            "requests": self._sent,
            "completions": self.completions,
            "tokens": self.tokens,
            "failures": self.failures.total(),
            "late": self.late,
            "seconds_a_request": round(self.typical_s, 3) if self.typical_s is not None else None,
            "in_flight_at_most": self.limit,
            "idle_share": round(1 - busy / max(time.monotonic() - self._began, 1e-9), 3),
        }
        if self.failures:
            facts["failed_with"] = dict(self.failures.most_common(3))
        return facts

    def _shrink(self, sent: float) -> None:
        """Halve the window, once for all requests that were on the way together."""
        if sent > self._shrunk:
            self._threshold = self._window = max(1.0, self._window / 2)
            self._shrunk = time.monotonic()

    def _quantile(self, share: float) -> float | None:
        if len(self._durations) < ENOUGH_DURATIONS:
            return None
        return quantiles(self._durations, n=20, method="inclusive")[round(share * 20) - 1]


def _is_name(value: object) -> bool:
    """Return whether a model can have this name, which goes into every request and into reports."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def _excerpt(content: bytes | bytearray) -> str:
    text = " ".join(content.decode("utf-8", "replace").split())
    return f": {text[:200]}" if text else ""

"""A client for one vLLM server. It sends requests, limits how many are pending, and checks health and weights.

The limit of pending requests follows TCP's congestion control (RFC 5681). It starts low, and doubles with every round
of successful requests. When the server reports overload, the limit is halved, and then grows by one each round. It
never exceeds `engine.concurrency`, or half of it for a server that takes twice as long as the fastest one.

The weights of servers are compared by a probe. Each server returns the log-probabilities of the tokens of one question:

    server    log-probabilities      result
    A         -1.20 -0.31 -2.02
    B         -1.22 -0.30 -1.99      same weights as A
    C         -7.10 -5.43 -6.66      other weights than A

These log-probabilities depend on the weights. Temperature, seed and other requests have no effect. Another dtype
changes them by .04 on average, other weights by much more. If a server does not return them, the first tokens of its
greedy answer are compared instead.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Any, Literal

import httpx

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import Endpoint, Failure, Refusal, Unsound, quoted, read_json
from truegold.pipeline.engines.server_replies import CompletionRequest, StreamedReply, read_prompt_logprobs, read_reply

QUESTION = (
    "Tom has 3 boxes with 14 red pens each, and twice as many blue ones. He gives 17 of all his pens to Anna, who "
    "already has 25. How many pens does each of them have now?"
)
TOKENS = 4
"""The number of tokens that a server generates in answer to the probe (the question above)."""
SAME_TOKENS = 2
"""If log-probabilities are missing, this number of generated tokens is compared. Later tokens differ by rounding."""
SAME_WEIGHTS = 0.25
"""Two servers have different weights if their log-probabilities differ by more than this on average, in nats."""
MOST_DIFFERENT = 5.0
"""A larger difference for one token is reduced to this value. Probabilities of unlikely tokens are inaccurate."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A server's answer to the probe."""

    token_ids: tuple[int, ...]
    prompt_logprobs: tuple[float, ...]
    """The log-probability of each token of the question except the first; empty if the server returns none."""

    def agrees(self, other: ProbeAnswer) -> bool:
        """Return whether both answers can come from the same weights."""
        if self.prompt_logprobs and len(self.prompt_logprobs) == len(other.prompt_logprobs):
            pairs = zip(self.prompt_logprobs, other.prompt_logprobs, strict=True)
            return sum(min(abs(a - b), MOST_DIFFERENT) for a, b in pairs) / len(self.prompt_logprobs) <= SAME_WEIGHTS
        return self.token_ids[:SAME_TOKENS] == other.token_ids[:SAME_TOKENS]


def make_probe(encoder: PromptEncoder, max_model_len: int) -> CompletionRequest:
    """Return the request of the probe, with the question cut to the model's length."""
    tokens = min(TOKENS, max_model_len // 2)
    question = tuple(encoder.encode(QUESTION)[: max_model_len - tokens])
    settings = {"temperature": 0, "ignore_eos": True, "prompt_logprobs": 0}
    return CompletionRequest(question, tokens, logprobs=False, settings=settings)


def find_largest_agreement(answers: Sequence[ProbeAnswer]) -> list[int]:
    """Return the positions of the largest group of answers. One member of the group agrees with all others."""
    groups = [[i for i, other in enumerate(answers) if member.agrees(other)] for member in answers]
    return max(groups, key=len, default=[])


FIRST_IN_FLIGHT = 8
"""The limit of pending requests to a new server."""
DURATIONS = 64
"""The number of recent requests from which the server's response time is estimated."""
ENOUGH_DURATIONS = 3
"""The minimum number of requests from which the server's response time is estimated."""
HEALTH_S = 10.0
"""The timeout of a health check, in seconds."""
PROBE_S = 60.0
"""The timeout of a probe, in seconds."""
LEAST_MODEL_LEN, LONGEST_MODEL_LEN = 16, 2**31 - 1
"""The allowed range of a server's `max_model_len`. Less than 16 tokens leave no room for a question."""
LONGEST_NAME = 4096
"""The maximum number of characters of a model's name, which may be a path."""
State = Literal["starting", "up", "down", "out", "gone"]
"""The state of a server, as `server_pool` describes."""


class Server(Endpoint):
    """A client for the server at `url`, with the server's state."""

    def __init__(self, url: str, config: ServerEngineConfig, key: str | None, encoder: PromptEncoder | None) -> None:
        super().__init__(url, key, config.timeout_seconds)
        self._config, self._encoder = config, encoder
        self.root = str(httpx.URL(self.url).copy_with(path="/")).rstrip("/")
        """The root URL of vLLM's routes, which are not part of OpenAI's API: `url` without `/v1`."""
        self.state: State = "starting"
        self.why = ""
        """The reason why the server is down, out or gone."""
        self.put_out_for: list[str] = []
        """The reasons for all times that the state became `out`."""
        self.refuses = False
        """Whether the state last became `out` because the server refused a request. A retry does not help then."""
        self.looks = 0
        """The number of unanswered checks since the server was last up."""
        self.failed_in_a_row = 0
        self.model = ""
        self.max_model_len = 0
        self.in_flight = 0
        """The number of pending requests."""
        self.pace = 1.0
        """The response time of the fastest server, divided by that of this server."""
        self.completions = 0
        self.tokens = 0
        self.late = 0
        """The number of requests that this server was too slow for: a second server got them, too, and answered
        first."""
        self.late_in_a_row = 0
        self.failures: Counter[str] = Counter()
        self._instance: str | None = None
        self._instance_asked = self._instance_seen = 0
        """Calls of `look_up_instance` are numbered. These are the number of the last call, and of the last call with an
        answer."""
        self._looking = asyncio.Lock()
        self._sent = 0
        self._window = float(min(FIRST_IN_FLIGHT, config.concurrency))
        """The limit of pending requests by TCP's rule (the congestion window)."""
        self._threshold = float(config.concurrency)
        """Below this size, the window doubles each round (TCP's slow-start threshold). Above, it grows by one."""
        self._shrunk = 0.0
        """The time when the window was last halved."""
        self._durations: deque[float] = deque(maxlen=DURATIONS)
        self._busy_s = 0.0
        """The seconds with pending requests, except for the current period."""
        self._busy_since = 0.0
        """The time at which the current period with pending requests began."""
        self._began = time.monotonic()

    @property
    def limit(self) -> int:
        """The limit of pending requests."""
        return max(1, min(int(self._window), round(self._config.concurrency * self.pace)))

    @property
    def typical_s(self) -> float | None:
        """The median response time in seconds, or None if it is not known yet."""
        return self._quantile(0.5)

    @property
    def long_s(self) -> float | None:
        """The 95th percentile of the response time in seconds, or None if it is not known yet."""
        return self._quantile(0.95)

    def reserve(self) -> None:
        """Count a request as pending."""
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
        """Note that another server answered a request first, after this one had taken `seconds` without an answer."""
        self.late += 1
        self.late_in_a_row += 1
        self._durations.append(seconds)
        self._shrink(time.monotonic() - seconds)

    async def sample(self, request: CompletionRequest) -> Completion:
        """Send a request, and return its completion."""
        sent = time.monotonic()
        request = replace(request, model=self.model)
        streamed = StreamedReply()
        try:
            if request.is_streamed:
                await self.call("POST", "/completions", request.body(), take_part=streamed.take_part)
                completion = streamed.read(request, self._encoder)
            else:
                content = await self.call("POST", "/completions", request.body())
                completion, _ = read_reply(content, request, self._encoder)
        except Failure as failure:
            if request.is_streamed:
                failure.begun = streamed.read_begun(request, self._encoder)
            self.failures[str(failure)] += 1
            if failure.overload:
                self._shrink(sent)
            raise
        # A round has as many requests as the window. So 1 for each success doubles the window in a round, and 1/window
        # adds one.
        self._window += 1 if self._window < self._threshold else 1 / self._window
        self._window = min(self._window, float(self._config.concurrency))
        self._durations.append(time.monotonic() - sent)
        self.late_in_a_row = 0
        self.completions += 1
        self.tokens += len(completion.token_ids)
        return completion

    async def probe_weights(self, probe: CompletionRequest) -> ProbeAnswer:
        """Return the server's answer to the probe, by which weights are compared."""
        probe = replace(probe, model=self.model)
        limit_s = min(PROBE_S, self._config.timeout_seconds)
        content = await self.call("POST", "/completions", probe.body(), limit_s)
        completion, choice = read_reply(content, probe, self._encoder)
        return ProbeAnswer(completion.token_ids, read_prompt_logprobs(choice.get("prompt_logprobs"), probe.prompt))

    async def check_health(self) -> None:
        """Raise Failure if the server is not healthy, and Unsound if it does not serve the model."""
        try:
            await self.call("GET", f"{self.root}/health", limit_s=HEALTH_S)
        except Unsound as error:
            # Not every server has this route. Without it, the reply to `look_up_model` shows the server's health.
            if "HTTP 404" not in str(error):
                raise
        await self.look_up_model()

    async def look_up_model(self) -> None:
        """Ask for the server's models. Store the name and `max_model_len` of the configured one, or of the only one."""
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

    async def look_up_instance(self) -> str | None:
        """Return the id of the server's process, or None if the server has none. The id changes when the server
        restarts.

        The answer is never older than the call. Calls that wait at the same time share one request to the server.
        """
        self._instance_asked += 1
        ticket = self._instance_asked
        async with self._looking:
            if self._instance_seen < ticket:
                asked = self._instance_asked
                try:
                    info = read_json(await self.call("GET", f"{self.root}/server_info?config_format=json"))
                except Refusal:
                    # The server has this route only in VLLM_SERVER_DEV_MODE.
                    info = {}
                config = info.get("vllm_config")
                self._instance = str(config.get("instance_id")) if isinstance(config, dict) else None
                self._instance_seen = asked
            return self._instance

    def facts(self) -> dict[str, Any]:
        """Return the facts about the server that the report shows."""
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
        if self.put_out_for:
            facts["put_out_for"] = self.put_out_for
        if self.failures:
            facts["failed_with"] = dict(self.failures.most_common(3))
        return facts

    def _shrink(self, sent: float) -> None:
        """Halve the window, unless it was already halved after the time `sent`."""
        if sent > self._shrunk:
            self._threshold = self._window = max(1.0, self._window / 2)
            self._shrunk = time.monotonic()

    def _quantile(self, share: float) -> float | None:
        """Return a quantile of the recent response times in seconds. `share` is a multiple of 1/20."""
        if len(self._durations) < ENOUGH_DURATIONS:
            return None
        return quantiles(self._durations, n=20, method="inclusive")[round(share * 20) - 1]


def _is_name(value: object) -> bool:
    """Return whether a value is valid as a model's name, which is sent in requests and shown in reports."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()

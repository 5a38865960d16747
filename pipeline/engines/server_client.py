"""One vLLM server: the requests to it, how many of them may be on the way, and what it says of itself.

How many may be on the way follows TCP's congestion control (RFC 5681): from a few, twice as many with every round that
succeeds, half as many when the server says that it is overloaded, then one more each round. A server that takes longer
than the fastest one gets fewer, in proportion: by Little's law all servers then answer after about the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import replace
from statistics import quantiles
from typing import Any, Literal

import httpx

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import Completion
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import Endpoint, Failure, Refusal, Unsound, quoted, read_json
from truegold.pipeline.engines.server_replies import (
    CompletionRequest,
    StreamedReply,
    read_prompt_logprobs,
    read_reply,
)
from truegold.pipeline.engines.weight_probes import ProbeAnswer

FIRST_IN_FLIGHT = 8
"""The requests that may be on the way to a server of which nothing is known yet."""
DURATIONS = 64
"""The last requests that show how long the server takes."""
ENOUGH_DURATIONS = 3
"""The fewest requests that show how long the server takes."""
HEALTH_S = 10.0
"""How long a server may take to say that it is healthy."""
PROBE_S = 60.0
"""How long a server may take to show its weights."""
LEAST_MODEL_LEN, LONGEST_MODEL_LEN = 16, 2**31 - 1
"""The lengths that a model can be served with: less leaves no room for a question."""
LONGEST_NAME = 4096
"""The most characters that a model's name has, which may be a path."""
State = Literal["starting", "up", "down", "out", "gone"]
"""Servers that are `up` take requests. Servers that are `down` or `out` are looked at again. Servers that are `gone`
are no longer on the list."""


class Server(Endpoint):
    """The server at `url`, and what is known of it."""

    def __init__(self, url: str, config: ServerEngineConfig, key: str | None, encoder: PromptEncoder | None) -> None:
        super().__init__(url, key, config.timeout_seconds)
        self._config, self._encoder = config, encoder
        self.root = str(httpx.URL(self.url).copy_with(path="/")).rstrip("/")
        """The root of the server's addresses that are not OpenAI's."""
        self.state: State = "starting"
        self.why = ""
        """Why it is down, out or gone."""
        self.put_out_for: list[str] = []
        """The reasons for which it was put out, also where it has come back."""
        self.refuses = False
        """Whether it was put out last because it refuses a request, which no other try changes."""
        self.looks = 0
        """How often it was looked at without an answer since it was up."""
        self.failed_in_a_row = 0
        self.model = ""
        self.max_model_len = 0
        self.in_flight = 0
        """The requests that are on the way now."""
        self.pace = 1.0
        """The time that the fastest server takes for a request, divided by the time that this one takes."""
        self.completions = 0
        self.tokens = 0
        self.late = 0
        """The requests that another server answered sooner, though it was asked later."""
        self.late_in_a_row = 0
        self.failures: Counter[str] = Counter()
        self._instance: str | None = None
        self._instance_asked = self._instance_seen = 0
        """The number of the last call that asked for the instance, and of the last one that a look has answered."""
        self._looking = asyncio.Lock()
        self._sent = 0
        self._window = float(min(FIRST_IN_FLIGHT, config.concurrency))
        """How many requests may be on the way, by TCP's rule (its congestion window)."""
        self._threshold = float(config.concurrency)
        """The size below which the window doubles with every round; above it, it grows by one (TCP's slow-start
        threshold)."""
        self._shrunk = 0.0
        """The time at which the window was halved last."""
        self._durations: deque[float] = deque(maxlen=DURATIONS)
        self._busy_s = 0.0
        """The seconds with a request on the way, up to `_busy_since`, when the present ones began."""
        self._busy_since = 0.0
        self._began = time.monotonic()

    @property
    def limit(self) -> int:
        """The requests that may be on the way."""
        return max(1, min(int(self._window), round(self._config.concurrency * self.pace)))

    @property
    def typical_s(self) -> float | None:
        """How long half of the requests take at most, or None if that is not known yet."""
        return self._quantile(0.5)

    @property
    def long_s(self) -> float | None:
        """How long 95 of 100 requests take at most, or None if that is not known yet."""
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
        # One more for each success doubles the window in a round; 1/window more for each adds one in a round.
        self._window += 1 if self._window < self._threshold else 1 / self._window
        self._window = min(self._window, float(self._config.concurrency))
        self._durations.append(time.monotonic() - sent)
        self.late_in_a_row = 0
        self.completions += 1
        self.tokens += len(completion.token_ids)
        return completion

    async def probe_weights(self, probe: CompletionRequest) -> ProbeAnswer:
        """Return the server's answer to the question that shows which weights it has."""
        probe = replace(probe, model=self.model)
        limit_s = min(PROBE_S, self._config.timeout_seconds)
        content = await self.call("POST", "/completions", probe.body(), limit_s)
        completion, choice = read_reply(content, probe, self._encoder)
        return ProbeAnswer(completion.token_ids, read_prompt_logprobs(choice.get("prompt_logprobs"), probe.prompt))

    async def check_health(self) -> None:
        """Raise Failure if the server is not healthy, and Unsound where it does not serve the model."""
        try:
            await self.call("GET", f"{self.root}/health", limit_s=HEALTH_S)
        except Unsound as error:
            # Not every server has this address: the list of models then shows its health.
            if "HTTP 404" not in str(error):
                raise
        await self.look_up_model()

    async def look_up_model(self) -> None:
        """Ask for the server's models, and note the name and the `max_model_len` of the configured or only one."""
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
        """Return what tells this start of the server from those before, or None if the server does not say it.

        The look begins after the call; calls that wait for each other share one.
        """
        self._instance_asked += 1
        ticket = self._instance_asked
        async with self._looking:
            if self._instance_seen < ticket:
                asked = self._instance_asked
                try:
                    info = read_json(await self.call("GET", f"{self.root}/server_info?config_format=json"))
                except Refusal:
                    # In VLLM_SERVER_DEV_MODE alone it has this address.
                    info = {}
                config = info.get("vllm_config")
                self._instance = str(config.get("instance_id")) if isinstance(config, dict) else None
                self._instance_seen = asked
            return self._instance

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
        if self.put_out_for:
            facts["put_out_for"] = self.put_out_for
        if self.failures:
            facts["failed_with"] = dict(self.failures.most_common(3))
        return facts

    def _shrink(self, sent: float) -> None:
        """Halve the window, once for all requests that were on the way together."""
        if sent > self._shrunk:
            self._threshold = self._window = max(1.0, self._window / 2)
            self._shrunk = time.monotonic()

    def _quantile(self, share: float) -> float | None:
        """Return the seconds that this share of the last requests took at most; `share` is a multiple of 1/20."""
        if len(self._durations) < ENOUGH_DURATIONS:
            return None
        return quantiles(self._durations, n=20, method="inclusive")[round(share * 20) - 1]


def _is_name(value: object) -> bool:
    """Return whether a model can have this name, which goes into every request and into reports."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()

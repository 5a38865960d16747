"""Asks a model behind any OpenAI-compatible API, over `/chat/completions`.

Judges of answers, checks of problems and synthesis ask their models in this way:

    engine = ChatEngine(ChatEngineConfig(base_url="https://api.openai.com/v1", model="gpt-4o-mini",
                                         api_key_env="OPENAI_API_KEY"), Path("runs/demo/.samples/replies"))
    ask_model(prompts, seeds, engine, encoder, config)      ["... SAME", None, ...]
    report_costs([engine.facts()], progress)                prints "gpt-4o-mini: 120 requests, 30 replies kept ..."

Every reply is stored on disk as soon as it arrives, under a hash of the request. So a restarted run asks nothing twice.
At temperature 0, equal questions share a reply. At a higher temperature, each seed has its own reply. The seed is not
sent, because many servers refuse it.

    HTTP status                 effect
    429, 5xx, faulty reply      retried `retries` times; then the run ends with an error, and its replies are kept
    400, 413, 422               the question gets no answer (content filter, prompt too long); if all of the first eight
                                questions are refused, the run ends with an error
    401, 403, 404, ...          the run ends with an error
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truegold.pipeline.config.engines import ChatEngineConfig
from truegold.pipeline.engines.base import (
    FINISH_REASONS,
    Completion,
    FinishReason,
    Request,
    SamplingParams,
    TakeRequests,
    collect,
    hand_out,
)
from truegold.pipeline.engines.chat import BYTES_A_TOKEN, ByteEncoder, prompt_id
from truegold.pipeline.engines.endpoint import Endpoint, Failure, Refusal, Unsound, quoted, read_json, read_key
from truegold.pipeline.engines.request_loop import RequestLoop
from truegold.pipeline.running.disk import digest_json
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.record_log import RecordLog
from truegold.verifiers import ConfigError, SetupError

LONGEST_PROMPT = 2**20
"""The maximum number of bytes of a conversation. Only the server knows the limit in tokens."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""The shortest and the longest pause before a retry, in seconds. The server may ask for a longer pause."""
BAD_REQUESTS = (400, 413, 422)
"""HTTP statuses of a request that is refused for its content."""
ALL_REFUSED = 8
"""The run ends if the first questions, this number of them, are all refused."""
COUNTED = ("requests", "kept", "refused", "repeated", "input_tokens", "output_tokens")
"""The names of the counters. `requests` and the tokens count answered requests, `kept` counts replies from disk."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The answer of a server."""

    text: str
    finish_reason: FinishReason
    input_tokens: int
    output_tokens: int

    @property
    def completion(self) -> Completion:
        """The reply as a completion: the bytes of its text, and the end token if the model ended it."""
        end = (ByteEncoder.END,) if self.finish_reason == "stop" else ()
        return Completion((*self.text.encode(errors="replace"), *end), (), self.finish_reason, (), self.output_tokens)


class ChatEngine:
    """An engine that asks the model of `config`, and stores its replies in the folder `replies`, if given."""

    max_model_len = LONGEST_PROMPT

    def __init__(self, config: ChatEngineConfig, replies: Path | None = None) -> None:
        self._config = config
        self._endpoint = Endpoint(config.base_url, read_key(config.api_key_env), config.timeout_seconds)
        self._log = None if replies is None else RecordLog(replies)
        self._kept = {record["key"]: position for position, record in self._log.scan()} if self._log else {}
        self._asking: dict[str, asyncio.Task[ChatReply]] = {}
        """The pending requests by key. Equal questions are asked once."""
        self._usage: Counter[str] = Counter()
        self._loop = RequestLoop()

    def generate(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seeds: Sequence[int]
    ) -> list[Completion]:
        """Ask as `Engine.generate` describes."""
        return collect(self.stream(hand_out(prompts, seeds, self.max_model_len), sampling), len(prompts))

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Ask as `Engine.stream` describes. Raises ConfigError if log-probabilities are asked for."""
        if sampling.prompt_logprobs:
            raise ConfigError(
                f"The engine of {self._config.model} gives no log-probabilities.", "Set engine.type to vllm or server."
            )
        return self._loop.stream(
            take, lambda: self._config.max_concurrency, lambda request: self._complete(request, sampling)
        )

    def facts(self) -> dict[str, Any]:
        """Return the counts of requests and tokens, and the cost if prices are configured."""
        config, usage = self._config, self._usage
        facts = {"endpoint": config.base_url, "model": config.model, **{name: usage[name] for name in COUNTED}}
        prices = config.price_per_million_input, config.price_per_million_output
        if prices != (None, None):
            spent = usage["input_tokens"] * (prices[0] or 0) + usage["output_tokens"] * (prices[1] or 0)
            facts["cost"] = round(spent / 1e6, 6)
        return facts

    def close(self) -> None:
        """Close connections and files."""
        self._loop.close(self._endpoint.close)
        if self._log is not None:
            self._log.close()

    async def _complete(self, request: Request, sampling: SamplingParams) -> Completion:
        body = {
            "model": self._config.model,
            "messages": json.loads(bytes(request.prompt)),
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            **({} if sampling.top_p == 1.0 else {"top_p": sampling.top_p}),
            **self._config.body,
        }
        body = {name: value for name, value in body.items() if value is not None}
        key = digest_json([self._config.base_url, body, request.seed if sampling.temperature else None])
        if self._log is not None and key in self._kept:
            self._usage["kept"] += 1
            record = self._log.read(self._kept[key])
            return ChatReply(*(record[name] for name in ChatReply.__slots__)).completion
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._ask(key, body))
        try:
            return (await self._asking[key]).completion
        except Refusal as refusal:
            self._note_refusal(refusal)
            return Completion((), (), "abort", (), 0)
        finally:
            self._asking.pop(key, None)

    async def _ask(self, key: str, body: Mapping[str, Any]) -> ChatReply:
        """Return the reply to a request, with retries. Raises Refusal if its content is refused, else SetupError."""
        config, tries = self._config, 0
        while True:
            try:
                reply = read_chat_reply(await self._endpoint.call("POST", "/chat/completions", body))
                break
            except Refusal as refusal:
                if refusal.status in BAD_REQUESTS:
                    raise
                raise self._error(str(refusal), "Check base_url, model, and the key in api_key_env.") from None
            except (Failure, Unsound) as failure:
                tries += 1
                if tries > config.retries:
                    message = f"{failure} ({tries} times)"
                    raise self._error(message, "Replies are kept: look at the server, and run again.") from None
                pause = random.uniform(0.5, 1.0) * min(FIRST_PAUSE_S * 2**tries, LONGEST_PAUSE_S)
                asked = failure.wait_s if isinstance(failure, Failure) else 0.0
                await asyncio.sleep(max(pause, min(asked, config.timeout_seconds)))
                self._usage["repeated"] += 1
        self._usage["requests"] += 1
        self._usage["input_tokens"] += reply.input_tokens
        self._usage["output_tokens"] += reply.output_tokens
        if self._log is not None:
            name = prompt_id(body["messages"][-1]["content"])
            self._kept[key] = self._log.append({"key": key, "id": name, "model": config.model, **asdict(reply)})
        return reply

    def _note_refusal(self, refusal: Refusal) -> None:
        """Count a refused question. Raises SetupError if all of the first ALL_REFUSED questions were refused."""
        self._usage["refused"] += 1
        if self._usage["refused"] >= ALL_REFUSED and not self._usage["requests"] + self._usage["kept"]:
            raise self._error(str(refusal), "Check the engine's settings: body changes the fields of a request.")

    def _error(self, reason: str, remedy: str) -> SetupError:
        return SetupError(f"{self._config.base_url} does not answer for {self._config.model}: {reason}.", remedy)


def read_chat_reply(content: bytes) -> ChatReply:
    """Return the reply of a server. Raises Unsound if it is not a chat reply."""
    reply = read_json(content)
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Unsound(f"its reply has no message: {quoted(reply)}")
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise Unsound(f"the content of its message is not a text: {quoted(text)}")
    text = text.encode(errors="replace").decode()
    usage = reply.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    input_tokens, output_tokens = counts.get("prompt_tokens"), counts.get("completion_tokens")
    return ChatReply(
        text,
        FINISH_REASONS.get(str(choice.get("finish_reason")), "abort"),
        input_tokens if type(input_tokens) is int else 0,
        output_tokens if type(output_tokens) is int else len(text) // BYTES_A_TOKEN,
    )


def report_costs(engines: Iterable[Mapping[str, Any]], progress: Progress) -> list[Mapping[str, Any]]:
    """Print the requests and the cost of each engine of the type chat, and return the facts of these engines."""
    asked = [facts for facts in engines if "endpoint" in facts]
    for facts in asked:
        refused = f", {facts['refused']:,} refused" if facts["refused"] else ""
        cost = f", {facts['cost']:,.4g} by the prices set" if "cost" in facts else ""
        progress.note(
            f"{facts['model']}: {facts['requests']:,} requests, {facts['kept']:,} replies kept from before{refused}, "
            f"{facts['input_tokens']:,} tokens in, {facts['output_tokens']:,} out{cost}"
        )
    return asked

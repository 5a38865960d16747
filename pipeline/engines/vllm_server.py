"""A running vLLM server, over its OpenAI-compatible completions API with token ids in and out.

Start the server so that its log-probabilities are those of the distribution it samples from:
`vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import httpx

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import (
    FINISH_REASONS,
    POLL_S,
    Completion,
    Request,
    SamplingParams,
    TakeRequests,
    check_room,
)
from truegold.verifiers import SetupError

BACKOFF_SECONDS = 1.0
"""The pause before the first retry; each further one takes twice as long."""


class ServerEngine:
    """Samples from the server at `config.url`. Requests that fail for the network or an overload are tried again."""

    def __init__(self, config: ServerEngineConfig) -> None:
        self._config = config
        self._extra_body: dict[str, Any] = {}
        """Further fields of every request for completions."""
        key = os.environ.get(config.api_key_env, "") if config.api_key_env else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        limits = httpx.Limits(max_connections=config.concurrency)
        self._client = httpx.Client(
            base_url=config.url.rstrip("/"), headers=headers, timeout=config.timeout_seconds, limits=limits
        )
        try:
            self._model, self.max_model_len = self._served_model()
        except SetupError:
            self._client.close()
            raise

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample as `Engine.generate` says; each prompt may have its own sampling parameters."""
        prompt_sampling = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        check_room(prompts, self.max_model_len)
        with ThreadPoolExecutor(self._config.concurrency) as pool:
            return list(pool.map(self._complete, prompts, prompt_sampling, seeds))

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` says, with a request on the way for each of `concurrency`."""
        running: dict[Future[Completion], Request] = {}
        with ThreadPoolExecutor(self._config.concurrency) as pool:
            while True:
                requests = take(self._config.concurrency - len(running))
                if not running and not requests:
                    if requests is None:
                        return
                    time.sleep(POLL_S)
                    continue
                for request in requests or ():
                    running[pool.submit(self._complete, request.prompt, sampling, request.seed)] = request
                finished, _ = wait(running, timeout=None if requests is None else POLL_S, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()

    def close(self) -> None:
        """Close the connections; the server goes on running."""
        self._client.close()

    def _served_model(self) -> tuple[str, int]:
        models = self.request("GET", "/models")["data"]
        names = [model["id"] for model in models]
        model_name = self._config.model or (names[0] if len(names) == 1 else None)
        for model in models:
            if model["id"] == model_name:
                return model_name, int(model["max_model_len"])
        raise SetupError(
            f"The server at {self._config.url} serves {', '.join(names)}, not {model_name or 'one model'}.",
            "Set engine.model to one of these.",
        )

    def _complete(self, prompt: Sequence[int], sampling: SamplingParams, seed: int) -> Completion:
        body = {
            "model": self._model,
            "prompt": list(prompt),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_tokens": min(sampling.max_tokens, self.max_model_len - len(prompt)),
            "stop_token_ids": list(sampling.stop_token_ids),
            "seed": seed,
            **self._extra_body,
            "logprobs": 0 if sampling.logprobs else None,
            "return_token_ids": True,
        }
        choice = self.request("POST", "/completions", body)["choices"][0]
        token_ids = choice.get("token_ids")
        if token_ids is None:
            raise SetupError(
                f"The server at {self._config.url} returns no token ids.", "truegold needs vLLM 0.11 or newer there."
            )
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
        return Completion(tuple(token_ids), tuple(logprobs), FINISH_REASONS.get(choice["finish_reason"], "abort"))

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of the server's reply, None where that is empty. Raises SetupError where there is none."""
        problem = ""
        for attempt in range(self._config.retries + 1):
            if attempt:
                time.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1))
            try:
                response = self._client.request(method, path, json=body)
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
                continue
            if response.status_code < 400:
                return response.json() if response.content else None
            problem = f"HTTP {response.status_code}: {response.text[:300]}"
            if response.status_code < 500 and response.status_code != 429:
                break
        raise SetupError(
            f"The vLLM server at {self._config.url} does not answer {path}: {problem}.", "Check that it is running."
        )

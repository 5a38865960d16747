"""Running vLLM servers, over their OpenAI-compatible completions API with token ids in and out.

Start each server so that its log-probabilities are those of the distribution it samples from:
`vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm`.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import LOOP, POLL_S, Completion, Request, SamplingParams, TakeRequests, hand_out
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.servers.pool import FIRST_PAUSE_S, Pool
from truegold.pipeline.engines.servers.reply import CompletionRequest, Failure, Unsound
from truegold.verifiers import SetupError

T = TypeVar("T")


class ServerEngine:
    """Samples from the servers at `config.url` or `config.urls`.

    With an `encoder` their tokens are compared with their texts, and the weights of several servers with each other.
    """

    def __init__(self, config: ServerEngineConfig, encoder: PromptEncoder | None = None) -> None:
        self._config = config
        self._extra_body: dict[str, Any] = {}
        """Further fields of every request for completions."""
        key = os.environ.get(config.api_key_env, "") if config.api_key_env else ""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="servers", daemon=True)
        self._thread.start()
        self._pool = Pool(config, headers, encoder)
        try:
            self._run(self._pool.start())
        except BaseException:
            self.close()
            raise
        self.max_model_len, self.model = self._pool.max_model_len, self._pool.model

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample as `Engine.generate` says; each prompt may have its own sampling parameters."""
        prompt_sampling = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        take = hand_out(prompts, seeds, self.max_model_len)
        completions: dict[int, Completion] = {}
        for request, completion in self._stream(take, lambda request: prompt_sampling[request.sample]):
            completions[request.sample] = completion
        return [completions[index] for index in range(len(prompts))]

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` says, with as many requests on the way as the servers take."""
        return self._stream(take, lambda _: sampling)

    def facts(self) -> dict[str, Any]:
        """Return what each server has done, and why it is not up where it is not."""
        return {"servers": [server.facts() for server in self._pool.servers]}

    def close(self) -> None:
        """Close the connections; the servers go on running."""
        if not self._loop.is_closed():
            self._run(self._pool.close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of the first server's reply, None where that is empty. Raises SetupError where there is
        none after all tries."""
        server = self._pool.servers[0]
        for attempt in range(self._config.retries + 1):
            if attempt:
                time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
            try:
                content = self._run(server.call(method, path, body))
                return json.loads(content) if content else None
            except Failure as failure:
                problem = str(failure)
            except Unsound as unsound:
                problem = str(unsound)
                break
        raise SetupError(f"The vLLM server at {server.url} fails {path}: {problem}.", "Check that it is running.")

    def _stream(
        self, take: TakeRequests, sampling: Callable[[Request], SamplingParams]
    ) -> Iterator[tuple[Request, Completion]]:
        running: dict[Future[Completion], Request] = {}
        finished: queue.SimpleQueue[Future[Completion]] = queue.SimpleQueue()
        error: BaseException | None = None
        try:
            while error is None or running:
                requests = take(max(0, self._pool.room - len(running))) if error is None else None
                if not running and requests is None:
                    break
                for request in requests or ():
                    coroutine = self._complete(request, sampling(request))
                    future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
                    running[future] = request
                    future.add_done_callback(finished.put)
                try:
                    future = finished.get(timeout=POLL_S)
                except queue.Empty:
                    continue
                request = running.pop(future)
                if future.cancelled():
                    continue
                if future.exception() is None:
                    yield request, future.result()
                elif error is None:
                    # What others have finished meanwhile is kept: it is yielded before the error is raised.
                    error = future.exception()
                    _cancel(running)
        finally:
            _cancel(running)
        if error is not None:
            raise error

    async def _complete(self, request: Request, sampling: SamplingParams) -> Completion:
        max_tokens = min(sampling.max_tokens, self.max_model_len - len(request.prompt))
        body = {
            "prompt": list(request.prompt),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_tokens": max_tokens,
            "stop_token_ids": list(sampling.stop_token_ids),
            "seed": request.seed,
            **({"repetition_detection": LOOP} if sampling.stop_loops else {}),
            **self._extra_body,
            "logprobs": 0 if sampling.logprobs else None,
            **({"prompt_logprobs": 0} if sampling.prompt_logprobs else {}),
            "return_token_ids": True,
        }
        asked = CompletionRequest(
            "", request.prompt, max_tokens, sampling.logprobs, sampling.prompt_logprobs, sampling.stop_token_ids
        )
        return await self._pool.complete(asked, body)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _cancel(futures: dict[Future[Completion], Request]) -> None:
    for future in futures:
        future.cancel()

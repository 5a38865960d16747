"""Samples from running vLLM servers through their completions API, which takes and returns token ids.

Start each server with the following options. Then the log-probabilities are those of the sampled distribution:

    vllm serve MODEL --logprobs-mode processed_logprobs --generation-config vllm
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from truegold.pipeline.config.engines import ServerEngineConfig
from truegold.pipeline.engines.base import LOOP, Completion, Request, SamplingParams, TakeRequests, collect, hand_out
from truegold.pipeline.engines.chat import PromptEncoder
from truegold.pipeline.engines.endpoint import read_key
from truegold.pipeline.engines.request_loop import RequestLoop
from truegold.pipeline.engines.server_pool import Pool, Preparation
from truegold.pipeline.engines.server_replies import CompletionRequest


class ServerEngine:
    """An engine that samples from the servers of `config`.

    With an `encoder`, the tokens of each reply are compared with the text of the reply, and the weights of the servers
    are compared with each other.
    """

    def __init__(
        self,
        config: ServerEngineConfig,
        encoder: PromptEncoder | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        self._extra_body: dict[str, Any] = {}
        """Additional fields of every completion request."""
        self._pool = Pool(config, read_key(config.api_key_env), encoder, preparation)
        self._loop = RequestLoop()
        try:
            self._loop.run(self._pool.start())
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
        """Sample as `Engine.generate` describes; each prompt may have its own sampling parameters."""
        prompt_sampling = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        take = hand_out(prompts, seeds, self.max_model_len)
        return collect(self._stream(take, lambda request: prompt_sampling[request.sample]), len(prompts))

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` describes, with as many pending requests as the servers take."""
        return self._stream(take, lambda _: sampling)

    def facts(self) -> dict[str, Any]:
        """Return the work of each server, and the reason why a server is not up."""
        return {"servers": [server.facts() for server in self._pool.servers]}

    def close(self) -> None:
        """Close the connections. The servers keep running."""
        self._loop.close(self._pool.close)

    def _stream(
        self, take: TakeRequests, sampling: Callable[[Request], SamplingParams]
    ) -> Iterator[tuple[Request, Completion]]:
        def complete(request: Request) -> Coroutine[Any, Any, Completion]:
            return self._complete(request, sampling(request))

        return self._loop.stream(take, lambda: self._pool.room, complete)

    async def _complete(self, request: Request, sampling: SamplingParams) -> Completion:
        settings = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "seed": request.seed,
            **({"repetition_detection": LOOP} if sampling.stop_loops else {}),
            **self._extra_body,
        }
        max_tokens = min(sampling.max_tokens, self.max_model_len - len(request.prompt))
        stops, prompt_logprobs = sampling.stop_token_ids, sampling.prompt_logprobs
        return await self._pool.complete(
            CompletionRequest(request.prompt, max_tokens, sampling.logprobs, prompt_logprobs, stops, settings)
        )

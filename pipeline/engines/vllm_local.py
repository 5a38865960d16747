"""Samples from vLLM inside this process, on GPU or CPU. In a training, the weights change between steps.

VLLM_ENABLE_V1_MULTIPROCESSING=0 keeps vLLM from starting a process for the engine. So new weights can be passed as
tensors, and a killed run leaves no process behind. vLLM frees its memory only when the process ends, so each stage that
uses the engine runs in its own process. On CPU, `cpu_memory` frees some memory between rollouts.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import (
    FINISH_REASONS,
    LOOP,
    POLL_S,
    Completion,
    Request,
    SamplingParams,
    TakeRequests,
    check_room,
)
from truegold.pipeline.engines.cpu_memory import lazy_zeros, release_cache, release_weights, trim
from truegold.verifiers import SetupError
from truegold.verifiers.sandbox.child_process import usable_cores

if TYPE_CHECKING:
    import torch


CPU_BATCHED_TOKENS = 8192
"""The maximum number of tokens of a prefill batch on CPU, unless `max_model_len` is larger. Chunked prefill is off on
CPU. After a part of a prompt, it rewinds the random generator of a request with a seed. torch's CPU generator cannot be
rewound."""
CPU_BLOCK_TOKENS = 32
"""The number of tokens of a block of the key-value cache on CPU.

Prompts share only whole blocks, and most prompts are shorter than vLLM's default block of 128 tokens. For 8 completions
each of 8 GSM8K prompts, the smaller blocks save a fifth of the CPU time.
"""
GPU_BLOCK_TOKENS = 64
"""The number of tokens of the largest block of the key-value cache that vLLM uses on a GPU by default."""
QUEUED_PER_SEQUENCE = 2
"""The number of requests in the engine, as a multiple of the sequences that it decodes at once. It keeps the engine
busy."""
REASON_CHARS = 300
"""The maximum number of characters that are quoted from an error of vLLM."""
BUSY_READINGS, BUSY_EVERY_S = 10, 0.03
"""The number of runnable threads is read 10 times, every .03 seconds."""
ROUNDED_UP = 0.5
"""A core counts as free if at least this share of its time is free."""

WEIGHTS, CACHE = ["weights"], ["kv_cache"]
"""vLLM's tags for the memory that an engine releases when it sleeps."""


class VllmEngine:
    """An in-process vLLM engine on the checkpoint in folder `model`.

    `beside_trainer`: whether a trainer runs in this process. If `engine.sleep` allows it, trainer and engine then use
    the GPU in turns: the engine releases its memory after loading and when `sleep` is called, and takes it again when
    it is used.
    """

    make_room: Callable[[], None] = staticmethod(lambda: None)
    """A function that is called before the engine takes GPU memory again. A trainer releases its memory in it."""
    takes_turns = False
    """Whether the engine can release its GPU memory while it is not used."""

    def __init__(self, model: Path, config: VllmEngineConfig, beside_trainer: bool = False) -> None:
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(config.cpu_kv_cache_gib))
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        try:
            import vllm
            from vllm import sampling_params as vllm_sampling
            from vllm.platforms import current_platform
        except ImportError as error:
            raise SetupError(
                f"vLLM cannot be imported ({error}).", "Install it: pip install 'truegold[gpu]' or 'truegold[cpu]'."
            ) from error
        self.max_model_len = config.max_model_len
        self._max_num_seqs = config.max_num_seqs
        self._streamed = 0
        self._running: dict[str, Request] = {}
        self._stream_s = 0.0
        self._step_s = 0.0
        self._vllm = vllm
        self._version = 0
        """The version of the weights, which is part of the cache salt (`_salted`)."""
        self._times_forgotten = 0
        # Older versions of vLLM cannot detect repetition. There, completions go on until max_tokens.
        detection = getattr(vllm_sampling, "RepetitionDetectionParams", None)
        self._loop_detection = detection(**LOOP) if detection is not None else None
        self._on_cpu = on_cpu = current_platform.is_cpu()
        options: dict[str, Any] = {}
        if on_cpu:
            options["enable_chunked_prefill"] = False
            options["block_size"] = CPU_BLOCK_TOKENS
            options["max_num_batched_tokens"] = max(CPU_BATCHED_TOKENS, config.max_model_len)
            if config.sleep:
                raise SetupError("vLLM sleeps on GPUs only.", "Set engine.sleep: false.")
        else:
            options["gpu_memory_utilization"] = config.gpu_memory_utilization
            self.takes_turns = config.sleeps(beside_trainer)
            options["enable_sleep_mode"] = self.takes_turns
        self._threads = _set_threads(config.cpu_threads, beside_trainer) if on_cpu else None
        self.block_tokens = options.get("block_size", GPU_BLOCK_TOKENS)
        """The maximum number of tokens of a block of the prefix cache."""
        self._asleep: Literal["", "weights wait", "no weights"] = ""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            if config.tensor_parallel_size > 1:
                raise SetupError(
                    "With several ranks, each rank has its own engine, which cannot use several GPUs.",
                    "Set engine.tensor_parallel_size: 1, or sample from a vLLM server.",
                )
            # torchrun has already started the process of this rank. The engine runs in it.
            options["distributed_executor_backend"] = "external_launcher"
        try:
            with lazy_zeros() if on_cpu else nullcontext():
                self.llm = vllm.LLM(
                    model=str(model),
                    dtype=config.dtype,
                    max_model_len=config.max_model_len,
                    max_num_seqs=config.max_num_seqs,
                    tensor_parallel_size=config.tensor_parallel_size,
                    enforce_eager=on_cpu if config.enforce_eager is None else config.enforce_eager,
                    # Return the log-probabilities of the sampled distribution, at the sampling temperature.
                    logprobs_mode="processed_logprobs",
                    # Ignore the sampling defaults of the checkpoint, such as top_k. They bias importance ratios.
                    generation_config="vllm",
                    disable_log_stats=True,
                    seed=0,
                    **options,
                )
        except (ValueError, OSError) as error:
            raise SetupError(f"vLLM cannot load {model}: {_reason(error)}") from error
        if on_cpu:
            trim()
        elif self.takes_turns and beside_trainer:
            self.sleep()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: SamplingParams | Sequence[SamplingParams],
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample as `Engine.generate` describes; each prompt may have its own sampling parameters."""
        prompt_sampling = [sampling] * len(prompts) if isinstance(sampling, SamplingParams) else sampling
        check_room(prompts, self.max_model_len)
        if not prompts:
            return []
        self._wake()
        vllm_params = [
            self._vllm_params(params, len(prompt), seed)
            for prompt, params, seed in zip(prompts, prompt_sampling, seeds, strict=True)
        ]
        outputs = self.llm.generate([self._salted(prompt) for prompt in prompts], vllm_params, use_tqdm=False)
        return [_completion(output) for output in outputs]

    def stream(self, take: TakeRequests, sampling: SamplingParams) -> Iterator[tuple[Request, Completion]]:
        """Sample as `Engine.stream` describes."""
        from vllm.sampling_params import RequestOutputKind

        self._wake()
        engine = self.llm.llm_engine
        running = self._running = {}
        # Exclude the million objects of vLLM and torch from garbage collection. They live as long as the engine.
        gc.freeze()
        earlier_s, began = self._stream_s, time.monotonic()
        while True:
            requests = take(QUEUED_PER_SEQUENCE * self._max_num_seqs - len(running))
            if not running and not requests:
                if requests is None:
                    return
                time.sleep(POLL_S)
                continue
            for request in requests or ():
                params = self._vllm_params(sampling, len(request.prompt), request.seed)
                params.output_kind = RequestOutputKind.FINAL_ONLY
                self._streamed += 1
                name = f"stream-{self._streamed}"
                # With an explicit type, vLLM takes the prompt as it is, without processing it again.
                engine.add_request(name, {"type": "token", **self._salted(request.prompt)}, params)
                running[name] = request
            step_began = time.monotonic()
            outputs = engine.step()
            self._step_s += time.monotonic() - step_began
            self._stream_s = earlier_s + time.monotonic() - began
            for output in outputs:
                if output.finished:
                    yield running.pop(output.request_id), _completion(output)

    def lengths(self) -> dict[int, int]:
        """Return the number of tokens that each unfinished request has so far, by its `sample`."""
        states = self.llm.llm_engine.output_processor.request_states.values()
        # vLLM replaces request ids by its own. The id that was given is the external id.
        lengths = {state.external_req_id: state.detokenizer.num_output_tokens() for state in states}
        return {request.sample: lengths[name] for name, request in self._running.items() if name in lengths}

    def facts(self) -> dict[str, Any]:
        """Return the share of time in `stream` without sampling, and on CPU the number of threads."""
        idle = {"idle_share": round(1 - self._step_s / self._stream_s, 3)} if self._stream_s else {}
        return idle if self._threads is None else {**idle, "threads": self._threads}

    def _salted(self, prompt: Sequence[int]) -> dict[str, Any]:
        """Return the prompt for vLLM, with a cache salt. vLLM reuses a cached prefix only for prompts with the same
        salt.

        The salt changes with the weights. The first weights have no salt, which saves hashing it with every block.
        """
        salted: dict[str, Any] = {"prompt_token_ids": list(prompt)}
        if self._version or self._times_forgotten:
            salted["cache_salt"] = f"weights-{self._version}-{self._times_forgotten}"
        return salted

    def _vllm_params(self, sampling: SamplingParams, prompt_tokens: int, seed: int) -> Any:
        options: dict[str, Any] = {}
        if sampling.stop_loops and self._loop_detection is not None:
            options["repetition_detection"] = self._loop_detection
        return self._vllm.SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=min(sampling.max_tokens, self.max_model_len - prompt_tokens),
            stop_token_ids=list(sampling.stop_token_ids),
            seed=seed,
            logprobs=0 if sampling.logprobs else None,
            prompt_logprobs=0 if sampling.prompt_logprobs else None,
            detokenize=False,
            # Without this, vLLM makes a deep copy of the parameters, in case they change later.
            skip_clone=True,
            **options,
        )

    def update_weights(self, named_tensors: Iterator[tuple[str, torch.Tensor]], version: int) -> None:
        """Load new weights, given with their Hugging Face names.

        For a model with tied embeddings, `lm_head.weight` must be given, too, because the CPU build of vLLM keeps a
        packed copy of it.
        """
        was_asleep = bool(self._asleep)
        if was_asleep:
            self._wake_part(WEIGHTS)
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": named_tensors})
        self._version = version
        # Loading weights takes additional GPU memory, so the cache takes its memory last.
        if was_asleep:
            self._wake_part(CACHE)
        self._asleep = ""

    def sleep(self, weights_follow: bool = True) -> None:
        """Release the memory of the cache and the weights until the engine is used again.

        With `weights_follow`, the weights are dropped, and `update_weights` must be called before the next use. Without
        it, weights on a GPU are moved to host memory, and on CPU no memory is released.
        """
        if self._asleep or not (weights_follow if self._on_cpu else self.takes_turns):
            return
        self._asleep = "no weights" if weights_follow else "weights wait"
        if self._on_cpu:
            self.forget_prefixes()
            self.llm.collective_rpc(release_cache)
            self.llm.collective_rpc(release_weights)
            trim()
        else:
            self.llm.sleep(level=2 if weights_follow else 1)

    def _wake(self) -> None:
        """Take memory again if `sleep` released it. Raises RuntimeError if the weights were dropped."""
        if self._asleep == "no weights":
            raise RuntimeError("The engine sleeps: it has no weights until update_weights.")
        if self._asleep:
            self._wake_part(WEIGHTS + CACHE)
            self._asleep = ""

    def _wake_part(self, tags: list[str]) -> None:
        """Take the memory of these tags again. On CPU, freed memory goes back to the system."""
        if self._on_cpu:
            trim()
            return
        import torch

        self.make_room()
        # vLLM maps its memory outside of torch's allocator, so this allocator must give up its memory.
        torch.cuda.empty_cache()
        self.llm.wake_up(tags=tags)

    def forget_prefixes(self) -> None:
        """Change the cache salt, so that no cached prefix is used any more."""
        self._times_forgotten += 1

    def head_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits [N, V] of the engine's output head for hidden states [N, H]."""
        logits: torch.Tensor = self.llm.apply_model(lambda model: model.compute_logits(hidden))[0]
        return logits

    def vectors(self) -> dict[str, torch.Tensor]:
        """Return the model's one-dimensional weights by name, such as those of norms. vLLM keeps their names."""
        named_vectors: dict[str, torch.Tensor] = self.llm.apply_model(
            lambda model: {name: value.detach() for name, value in model.named_parameters() if value.dim() == 1}
        )[0]
        return named_vectors

    def close(self) -> None:
        """Drop the engine. Its memory is freed when the process ends."""
        del self.llm


def _set_threads(configured: int | None, beside_trainer: bool) -> str:
    """Set the number of threads of torch and vLLM, and return a line with the number and its reason.

        2 cores, nothing else runs        ->  2 threads
        2 cores, 7 processes want to run  ->  1 thread

    On busy cores, threads mostly wait for each other: on two busy cores, one thread samples several times as fast as
    two. With a trainer in this process, the number does not depend on the load. The reason is that floating-point sums
    depend on the number of threads, and should be the same in every run.
    """
    import torch

    usable = usable_cores()
    named, bound = os.environ.get("OMP_NUM_THREADS"), os.environ["VLLM_CPU_OMP_THREADS_BIND"]
    if configured is None and bound != "nobind":
        return f"the cores of VLLM_CPU_OMP_THREADS_BIND={bound}"
    if configured is None and (named or beside_trainer):
        return _count_threads(torch.get_num_threads(), usable) + (" (OMP_NUM_THREADS)" if named else "")
    busy = _busy_cores()
    threads = configured or max(1, min(usable, int((os.cpu_count() or 1) - busy + ROUNDED_UP)))
    torch.set_num_threads(threads)
    why = "engine.cpu_threads" if configured else f"other work keeps {busy:.1f} busy"
    return f"{_count_threads(threads, usable)} ({why})"


def _count_threads(threads: int, usable: int) -> str:
    return f"{threads} thread{'s' * (threads > 1)} on {usable} core{'s' * (usable > 1)}"


def _busy_cores() -> float:
    """Return the number of cores that other processes keep busy: the average of the last minute, or the current number
    if it is lower.

    The average may include earlier work of this run, and the current number may include short bursts.
    """
    lately, now = os.getloadavg()[0], _wanting_to_run()
    return lately if now is None else min(lately, now)


def _wanting_to_run() -> float | None:
    """Return the number of runnable threads of other processes, or None outside of Linux."""
    table = Path("/proc/loadavg")
    if not table.exists():
        return None
    readings = []
    for _ in range(BUSY_READINGS):
        time.sleep(BUSY_EVERY_S)
        # "0.20 0.18 0.12 3/310 5110": 3 of 310 threads, one of which is this one.
        readings.append(int(table.read_text().split()[3].partition("/")[0]) - 1)
    return fmean(readings)


def _reason(error: Exception) -> str:
    """Return the message of an error in one line of at most REASON_CHARS.

    An error of pydantic has its reason in a later line: the message of
    `1 validation error ...\n  Value error, No model config found [type=value_error, ...]` is `No model config found`.
    """
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    stated = next((line for line in lines if line.startswith("Value error, ")), first)
    return stated.removeprefix("Value error, ").partition(" [type=")[0][:REASON_CHARS]


def _completion(request_output: Any) -> Completion:
    output = request_output.outputs[0]
    token_ids = tuple(output.token_ids)
    steps = output.logprobs or ()
    logprobs = tuple(step[token].logprob for step, token in zip(steps, token_ids, strict=bool(steps)))
    prompt = request_output.prompt_token_ids[1:]
    prompt_steps = (request_output.prompt_logprobs or ())[1:]
    prompt_logprobs = tuple(step[token].logprob for step, token in zip(prompt_steps, prompt, strict=bool(prompt_steps)))
    return Completion(token_ids, logprobs, FINISH_REASONS.get(output.finish_reason, "abort"), prompt_logprobs)

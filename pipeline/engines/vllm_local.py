"""vLLM inside this process, on GPU or CPU: samples for profiles, and rollouts with weights that change between steps.

The engine runs in this process (`VLLM_ENABLE_V1_MULTIPROCESSING=0`). So new weights are passed as tensors, and a killed
run leaves no engine process behind. Stages that use the engine run isolated, because it frees its memory only at exit.
On CPU, some memory is freed between rollouts (`cpu_memory`).
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
"""The maximum number of tokens of a prefill batch on CPU, unless `max_model_len` is larger. Chunked prefill is off
there, because vLLM would rewind a seeded request's generator after a partial prefill, and torch's CPU generator cannot
be rewound."""

CPU_BLOCK_TOKENS = 32
"""The tokens of a block of the key-value cache on CPU. Only whole blocks are shared between prompts, and most prompts
are shorter than vLLM's default of 128 tokens. With 8 completions of 8 GSM8K prompts, this saves a fifth of the CPU
time."""

GPU_BLOCK_TOKENS = 64
"""The longest block of the key-value cache on a GPU by default, in tokens."""

QUEUED_PER_SEQUENCE = 2
"""The number of requests in the engine for each sequence that it decodes at once, so that it never runs idle."""
REASON_CHARS = 300
"""The maximum number of characters of an error of vLLM that are quoted."""

BUSY_READINGS, BUSY_EVERY_S = 10, 0.03
"""The number of readings of the runnable threads, and the interval between readings in seconds."""
ROUNDED_UP = 0.5
"""The free share of a core from which it counts as a free core."""


WEIGHTS, CACHE = ["weights"], ["kv_cache"]
"""vLLM's tags for the memory that an engine releases when it sleeps."""


class VllmEngine:
    """An in-process vLLM engine on the checkpoint in folder `model`.

    `beside_trainer` is true if a trainer uses the same GPU. Then the two take turns (`engine.sleep`): the engine sleeps
    at first and whenever `sleep` is called, and wakes when it is used.
    """

    make_room: Callable[[], None] = staticmethod(lambda: None)
    """Called before the engine takes GPU memory again, so that the trainer can release its memory."""
    takes_turns = False
    """Whether the engine takes turns with a trainer on a GPU."""

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
        """The version of the weights, which is part of the salt of cached prefixes."""
        self._times_forgotten = 0
        # Older versions of vLLM cannot detect loops, which then run until max_tokens.
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
            # Each rank has an engine, within the existing process group.
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
                    # Log-probabilities are those of the sampled distribution, with temperature applied.
                    logprobs_mode="processed_logprobs",
                    # A checkpoint's own sampling defaults would bias the importance ratio.
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
        # A million objects of vLLM and torch live as long as the engine, so the garbage collector can skip them.
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
        """Return the number of tokens so far of each unfinished request, by its `sample`."""
        states = self.llm.llm_engine.output_processor.request_states.values()
        # vLLM replaces request ids by internal ones, and stores the given id as the external id.
        lengths = {state.external_req_id: state.detokenizer.num_output_tokens() for state in states}
        return {request.sample: lengths[name] for name, request in self._running.items() if name in lengths}

    def facts(self) -> dict[str, Any]:
        """Return the share of time during streams in which the engine did not sample, and on CPU its threads."""
        idle = {"idle_share": round(1 - self._step_s / self._stream_s, 3)} if self._stream_s else {}
        return idle if self._threads is None else {**idle, "threads": self._threads}

    def _salted(self, prompt: Sequence[int]) -> dict[str, Any]:
        """Return the prompt with a cache salt for the current weights, so that prefixes of older weights are not used.

        The first weights have no salt, since vLLM hashes a salt with every block.
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

        A model with tied embeddings needs `lm_head.weight`, too: the CPU build has a packed copy of it, which the
        embedding alone would not update.
        """
        was_asleep = bool(self._asleep)
        if was_asleep:
            self._wake_part(WEIGHTS)
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": named_tensors})
        self._version = version
        # The cache takes its memory after the weights, since loading them takes GPU memory in trainer and engine.
        if was_asleep:
            self._wake_part(CACHE)
        self._asleep = ""

    def sleep(self, weights_follow: bool = True) -> None:
        """Release the memory of cache and weights until the engine is used again.

        `weights_follow` is true if `update_weights` is called before the next use. If false, the weights of a GPU are
        moved to host memory, and on CPU no memory is released.
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
        """Wake the engine if it sleeps. Raises RuntimeError if it waits for new weights."""
        if self._asleep == "no weights":
            raise RuntimeError("The engine sleeps: it has no weights until update_weights.")
        if self._asleep:
            self._wake_part(WEIGHTS + CACHE)
            self._asleep = ""

    def _wake_part(self, tags: list[str]) -> None:
        """Take memory again. On CPU, memory that was freed meanwhile is returned to the system first."""
        if self._on_cpu:
            trim()
            return
        import torch

        self.make_room()
        # Empty torch's cache of freed memory first, because vLLM maps its memory outside of torch's allocator.
        torch.cuda.empty_cache()
        self.llm.wake_up(tags=tags)

    def forget_prefixes(self) -> None:
        """Make every cached prefix unreachable."""
        self._times_forgotten += 1

    def head_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits [N, V] of the engine's output head for hidden states [N, H]."""
        logits: torch.Tensor = self.llm.apply_model(lambda model: model.compute_logits(hidden))[0]
        return logits

    def vectors(self) -> dict[str, torch.Tensor]:
        """Return the model's one-dimensional weights, such as those of norms, whose names vLLM does not change."""
        named_vectors: dict[str, torch.Tensor] = self.llm.apply_model(
            lambda model: {name: value.detach() for name, value in model.named_parameters() if value.dim() == 1}
        )[0]
        return named_vectors

    def close(self) -> None:
        """Drop the engine. Its memory is freed when the process ends."""
        del self.llm


def _set_threads(configured: int | None, beside_trainer: bool) -> str:
    """Set the number of threads of torch and vLLM, and return a line with the number and its reason.

        2 cores, nothing else runs        ->  2
        2 cores, 7 processes want to run  ->  1

    Threads spin while they wait for each other, and on busy cores they wait most of the time: on two busy cores, one
    thread samples several times as fast as two. With a trainer in this process, all cores are used unless a number is
    configured. A number that depends on the load would change floating-point sums from run to run.
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
    """Return the number of cores that other processes keep busy, in the last minute and now: the lower number.

    The average of the last minute includes this run's earlier work, and the current number includes short bursts.
    """
    lately, now = os.getloadavg()[0], _wanting_to_run()
    return lately if now is None else min(lately, now)


def _wanting_to_run() -> float | None:
    """Return the number of runnable threads of other processes, or None if it is not known (outside of Linux)."""
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

    An error of pydantic begins with a count and a field. Its reason comes after "Value error, ":
    `1 validation error ...\n  Value error, No model config found [type=value_error, ...]`.
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

"""Measures what a training holds on the GPU, part by part, for one size of Qwen2.5 with random weights.

A line `built` has what stands after an engine is made: weights, gradient sums, master weights and moments. A line
`update` has one optimizer step of one micro-batch, cut where DeepSpeed is called: what the forward pass leaves for the
backward pass (`activations`), and how far each phase goes above what it began with. All are bytes of tensors as
`torch.cuda.memory_allocated` counts them; `reserved` is what the allocator took from the GPU.

A line `offload` has what DeepSpeed's `offload_states` frees, and its seconds, and so of the trainer's own
`release_states`, which goes at every stage.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truegold.train.config.models import OptimizerConfig
from truegold.train.config.objective import ObjectiveConfig
from truegold.train.grpo.update import PreparedBatch, StepLoss
from truegold.train.model import distributed
from truegold.train.model import engine as engine_module
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.segment import Segment
from truegold.train.objective import Totals

from .figures import (
    QWEN,
    Figures,
    allocated,
    device,
    give_back,
    machine,
    peak,
    random_qwen,
    reserved_peak,
    reset_peak,
    synchronize,
)

WHOLE = 10**6
"""Micro-batches of any size: what is measured is one."""


def make_engine(size: str, **settings: Any) -> TrainingEngine:
    """Return a training engine on a random model of that size, which is made on the GPU in place of being loaded.

    settings: of the optimizer; and `bucket`, DeepSpeed's sizes of buckets in elements.
    """

    def load(_: Path, dtype: str, *__: Any) -> Any:
        return random_qwen(size, getattr(torch, dtype))

    def configure(config: OptimizerConfig, ranks: int) -> dict[str, Any]:
        made: dict[str, Any] = configuring(config, ranks)
        if bucket is not None:
            made["zero_optimization"] |= {"reduce_bucket_size": bucket, "allgather_bucket_size": bucket}
        return made

    bucket = settings.pop("bucket", None)
    config = OptimizerConfig.model_validate({"micro_batch_tokens": WHOLE, **settings})
    loading, engine_module.load_causal_lm = engine_module.load_causal_lm, load
    configuring, distributed.deepspeed_config = distributed.deepspeed_config, configure
    try:
        return TrainingEngine(Path(), config, pad_id=0, seed=0)
    finally:
        engine_module.load_causal_lm, distributed.deepspeed_config = loading, configuring


def close(engine: TrainingEngine) -> None:
    """Let everything go that DeepSpeed holds. ZeRO 3 keeps references to itself: its tensors are emptied."""
    engine._engine.destroy()
    engine._engine.optimizer = engine._engine.basic_optimizer = None
    engine._engine.module = None
    for each in gc.get_objects():
        if issubclass(type(each), Tensor) and each.device == device() and each.numel() > 1000:
            each.data = torch.empty(0, dtype=each.dtype, device=each.device)
    give_back()


def make_segments(
    size: str, rows: int, prompt: int, output: int, group: int = 1, uneven: bool = False, seed: int = 0
) -> list[Segment]:
    """Return `rows` segments of random ids, `group` of them behind each prompt. uneven: outputs get shorter, down to
    half of it."""
    generator = torch.Generator().manual_seed(seed)
    vocabulary = int(QWEN[size]["vocabulary"])

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, vocabulary, (count,), generator=generator).tolist())

    segments = []
    for index in range(rows):
        if index % group == 0:
            prompt_ids = ids(prompt)
        length = output - (output // 2) * index // rows if uneven else output
        segments.append(Segment(prompt_ids, ids(length), (-11.9,) * length, right=index % 2 == 0, group=index // group))
    return segments


def step_loss(segments: list[Segment]) -> StepLoss:
    """Return the loss that a training has by default, for segments of which every second one is right."""
    tokens = sum(len(segment.output_ids) for segment in segments)
    advantages = torch.tensor([1.0 if segment.right else -1.0 for segment in segments])
    config = ObjectiveConfig(loss="ppo")
    return StepLoss(config, 1024, Totals(tokens, len(segments)), advantages, PreparedBatch(float("-inf"), None, None))


@dataclass
class Phases:
    """Wraps the calls of one update to see where its memory and its seconds go."""

    engine: TrainingEngine
    values: dict[str, Any] = field(default_factory=dict)

    def measure(self, segments: list[Segment]) -> dict[str, Any]:
        """Take one optimizer step and return its bytes and seconds."""
        deepspeed = self.engine._engine
        backward, step = deepspeed.backward, deepspeed.step
        give_back()
        reset_peak()
        synchronize()
        self.values = {"before": allocated(), "seconds_forward": 0.0, "seconds_backward": 0.0, "seconds_step": 0.0}
        self._mark = time.perf_counter()
        deepspeed.backward = self._wrap(backward, "forward", "backward")
        deepspeed.step = self._wrap(step, None, "step")
        started = time.perf_counter()
        try:
            metrics = self.engine.update(segments, step_loss(segments), 0, 1)
            synchronize()
            seconds = time.perf_counter() - started
        finally:
            del deepspeed.backward, deepspeed.step
        values, base = self.values, self.values["before"]
        tokens = sum(segment.length for segment in segments)
        relative = {name: value - base for name, value in values.items() if name.startswith(("after", "peak"))}
        seconds_of = {name: round(value, 4) for name, value in values.items() if name.startswith("seconds")}
        return {
            "tokens": tokens,
            "before": base,
            "activations": relative.get("after_forward"),
            **relative,
            **seconds_of,
            "peak": max(values[name] for name in values if name.startswith("peak")),
            "reserved": reserved_peak(),
            "seconds": round(seconds, 4),
            "tokens_per_s": round(tokens / seconds),
            "grad_norm": metrics["grad_norm"],
        }

    def _wrap(self, call: Callable[..., Any], before: str | None, during: str) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            synchronize()
            if before:
                self._note(before)
            result = call(*arguments, **options)
            synchronize()
            self._note(during)
            return result

        return wrapped

    def _note(self, phase: str) -> None:
        now = time.perf_counter()
        self.values[f"seconds_{phase}"] += now - self._mark
        self.values[f"after_{phase}"] = max(allocated(), self.values.get(f"after_{phase}", 0))
        self.values[f"peak_{phase}"] = max(peak(), self.values.get(f"peak_{phase}", 0))
        reset_peak()
        self._mark = time.perf_counter()


STAGES: dict[str, tuple[dict[str, Any], ...]] = {
    "0.5b": (
        *({"zero_stage": stage} for stage in (1, 2)),
        {"zero_stage": 0, "dtype": "float32"},
        {"zero_stage": 2, "offload": True},
        {"zero_stage": 2, "bucket": 50_000_000},
        {"zero_stage": 3},
        {"zero_stage": 3, "offload": True},
    ),
    "1.5b": (
        *({"zero_stage": stage} for stage in (1, 2)),
        {"zero_stage": 1, "lora": {"rank": 32}},
        {"zero_stage": 2, "offload": True},
        {"zero_stage": 2, "bucket": 50_000_000},
        {"zero_stage": 3},
        {"zero_stage": 3, "bucket": 50_000_000},
    ),
    "3b": tuple({"zero_stage": stage} for stage in (1, 2, 3)),
}
"""The optimizer's settings that each size is measured with."""


def set_checkpointing(engine: TrainingEngine, is_on: bool) -> None:
    """Turn gradient checkpointing on or off."""
    if is_on:
        engine.causal_lm.gradient_checkpointing_enable()
    else:
        engine.causal_lm.gradient_checkpointing_disable()


def run(figures: Figures, size: str) -> None:
    """Write all figures of one size."""
    figures.write("machine", **machine())
    stages = STAGES["0.5b" if size == "tiny" else size]
    for settings in stages:
        with figures.attempt("engine", size=size, settings=settings):
            _measure_engine(figures, size, settings)
        give_back()
        figures.write("left_over", size=size, settings=settings, bytes=allocated())
    if size in ("3b", "tiny"):
        large = "7b" if size == "3b" else size
        settings = {"zero_stage": 1, "lora": {"rank": 32}}
        with figures.attempt("engine", size=large, settings=settings):
            _measure_engine(figures, large, settings)


def _measure_engine(figures: Figures, size: str, settings: dict[str, Any]) -> None:
    give_back()
    reset_peak()
    start = allocated()
    started = time.perf_counter()
    engine = make_engine(size, **settings)
    synchronize()
    parameters = list(engine.causal_lm.parameters())
    counts = [getattr(parameter, "ds_numel", parameter.numel()) for parameter in parameters]
    trained = [count for count, parameter in zip(counts, parameters, strict=True) if parameter.requires_grad]
    built = {
        "size": size,
        "settings": settings,
        "parameters": sum(counts),
        "trained": sum(trained),
        "optimizer": type(engine._engine.optimizer).__name__,
        "seconds": round(time.perf_counter() - started, 2),
        "bytes": allocated() - start,
        "peak": peak() - start,
    }
    figures.write("built", **built)
    try:
        with figures.attempt("first_update", **built):
            # States that are made at the first step are there from now on.
            small = make_segments(size, 1, 8, 8)
            engine.update(small, step_loss(small), 0, 1)
            figures.write("first_update", size=size, settings=settings, bytes=allocated() - start)
        for checkpointing, rows, output, uneven in _shapes(size, settings):
            shape = {"size": size, "settings": settings, "checkpointing": checkpointing, "rows": rows, "uneven": uneven}
            with figures.attempt("update", **shape, output=output):
                set_checkpointing(engine, checkpointing)
                segments = make_segments(size, rows, 256, output, uneven=uneven)
                figures.write("update", **shape, output=output, **Phases(engine).measure(segments))
            engine._engine.zero_grad()
            give_back()
        if not {"lora", "offload", "bucket"} & settings.keys() and size != "3b":
            _offload(figures, size, settings, engine, briefly=size == "1.5b")
    finally:
        close(engine)


def _shapes(size: str, settings: dict[str, Any]) -> list[tuple[bool, int, int, bool]]:
    """Return (gradient checkpointing, rows, output tokens behind 256 of the prompt, whether lengths differ)."""
    if size == "tiny":
        return [(False, 2, 32, False), (True, 2, 32, False), (True, 3, 32, True)]
    shapes = [(False, 4, 768, False), (True, 4, 768, False), (True, 16, 768, False)]
    if size not in ("3b", "7b") and not {"dtype", "offload", "bucket"} & settings.keys():
        shapes.append((False, 16, 768, False))
    if settings == {"zero_stage": 1}:
        # One long row, and rows of which the mask is really needed.
        shapes += [(True, 1, 16_128, False), (True, 16, 768, True), (True, 2, 7_936, True)]
    return shapes


def _offload(
    figures: Figures, size: str, settings: dict[str, Any], engine: TrainingEngine, briefly: bool = False
) -> None:
    """Move DeepSpeed's states to the host and back, and compare a pass before and after. briefly: all states alone."""
    from deepspeed.runtime.zero.offload_config import OffloadStateTypeEnum

    set_checkpointing(engine, True)
    probe = make_segments(size, 1, 8, 64, seed=9)
    kinds = OffloadStateTypeEnum
    without_optimizer = [kinds.lp_params, kinds.lp_grads, kinds.contiguous_grad_buffer]
    sets: dict[str, list[Any] | None] = {
        "all": None,
        "optimizer and master weights": [kinds.optim_states, kinds.hp_params],
        "weights and gradients": without_optimizer,
    }
    for name, include in list(sets.items())[: 1 if briefly else None]:
        for pinned in (True, False) if name == "all" and not briefly else (True,):
            what = {"size": size, "settings": settings, "states": name, "pinned": pinned}
            with figures.attempt("offload", **what):
                _time_offload(
                    figures,
                    what,
                    engine,
                    probe,
                    lambda include=include, pinned=pinned: engine._engine.offload_states(include, pin_memory=pinned),
                    engine._engine.reload_states,
                )
    what = {"size": size, "settings": settings, "states": RELEASED, "pinned": True}
    with figures.attempt("offload", **what):
        _time_offload(figures, what, engine, probe, engine.release_states, engine._states.come_back)


RELEASED = "`release_states`: moments, master weights, sums of gradients"


def _time_offload(
    figures: Figures,
    what: dict[str, Any],
    engine: TrainingEngine,
    probe: list[Segment],
    away: Callable[[], None],
    back: Callable[[], None],
) -> None:
    """Move states away and back twice: page-locked memory of the host is taken at the first time."""
    before = torch.cat(engine.logprobs(probe))
    give_back()
    held = allocated()
    seconds = []
    freed = 0
    for _ in range(2):
        for move in (away, back):
            synchronize()
            started = time.perf_counter()
            move()
            synchronize()
            seconds.append(round(time.perf_counter() - started, 3))
            if move is away:
                freed = held - allocated()
    same = bool(torch.equal(before, torch.cat(engine.logprobs(probe))))
    metrics = engine.update(probe, step_loss(probe), 0, 1)
    figures.write(
        "offload",
        **what,
        freed=freed,
        held=held,
        seconds_away=seconds[::2],
        seconds_back=seconds[1::2],
        same=same,
        grad_norm=metrics["grad_norm"],
        held_after=allocated(),
    )

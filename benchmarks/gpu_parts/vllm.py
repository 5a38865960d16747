"""Measures a real vLLM beside the trainer on one GPU: training, seeds, sleep and sync, memory, a full GPU.

Each case is a process of its own, since a process holds one vLLM:

    train-float32, train-bfloat16     ten steps of GRPO on a checkpoint that has learnt sums, through the stage `train`
    train-bfloat16-graphs-...         with CUDA graphs: the whole demo, ZeRO 2 and 3, adapters, a full GPU and the next
                                      start, dialogues (`sft-bfloat16` first)
    seeds-eager, seeds-graphs, ...    tokens a second with a seed for each request and without; `-v1`: the older runner
    beside-0.5b, -1.5b, -3b           plan and measured peaks, sleep levels, sync, probe, an update without room
    beside-0.5b-zero2, -zero3         plan and measured peaks, sync, probe
    loss-0.5b, -1.5b                  our chunks of logits beside Liger's fused losses

The cases of `train` need `TRUEGOLD_DEMO`, the folder of a run up to `sft` and `select`; those of dialogues
`TRUEGOLD_SHOP`, one of `examples/shop.yaml` with `model` and `take_rows`, and its `sft.jsonl`. The others make random
models of Qwen2.5's configurations, which vLLM loads as dummies before the trainer hands over its weights. Where
FlashInfer is missing, `VLLM_USE_FLASHINFER_SAMPLER=0` has to be set.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import vllm
import yaml
from vllm import LLM

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.engines.base import SamplingParams
from truegold.pipeline.engines.vllm_local import VllmEngine
from truegold.pipeline.running.progress import NullProgress
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import SftConfig
from truegold.train.grpo.stage import grpo
from truegold.train.model.engine import NoRoomError, TrainingEngine
from truegold.train.model.memory_plan import ModelShape, plan_memory
from truegold.train.rollout.rollout import Probe
from truegold.train.sft import sft

from .figures import QWEN, Figures, allocated, device, give_back, machine, peak, qwen_config, reset_peak, synchronize
from .memory import make_engine, make_segments, set_checkpointing, step_loss
from .steps import _make_checkpoint

PROMPT_TOKENS, OUTPUT_TOKENS = 64, 256
EXAMPLES = Path(__file__).parents[2] / "examples"
OF_EXAMPLES = {"demo", "shop", "zero2", "zero3", "lora", "full", "again"}
"""Flags of cases that take their settings from an example."""
LEFT = 2**25
"""Bytes of the GPU that another program leaves."""


def run(figures: Figures, case: str) -> None:
    """Write all figures of one case."""
    figures.write("machine", **machine())
    kind, _, rest = case.partition("-")
    with figures.attempt(kind, case=case):
        CASES[kind](figures, rest)


class _LastLine(NullProgress):
    """Keeps what a stage says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)


def _train(figures: Figures, rest: str) -> None:
    """Train through the stage. rest: the dtype, and flags:

    awake, graphs         vLLM keeps its memory; CUDA graphs
    demo, shop            all steps of that example, in place of ten
    zero2, zero3, lora    twenty of the demo's steps
    full, again           likewise; another program takes the GPU in the third step, and the next start
    """
    dtype, *flags = rest.split("-")
    example, stage = ("shop", "take_rows") if "shop" in flags else ("demo", "select")
    run = Path(os.environ[f"TRUEGOLD_{example.upper()}"])
    inputs = {name: run / stage / f"{name}.parquet" for name in ("heldout", "reserve")}
    inputs |= {"model": run / "sft" / "checkpoint", "rows": run / stage / "selected.parquet"}
    progress = _LastLine()
    with tempfile.TemporaryDirectory() as folder:
        out = figures.path.parent / "full" if {"full", "again"} & {*flags} else Path(folder) / "out"
        out.mkdir(exist_ok=True)
        started = time.perf_counter()
        with figures.attempt("trained", rest=rest), _filled(5 if "full" in flags else None):
            report = grpo(inputs, GrpoConfig.model_validate(_settings(dtype, flags, example)), out, progress)
            figures.write("trained", rest=rest, seconds=round(time.perf_counter() - started, 1), facts=report.facts)
        for line in (out / "metrics.jsonl").read_text().splitlines() if (out / "metrics.jsonl").exists() else ():
            metrics = json.loads(line)
            kept = {
                name: value
                for name, value in metrics.items()
                if name in SHOWN or name.startswith(("seconds", "heldout", "mismatch", "clip_engine"))
            }
            figures.write("step", rest=rest, **kept)
        alarms = out / "alarms.jsonl"
        figures.write("alarms", rest=rest, lines=alarms.read_text().splitlines() if alarms.exists() else [])
        figures.write("notes", rest=rest, lines=progress.lines[:10])
        if "full" not in flags:
            with figures.attempt("export", rest=rest):
                from transformers import AutoModelForCausalLM

                model = AutoModelForCausalLM.from_pretrained(str(out / "checkpoint"))
                finite = all(bool(value.isfinite().all()) for value in model.parameters())
                figures.write("export", rest=rest, finite=finite, dtype=str(model.dtype))


def _settings(dtype: str, flags: list[str], example: str) -> dict[str, Any]:
    """Return the section `train` of a case of `_train`."""
    engine: dict[str, Any] = {"dtype": dtype, "max_model_len": 64, "gpu_memory_utilization": 0.2, "cpu_kv_cache_gib": 1}
    if torch.cuda.is_available():
        engine |= {"sleep": "awake" not in flags, "enforce_eager": "graphs" not in flags}
    settings: dict[str, Any] = {
        "steps": 10,
        "prompts_per_step": 8,
        "group_size": 4,
        "checkpoint_every": 5,
        "sampling": {"max_tokens": 20},
        "objective": {"masks": {"truncated": False}},
        "evaluation": {"every": 5},
        "optimizer": {"lr": 3.0e-4, "warmup_steps": 0},
    }
    if OF_EXAMPLES & {*flags}:
        whole = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
        settings = whole["train"]
        engine |= {"max_model_len": whole["engine"]["max_model_len"]}
        if example == "shop":
            settings["turns"]["environment"] = str(EXAMPLES / "shop.py:Shop")
        if not {"demo", "shop"} & {*flags}:
            settings |= {"steps": 20, "evaluation": {"every": 10}}
    optimizer = settings["optimizer"] | {"dtype": dtype}
    if "lora" in flags:
        optimizer |= {"lora": {"rank": 8, "alpha": 16}, "lr": 10 * optimizer["lr"]}
    stage = next((int(flag[-1]) for flag in flags if flag.startswith("zero")), 1)
    return settings | {"optimizer": optimizer | {"zero_stage": stage}, "engine": engine}


@contextmanager
def _filled(update: int | None) -> Iterator[None]:
    """Leave nothing of the GPU from this update on, from 1, as another program would."""
    whole, updates, held = TrainingEngine.update, itertools.count(1), []

    def take_all(self: TrainingEngine, *arguments: Any) -> dict[str, float]:
        if next(updates) == update:
            if not torch.cuda.is_available():
                with self._lack_of_room_told(arguments[0]):
                    raise torch.OutOfMemoryError
            self._take_states_back()
            give_back()
            free, _ = torch.cuda.mem_get_info()
            held.append(torch.empty(free - LEFT, dtype=torch.uint8, device="cuda"))
        return whole(self, *arguments)

    TrainingEngine.update = take_all  # type: ignore[method-assign]
    try:
        yield
    finally:
        TrainingEngine.update = whole  # type: ignore[method-assign]


def _sft(figures: Figures, rest: str) -> None:
    """Teach the tiny model what `examples/shop.yaml` begins with, for the cases of `shop`."""
    shop = Path(os.environ["TRUEGOLD_SHOP"])
    section = yaml.safe_load((EXAMPLES / "shop.yaml").read_text())["sft"]
    settings = section | {"data": None, "dialogues": {}, "optimizer": section["optimizer"] | {"dtype": rest}}
    inputs = {"model": shop / "model" / "checkpoint", "data": shop / "sft.jsonl"}
    (shop / "sft").mkdir(exist_ok=True)
    started = time.perf_counter()
    report = sft(inputs, SftConfig.model_validate(settings), shop / "sft", NullProgress())
    figures.write("sft", rest=rest, seconds=round(time.perf_counter() - started, 1), facts=report.facts)


SHOWN = ("step", "pass_rate", "loss", "grad_norm", "lr", "weights_moved", "engine_mismatch", "truncated", "entropy")


def _seeds(figures: Figures, rest: str) -> None:
    """Sample 64 prompts x 8 x 256 tokens. rest: `eager` or `graphs`, with `-v1` for the older model runner."""
    flags = rest.split("-")
    if "v1" in flags:
        os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    size = "0.5b" if torch.cuda.is_available() else "tiny"
    prompts_count, group, output = (64, 8, OUTPUT_TOKENS) if size != "tiny" else (4, 2, 16)
    with _random_checkpoint(size) as folder:
        started = time.perf_counter()
        engine = VllmEngine(folder, _engine_config(enforce_eager="graphs" not in flags, gpu_memory_utilization=0.5))
        figures.write("loaded", rest=rest, seconds=round(time.perf_counter() - started, 1), **_facts_of(engine))
        prompts = [prompt for prompt in _prompts(size, prompts_count) for _ in range(group)]
        sampling = SamplingParams(1.0, 1.0, output)
        seeds = list(range(len(prompts)))
        engine.generate(prompts[:32], sampling, seeds[:32])
        for name, chosen in (("without", [None] * len(prompts)), ("with", seeds), ("with", seeds), ("without", None)):
            with figures.attempt("sampled", rest=rest, seeds=name):
                # Every second prompt's cache would be found again.
                engine.forget_prefixes()
                started = time.perf_counter()
                done = engine.generate(prompts, sampling, chosen or [None] * len(prompts))  # type: ignore[list-item]
                seconds = time.perf_counter() - started
                tokens = sum(len(each.token_ids) for each in done)
                figures.write(
                    "sampled",
                    rest=rest,
                    seeds=name,
                    tokens=tokens,
                    seconds=round(seconds, 2),
                    tokens_per_s=round(tokens / seconds),
                )
        with figures.attempt("same", rest=rest):
            # A seed gives the same tokens beside few requests and beside many.
            alone = engine.generate(prompts[:4], sampling, seeds[:4])
            again = engine.generate(prompts, sampling, seeds)[:4]
            same = [_common(apart.token_ids, among.token_ids) for apart, among in zip(alone, again, strict=True)]
            figures.write("same", rest=rest, common=same, of=[len(each.token_ids) for each in alone])


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Return how many tokens two completions have in common at their start."""
    pairs = zip(first, second, strict=False)
    return next((index for index, (token, other) in enumerate(pairs) if token != other), min(len(first), len(second)))


def _beside(figures: Figures, rest: str) -> None:
    """Put vLLM and the trainer on one GPU, and measure each phase beside what the plan says of it. rest: the size;
    `-zero2` and `-zero3` without what vLLM alone decides."""
    size, _, stage = rest.partition("-zero")
    if not torch.cuda.is_available():
        size = "tiny"
    large = size == "3b"
    optimizer = {"micro_batch_tokens": 4096, "gradient_checkpointing": large, "zero_stage": int(stage or 1)}
    engine = {"gpu_memory_utilization": 0.3, "sleep": True, "max_model_len": 1024, "enforce_eager": bool(stage) or None}
    config = GrpoConfig.model_validate(
        {
            "steps": 2,
            "prompts_per_step": 8,
            "sampling": {"max_tokens": 512},
            "optimizer": optimizer,
            "engine": _engine_config(**engine).model_dump(),
        }
    )
    limit = float(torch.cuda.get_device_properties(0).total_memory) if torch.cuda.is_available() else 85e9
    plan = plan_memory(ModelShape.from_architecture(qwen_config(size)), config, 1, limit)
    figures.write("plan", size=size, lines=list(plan.lines()), rollout=plan.rollout, update=plan.update)
    used = _Used()
    with _random_checkpoint(size) as folder:
        figures.write("used", size=size, moment="start", **used.take())
        started = time.perf_counter()
        sampler = VllmEngine(folder, config.engine, True)
        figures.write("used", size=size, moment="vllm", seconds=round(time.perf_counter() - started, 2), **used.take())
        trainer = make_engine(size, zero_stage=optimizer["zero_stage"])
        trainer._config = trainer._config.model_copy(update=optimizer)
        set_checkpointing(trainer, large)
        if sampler.takes_turns:
            sampler.make_room = trainer.release_states
            trainer.make_room = functools.partial(sampler.sleep, weights_follow=False)
        figures.write("used", size=size, moment="trainer", **used.take())
        probe = Probe(sampler, trainer, config, _prompts(size, 4))
        with figures.attempt("rollout", size=size):
            _wake_and_sync(figures, size, sampler, trainer, used, 0)
            figures.write("probe", size=size, moment="first", **vars(probe.check(0)))
        longest = 1024 if size != "tiny" else 48
        segments = make_segments(size, 4096 // longest, longest // 4, 3 * longest // 4)
        for version in (1, 2):
            with figures.attempt("cycle", size=size, version=version):
                many = [prompt for prompt in _prompts(size, 32) for _ in range(8)]
                started = time.perf_counter()
                done = sampler.generate(many, SamplingParams(1.0, 1.0, 64), list(range(len(many))))
                tokens = sum(len(each.token_ids) for each in done)
                seconds = round(time.perf_counter() - started, 2)
                figures.write("used", size=size, moment="rollout", tokens=tokens, seconds=seconds, **used.take())
                _sleep(figures, size, sampler, used, f"cycle {version}")
                _take_update(figures, size, trainer, segments, used)
                _wake_and_sync(figures, size, sampler, trainer, used, version)
                figures.write("probe", size=size, moment=f"after update {version}", **vars(probe.check(version)))
        if stage:
            return
        for level in (1, 2):
            with figures.attempt("level", size=size, level=level):
                _level(figures, size, sampler, trainer, probe, used, level)
        if size in ("1.5b", "tiny"):
            with figures.attempt("no_room", size=size):
                _sleep(figures, size, sampler, used, "no room")
                _fill_gpu(figures, size, trainer, segments, used)
        with figures.attempt("second_vllm", size=size):
            # What a share says that is not free.
            VllmEngine(folder, _engine_config(gpu_memory_utilization=0.95))


class _Used:
    """Bytes that all processes take of the GPU, and the most since the last look, ten times a second."""

    def __init__(self) -> None:
        self._most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _now(self) -> int:
        if not torch.cuda.is_available():
            return 0
        free, total = torch.cuda.mem_get_info()
        return int(total - free)

    def _watch(self) -> None:
        while True:
            self._most = max(self._most, self._now())
            time.sleep(0.02)

    def take(self) -> dict[str, float]:
        """Return GB taken now, and the most since the last time; of torch's tensors the same."""
        synchronize()
        values = {"used": self._now(), "most": max(self._most, self._now()), "tensors": allocated(), "peak": peak()}
        self._most = 0
        reset_peak()
        return {name: round(value / 1e9, 3) for name, value in values.items()}


def _sleep(figures: Figures, size: str, sampler: VllmEngine, used: _Used, moment: str) -> None:
    started = time.perf_counter()
    sampler.sleep()
    synchronize()
    seconds = round(time.perf_counter() - started, 3)
    figures.write("used", size=size, moment=f"asleep, {moment}", seconds=seconds, **used.take())


def _wake_and_sync(
    figures: Figures, size: str, sampler: VllmEngine, trainer: TrainingEngine, used: _Used, version: int
) -> None:
    """Hand weights over as a training does: the optimizer's states leave, and vLLM wakes."""
    started = time.perf_counter()
    sampler.update_weights(trainer.named_tensors(), version)
    synchronize()
    seconds = round(time.perf_counter() - started, 3)
    figures.write("used", size=size, moment=f"synced {version}", seconds=seconds, **used.take())


def _take_update(
    figures: Figures, size: str, trainer: TrainingEngine, segments: list[Any], used: _Used
) -> dict[str, float]:
    started = time.perf_counter()
    metrics = trainer.update(segments, step_loss(segments), 0, 10)
    synchronize()
    seconds = round(time.perf_counter() - started, 2)
    figures.write("used", size=size, moment="update", seconds=seconds, loss=metrics["loss"], **used.take())
    give_back()
    return metrics


def _level(
    figures: Figures, size: str, sampler: VllmEngine, trainer: TrainingEngine, probe: Probe, used: _Used, level: int
) -> None:
    """Let vLLM sleep at one level by its own calls, and compare what it samples with afterwards."""
    if sampler.takes_turns:
        trainer.release_states()
        give_back()
    before = used.take()["used"]
    started = time.perf_counter()
    sampler.llm.sleep(level=level)
    slept = time.perf_counter()
    asleep = used.take()["used"]
    started_again = time.perf_counter()
    sampler.llm.wake_up(tags=["weights"])
    weights = time.perf_counter()
    sampler.update_weights(trainer.named_tensors(), 10 + level)
    synchronize()
    synced = time.perf_counter()
    sampler.llm.wake_up(tags=["kv_cache"])
    synchronize()
    cache = time.perf_counter()
    sampler.forget_prefixes()
    distance = probe.check(10 + level)
    figures.write(
        "level",
        size=size,
        level=level,
        freed=round(before - asleep, 3),
        sleep_s=round(slept - started, 3),
        wake_weights_s=round(weights - started_again, 3),
        sync_s=round(synced - weights, 3),
        wake_cache_s=round(cache - synced, 3),
        mean_abs=distance.mean_abs,
        **used.take(),
    )


def _fill_gpu(figures: Figures, size: str, trainer: TrainingEngine, segments: list[Any], used: _Used) -> None:
    """Ask for an update that no GPU has room for: a line, a smaller micro-batch at the next start, and no damage."""
    before = torch.cat(trainer.logprobs(segments[:2]))
    many = 64 if size == "1.5b" else 4
    large = [segment for segment in segments for _ in range(many)]
    with tempfile.TemporaryDirectory() as folder:
        trainer._folder = Path(folder)
        whole = sum(segment.length for segment in large)
        trainer._config = trainer._config.model_copy(update={"micro_batch_tokens": whole})
        try:
            trainer.update(large, step_loss(large), 1, 10)
            figures.write("no_room", size=size, said="it fits")
        except NoRoomError as error:
            figures.write("no_room", size=size, said=str(error), advice=getattr(error, "fix", None), tokens=whole)
        noted = Path(folder) / "micro_batch.json"
        figures.write("no_room_noted", size=size, noted=noted.read_text() if noted.exists() else None, **used.take())
        give_back()
        figures.write("used", size=size, moment="after a full GPU", **used.take())
        after = torch.cat(trainer.logprobs(segments[:2]))
        trainer._config = trainer._config.model_copy(update={"micro_batch_tokens": 4096})
        figures.write("no_room_weights", size=size, same=bool(torch.equal(before, after)))
        _take_update(figures, size, trainer, segments, used)


@dataclass
class _Head:
    """What goes into an output head, and how its loss is computed."""

    hidden: torch.Tensor
    targets: torch.Tensor
    linear: torch.nn.Linear
    advantages: torch.Tensor
    ones: torch.Tensor

    def logprobs(self, states: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities as the trainer computes them, a chunk at a time."""
        from torch.utils.checkpoint import checkpoint

        from truegold.train.model.policy import LOGIT_CHUNK, _token_logprobs

        step = max(1, LOGIT_CHUNK[states.device.type] // self.linear.out_features)
        flat, chosen = states.reshape(-1, self.linear.in_features), self.targets.reshape(-1)
        temperature = torch.ones(len(flat), device=states.device)
        chunks = [slice(start, start + step) for start in range(0, len(flat), step)]
        pieces = [
            checkpoint(
                _token_logprobs, self.linear, flat[chunk], chosen[chunk], temperature[chunk], use_reentrant=False
            )[0]
            for chunk in chunks
        ]
        return torch.cat(pieces).reshape(self.targets.shape)

    def cross_entropy(self, states: torch.Tensor) -> torch.Tensor:
        """Return the sum over tokens."""
        return -self.logprobs(states).sum()

    def grpo(self, states: torch.Tensor) -> torch.Tensor:
        """Return GRPO's loss of a first update."""
        logprobs = self.logprobs(states)
        ratio = torch.exp(logprobs - logprobs.detach())
        gain = torch.min(ratio * self.advantages[:, None], ratio.clamp(0.8, 1.2) * self.advantages[:, None])
        return -gain.sum() / self.ones.sum()

    def ways(self) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
        """Return all ways to a loss, by name."""
        from liger_kernel.chunked_loss import LigerFusedLinearGRPOLoss
        from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

        width, weight = self.linear.in_features, self.linear.weight
        cross_entropy = LigerFusedLinearCrossEntropyLoss(reduction="sum")
        fused, compiled = (
            LigerFusedLinearGRPOLoss(beta=0.0, use_ref_model=False, loss_type="dapo", compiled=is_compiled)
            for is_compiled in (False, True)
        )
        return {
            "cross entropy, ours": self.cross_entropy,
            "cross entropy, Liger": lambda states: cross_entropy(
                weight, states.reshape(-1, width), self.targets.reshape(-1)
            ),
            "GRPO, ours": self.grpo,
            "GRPO, Liger": lambda states: fused(states, weight, self.targets, self.ones, self.advantages)[0],
            "GRPO, Liger, compiled": lambda states: compiled(states, weight, self.targets, self.ones, self.advantages)[
                0
            ],
        }


def _loss(figures: Figures, size: str) -> None:
    """Time the way from hidden states to a loss and back: our chunks, and Liger's fused functions."""
    shape = QWEN[size if torch.cuda.is_available() else "tiny"]
    vocabulary, width = int(shape["vocabulary"]), int(shape["hidden"])
    rows, length = (8, 768) if torch.cuda.is_available() else (2, 16)
    generator = torch.Generator().manual_seed(0)
    linear = torch.nn.Linear(width, vocabulary, bias=False, device=device(), dtype=torch.bfloat16)
    with torch.no_grad():
        linear.weight.normal_(0.0, 0.02)
    head = _Head(
        hidden=torch.randn(rows, length, width, generator=generator).to(device(), torch.bfloat16),
        targets=torch.randint(vocabulary, (rows, length), generator=generator).to(device()),
        linear=linear,
        advantages=torch.tensor([1.0, -1.0] * (rows // 2), device=device()),
        ones=torch.ones(rows, length, device=device()),
    )
    gradients: dict[str, torch.Tensor] = {}
    for name, way in head.ways().items():
        with figures.attempt("loss", size=size, way=name):
            seconds = []
            for _ in range(5):
                linear.weight.grad = None
                states = head.hidden.clone().requires_grad_()
                give_back()
                reset_peak()
                synchronize()
                held, started = allocated(), time.perf_counter()
                loss = way(states)
                loss.backward()
                synchronize()
                seconds.append(time.perf_counter() - started)
            assert linear.weight.grad is not None
            first = gradients.setdefault(name.split(",")[0], linear.weight.grad.float())
            apart = float((linear.weight.grad.float() - first).norm() / first.norm())
            figures.write(
                "loss",
                size=size,
                way=name,
                value=float(loss.detach()),
                microseconds_a_token=round(sorted(seconds)[2] / rows / length * 1e6, 2),
                peak_gb=round((peak() - held) / 1e9, 3),
                gradient_apart=apart,
            )


CASES = {"train": _train, "sft": _sft, "seeds": _seeds, "beside": _beside, "loss": _loss}


def _engine_config(**settings: Any) -> VllmEngineConfig:
    """Return vLLM's settings; on a CPU those that it takes there."""
    settings = {"dtype": "bfloat16", "max_model_len": 1024, "max_num_seqs": 512} | settings
    if not torch.cuda.is_available():
        settings |= {"dtype": "float32", "max_model_len": 128, "cpu_kv_cache_gib": 1}
        settings.pop("sleep", None)
    return VllmEngineConfig.model_validate(settings)


@contextmanager
def _random_checkpoint(size: str) -> Iterator[Path]:
    """Yield a folder with the configuration of a Qwen2.5 and a tokenizer; vLLM makes weights of its own."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        _make_checkpoint(folder)
        (folder / "model.safetensors").unlink()
        config = qwen_config(size)
        config.architectures = ["Qwen2ForCausalLM"]
        config.dtype = "bfloat16"
        config.save_pretrained(str(folder))
        vllm.LLM = functools.partial(LLM, load_format="dummy")
        try:
            yield folder
        finally:
            vllm.LLM = LLM


def _prompts(size: str, count: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    length = PROMPT_TOKENS if size != "tiny" else 20
    return [
        torch.randint(3, int(QWEN[size]["vocabulary"]), (length,), generator=generator).tolist() for _ in range(count)
    ]


def _facts_of(engine: VllmEngine) -> dict[str, Any]:
    """Return what vLLM has chosen: the model runner, the attention, the cache."""
    facts: dict[str, Any] = {}
    try:
        config = engine.llm.llm_engine.vllm_config
        facts["version"] = vllm.__version__
        facts["v2_runner"] = getattr(config, "use_v2_model_runner", None)
        facts["cache_blocks"] = config.cache_config.num_gpu_blocks
        facts["block_size"] = config.cache_config.block_size
        core = engine.llm.llm_engine.engine_core.engine_core
        runner = core.model_executor.driver_worker.worker.model_runner
        facts["runner"] = f"{type(runner).__module__}.{type(runner).__name__}"
        facts["attention"] = str(
            {type(layer.impl).__name__ for layer in runner.model.modules() if getattr(layer, "impl", None) is not None}
        )
    except Exception as error:
        facts["unknown"] = f"{type(error).__name__}: {error}"[:300]
    return facts

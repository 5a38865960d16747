"""Estimate of the memory of a training before it starts: GB on each GPU by phase, and GB on the disk.

    loading   4.1 GB of 80.0: weights 3.09, CUDA 1.00
    rollout   68.8 GB of 80.0: weights 3.09, gradients 6.17, optimizer 18.52, CUDA 1.00, vLLM 40.00
    update    76.6 GB of 80.0: the same as in rollout, plus activations 5.94, logits 1.80

The sizes of weights, gradients and optimizer states are exact; tests count them in processes on the CPU. The sizes of
activations, logits and DeepSpeed's buckets were fitted on one GPU, and are within 10 % of the measurements in
benchmarks/results/gpu_training.md. Sizes for several GPUs and for vLLM are estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.models import LoraConfig, ModelConfig, OptimizerConfig
from truegold.train.guards.watch import SETTLED
from truegold.train.model.checkpoints import architecture_of
from truegold.train.model.machine_checks import count_ranks
from truegold.verifiers import ConfigError

GB = 1e9
"""The number of bytes of a GB."""
WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}
"""The number of bytes of a number, by dtype."""
MASTER, MOMENTS, GRADIENT_SUMS = 4, 8, 4
"""Bytes per trained parameter: MASTER for AdamW's float32 copy of the weight, MOMENTS for its two moments, and
GRADIENT_SUMS for the sum of its gradients."""
ACTIVATIONS = (10.4, 4.0)
"""Activations of a layer for each token: 10.4 numbers per unit of the hidden size, and 4 per unit of the MLP's width.
Fitted on models of 0.5 and 1.5 billion parameters."""
FLOAT32_ACTIVATIONS = 1.5
"""In float32, attention keeps more activations: their size is multiplied by this factor."""
KEPT_LAYERS = 4
"""With gradient checkpointing, each token keeps one hidden state for each layer, and this number of further ones."""
RECOMPUTED = 1.54
"""With gradient checkpointing, the activations of this number of layers exist at one time in the backward pass."""
HEAD_COPIES = {"bfloat16": 3, "float32": 1}
"""The number of tensors of the size of the output head's weights in the backward pass: gradients and their sums."""
LOGITS = 8192 * 8192 * 4 * 1.5
"""Bytes of all logits that exist at one time."""
ZERO2_BUCKETS, ZERO2_SMALL_BUCKETS = 5.0 * GB, 2.0 * GB
"""DeepSpeed's buffers in the backward pass at ZeRO 2. The small ones are for gradient checkpointing."""
ZERO3_BUCKETS, ZERO3_STEP, ZERO3_GATHERED = 0.2 * GB, 4.0 * GB, 2.0 * GB
"""DeepSpeed's buffers at ZeRO 3: ZERO3_BUCKETS always, ZERO3_STEP during an optimizer step, ZERO3_GATHERED for weights
gathered from other ranks."""
CUDA = 1.0 * GB
"""Memory of the driver and the libraries, and memory that the allocator cannot use."""
VLLM_OVERHEAD, GRAPHS = 1.5 * GB, 1.0 * GB
"""Memory of vLLM besides weights and cache: VLLM_OVERHEAD for a forward pass over prompts, GRAPHS for CUDA graphs."""
AT_A_TIME = 16
"""A proposed setting leaves room for at least this number of sequences in vLLM's cache. With fewer, decoding is
slow."""
ASLEEP = 0.5 * GB
"""Memory that a sleeping vLLM keeps."""
OPTIMIZERS = 2
"""The number of checkpoints with optimizer state on the disk at one time: the newest and the one being written."""
COMPLETION, COMPLETION_TOKEN = 160.0, 8.2
"""Bytes in completions/ of a completion and of each of its tokens, measured on English prose."""


ROLLOUTS = "rollouts"
"""The name of the size of completions/ in the plan of the disk."""


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a model that memory depends on."""

    parameters: int
    """The number of weights."""
    head: int
    """The number of weights of the output head."""
    adapted: int
    """The sum of the input and output sizes of all linear layers except the head. LoRA of rank r trains r times this
    number of parameters."""
    hidden: int
    inner: int
    """The width of a feed-forward layer. With experts, the sum of the widths of a token's experts."""
    layers: int
    cached: int
    """The number of values in the key-value cache for each token."""
    dtype: str = "bfloat16"
    """The dtype of the checkpoint."""

    @classmethod
    def from_architecture(cls, config: Any) -> ModelShape:
        """Return the sizes for a transformers configuration, without creating weights."""
        import torch
        from transformers import AutoModelForCausalLM

        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        head = model.get_output_embeddings()
        linear = [each for each in model.modules() if isinstance(each, torch.nn.Linear) and each is not head]
        text = config.get_text_config()
        heads = text.num_attention_heads
        size = getattr(text, "head_dim", None) or text.hidden_size // heads
        experts = getattr(text, "num_experts_per_tok", None) or 1
        whole = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
        inner = (getattr(text, "moe_intermediate_size", None) if experts > 1 else None) or whole
        return cls(
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            head=head.weight.numel(),
            adapted=sum(layer.in_features + layer.out_features for layer in linear),
            hidden=text.hidden_size,
            inner=experts * inner,
            layers=text.num_hidden_layers,
            cached=2 * text.num_hidden_layers * (getattr(text, "num_key_value_heads", None) or heads) * size,
            dtype=str(getattr(config, "dtype", None) or "bfloat16").removeprefix("torch."),
        )

    def trained(self, lora: LoraConfig | None) -> int:
        """Return the number of trained parameters."""
        return self.parameters if lora is None else lora.rank * self.adapted


Parts = dict[str, float]
"""Bytes by purpose, such as `weights` or `optimizer`."""


def standing(shape: ModelShape, config: OptimizerConfig, ranks: int) -> Parts:
    """Return the memory of a trainer between two steps, in bytes on each GPU."""
    width, trained = WIDTHS[config.dtype], shape.trained(config.lora)
    total = shape.parameters + (trained if config.lora is not None else 0)
    stage = _stage(config, ranks)
    share = trained / (ranks if stage else 1)
    weights = width * total / (ranks if stage == 3 else 1)
    keeps_sums = (stage == 3 and not config.offload) or (stage == 1 and config.dtype == "bfloat16")
    sums = GRADIENT_SUMS * keeps_sums * (share if stage == 3 else trained)
    # Plain AdamW in float32 has no separate copy of the weights.
    states = (MOMENTS + (MASTER if stage else 0)) * share
    return {
        "weights": weights,
        "gradients": sums,
        "optimizer": 0.0 if config.offload else states,
        "buckets": ZERO3_BUCKETS if stage == 3 else 0.0,
    }


def updating(shape: ModelShape, config: OptimizerConfig, ranks: int, longest: int) -> Parts:
    """Return the peak memory of a trainer during an update, in bytes on each GPU. longest: the longest sequence in
    tokens."""
    width, trained, stage = WIDTHS[config.dtype], shape.trained(config.lora), _stage(config, ranks)
    parts = standing(shape, config, ranks)
    tokens = max(config.micro_batch_tokens, longest)
    layer = width * tokens * (ACTIVATIONS[0] * shape.hidden + ACTIVATIONS[1] * shape.inner)
    layer *= FLOAT32_ACTIVATIONS if config.dtype == "float32" else 1.0
    head = LOGITS + (0.0 if config.lora is not None else HEAD_COPIES[config.dtype] * width * shape.head)
    recomputed, held = 0.0, shape.layers * layer
    if config.gradient_checkpointing:
        recomputed, held = RECOMPUTED * layer, width * tokens * shape.hidden * (shape.layers + KEPT_LAYERS)
    # Logits are freed before layers are recomputed. So only the larger of both counts.
    parts |= {"activations": held, "logits": max(head, recomputed)}
    above = held + parts["logits"]
    if config.dtype == "float32" and stage != 3:
        # A rank has all gradients until they are reduced. Then it also has its share of the sums.
        parts["gradients"] = GRADIENT_SUMS * trained * (1 + (1 / ranks if stage else 0))
    elif stage == 2:
        parts["gradients"] = GRADIENT_SUMS * trained / ranks
        buckets = ZERO2_SMALL_BUCKETS if config.gradient_checkpointing else ZERO2_BUCKETS
        parts["buckets"] = max(0.0, min(buckets, 10 * trained) - above)
    elif stage == 3:
        gathered = min(ZERO3_GATHERED, width * shape.parameters) + width * shape.head if ranks > 1 else 0.0
        in_step = min(ZERO3_STEP, MASTER * trained / ranks) * (2 if config.offload else 1)
        parts["buckets"] += gathered + max(0.0, in_step - above)
    return parts


def _stage(config: OptimizerConfig, ranks: int) -> int:
    """Return the ZeRO stage that DeepSpeed runs with (`distributed.deepspeed_config`)."""
    from truegold.train.model.distributed import deepspeed_config

    stage: int = deepspeed_config(config, ranks)["zero_optimization"]["stage"]
    return stage


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one training process: on its GPU, or in the machine if it has no GPU."""

    loading: Parts
    """Bytes while the model is loaded: all of it, or the rank's share at ZeRO 3."""
    rollout: Parts
    """Bytes on a GPU while vLLM samples."""
    update: Parts
    """Peak bytes during an update."""
    host: float
    """Bytes of host memory for optimizer states, with `offload` or while vLLM samples."""
    cache_tokens: int
    """The number of tokens that fit into vLLM's cache."""
    longest: int
    """The longest sequence in tokens, which must fit into vLLM's cache."""
    limit: float | None
    """The memory of a GPU in bytes, or None without a GPU."""
    disk: Parts
    """Peak bytes on the disk."""

    @property
    def fits(self) -> bool:
        """Whether all phases fit, and vLLM's cache holds one sequence."""
        most = max(sum(parts.values()) for parts in (self.loading, self.rollout, self.update))
        return (self.limit is None or most <= self.limit) and self.cache_tokens >= self.longest

    def lines(self) -> Iterator[str]:
        """Yield a line for each phase and for the disk."""
        limit = "" if self.limit is None else f" of {self.limit / GB:.1f}"
        for name, parts in (("loading", self.loading), ("rollout", self.rollout), ("update", self.update)):
            yield f"{name:<9} {sum(parts.values()) / GB:.1f} GB{limit}: {_listed(parts)}"
        if self.rollout.get("vLLM"):
            yield f"cache     {max(0, self.cache_tokens):,} tokens, one sequence has up to {self.longest:,}"
        if self.host:
            yield f"host      {self.host / GB:.1f} GB of host memory per rank for optimizer states"
        yield f"disk      up to {sum(self.disk.values()) / GB:.1f} GB: {_listed(self.disk)}"


def _listed(parts: Parts) -> str:
    """Return the parts in GB as a text: "weights 3.09, CUDA 1.00"."""
    return ", ".join(f"{part} {size / GB:.2f}" for part, size in parts.items() if size >= GB / 200)


def plan_disk(shape: ModelShape, config: GrpoConfig) -> Parts:
    """Return the peak size in bytes of a training on the disk, by part.

    The peak is reached while the last checkpoint with an optimizer state is written. The disk then has this checkpoint,
    the one before, and the weights of all older checkpoints that are kept (`guards.watch.kept_checkpoints`,
    `save_every`).
    """
    optimizer, width = config.optimizer, WIDTHS[config.optimizer.dtype]
    trained, weights = shape.trained(optimizer.lora), WIDTHS[config.optimizer.dtype] * shape.parameters
    states = trained * (MOMENTS + (MASTER if optimizer.dtype == "bfloat16" else 0))
    returns = 3 + (config.checkpoint_every < SETTLED) + (config.evaluation.every > 0)
    saved = config.steps // config.save_every if config.save_every else 0
    if config.save_total_limit is not None:
        saved = min(saved, config.save_total_limit + 1)
    longest = config.engine.max_model_len if isinstance(config.engine, VllmEngineConfig) else 0
    sampled = config.steps * config.prompts_per_step * config.group_size * (2 + (config.sampling.refills or 0))
    return {
        "optimizer": OPTIMIZERS * (states + weights) if optimizer.lora is None else 0.0,
        "kept checkpoints": returns * (weights if optimizer.lora is None else states + width * trained),
        "weights of save_every": saved * weights,
        "exported weights": weights,
        ROLLOUTS: sampled * (COMPLETION + COMPLETION_TOKEN * (config.sampling.max_tokens or longest)),
    }


def plan_memory(shape: ModelShape, config: GrpoConfig, ranks: int, limit: float | None) -> MemoryPlan:
    """Return the memory plan of a training. limit: the memory of each GPU in bytes, or None on a CPU."""
    optimizer, engine = config.optimizer, config.engine
    longest = engine.max_model_len if isinstance(engine, VllmEngineConfig) else config.sampling.max_tokens or 0
    resting, busy = standing(shape, optimizer, ranks), updating(shape, optimizer, ranks, longest)
    fixed: Parts = {"CUDA": CUDA} if limit is not None else {}
    whole = WIDTHS[optimizer.dtype] * shape.parameters
    share_loaded = whole / (ranks if _stage(optimizer, ranks) == 3 else 1)
    if config.objective.kl.weight:
        fixed["reference"] = share_loaded
    share, cache_tokens = _vllm(shape, engine, limit) if isinstance(engine, VllmEngineConfig) else (0.0, longest)
    beside = config.asynchronous
    if beside is not None:
        elsewhere = beside.devices or (isinstance(engine, VllmEngineConfig) and engine.data_parallel_size > 1)
        share *= 0 if elsewhere else beside.samplers
    is_shared = limit is not None and isinstance(engine, VllmEngineConfig) and beside is None
    takes_turns = is_shared and isinstance(engine, VllmEngineConfig) and engine.sleeps(beside_trainer=True)
    awake_always = beside is not None or (is_shared and not takes_turns)
    vllm_asleep = {"vLLM": ASLEEP} if takes_turns else {}
    states = (MASTER + MOMENTS if optimizer.dtype == "bfloat16" else MOMENTS) * shape.trained(optimizer.lora)
    host = states / ranks if optimizer.offload else resting["optimizer"] * takes_turns
    if takes_turns:
        # While vLLM samples, sums of gradients are dropped, and optimizer states are in host memory.
        resting |= {"gradients": 0.0, "optimizer": 0.0, "buckets": 0.0}
    return MemoryPlan(
        loading={"weights": share_loaded} | fixed | vllm_asleep,
        host=host,
        rollout=resting | fixed | {"vLLM": share},
        update=busy | fixed | ({"vLLM": share} if awake_always else vllm_asleep),
        cache_tokens=cache_tokens,
        longest=longest,
        limit=limit,
        disk=plan_disk(shape, config),
    )


def _vllm(shape: ModelShape, engine: VllmEngineConfig, limit: float | None) -> tuple[float, int]:
    """Return the memory of vLLM in bytes, and the number of tokens that fit into its cache."""
    width = WIDTHS.get(shape.dtype if engine.dtype == "auto" else engine.dtype, 2)
    weights = width * shape.parameters
    if limit is None:
        cache = engine.cpu_kv_cache_gib * 2.0**30
        return weights + cache, int(cache / (width * shape.cached))
    share = engine.gpu_memory_utilization * limit
    cache = share - weights - VLLM_OVERHEAD - (0.0 if engine.enforce_eager else GRAPHS)
    return share, math.floor(cache / (width * shape.cached))


Change = tuple[str, Any, float]
"""A change of one setting: the setting, its new value, and the cost."""


def nearest(shape: ModelShape, config: GrpoConfig, ranks: int, limit: float, most_ranks: int) -> dict[str, Any] | None:
    """Return the cheapest change of settings with which a training fits, or None if there is none.

    limit: the memory of each GPU in bytes. most_ranks: the number of GPUs. The result has the changed settings by path:
    {"optimizer.zero_stage": 2}.
    """
    ways = [tuple(group) for group in _changes(config, ranks, most_ranks)]
    for changed in sorted(product(*ways), key=lambda each: sum(cost for _, _, cost in each)):
        settings = {name: value for name, value, cost in changed if cost}
        if settings.get("optimizer.offload") and settings.get("optimizer.zero_stage", config.optimizer.zero_stage) < 2:
            continue
        varied = with_settings(config, settings)
        plan = plan_memory(shape, varied, settings.get("launch.ranks", ranks), limit)
        is_fast = not isinstance(config.engine, VllmEngineConfig) or plan.cache_tokens >= AT_A_TIME * plan.longest
        if plan.fits and is_fast:
            return settings
    return None


def with_settings(config: GrpoConfig, settings: Mapping[str, Any]) -> GrpoConfig:
    """Return the configuration with changed settings. settings: values by path, such as `optimizer.zero_stage`."""
    for path, value in settings.items():
        section, _, name = path.rpartition(".")
        changed = {section: getattr(config, section).model_copy(update={name: value})} if section else {name: value}
        config = config.model_copy(update=changed)
    return config


def _changes(config: GrpoConfig, ranks: int, most_ranks: int) -> Iterator[list[Change]]:
    """Yield a list for each setting: the current value, with cost 0, and other values with their costs."""
    optimizer, engine = config.optimizer, config.engine
    if isinstance(engine, VllmEngineConfig):
        used = engine.gpu_memory_utilization
        shares = [share / 20 for share in range(19, 1, -1) if share / 20 != used]
        yield [("engine.gpu_memory_utilization", used, 0.0)] + [
            ("engine.gpu_memory_utilization", share, 1.0 + abs(share - used) / 10) for share in shares
        ]
        if config.asynchronous is None:
            is_awake = not engine.sleeps(beside_trainer=True)
            yield [("engine.sleep", engine.sleep, 0.0)] + [("engine.sleep", True, 1.1)] * is_awake
    longest = engine.max_model_len if isinstance(engine, VllmEngineConfig) else 1
    smaller: list[Change] = []
    tokens = optimizer.micro_batch_tokens
    while tokens > longest:
        tokens = max(tokens // 2, longest)
        smaller.append(("optimizer.micro_batch_tokens", tokens, 0.8 + 0.2 * len(smaller)))
    yield [("optimizer.micro_batch_tokens", optimizer.micro_batch_tokens, 0.0), *smaller]
    checkpointing = optimizer.gradient_checkpointing
    again = [("optimizer.gradient_checkpointing", True, 1.5)] * (not checkpointing)
    yield [("optimizer.gradient_checkpointing", checkpointing, 0.0), *again]
    stages = [("optimizer.zero_stage", stage, 1.0 + stage / 2) for stage in (2, 3) if stage > optimizer.zero_stage]
    yield [("optimizer.zero_stage", optimizer.zero_stage, 0.0), *stages]
    yield [("optimizer.offload", optimizer.offload, 0.0)] + [("optimizer.offload", True, 4.0)] * (not optimizer.offload)
    if config.launch.hostfile is None:
        more = [count for count in (2, 4, 8) if ranks < count <= min(most_ranks, config.prompts_per_step)]
        yield [("launch.ranks", ranks, 0.0)] + [("launch.ranks", count, 2.0 + count / 4) for count in more]
    adapters = [("optimizer.lora", LoraConfig(), 8.0)] * (optimizer.lora is None)
    yield [("optimizer.lora", optimizer.lora, 0.0), *adapters]


def memory_lines(
    config: GrpoConfig, model: ModelConfig, sizes: Sequence[float], free: float | None = None
) -> list[str]:
    """Return the memory plan of a training as lines of text.

    sizes: the memory in GB of each GPU of this machine. free: the free bytes of the disk, if known. Raises ConfigError
    if the training does not fit; the error names the cheapest change of settings with which it fits.
    """
    architecture = architecture_of(model)
    if architecture is None:
        return ["memory    unknown until the model is downloaded"]
    shape, ranks = ModelShape.from_architecture(architecture), count_ranks(config.launch)
    size = config.launch.gpu_gb or min(sizes, default=None)
    plan = plan_memory(shape, config, ranks, size and size * GB)
    if size is not None and not plan.fits:
        most = len(sizes) if config.launch.gpu_gb is None else 8
        changes = nearest(shape, config, ranks, size * GB, most)
        raise ConfigError(
            "train does not fit into memory. Estimate:\n  " + "\n  ".join(plan.lines()), _advice(changes, size, most)
        )
    if free is not None:
        check_disk(shape, config, free)
    where = "each CPU process" if size is None else "each GPU"
    counted = f"{where} ({ranks} in all), {shape.parameters / GB:.2f} B parameters"
    return [f"memory    estimate for {counted}", *plan.lines()]


def check_disk(shape: ModelShape, config: GrpoConfig, free: float) -> None:
    """Raise ConfigError if the checkpoints of a training need more than `free` bytes of disk.

    The error names a change of settings with which they fit. Rollouts are not counted, because their length is unknown.
    """

    def needed(varied: GrpoConfig) -> Parts:
        return {part: size for part, size in plan_disk(shape, varied).items() if part != ROLLOUTS}

    parts = needed(config)
    if sum(parts.values()) <= free:
        return
    most = config.steps // config.save_every if config.save_every else 0
    ways: list[dict[str, Any]] = [{"save_total_limit": limit} for limit in range(most - 1, 0, -1)]
    ways += [{"save_every": 0}] * (most > 0) + [{"optimizer.lora": LoraConfig()}] * (config.optimizer.lora is None)
    fitting = next((way for way in ways if sum(needed(with_settings(config, way)).values()) <= free), None)
    raise ConfigError(
        f"The disk has {free / GB:.1f} GB for checkpoints, but train needs up to {sum(parts.values()) / GB:.1f} GB: "
        f"{_listed(parts)}.",
        f"Free some space, or choose another disk: --set runs_dir=DIR. {_nearest_in_words(fitting)}",
    )


def _nearest_in_words(changes: Mapping[str, Any] | None) -> str:
    """Return a sentence with the command-line options for a change of settings."""
    if changes is None:
        return "No setting makes it fit."
    written = {**changes, "optimizer.lora": "{}"} if "optimizer.lora" in changes else changes
    return "The nearest that fits: " + " ".join(f"--set train.{name}={_yaml(value)}" for name, value in written.items())


def _advice(changes: Mapping[str, Any] | None, size: float, gpus: int) -> str:
    """Return the advice for a training that does not fit on `gpus` GPUs of `size` GB."""
    if changes is None:
        count = f"{gpus} GPU{'' if gpus == 1 else 's'} of {size:.0f} GB"
        return f"No change of settings makes it fit {count}: use more or larger GPUs, or a vLLM server."
    return _nearest_in_words(changes)


def _yaml(value: Any) -> str:
    """Return a value as written in YAML: True -> true."""
    return str(value).lower() if isinstance(value, bool) else str(value)

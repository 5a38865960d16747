"""The configuration of RL: the objective, what it is fed, how it samples, and what it is judged by."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PositiveFloat, Tag, field_validator, model_validator

from truegold.pipeline.config.base import StageConfig, by_type
from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.running.launch import LaunchConfig
from truegold.train.config.models import OptimizerConfig, Tracker
from truegold.train.config.objective import ObjectiveConfig
from truegold.verifiers import Term
from truegold.verifiers.reward import problems

RolloutEngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")] | Annotated[ServerEngineConfig, Tag("server")], by_type("vllm")
]

NEUTRAL: dict[str, float] = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling settings that would bias the importance ratio, with the values at which they do nothing."""


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


class TemperatureSchedule(StageConfig):
    """From `start` in a line to `end` over the first `steps` steps."""

    start: float = Field(gt=0)
    end: float = Field(gt=0)
    steps: int = Field(ge=1)


class TemperatureBand(StageConfig):
    """Another temperature for problems that the profile found hard: more attempts that differ."""

    pass_rate_below: float = Field(gt=0, le=1)
    temperature: float = Field(gt=0)


class GrpoConfig(ObjectiveConfig):
    """RL with verifiable rewards: groups of completions of one prompt, compared with each other."""

    steps: int = Field(default=100, ge=1)
    prompts_per_step: int = Field(default=32, ge=1)
    group_size: int = Field(default=8, ge=2)
    max_tokens: int | None = Field(default=None, ge=1)
    """The longest completion. Left out: 1.25 times the 99.5 % quantile of the profile's right completions."""
    temperature: PositiveFloat | TemperatureSchedule = 1.0
    """Rollout temperature; each completion keeps its own, and the trainer's log-probabilities are at the same. top_p is
    1: anything else would bias the importance ratio."""
    temperature_bands: tuple[TemperatureBand, ...] = ()
    """The lowest bound that fits counts."""
    refills: int = Field(default=0, ge=0)
    """Rounds of further rollouts, from the reserve, in place of groups without advantages, such as those that are all
    right or all wrong (DAPO's dynamic sampling)."""
    right_share: tuple[float, float] | None = None
    """Bounds for the share of right completions in a training batch. Groups are chosen from what `refills` bring in,
    rewards never changed."""
    reward: tuple[RewardTerm, ...] = (RewardTerm(name="correct"),)
    """The terms of the reward. Exactly one of them leaves `verifier` out: it is what pass rates are measured by."""
    reward_clip: tuple[float, float] | None = None
    """The lowest and the highest value of the sum of the terms."""
    workers: int = Field(default=1, ge=0)
    """Processes that judge completions, for each rank; 0 for one a core. One will do for mathematics, programs want
    more."""
    chat: ChatConfig = ChatConfig()
    engine: RolloutEngineConfig = VllmEngineConfig()
    """vLLM in this process, or a server that takes weights (`weights_dir`)."""
    optimizer: OptimizerConfig = OptimizerConfig()
    launch: LaunchConfig = LaunchConfig()
    trackers: tuple[Tracker, ...] = ()
    """Where metrics go besides metrics.jsonl and TensorBoard."""
    eval_every: int = Field(default=0, ge=0)
    """Steps between evaluations on the held-out rows; 0: none."""
    eval_samples: int = Field(default=4, ge=1)
    eval_problems: int = Field(default=256, ge=1)
    eval_temperature: float | None = Field(default=None, ge=0)
    eval_top_p: float | None = Field(default=None, gt=0, le=1)
    eval_top_k: int | None = Field(default=None, ge=0)
    """How the held-out rows are sampled. Left out: as the checkpoint's generation_config.json says, else plainly at
    temperature 1."""
    checkpoint_every: int = Field(default=20, ge=1)
    probe_prompts: int = Field(default=4, ge=1)
    probe_tokens: int = Field(default=16, ge=1)
    """After each weight sync so many prompts are continued by so many tokens, to compare the two engines."""
    seed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _rollouts_are_the_policy(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        wrong = sorted(name for name, neutral in NEUTRAL.items() if values.get(name, neutral) not in (neutral, None))
        if wrong:
            raise ValueError(
                f"{', '.join(wrong)} must stay away: rollouts have to be sampled from the policy itself, or the "
                "importance ratio is biased. Evaluation has eval_temperature, eval_top_p and eval_top_k"
            )
        return {name: value for name, value in values.items() if name not in NEUTRAL}

    @model_validator(mode="after")
    def _minibatches_have_groups(self) -> GrpoConfig:
        if self.minibatches > self.prompts_per_step:
            raise ValueError(
                f"minibatches ({self.minibatches}) must not exceed prompts_per_step ({self.prompts_per_step})"
            )
        return self

    @model_validator(mode="after")
    def _groups_can_teach(self) -> GrpoConfig:
        if self.right_share is not None and not self.refills:
            raise ValueError("right_share chooses among the groups that refills bring in: set refills to 1 or more")
        most = self.group_size - ("pass_at_k_chen" in self.advantages)
        if any(kind.startswith("pass_at_k") for kind in self.advantages) and self.pass_at_k > most:
            raise ValueError(
                f"pass_at_k ({self.pass_at_k}) must be at most {most} in groups of {self.group_size}: pass_at_k_chen "
                "compares subsets of k, pass_at_k_walder needs k samples"
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

    @field_validator("reward_clip", "right_share")
    @classmethod
    def _is_a_range(cls, given: tuple[float, float] | None) -> tuple[float, float] | None:
        if given is not None and not given[0] < given[1]:
            raise ValueError("must be [lowest, highest]")
        return given

    @property
    def terms(self) -> tuple[Term, ...]:
        """The reward's terms as the composition takes them."""
        return tuple(term.as_term() for term in self.reward)

    def temperature_of(self, step: int, pass_rate: float | None) -> float:
        """The rollout temperature at a step for a problem of that measured pass rate."""
        for band in sorted(self.temperature_bands, key=lambda band: band.pass_rate_below):
            if pass_rate is not None and pass_rate < band.pass_rate_below:
                return band.temperature
        if isinstance(self.temperature, float):
            return self.temperature
        schedule = self.temperature
        done = min(1.0, step / schedule.steps)
        return schedule.start + (schedule.end - schedule.start) * done

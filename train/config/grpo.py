"""The configuration of RL: the order of problems, sampling, rewards, evaluation and other measurements."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PositiveFloat, Tag, field_validator, model_validator

from truegold.pipeline.config.base import Filled, LaunchConfig, StageConfig, VerdictConfig, by_type, moved_error
from truegold.pipeline.config.engines import ChatConfig, ServerEngineConfig, VllmEngineConfig
from truegold.pipeline.config.stages import GRADED, AuditedOpinionConfig, GraderConfig
from truegold.train.config.models import TUNABLE_OPTIMIZER, OptimizerConfig, Tracker
from truegold.train.config.objective import ObjectiveConfig, PassRateBelow, lowest_band
from truegold.train.config.turns import TurnsConfig
from truegold.train.guards.table import GUARDS, NOT_THE_POLICY, PROBE, PROMPTS, SEVERITY
from truegold.verifiers import Term
from truegold.verifiers.reward import find_mistakes


class Order(StrEnum):
    """How the next problems are chosen."""

    SIGNAL = "signal"
    """Problems whose groups probably have both right and wrong completions come up more often. The probability is
    estimated from the profile and all rollouts since."""
    UNIFORM = "uniform"
    """All problems in turn, in a fresh permutation each epoch."""
    CURRICULUM = "curriculum"
    """Easy problems first, in stages. Each stage adds the next harder part, and the last stage has all problems."""


class FeedConfig(StageConfig):
    """The order in which problems are drawn."""

    order: Order = Order.UNIFORM
    """`uniform`, `signal` or `curriculum`."""
    stages: int = Field(default=3, ge=1)
    """The number of stages of a curriculum. All stages have the same number of steps."""

    @model_validator(mode="after")
    def _check_stages_have_an_effect(self) -> FeedConfig:
        if self.order is not Order.CURRICULUM and self.stages != FeedConfig.model_fields["stages"].default:
            raise ValueError(
                f"stages ({self.stages}) belong to a curriculum: set order to curriculum, or leave stages out"
            )
        return self


class AsynchronousConfig(StageConfig):
    """Sampling in the background, while the trainer updates the weights."""

    max_staleness: int = Field(default=1, ge=1)
    """The largest age of the weights that sampled a group, in versions before the trained weights. With 1, the next
    batch is sampled while the trainer updates. Groups of older weights are dropped and counted."""
    in_flight: bool = False
    """Whether samplers load new weights in the middle of completions. The new weights then sample the remaining tokens
    (PipelineRL, arXiv 2509.19128). If false, running completions are finished first."""
    order: Literal["fresh", "first"] = "first"
    """The groups that a batch takes if more groups are ready than needed. fresh: those of the newest weights. first:
    those that were ready first."""
    devices: tuple[str, ...] = ()
    """The GPUs of each sampler, in the format of CUDA_VISIBLE_DEVICES: ["4", "5"] are two samplers of one GPU each. By
    default, samplers use the trainer's GPUs."""
    samplers: int = Field(default=1, ge=1)
    """Number of sampling processes, independent of the number of ranks. `devices` has one entry for each of them."""

    @field_validator("devices", mode="before")
    @classmethod
    def _take_one_for_a_list(cls, devices: Any) -> Any:
        return (devices,) if isinstance(devices, str) else devices

    @model_validator(mode="after")
    def _check_devices(self) -> AsynchronousConfig:
        if self.devices and self.samplers not in (1, len(self.devices)):
            raise ValueError(f"samplers ({self.samplers}) have {len(self.devices)} entries of devices: leave one out")
        devices = [name.strip() for entry in self.devices for name in entry.split(",") if name.strip()]
        if shared := sorted({name for name in devices if devices.count(name) > 1}):
            raise ValueError(
                f"devices names {', '.join(shared)} more than once: each sampler takes all memory of its GPUs, so give "
                "each sampler different GPUs"
            )
        return self

    def groups_ahead(self, steps: int, prompts_per_step: int) -> int:
        """Return the largest number of groups that are requested before a step needs them.

        This is `prompts_per_step` times the number of versions of the weights that may be trained on at a time:
        `max_staleness` + 1, or `steps` in a shorter training.
        """
        return prompts_per_step * (min(self.max_staleness, steps - 1) + 1)

    def check_samplers(self, ahead: int) -> None:
        """Raise ValueError for more samplers than groups ahead, because each group goes to one sampler."""
        if len(self.sampler_devices) > ahead:
            raise ValueError(
                f"asynchronous.samplers ({len(self.sampler_devices)}) must be at most {ahead}, the number of groups "
                "that are requested ahead (prompts_per_step for each version): further samplers would have no work"
            )

    def check_server(self) -> None:
        """Raise ValueError for settings that vLLM servers do not support."""
        if self.in_flight:
            raise ValueError(
                "asynchronous.in_flight does not work with an engine of type server, which does not report which "
                "weights sampled a token: leave in_flight out, so that running completions are finished first"
            )
        if self.devices or self.samplers > 1:
            raise ValueError(
                "asynchronous.devices and asynchronous.samplers do not work with an engine of type server: name the "
                "servers in engine.urls"
            )

    def check_ray(self, engine: VllmEngineConfig) -> None:
        """Raise ValueError for settings that engines on Ray do not support."""
        if self.devices or self.samplers > 1:
            raise ValueError(
                "asynchronous.devices and asynchronous.samplers do not work with Ray, which starts "
                "engine.data_parallel_size samplers: leave them out"
            )
        if engine.ray_address is None or engine.weights_dir is None:
            raise ValueError(
                f"engine.data_parallel_size ({engine.data_parallel_size}) in training needs engine.ray_address and "
                "engine.weights_dir, a folder that all nodes can read"
            )

    @property
    def sampler_devices(self) -> tuple[str | None, ...]:
        """The GPUs of each sampler; None for the trainer's."""
        return self.devices or (None,) * self.samplers


def _check_range(bounds: tuple[float, float]) -> tuple[float, float]:
    if not bounds[0] < bounds[1]:
        raise ValueError("must be [lowest, highest]")
    return bounds


Range = Annotated[tuple[float, float], AfterValidator(_check_range)]


class RewardTerm(StageConfig):
    """One term of the reward: it adds weight * (score + offset)."""

    name: str
    """The term's name in metrics, completions and gates."""
    verifier: str | None = None
    """A built-in name, an entry point or an import string. By default the row's own verifier judges correctness."""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """The factor of the term. With 0 the term is measured, but not part of the reward."""
    offset: float = Field(default=0.0, allow_inf_nan=False)
    """A number that is added to the score. -1 turns scores from 0 to 1 into punishments from -1 to 0."""
    args: dict[str, Any] = Field(default_factory=dict)
    """Arguments for `verifier`, the same for every row. `length`, the completion's number of tokens, is added."""
    gate: str | None = None
    """The name of another term. This term counts only for completions that pass the other term (the gate)."""
    judge: GraderConfig | None = None
    """A language model that grades the completion by a rubric, in place of a verifier."""

    @model_validator(mode="after")
    def _check_one_judges(self) -> RewardTerm:
        if self.judge is not None and (self.verifier is not None or self.args):
            raise ValueError("a term with a judge has no verifier and no args: leave them out")
        return self

    @property
    def is_correctness(self) -> bool:
        """Whether the row's own verifier judges this term."""
        return self.verifier is None and self.judge is None

    def as_term(self) -> Term:
        """Return the term in the form that `verifiers.reward` takes."""
        return Term(
            self.name,
            GRADED if self.judge is not None else self.verifier,
            self.weight,
            self.offset,
            self.args,
            self.gate,
        )


class RewardConfig(VerdictConfig):
    """The reward of a completion: the sum of the terms."""

    terms: tuple[RewardTerm, ...] = (RewardTerm(name="correct"),)
    """The terms of the reward. Exactly one of them has neither `verifier` nor `judge`: correctness, which defines pass
    rates."""
    clip: Range | None = None
    """The lowest and the highest value of the sum of the terms."""
    workers: int = Field(default=1, ge=0)
    """Number of processes per rank that judge completions; 0 for one per core. Mathematics needs one process, programs
    need more."""
    second_opinion: AuditedOpinionConfig | None = None
    """An audited model that judges answers which the row's own verifier could not read (`unread`). The model may raise
    the score of such an answer from 0 to 1."""

    @model_validator(mode="before")
    @classmethod
    def _check_terms_are_in_their_field(cls, values: Any) -> Any:
        if isinstance(values, list | tuple):
            raise moved_error("reward.terms")
        return values

    @field_validator("terms")
    @classmethod
    def _check_terms(cls, terms: tuple[RewardTerm, ...]) -> tuple[RewardTerm, ...]:
        mistakes = find_mistakes([term.as_term() for term in terms])
        if sum(term.is_correctness for term in terms) != 1:
            mistakes.append(
                "exactly one term must have neither `verifier` nor `judge`, so that the row's own verifier judges it "
                "(weight 0 is fine)"
            )
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return terms

    @cached_property
    def composition(self) -> tuple[Term, ...]:
        """The terms in the form that `verifiers.reward` takes."""
        return tuple(term.as_term() for term in self.terms)


RolloutEngineConfig = Annotated[
    Annotated[VllmEngineConfig, Tag("vllm")] | Annotated[ServerEngineConfig, Tag("server")], by_type("vllm")
]

NEUTRAL = {
    **dict.fromkeys(("top_p", "typical_p", "repetition_penalty"), 1.0),
    **dict.fromkeys(("top_k", "min_p", "presence_penalty", "frequency_penalty"), 0.0),
}
"""Sampling settings that would bias the importance ratio, with their neutral values."""


TUNABLE_GRPO = (
    *TUNABLE_OPTIMIZER,
    *"steps guards evaluation reward.workers reward.deadline_s reward.max_timeouts engine.max_num_seqs".split(),
    *"engine.gpu_memory_utilization engine.cpu_kv_cache_gib engine.sleep launch.gpu_gb".split(),
    *"trackers completions checkpoint_every save_every save_total_limit".split(),
)
"""Settings that may change while a training is unfinished. The training continues from its last checkpoint."""


class TemperatureSchedule(StageConfig):
    """A temperature that changes linearly from `start` to `end` over the first `steps` steps."""

    start: float = Field(gt=0)
    """The temperature of the first step."""
    end: float = Field(gt=0)
    """The temperature from step `steps` on."""
    steps: int = Field(ge=1)
    """Steps until `end` is reached."""


class TemperatureBand(PassRateBelow):
    """A separate temperature for problems with a low pass rate in the profile. A higher temperature makes attempts more
    diverse."""

    temperature: float = Field(gt=0)
    """The rollout temperature of these problems."""


class SamplingConfig(StageConfig):
    """How rollouts are sampled, and which of their groups enter a training batch."""

    max_tokens: int | None = Field(default=None, ge=1)
    """The longest completion, in tokens. By default, 1.25 times the 99.5 % quantile of the lengths of the profile's
    right completions."""
    allow_long: bool = False
    """Whether `max_tokens` may be more than 8 times its default."""
    temperature: PositiveFloat | TemperatureSchedule = 1.0
    """The temperature of rollouts. The trainer computes log-probabilities at the same temperature. top_p is always 1,
    because other values would bias the importance ratio."""
    temperature_bands: tuple[TemperatureBand, ...] = ()
    """Separate temperatures for problems with a low pass rate. The band with the lowest bound above it is used."""
    refills: int | None = Field(default=None, ge=0)
    """Maximum number of further rounds of rollouts in a step. They sample problems of the reserve (good rows beyond the
    selection) and replace groups without advantages, such as groups that are all right or all wrong (DAPO's dynamic
    sampling). By default 1 if there are enough problems for two steps, else 0."""
    right_share: Range | None = None
    """Bounds for the share of right completions in a training batch. The trainer chooses among the groups of `refills`
    to keep the bounds. Rewards do not change."""

    @model_validator(mode="before")
    @classmethod
    def _check_rollouts_are_the_policy(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        biasing = sorted(name for name, neutral in NEUTRAL.items() if values.get(name, neutral) not in (neutral, None))
        if biasing:
            raise ValueError(
                f"leave {', '.join(biasing)} out: rollouts must be sampled from the policy itself, or the importance "
                "ratio is biased. For evaluation, set train.evaluation.temperature, top_p and top_k"
            )
        return {name: value for name, value in values.items() if name not in NEUTRAL}

    @model_validator(mode="after")
    def _check_refills_bring_groups(self) -> SamplingConfig:
        if self.right_share is not None and self.refills == 0:
            raise ValueError("right_share chooses among the groups that refills bring in: set refills to 1 or more")
        return self

    def resolve_refills(self, problems: int, prompts_per_step: int) -> SamplingConfig:
        """Return the section with a default for `refills`. The default depends on the number of problems, with the
        reserve."""
        if self.refills is not None:
            return self
        is_worth_it = self.right_share is not None or problems >= 2 * prompts_per_step
        return self.model_copy(update={"refills": int(is_worth_it)})

    def temperature_for(self, step: int, pass_rate: float | None) -> float:
        """Return the rollout temperature at a step for a problem with this measured pass rate."""
        band = lowest_band(self.temperature_bands, pass_rate)
        if band is not None:
            return band.temperature
        if isinstance(self.temperature, float):
            return self.temperature
        schedule = self.temperature
        share_done = min(1.0, step / schedule.steps)
        return schedule.start + (schedule.end - schedule.start) * share_done


HELDOUT_SET = "heldout"
"""The name of the evaluation on the run's own held-out rows."""


class EvaluationConfig(StageConfig):
    """Evaluation on the held-out rows. By default, temperature, top_p and top_k come from the checkpoint's
    generation_config.json. Without that file, completions are sampled at temperature 1."""

    every: int = Field(default=0, ge=0)
    """Steps between evaluations; 0: none."""
    samples: int = Field(default=4, ge=1)
    """Completions per problem."""
    problems: int = Field(default=256, ge=1)
    """The largest number of held-out rows that are evaluated."""
    temperature: float | None = Field(default=None, ge=0)
    """The temperature of evaluation; 0 is greedy."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Tokens are drawn from the smallest set with this much probability."""
    top_k: int | None = Field(default=None, ge=0)
    """Tokens are drawn from this number of the likeliest tokens; 0 for all tokens."""
    sets: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$")], Filled] = Field(default_factory=dict)
    """Further held-out sets: a name and a file in any format of `data`, such as {gsm: gsm8k_test.jsonl}. At most
    `problems` rows of each set are evaluated."""

    @model_validator(mode="after")
    def _check_sets_are_evaluated(self) -> EvaluationConfig:
        if HELDOUT_SET in self.sets:
            raise ValueError(f"sets: {HELDOUT_SET} is the name of the run's own held-out rows; choose another name")
        if self.sets and not self.every:
            raise ValueError("sets have no effect without evaluations: set every, the steps between them")
        return self


class ShownConfig(StageConfig):
    """A few completions that are shown on the terminal and in trackers; the folder `completions/` has all of them."""

    every: int = Field(default=1, ge=0)
    """The number of steps after which completions are shown again; 0: never."""
    shown: int = Field(default=2, ge=0)
    """Completions on the terminal, one line each. Right and wrong completions alternate."""
    rows: int = Field(default=32, ge=0)
    """Completions in the trackers' table, in full length."""


class ProbeConfig(StageConfig):
    """A comparison of the sampling and the training engine after each weight sync, on a few prompts."""

    prompts: int = Field(default=8, ge=1)
    """Prompts that are continued after each sync."""
    tokens: int = Field(default=8, ge=1)
    """The number of tokens by which each prompt is continued. Each token takes one forward pass of the sampling
    engine."""


class GuardConfig(StageConfig):
    """The guards of a run and the actions that they may take (docs/reference/guards.md lists all guards)."""

    off: tuple[str, ...] = ()
    """Names of guards that are switched off. `all` is every guard, `probe` the comparison of the two engines. The name
    of an action, such as roll_back, replaces the action by a warning."""
    roll_backs: int = Field(default=4, ge=0)
    """How often a run returns to an earlier checkpoint before it stops."""
    rejudged: int = Field(default=4, ge=0)
    """The number of completions of each step that are judged again from their files, in a separate process; 0 for none.
    A few completions of the first step are judged again at each step, to show whether the verifier has changed."""

    @field_validator("off")
    @classmethod
    def _check_names(cls, off: tuple[str, ...]) -> tuple[str, ...]:
        guards = [*(guard.name for guard in GUARDS), NOT_THE_POLICY, PROBE, PROMPTS]
        actions = [action for action, severity in SEVERITY.items() if severity]
        unknown = sorted(set(off) - {*guards, *actions, "all"})
        if unknown:
            raise ValueError(
                f"there is no guard {', '.join(unknown)}; the guards are {', '.join(guards)}, or all; the actions "
                f"{', '.join(actions)}"
            )
        return (*guards, *(name for name in off if name in actions)) if "all" in off else off


class GrpoConfig(StageConfig):
    """RL with verifiable rewards: groups of completions of one prompt, compared with each other."""

    moved: ClassVar[Mapping[str, str]] = tomllib.loads(
        files("truegold.train.config").joinpath("moved_settings.toml").read_text("utf-8")
    )

    steps: int = Field(default=100, ge=1)
    """Number of batches of groups that are sampled and trained on."""
    prompts_per_step: int = Field(default=32, ge=1)
    """Number of groups that a step samples, one for each prompt."""
    group_size: int = Field(default=8, ge=2)
    """Number of completions of each prompt."""
    asynchronous: AsynchronousConfig | None = None
    """Sampling in the background, in a separate process. By default each step samples, then updates."""
    sync_every: int = Field(default=1, ge=1)
    """The number of steps after which the sampler gets the current weights. It also gets them before each evaluation
    and checkpoint. Completions of older weights are stale. The trainer recomputes log-probabilities of stale tokens,
    and `objective.corrections` weigh tokens by the ratio of the trainer's to the sampler's probabilities."""
    feed: FeedConfig = FeedConfig()
    """The order in which problems are drawn."""
    sampling: SamplingConfig = SamplingConfig()
    """How completions are sampled."""
    turns: TurnsConfig | None = None
    """Dialogues with an environment in place of single answers."""
    reward: RewardConfig = RewardConfig()
    """The reward of a completion."""
    objective: ObjectiveConfig = ObjectiveConfig()
    """Advantages, loss, masks and weights."""
    chat: ChatConfig = ChatConfig()
    """The format of prompts. By default the run's `chat`."""
    engine: RolloutEngineConfig = VllmEngineConfig()
    """vLLM in this process, or a server that can load new weights (`weights_dir`)."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW, its learning rate, sharding and micro-batches."""
    launch: LaunchConfig = LaunchConfig()
    """The processes that train."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Measurements on held-out rows while training."""
    guards: GuardConfig = GuardConfig()
    """The guards, which act when a run goes wrong."""
    probe: ProbeConfig = ProbeConfig()
    """The comparison of the two engines after each weight sync."""
    trackers: tuple[Tracker, ...] = ()
    """Trackers that get metrics and completions, in addition to metrics.jsonl and TensorBoard."""
    completions: ShownConfig = ShownConfig()
    """The completions that are shown during the training."""
    checkpoint_every: int = Field(default=20, ge=1)
    """Steps between checkpoints, from which a killed run continues."""
    save_every: int = Field(default=0, ge=0)
    """The number of steps after which weights are kept as Hugging Face checkpoints in `checkpoints/`; 0: never."""
    save_total_limit: int | None = Field(default=None, ge=1)
    """Maximum number of saved weights, of which the newest are kept. By default all are kept."""
    seed: int = 0
    """The seed for drawing rows, completions and evaluations."""

    def saves(self, step: int) -> bool:
        """Return whether the weights after `step` steps are kept in `checkpoints/`."""
        return step > 0 and self.save_every > 0 and step % self.save_every == 0

    def resolve_masks(self) -> GrpoConfig:
        """Return the configuration with `objective.masks.truncated` set.

        The default is true. It is false if the reward punishes length.
        """
        masks = self.objective.masks
        if masks.truncated is not None:
            return self
        punishes_length = any(term.verifier == "length" and term.weight for term in self.reward.terms)
        resolved = masks.model_copy(update={"truncated": not punishes_length})
        return self.model_copy(update={"objective": self.objective.model_copy(update={"masks": resolved})})

    @model_validator(mode="after")
    def _check_turns_go_with_the_rest(self) -> GrpoConfig:
        if self.turns is None:
            return self
        objective = self.objective
        without_effect = {
            "reward.terms": not all(term.is_correctness for term in self.reward.terms),
            "sampling.temperature_bands": bool(self.sampling.temperature_bands),
            "objective.masks.top_entropy": objective.masks.top_entropy is not None,
            "objective.covariance": objective.covariance.kind is not None,
            "objective.self_distillation": objective.self_distillation.weight > 0,
        }
        wrong = [name for name, is_set in without_effect.items() if is_set]
        if wrong:
            raise ValueError(f"with turns, whose reward is the environment's, {', '.join(wrong)} cannot be set")
        by_counts = sorted(kind for kind in objective.advantage_kinds if kind.startswith("pass_at_k"))
        if self.turns.credit != "equal" and by_counts:
            raise ValueError(
                f"turns.credit: {self.turns.credit} has no effect on {', '.join(by_counts)}, which only counts right "
                "episodes: set another objective.advantage, such as grpo, or turns.credit: equal"
            )
        return self

    @model_validator(mode="after")
    def _check_asynchronous(self) -> GrpoConfig:
        asynchronous = self.asynchronous
        if asynchronous is None:
            return self
        wrong = {
            "sampling.temperature_bands": bool(self.sampling.temperature_bands),
            "a schedule of sampling.temperature": not isinstance(self.sampling.temperature, float),
        }
        if names := ", ".join(name for name, is_set in wrong.items() if is_set):
            raise ValueError(f"asynchronous rollouts do not work with {names}: leave out one of the two")
        if self.sync_every > asynchronous.max_staleness + 1:
            raise ValueError(
                f"sync_every ({self.sync_every}) must be at most asynchronous.max_staleness + 1 "
                f"({asynchronous.max_staleness + 1}): otherwise groups become too old before the next sync"
            )
        if isinstance(self.engine, ServerEngineConfig):
            asynchronous.check_server()
        elif self.engine.data_parallel_size > 1:
            asynchronous.check_ray(self.engine)
        asynchronous.check_samplers(asynchronous.groups_ahead(self.steps, self.prompts_per_step))
        return self

    @model_validator(mode="after")
    def _check_groups_suffice(self) -> GrpoConfig:
        if self.launch.ranks > self.prompts_per_step:
            raise ValueError(
                f"launch.ranks ({self.launch.ranks}) must not exceed prompts_per_step ({self.prompts_per_step}): each "
                "group is sampled and trained on by one rank, and further ranks would have no group"
            )
        if self.optimizer.warmup_steps >= self.steps:
            raise ValueError(
                f"optimizer.warmup_steps ({self.optimizer.warmup_steps}) must be below steps ({self.steps}), or the "
                "learning rate is never reached"
            )
        minibatches, kinds, k = self.objective.minibatches, self.objective.advantage_kinds, self.objective.pass_at_k
        if minibatches > self.prompts_per_step:
            raise ValueError(f"minibatches ({minibatches}) must not exceed prompts_per_step ({self.prompts_per_step})")
        most = self.group_size - ("pass_at_k_chen" in kinds)
        if any(kind.startswith("pass_at_k") for kind in kinds) and k > most:
            raise ValueError(
                f"pass_at_k ({k}) must be at most {most} in groups of {self.group_size}: pass_at_k_chen "
                "compares subsets of k, pass_at_k_walder needs k samples"
            )
        return self

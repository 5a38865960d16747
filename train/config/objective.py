"""The section `train.objective`: advantages, loss, corrections, masks and weights. It does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import Field, field_validator, model_validator

from truegold.pipeline.config.base import StageConfig

PassAtK = Literal["pass_at_k_chen", "pass_at_k_walder"]
Advantage = Literal["grpo", "dr_grpo", "rloo", "reinforce_pp", "reinforce_pp_baseline", "batch_std", "maxrl", PassAtK]
Aggregation = Literal["token", "sequence", "constant"]
Correction = Literal["tis", "icepop", "sequence_tis", "sequence_mask", "geometric_mask"]
KlEstimator = Literal["k1", "k3"]
DistillationWeight = Literal["token", "prefix", "sequence", "geometric", "none"]
Loss = Literal["auto", "ppo", "gspo", "gspo_token", "cispo", "topr"]

SELF_TEACHER = """{prompt}

A right answer to this:
{solution}

Answer it again in your own words."""
"""The default prompt when the policy is its own teacher."""


class PassRateBelow(StageConfig):
    """Problems whose measured pass rate is below a bound."""

    pass_rate_below: float = Field(gt=0, le=1)
    """The bound; a pass rate equal to the bound does not count as below."""


Band = TypeVar("Band", bound=PassRateBelow)


def lowest_band(bands: Sequence[Band], pass_rate: float | None) -> Band | None:
    """Return the band with the lowest bound above a pass rate, or None if there is none or the pass rate is unknown."""
    fitting = [band for band in bands if pass_rate is not None and pass_rate < band.pass_rate_below]
    return min(fitting, key=lambda band: band.pass_rate_below, default=None)


class AdvantageBand(PassRateBelow):
    """A separate kind of advantage for problems with a low pass rate."""

    advantage: Advantage
    """The kind of advantage for these problems."""


class ClipConfig(StageConfig):
    """The bounds of the ratio between the current and the old policy."""

    low: float | None = Field(default=None, gt=0)
    """The ratio is clipped at 1 - low. By default 0.2 for PPO's clip, 3e-4 for GSPO."""
    high: float | None = Field(default=None, gt=0)
    """The ratio is clipped at 1 + high. By default 0.28 for PPO's clip (clip-higher), 4e-4 for GSPO."""
    dual: float | None = Field(default=None, gt=1)
    """For a negative advantage A, PPO's loss is at most -dual A (dual clip, arXiv 1912.09729). By default unbounded."""
    is_max: float = Field(default=5.0, gt=0)
    """The largest ratio in the loss cispo, which weighs tokens by min(ratio, is_max)."""


class CorrectionConfig(StageConfig):
    """A correction for the difference between the probabilities of the sampling engine and the training engine
    (`train.objective`)."""

    kind: Correction
    """The weight, from the ratio of the trainer's to the sampler's probability. tis: the ratio of a token, cut at
    `high`. icepop: the ratio of a token, 0 outside of the bounds. sequence_tis, sequence_mask: the same two with the
    ratio of a whole sequence. geometric_mask: 1, or 0 if the sequence's geometric mean ratio is out of bounds."""
    low: float | None = Field(default=None, ge=0)
    """The lower bound. tis and sequence_tis have no lower bound, because they only cut at `high`."""
    high: float = Field(gt=0)
    """The upper bound."""

    @model_validator(mode="after")
    def _check_range(self) -> CorrectionConfig:
        if self.kind in ("tis", "sequence_tis"):
            if self.low is not None:
                raise ValueError(f"{self.kind} has no low: it cuts at high")
        elif self.low is None:
            usual = {"icepop": "low 0.5, high 5", "sequence_mask": "low 0.5, high 2"}
            raise ValueError(f"{self.kind} needs low as well, as in {usual.get(self.kind, 'low 0.99, high 1.01')}")
        elif self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        return self


class MaskConfig(StageConfig):
    """Completions and tokens that are left out of the loss."""

    truncated: bool | None = None
    """Leave completions that reached `max_tokens` out of the loss, because they were cut off rather than wrong. By
    default true, or false if a term of the reward punishes length."""
    outliers: bool = False
    """Leave completions far longer than the others of the batch out of the loss."""
    off_policy: float | None = Field(default=None, gt=0)
    """Leave out wrong completions whose log-probability has fallen since sampling by more nats per token than this."""
    top_entropy: float | None = Field(default=None, gt=0, lt=1)
    """Train only on this share of the tokens, those with the highest entropy."""


class CovarianceConfig(StageConfig):
    """The treatment of the few tokens that lower the entropy most (Clip-Cov and KL-Cov, arXiv 2505.22617). These are
    tokens with both a high log-probability and a high advantage. Off if `kind` is not set."""

    kind: Literal["clip", "kl"] | None = None
    """clip: leave a random share of the tokens between `low` and `high` out of the loss. kl: pull the tokens with the
    highest covariance back to the old policy; this needs several updates per batch."""
    share: float = Field(default=2e-4, gt=0, lt=1)
    """The share of the batch's tokens that is treated, at least one token."""
    low: float = 1.0
    """The lowest covariance of the tokens that `clip` may leave out."""
    high: float = 5.0
    """The highest covariance of the tokens that `clip` may leave out."""
    weight: float = Field(default=1.0, gt=0)
    """The weight of the penalty |log ratio| for `kl`."""

    @model_validator(mode="after")
    def _check_settings_have_an_effect(self) -> CovarianceConfig:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        for name, kinds in {"share": ("clip", "kl"), "low": ("clip",), "high": ("clip",), "weight": ("kl",)}.items():
            # A written configuration contains all defaults, so a setting that equals its default is allowed.
            if self.kind not in kinds and getattr(self, name) != CovarianceConfig.model_fields[name].default:
                raise ValueError(f"{name} belongs to kind {' or '.join(kinds)}: set kind, or leave {name} out")
        return self


class KlConfig(StageConfig):
    """A penalty for moving away from the model at the start of the training. Off if the weight is 0."""

    weight: float = Field(default=0.0, ge=0)
    """The weight of the penalty in the loss."""
    estimator: KlEstimator = "k3"
    """k3: the estimate of GRPO, never negative. k1: an estimate with the gradient of the KL divergence itself."""


class PositivesConfig(StageConfig):
    """Weights of positive and negative advantages."""

    floor: float = Field(default=0.0, ge=0)
    """Positive advantages are multiplied by a weight, so that their sum is at least `floor` times the absolute sum of
    negative advantages. 0: no weight."""
    unit: Literal["tokens", "samples"] = "tokens"
    """Whether the sums are over tokens or over completions."""
    max_weight: float = Field(default=4.0, ge=1)
    """The largest weight that positive advantages get."""
    negative_weight: float = Field(default=1.0, ge=0)
    """The weight of negative advantages."""


class DistilledConfig(StageConfig):
    """How right completions of `synth` (distilled positives) are added to the groups of their rows."""

    weight: DistillationWeight | Literal["shaped"] = "token"
    """How the weight p(output | prompt) / p(output | prompt, context) is computed; context is the help that `synth`
    added to the prompt. token: for each token. prefix: for all tokens so far. sequence: for the whole output.
    geometric: the geometric mean over tokens. none: always 1. shaped: LUFFY's p / (p + .1) instead."""
    cap: float = Field(default=1.0, gt=0)
    """The largest weight."""
    strength: float = Field(default=0.5, ge=0)
    """The factor (lambda) of a positive's advantage, for rows with pass rate 0. With 0, all positives are left out."""
    zero_at: float = Field(default=0.5, gt=0, le=1)
    """The estimated pass rate at which lambda reaches 0. Between pass rates 0 and `zero_at`, lambda falls linearly."""
    per_group: int = Field(default=1, ge=1)
    """Maximum number of positives in a group."""
    max_advantage: float = Field(default=2.0, gt=0)
    """The largest advantage of a positive. Without a limit, advantages would explode in groups that are all wrong,
    whose rewards have a standard deviation of 0."""


class SelfDistillationConfig(StageConfig):
    """The policy as its own teacher (SDPO, arXiv 2601.20802). The teacher sees a right completion of the same problem
    in its prompt. The policy, which sees the bare prompt, is pulled towards the teacher's probabilities."""

    weight: float = Field(default=0.0, ge=0)
    """The weight of the divergence from the teacher. 0: off."""
    template: str = SELF_TEACHER
    """The teacher's prompt. `{prompt}` is the problem, `{solution}` a right completion of the group other than this
    one."""
    max_gap: float = Field(default=5.0, gt=0)
    """Differences of log-probabilities are cut at this many nats."""

    @field_validator("template")
    @classmethod
    def _check_fields(cls, template: str) -> str:
        missing = [name for name in ("{prompt}", "{solution}") if name not in template]
        if missing:
            raise ValueError(f"the template lacks {' and '.join(missing)}")
        return template


class ObjectiveConfig(StageConfig):
    """The objective of a training step. There is no critic as in PPO: verifiable rewards do not need one, and a critic
    that lags behind the policy makes trainings unstable."""

    advantage: Advantage = "grpo"
    """The baseline that a completion's reward is compared with."""
    advantage_bands: tuple[AdvantageBand, ...] = ()
    """Separate advantages for problems with a low pass rate, such as maxrl or pass_at_k_chen below 0.2. The band with
    the lowest bound above the pass rate is used."""
    pass_at_k: int = Field(default=4, ge=1)
    """The k of the pass@k advantages."""
    loss: Loss = "auto"
    """auto: GSPO for mixture-of-experts models, because routing changes their token ratios, and PPO's clip for
    other models."""
    relative_to: Literal["sampled", "teaching"] = "sampled"
    """The number of groups that the loss is divided by. sampled: all `prompts_per_step` groups, so that a step is
    smaller if few groups have advantages. teaching: the groups with advantages, so that all steps are equally large."""
    aggregation: Aggregation | Literal["auto"] = "auto"
    """How token losses are averaged. auto: as in the paper of the loss, sequence for GSPO and token for all other
    losses. constant divides by max_tokens."""
    clip: ClipConfig = ClipConfig()
    """Bounds of the ratio between the current and the old policy."""
    proximal: Literal["recomputed", "interpolated"] = "recomputed"
    """The old policy in the ratio, if a batch has several updates or was sampled by older weights. recomputed: the
    policy before the first update of the batch, by a forward pass (decoupled PPO, arXiv 2110.00641). interpolated:
    without a forward pass, a mean of log-probabilities in which a sampler that is d versions older has the weight 1/d,
    and the current policy the rest (A-3PO, arXiv 2512.06547)."""
    corrections: tuple[CorrectionConfig, ...] | None = None
    """Corrections for the difference between the engines: any number of kind geometric_mask and at most one of another
    kind. Their weights are multiplied. Empty: no correction. By default, the loss ppo has tis with `high` 2, and the
    other losses have no correction, as in their papers."""
    masks: MaskConfig = MaskConfig()
    """Tokens and completions that are left out of the loss."""
    covariance: CovarianceConfig = CovarianceConfig()
    """The treatment of the tokens that lower the entropy most."""
    kl: KlConfig = KlConfig()
    """The penalty for moving away from the model at the start of the training."""
    positives: PositivesConfig = PositivesConfig()
    """Weights of completions with positive and negative advantages."""
    distilled: DistilledConfig = DistilledConfig()
    """Weights of distilled positives, if the run has a section `synth`."""
    self_distillation: SelfDistillationConfig = SelfDistillationConfig()
    """The policy as its own teacher."""
    num_iterations: int = Field(default=1, ge=1)
    """The number of passes over each rollout batch."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps in each pass."""

    @model_validator(mode="after")
    def _check_settings_go_together(self) -> ObjectiveConfig:
        if self.clip.dual is not None and self.loss not in ("auto", "ppo"):
            raise ValueError(f"clip.dual belongs to the loss ppo, not to {self.loss}")
        if self.loss in ("cispo", "topr") and (self.clip.low is not None or self.clip.high is not None):
            raise ValueError(f"the loss {self.loss} has no clip.low and clip.high; cispo has clip.is_max")
        if self.covariance.kind == "kl" and self.updates == 1:
            raise ValueError(
                "covariance.kind kl pulls back to the old policy, which is equal to the current one if there is only "
                "one update per batch: set minibatches or num_iterations to 2 or more, or set kind to clip"
            )
        weighing = [correction.kind for correction in self.corrections or () if correction.kind != "geometric_mask"]
        if len(weighing) > 1:
            raise ValueError(f"corrections: {' and '.join(weighing)} would weigh by the same ratio twice; choose one")
        return self

    @property
    def advantage_kinds(self) -> set[Advantage]:
        """Every kind of advantage that a problem may get."""
        return {self.advantage, *(band.advantage for band in self.advantage_bands)}

    def advantage_for(self, pass_rate: float | None) -> Advantage:
        """Return the kind of advantage for a problem with this pass rate."""
        band = lowest_band(self.advantage_bands, pass_rate)
        return self.advantage if band is None else band.advantage

    @property
    def resolved_aggregation(self) -> Aggregation:
        """The aggregation, with `auto` replaced by the one of the loss's paper."""
        if self.aggregation != "auto":
            return self.aggregation
        return "sequence" if self.loss.startswith("gspo") else "token"

    @property
    def resolved_corrections(self) -> tuple[CorrectionConfig, ...]:
        """The corrections that are set, or the defaults of the loss."""
        if self.corrections is not None:
            return self.corrections
        return (CorrectionConfig(kind="tis", high=2.0),) if self.loss == "ppo" else ()

    @property
    def updates(self) -> int:
        """Optimizer steps for each rollout batch."""
        return self.num_iterations * self.minibatches

"""The section `train.objective`: advantages, loss, corrections, masks and weights. Nothing here imports torch."""

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
"""The prompt of the policy as its own teacher."""


class PassRateBelow(StageConfig):
    """Problems whose pass rate, as the profile measured it, is below a bound."""

    pass_rate_below: float = Field(gt=0, le=1)
    """The bound of the pass rate, which itself is outside the band."""


Band = TypeVar("Band", bound=PassRateBelow)


def lowest_band(bands: Sequence[Band], pass_rate: float | None) -> Band | None:
    """Return the band with the lowest bound that a pass rate is below, or None where it is below none or unknown."""
    fitting = [band for band in bands if pass_rate is not None and pass_rate < band.pass_rate_below]
    return min(fitting, key=lambda band: band.pass_rate_below, default=None)


class AdvantageBand(PassRateBelow):
    """Another kind of advantage for problems that the profile found hard."""

    advantage: Advantage
    """Their kind of advantage."""


class ClipConfig(StageConfig):
    """The bounds of the ratio between the current and the old policy."""

    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    """The range of the ratio, 1 - low to 1 + high. Default 0.2 and 0.28 (PPO's clip, clip-higher), 3e-4 and 4e-4
    (GSPO)."""
    dual: float | None = Field(default=None, gt=1)
    """Bounds PPO's loss where the advantage is negative."""
    is_max: float = Field(default=5.0, gt=0)
    """The largest weight of CISPO: the ratio itself."""


class CorrectionConfig(StageConfig):
    """One weight for what the sampling and the training engine disagree on (`objective.weights`)."""

    kind: Correction
    """The ratio that is corrected, and whether it is cut or masked."""
    low: float | None = Field(default=None, ge=0)
    """The lower bound; left out for tis and sequence_tis, which only cut at `high`."""
    high: float = Field(gt=0)
    """The range of exp(old - rollout), of a token, a whole sequence, or its geometric mean."""

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
    """Leave completions that ran into `max_tokens` out of the loss: they were cut, not wrong. Left out: true, unless a
    term of the reward punishes length, which would then never be learnt from."""
    outliers: bool = False
    """Leave completions far longer than the others of the batch out of the loss."""
    off_policy: float | None = Field(default=None, gt=0)
    """Leave wrong completions out which the policy has moved away from by more than this, in nats a token."""
    top_entropy: float | None = Field(default=None, gt=0, lt=1)
    """Train on this share of the tokens only, those of the highest entropy."""


class CovarianceConfig(StageConfig):
    """The treatment of the few tokens that lower the entropy most: those whose log-probability and advantage are high
    together (Clip-Cov and KL-Cov, arXiv 2505.22617). Off without a kind."""

    kind: Literal["clip", "kl"] | None = None
    """clip: a random share of the tokens within `low` and `high` is left out of the loss. kl: the share of the highest
    covariance is pulled back to the old policy, which needs several updates on a batch."""
    share: float = Field(default=2e-4, gt=0, lt=1)
    """The share of the batch's tokens, at least one."""
    low: float = 1.0
    high: float = 5.0
    """The range of the covariance for `clip`."""
    weight: float = Field(default=1.0, gt=0)
    """The weight of the penalty |log ratio| for `kl`."""

    @model_validator(mode="after")
    def _check_settings_have_an_effect(self) -> CovarianceConfig:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        for name, kinds in {"share": ("clip", "kl"), "low": ("clip",), "high": ("clip",), "weight": ("kl",)}.items():
            # A whole configuration that was written out names the defaults too.
            if self.kind not in kinds and getattr(self, name) != CovarianceConfig.model_fields[name].default:
                raise ValueError(f"{name} is a setting of kind {' or '.join(kinds)}: set kind, or leave {name} out")
        return self


class KlConfig(StageConfig):
    """A penalty for leaving the model that training began from. Off without weight."""

    weight: float = Field(default=0.0, ge=0)
    """The weight of the penalty in the loss."""
    estimator: KlEstimator = "k3"
    """k3, as in GRPO, never negative; k1, with the gradient of the KL divergence itself."""


class PositivesConfig(StageConfig):
    """How much more positive advantages weigh than negative ones."""

    floor: float = Field(default=0.0, ge=0)
    """Positive advantages are weighted up until they are at least so many times the negative ones; 0: not."""
    unit: Literal["tokens", "samples"] = "tokens"
    """Whether the two sides are compared by tokens or by completions."""
    max_weight: float = Field(default=4.0, ge=1)
    """The largest weight that positive advantages get."""
    negative_weight: float = Field(default=1.0, ge=0)
    """Negative advantages are multiplied by this."""


class DistilledConfig(StageConfig):
    """How distilled positives (`synth`) join the groups of their rows."""

    weight: DistillationWeight | Literal["shaped"] = "token"
    """The estimate of p(output | prompt) / p(output | prompt, context): by token, by all tokens so far, by the whole
    output, its geometric mean, 1; or LUFFY's shaping, p / (p + .1), in place of a weight."""
    cap: float = Field(default=1.0, gt=0)
    """The largest weight."""
    strength: float = Field(default=0.5, ge=0)
    """lambda: what a positive's advantage is multiplied by where its row never passes; 0 leaves all of them out."""
    zero_at: float = Field(default=0.5, gt=0, le=1)
    """The pass rate, as the feed's posterior has it, at which lambda has fallen to 0."""
    per_group: int = Field(default=1, ge=1)
    """Positives that join a group, at most."""
    max_advantage: float = Field(default=2.0, gt=0)
    """The largest advantage of a positive: in a group that is all wrong there is no spread to divide by."""


class SelfDistillationConfig(StageConfig):
    """The policy as its own teacher: what it samples from the bare prompt is drawn to what it would do if it were shown
    a right completion of the same problem (SDPO, arXiv 2601.20802)."""

    weight: float = Field(default=0.0, ge=0)
    """The weight of the divergence from the teacher; 0 for none."""
    template: str = SELF_TEACHER
    """The teacher's prompt: `{prompt}` is the problem, `{solution}` another completion of the group that is right."""
    max_gap: float = Field(default=5.0, gt=0)
    """The largest difference of log-probabilities (nats) that a token is pushed by."""

    @field_validator("template")
    @classmethod
    def _check_fields(cls, template: str) -> str:
        missing = [name for name in ("{prompt}", "{solution}") if name not in template]
        if missing:
            raise ValueError(f"the template lacks {' and '.join(missing)}")
        return template


class ObjectiveConfig(StageConfig):
    """The objective of a step. PPO with a critic is not offered: rewards that can be verified need no learnt estimate
    of them, and one that lags behind the policy is where much of the instability comes from."""

    advantage: Advantage = "grpo"
    """The baseline that a completion's reward is compared with."""
    advantage_bands: tuple[AdvantageBand, ...] = ()
    """Advantages for problems whose measured pass rate is below a bound, such as maxrl or pass_at_k_chen below 0.2. The
    lowest bound that fits counts."""
    pass_at_k: int = Field(default=4, ge=1)
    """k of the advantages of pass@k."""
    loss: Loss = "auto"
    """auto: GSPO for mixture-of-experts models, whose token ratios change with the routing; PPO's clip for others."""
    relative_to: Literal["sampled", "teaching"] = "sampled"
    """The groups that a step's token weights are relative to. sampled: all `prompts_per_step` groups, so that a step
    with one group that teaches counts a thirty-second of one with 32. teaching: the groups that teach, so that all
    steps are as large, however little was learned."""
    aggregation: Aggregation | Literal["auto"] = "auto"
    """auto: what the loss's paper has, sequence for GSPO and token for the others. constant divides by max_tokens."""
    clip: ClipConfig = ClipConfig()
    """Bounds of the ratio between the current and the old policy."""
    proximal: Literal["recomputed", "interpolated"] = "recomputed"
    """The old policy of the ratio, where a batch has several updates or was sampled by older weights. recomputed: the
    policy before the batch's first update, by a forward pass (decoupled PPO, arXiv 2110.00641). interpolated: without
    one, log-probabilities between the sampler's and the current ones, the nearer to the sampler's the fresher they are,
    1/d of the way for d versions (A-3PO, arXiv 2512.06547)."""
    corrections: tuple[CorrectionConfig, ...] | None = None
    """One that weighs, and masks, multiplied. Empty: none. Left out: tis up to 2 for the loss ppo; none for gspo, cispo
    and topr, whose papers have none."""
    masks: MaskConfig = MaskConfig()
    """Tokens and completions that have no part in the loss."""
    covariance: CovarianceConfig = CovarianceConfig()
    """The treatment of the tokens that lower the entropy most."""
    kl: KlConfig = KlConfig()
    """The penalty for leaving the reference policy."""
    positives: PositivesConfig = PositivesConfig()
    """Weights of completions with positive and negative advantages."""
    distilled: DistilledConfig = DistilledConfig()
    """How distilled positives are weighed, where the run has a section `synth`."""
    self_distillation: SelfDistillationConfig = SelfDistillationConfig()
    """The divergence from the policy that is shown a right completion, added to the loss."""
    num_iterations: int = Field(default=1, ge=1)
    """Times that each rollout batch is gone through."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps each time."""

    @model_validator(mode="after")
    def _check_settings_go_together(self) -> ObjectiveConfig:
        if self.clip.dual is not None and self.loss not in ("auto", "ppo"):
            raise ValueError(f"clip.dual belongs to the loss ppo, not to {self.loss}")
        if self.loss in ("cispo", "topr") and (self.clip.low is not None or self.clip.high is not None):
            raise ValueError(f"the loss {self.loss} has no clip.low and clip.high; cispo has clip.is_max")
        if self.covariance.kind == "kl" and self.updates == 1:
            raise ValueError(
                "covariance.kind kl pulls back to the old policy, which is the present one where a batch is updated on "
                "once: set minibatches or num_iterations to 2 or more, or take the kind clip"
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
        """Return the kind of advantage for a problem of that measured pass rate."""
        band = lowest_band(self.advantage_bands, pass_rate)
        return self.advantage if band is None else band.advantage

    @property
    def resolved_aggregation(self) -> Aggregation:
        """The aggregation with `auto` replaced by what the loss's paper has."""
        if self.aggregation != "auto":
            return self.aggregation
        return "sequence" if self.loss.startswith("gspo") else "token"

    @property
    def resolved_corrections(self) -> tuple[CorrectionConfig, ...]:
        """The corrections, where none are set those that go with the loss."""
        if self.corrections is not None:
            return self.corrections
        return (CorrectionConfig(kind="tis", high=2.0),) if self.loss == "ppo" else ()

    @property
    def updates(self) -> int:
        """Optimizer steps for each rollout batch."""
        return self.num_iterations * self.minibatches

"""What the trainer optimises: advantages, loss, corrections, masks and weights. Nothing here imports torch."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from truegold.pipeline.config.base import StageConfig

Advantage = Literal[
    "grpo",
    "dr_grpo",
    "rloo",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "batch_std",
    "maxrl",
    "pass_at_k_chen",
    "pass_at_k_walder",
]
Loss = Literal["auto", "ppo", "gspo", "gspo_token", "cispo", "topr"]


class CorrectionConfig(StageConfig):
    """One weight for what the sampling and the training engine disagree on (`objective.corrections`)."""

    kind: Literal["tis", "icepop", "sequence_tis", "sequence_mask", "geometric_mask"]
    low: float | None = Field(default=None, ge=0)
    """Not for tis and sequence_tis, which only cut at `high`."""
    high: float = Field(gt=0)
    """The range of exp(old - rollout), of a token, a whole sequence, or its geometric mean."""

    @model_validator(mode="after")
    def _range_is_one(self) -> CorrectionConfig:
        if self.kind in ("tis", "sequence_tis"):
            if self.low is not None:
                raise ValueError(f"{self.kind} has no low: it cuts at high")
        elif self.low is None:
            usual = {"icepop": "low 0.5, high 5", "sequence_mask": "low 0.5, high 2"}
            raise ValueError(f"{self.kind} needs low as well, as in {usual.get(self.kind, 'low 0.99, high 1.01')}")
        elif self.low >= self.high:
            raise ValueError(f"low ({self.low}) must be below high ({self.high})")
        return self


class AdvantageBand(StageConfig):
    """Another kind of advantage for problems that the profile found hard."""

    pass_rate_below: float = Field(gt=0, le=1)
    advantage: Advantage


class KlConfig(StageConfig):
    """A penalty for leaving the model that training began from. Off without weight."""

    weight: float = Field(default=0.0, ge=0)
    estimator: Literal["k1", "k3"] = "k3"
    """k3, as in GRPO, never negative; k1, with the gradient of the KL divergence itself."""


class ObjectiveConfig(StageConfig):
    """The objective of a step. PPO with a critic is not offered: rewards that can be verified need no learnt estimate
    of them, and one that lags behind the policy is where much of the instability comes from."""

    advantage: Advantage = "grpo"
    advantage_bands: tuple[AdvantageBand, ...] = ()
    """For problems whose measured pass rate is below a bound, such as maxrl or pass_at_k_chen below 0.2. The lowest
    bound that fits counts."""
    pass_at_k: int = Field(default=4, ge=1)
    """k of the advantages of pass@k."""
    loss: Loss = "auto"
    """auto: GSPO for mixture-of-experts models, whose token ratios change with the routing; PPO's clip for others."""
    aggregation: Literal["auto", "token", "sequence", "constant"] = "auto"
    """auto: what the loss's paper has, sequence for GSPO and token for the others. constant divides by max_tokens."""
    clip_low: float | None = Field(default=None, gt=0)
    clip_high: float | None = Field(default=None, gt=0)
    """The range of the ratio, 1 - low to 1 + high. Default 0.2 and 0.28 (PPO's clip, clip-higher), 3e-4 and 4e-4
    (GSPO)."""
    dual_clip: float | None = Field(default=None, gt=1)
    """Bounds PPO's loss where the advantage is negative."""
    is_max: float = Field(default=5.0, gt=0)
    """The largest weight of CISPO: the ratio itself."""
    corrections: tuple[CorrectionConfig, ...] = (CorrectionConfig(kind="tis", high=2.0),)
    """One that weighs, and masks, multiplied. Empty: none."""
    off_policy_mask: float | None = Field(default=None, gt=0)
    """Leaves wrong completions out which the policy has moved away from by more than this, in nats a token."""
    top_entropy: float | None = Field(default=None, gt=0, lt=1)
    """Train on this share of the tokens only, those of the highest entropy."""
    kl: KlConfig = KlConfig()
    positive_floor: float = Field(default=0.0, ge=0)
    """Positive advantages are weighted up until they are at least so many times the negative ones; 0: not."""
    positive_by: Literal["tokens", "samples"] = "tokens"
    positive_max: float = Field(default=4.0, ge=1)
    """The largest such weight."""
    negative_weight: float = Field(default=1.0, ge=0)
    mask_truncated: bool = True
    """Leave completions that ran into `max_tokens` out of the loss: they were cut, not wrong."""
    mask_outliers: bool = False
    """Leave completions far longer than the others of the batch out of the loss."""
    num_iterations: int = Field(default=1, ge=1)
    """Times that each rollout batch is gone through."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer steps each time."""

    @model_validator(mode="after")
    def _clip_belongs_to_the_loss(self) -> ObjectiveConfig:
        if self.dual_clip is not None and self.loss not in ("auto", "ppo"):
            raise ValueError(f"dual_clip belongs to the loss ppo, not to {self.loss}")
        if self.loss in ("cispo", "topr") and (self.clip_low is not None or self.clip_high is not None):
            raise ValueError(f"the loss {self.loss} has no clip_low and clip_high; cispo has is_max")
        return self

    @model_validator(mode="after")
    def _tokens_are_weighed_once(self) -> ObjectiveConfig:
        weighing = [one.kind for one in self.corrections if one.kind != "geometric_mask"]
        if len(weighing) > 1:
            raise ValueError(f"corrections: {' and '.join(weighing)} would weigh by the same ratio twice; choose one")
        return self

    @property
    def advantages(self) -> set[Advantage]:
        """Every kind that a problem may get."""
        return {self.advantage, *(band.advantage for band in self.advantage_bands)}

    def advantage_of(self, pass_rate: float | None) -> Advantage:
        """The kind of advantage for a problem of that measured pass rate."""
        for band in sorted(self.advantage_bands, key=lambda band: band.pass_rate_below):
            if pass_rate is not None and pass_rate < band.pass_rate_below:
                return band.advantage
        return self.advantage

    @property
    def updates(self) -> int:
        """Optimizer steps for each rollout batch."""
        return self.num_iterations * self.minibatches

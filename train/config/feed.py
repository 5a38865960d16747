"""The section `train.feed`: which problems come next."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from truegold.pipeline.config.base import StageConfig


class Order(StrEnum):
    """How the next problems are chosen."""

    SIGNAL = "signal"
    """By how probable it is that their group teaches, as the profile and all rollouts since have it."""
    UNIFORM = "uniform"
    """All in turn, in a fresh permutation each epoch."""
    CURRICULUM = "curriculum"
    """Easy ones first, in stages: the easiest part, then it and the next, at last all."""


class FeedConfig(StageConfig):
    """Which problems come next."""

    order: Order = Order.UNIFORM
    """`uniform`, `signal` or `curriculum`."""
    stages: int = Field(default=3, ge=1)
    """The stages of a curriculum, of equally many steps."""

    @model_validator(mode="after")
    def _check_stages_have_an_effect(self) -> FeedConfig:
        if self.order is not Order.CURRICULUM and self.stages != FeedConfig.model_fields["stages"].default:
            raise ValueError(
                f"stages ({self.stages}) are those of a curriculum: set order to curriculum, or leave them out"
            )
        return self

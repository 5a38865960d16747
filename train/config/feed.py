"""The section `train.feed`: which problems come next."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

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

"""How many processes a stage runs in, and where."""

from __future__ import annotations

from pydantic import Field, model_validator

from truegold.pipeline.config.base import StageConfig


class LaunchConfig(StageConfig):
    """The processes that train: one on each GPU, usually."""

    ranks: int = Field(default=1, ge=1)
    """How many, on this machine."""
    hostfile: str | None = None
    """DeepSpeed's list of machines (`worker-1 slots=8`); then its launcher starts the ranks over ssh. Every machine has
    to see the run's folder and the same installation under the same paths."""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> LaunchConfig:
        if self.hostfile is not None and self.ranks != 1:
            raise ValueError("ranks are of this machine alone: the hostfile has the slots of each")
        return self

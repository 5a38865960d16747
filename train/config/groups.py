"""The section `train.groups`: how a step's completions are shared among its prompts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from truegold.pipeline.config.base import StageConfig


class GroupsConfig(StageConfig):
    """How a step's completions are shared among its prompts."""

    sizes: Literal["equal", "by_posterior"] = "equal"
    """by_posterior: hard problems get larger groups and easy ones smaller, by what the profile and all rollouts since
    know of their pass rates. The step's completions stay prompts_per_step x group_size."""
    least: int = Field(default=4, ge=2)
    """The smallest group by posterior."""
    most: int = Field(default=32, ge=2)
    """The largest group by posterior."""

    @model_validator(mode="after")
    def _check_bounds_have_an_effect(self) -> GroupsConfig:
        bounds = [name for name in ("least", "most") if getattr(self, name) != GroupsConfig.model_fields[name].default]
        if self.sizes == "equal" and bounds:
            raise ValueError(f"{', '.join(bounds)}: bounds are those of sizes: by_posterior, all groups are equal here")
        return self

    def check_size(self, group_size: int) -> None:
        """Raise ValueError where the mean size of a group is not within the bounds."""
        if self.sizes == "by_posterior" and not self.least <= group_size <= self.most:
            raise ValueError(
                f"group_size ({group_size}) is the mean size of groups by posterior, and must be from groups.least "
                f"({self.least}) to groups.most ({self.most})"
            )

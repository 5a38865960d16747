"""The section `train.asynchronous`: rollouts that never wait for the update, nor it for them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from truegold.pipeline.config.base import StageConfig


class AsynchronousConfig(StageConfig):
    """Sampling beside the update."""

    max_staleness: int = Field(default=1, ge=1)
    """How many versions of the weights a group may be behind those that are trained. 1 is one step off: while a batch
    is trained on, the next one is sampled. Older groups are dropped and counted."""
    in_flight: bool = False
    """Whether new weights are loaded while completions are being sampled, whose later tokens are then of the new ones
    (PipelineRL, arXiv 2509.19128); otherwise those that have begun are finished first."""
    order: Literal["fresh", "first"] = "first"
    """Which groups a batch is made of, where more are ready than it takes: the freshest, or those that were first."""
    devices: tuple[str, ...] = ()
    """The GPUs of each sampler, as CUDA_VISIBLE_DEVICES has them: ["4", "5"] are two samplers of a GPU each. Left out:
    the trainer's."""
    samplers: int = Field(default=1, ge=1)
    """Sampling processes, whatever the number of ranks; with `devices` there is one for each entry."""

    @field_validator("devices", mode="before")
    @classmethod
    def _take_one_for_a_list(cls, devices: Any) -> Any:
        return (devices,) if isinstance(devices, str) else devices

    @model_validator(mode="after")
    def _check_devices_are_of_samplers(self) -> AsynchronousConfig:
        if self.devices and self.samplers not in (1, len(self.devices)):
            raise ValueError(f"samplers ({self.samplers}) have {len(self.devices)} entries of devices: leave one out")
        return self

    @model_validator(mode="after")
    def _check_devices_differ(self) -> AsynchronousConfig:
        devices = [name.strip() for entry in self.devices for name in entry.split(",") if name.strip()]
        if shared := sorted({name for name in devices if devices.count(name) > 1}):
            raise ValueError(
                f"devices names {', '.join(shared)} more than once: each sampler takes the memory of its GPUs for "
                "itself, so give every one others"
            )
        return self

    def groups_ahead(self, steps: int, prompts_per_step: int) -> int:
        """Return how many groups may be asked for and not taken: those of each version that may be trained on. In so
        many steps no group gets older than `steps` - 1 versions, whatever the bound."""
        return prompts_per_step * (min(self.max_staleness, steps - 1) + 1)

    def check_samplers(self, ahead: int) -> None:
        """Raise ValueError for more samplers than groups ahead, of which each goes to one sampler."""
        if len(self.sampler_devices) > ahead:
            raise ValueError(
                f"asynchronous.samplers ({len(self.sampler_devices)}) must be at most {ahead}, the groups that are "
                "asked for ahead (prompts_per_step for each version): the others would have nothing to sample"
            )

    def check_server(self) -> None:
        """Raise ValueError for what does not go with vLLM servers."""
        if self.in_flight:
            raise ValueError(
                "asynchronous.in_flight does not go with an engine of type server, which does not say what token is of "
                "what weights: leave it out, and what has begun is finished first"
            )
        if self.devices or self.samplers > 1:
            raise ValueError("asynchronous.devices and samplers are of processes: name the servers in engine.urls")

    @property
    def sampler_devices(self) -> tuple[str | None, ...]:
        """The GPUs of each sampler; None for the trainer's."""
        return self.devices or (None,) * self.samplers

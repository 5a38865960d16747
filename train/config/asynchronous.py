"""The section `train.asynchronous`: rollouts that never wait for the update, nor it for them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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
    devices: str | None = None
    """The GPUs of the sampler, as CUDA_VISIBLE_DEVICES has them; the trainer's where left out."""

"""The settings of where the parts of stages are worked on; nothing that is written depends on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truegold.pipeline.config.base import StageConfig


class RayConfig(StageConfig):
    """How a Ray cluster works on parts: a task for each, on any node. Every node has to see the run's folder, the
    working directory and files with code under the same paths, and to have the same truegold."""

    address: str | None = None
    """The cluster's address, such as `head:6379`. Where not given, it is the one of RAY_ADDRESS or that this machine
    belongs to, else one that is started here for the run."""
    memory_gb: float | None = Field(default=None, gt=0)
    """The memory that Ray keeps for each task; by CPUs alone where not given."""


class SlurmConfig(StageConfig):
    """How Slurm works on parts: as a job array. Every node has to see the run's folder, the working directory and the
    Python environment under the same paths."""

    tasks: int = Field(default=64, ge=1, le=1_000)
    """The most tasks of an array; each takes its share of the parts."""
    options: tuple[str, ...] = ()
    """Further options of sbatch, such as `--partition=cpu`, `--mem=4G` or `--cpus-per-task=4`."""
    submissions: int = Field(default=3, ge=1)
    """How often parts are submitted that are not done, before the run stops."""


class RunnerConfig(StageConfig):
    """The machines that work on the parts of stages."""

    runner: Literal["local", "ray", "slurm", "wait"] = "local"
    """`local`: processes of this machine; `ray`: a Ray cluster; `slurm`: job arrays; `wait`: `truegold part`, which is
    called by hand or by another scheduler."""
    ray: RayConfig = RayConfig()
    """The cluster of `ray`."""
    slurm: SlurmConfig = SlurmConfig()
    """The job arrays of `slurm`."""

"""Settings of the machines that process parts of tables. Results do not depend on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truegold.pipeline.config.base import StageConfig


class RayConfig(StageConfig):
    """A Ray cluster, which processes each part of a table as a task on any node.

    Every node needs the same truegold, and the run's folder, the working directory and code files under the same paths.
    """

    address: str | None = None
    """The cluster's address, such as `head:6379`. By default RAY_ADDRESS, or the cluster that this machine belongs to,
    or a new one for the run."""
    memory_gb: float | None = Field(default=None, gt=0)
    """The memory in GB that Ray reserves for each task; by default Ray reserves only CPUs."""


class SlurmConfig(StageConfig):
    """A Slurm cluster, which processes parts of tables in a job array.

    Every node needs the run's folder, the working directory and the Python environment under the same paths.
    """

    tasks: int = Field(default=64, ge=1, le=1_000)
    """The largest number of tasks in an array; the parts of tables are divided among them."""
    options: tuple[str, ...] = ()
    """More options for sbatch, such as `--partition=cpu`, `--mem=4G` or `--cpus-per-task=4`."""
    submissions: int = Field(default=3, ge=1)
    """The number of times that unfinished parts are submitted before the run stops."""


class RunnerConfig(StageConfig):
    """The machines that process parts of tables."""

    runner: Literal["local", "ray", "slurm", "wait"] = "local"
    """`local`: processes of this machine; `ray`: a Ray cluster; `slurm`: job arrays; `wait`: calls of `truegold part`,
    by hand or by another scheduler."""
    ray: RayConfig = RayConfig()
    """The cluster of `ray`."""
    slurm: SlurmConfig = SlurmConfig()
    """The job arrays of `slurm`."""

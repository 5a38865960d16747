"""Joins this process to its group of ranks, adds numbers up over them, and keeps DeepSpeed's compiled parts in a place
that survives kills."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from truegold.pipeline.running.cache_folder import cache_folder
from truegold.verifiers import SetupError

PATIENCE = timedelta(hours=2)
"""How long ranks wait for each other: one may have far longer completions to sample, or slower programs to judge."""


def init_distributed() -> None:
    """Start torch.distributed through DeepSpeed: NCCL on GPUs, gloo on CPUs.

    Under the `deepspeed` or `torchrun` launcher the environment names the ranks; without one this is a group of one.
    Raises SetupError where DeepSpeed is missing.
    """
    import torch

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    if "RANK" not in os.environ:
        os.environ.update(
            RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(_free_port())
        )
    with _extensions_folder():
        try:
            import deepspeed
        except ImportError as error:
            raise SetupError(
                f"DeepSpeed cannot be imported ({error}).", "Install it: pip install 'truegold[train]'."
            ) from error
        deepspeed.init_distributed(dist_backend="nccl" if on_gpu else "gloo", timeout=PATIENCE, verbose=False)


def rank() -> int:
    """This process's number among the ranks, from 0."""
    import torch.distributed as dist

    return int(dist.get_rank())


def world_size() -> int:
    """How many ranks there are."""
    import torch.distributed as dist

    return int(dist.get_world_size())


def barrier() -> None:
    """Wait until every rank is here."""
    import torch.distributed as dist

    if dist.get_world_size() > 1:
        dist.barrier()


def all_sum(*values: float) -> list[float]:
    """Each value summed over all ranks, in float64."""
    return _reduced(values, "SUM")


def all_max(value: float) -> float:
    """The largest over all ranks."""
    return _reduced([value], "MAX")[0]


def gathered(value: Any) -> list[Any]:
    """Every rank's value, by rank; it has to be picklable, and small."""
    import torch.distributed as dist

    if dist.get_world_size() == 1:
        return [value]
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def _reduced(values: Sequence[float], operation: str) -> list[float]:
    import torch
    import torch.distributed as dist

    if dist.get_world_size() == 1:
        return list(values)
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total, getattr(dist.ReduceOp, operation))
    found: list[float] = total.tolist()
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _extensions_folder() -> Iterator[None]:
    """Shares our own lock on torch's folder of compiled extensions while DeepSpeed builds or loads its own.

    torch marks a running build with a plain file named `lock`; a build killed half-way leaves it behind, and every
    later process waits for it for ever. Our lock the kernel frees at death. Who gets it alone knows that nobody builds
    and removes what is left over; then all ranks hold it together, since they meet while they build.
    """
    folder = Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(cache_folder("torch_extensions"))))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "truegold.lock").open("w") as lock:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for stale in folder.glob("**/lock"):
                stale.unlink(missing_ok=True)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield

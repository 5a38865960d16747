"""The ranks of a training: start of torch.distributed, sums and values over all ranks, and DeepSpeed's configuration.

DeepSpeed compiles an operator on first use. torch marks a running build by a plain file named `lock`. A killed build
leaves this file behind, and later processes wait forever. So stale files are removed here, and a long wait is
announced. After a timeout, an error names the command that removes the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, TypeVar

import torch
import torch.distributed as dist

from truegold.pipeline.running.disk import cache_folder
from truegold.pipeline.running.isolation import free_port
from truegold.train.config.models import OptimizerConfig
from truegold.verifiers import SetupError

Value = TypeVar("Value")
Note = Callable[[str], None]
"""A function that shows a line to the user."""


def print_note(text: str) -> None:
    """Print a line to stderr, which is the log of the stage."""
    print(text, file=sys.stderr, flush=True)


PATIENCE = timedelta(hours=2)
"""The timeout of collective operations. It is long, because one rank may sample longer completions than another, or
judge slower programs."""


def init_distributed(note: Note = print_note) -> None:
    """Start torch.distributed through DeepSpeed: NCCL on GPUs, gloo on CPUs.

    The launchers `deepspeed` and `torchrun` set environment variables for the ranks. Without a launcher there is one
    rank. note: a function that shows a line about a long wait. Raises SetupError if DeepSpeed is not installed, or if
    its operator stays locked by another build.
    """
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    # cuDNN's attention plans each new shape, which is slow. Nearly every micro-batch has a new shape.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if "RANK" not in os.environ:
        os.environ.update(
            RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port())
        )
    with extensions_folder(note):
        try:
            import deepspeed
        except ImportError as error:
            raise SetupError(
                f"DeepSpeed cannot be imported ({error}).", "Install it: pip install 'truegold[train]'."
            ) from error
        _forget_destroyed_groups()
        deepspeed.init_distributed(dist_backend="nccl" if on_gpu else "gloo", timeout=PATIENCE, verbose=False)


def _forget_destroyed_groups() -> None:
    """Make DeepSpeed create its process groups again if torch's were destroyed. A vLLM engine that is closed destroys
    all process groups of its process. DeepSpeed still refers to them."""
    from deepspeed.utils import groups

    if not dist.is_initialized():
        groups._release_process_group_references()


def rank() -> int:
    """Return the number of this rank, from 0."""
    return int(dist.get_rank())


def world_size() -> int:
    """Return the number of ranks."""
    return int(dist.get_world_size())


def local_device() -> Any:
    """Return the device that this rank trains on: its GPU, or the CPU."""
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")


def barrier() -> None:
    """Wait until all ranks have called this."""
    if dist.get_world_size() > 1:
        dist.barrier()


def all_sum(*values: float) -> list[float]:
    """Return each value summed over all ranks, in float64."""
    return _reduce(values, "SUM")


def all_max(value: float) -> float:
    """Return the largest value of all ranks."""
    return maxima(value)[0]


def maxima(*values: float) -> list[float]:
    """Return the largest of each value over all ranks."""
    return _reduce(values, "MAX")


def gathered(value: Value) -> list[Value]:
    """Return the values of all ranks, in the order of ranks. The value must be picklable and small."""
    if dist.get_world_size() == 1:
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def from_first_rank(value: Value) -> Value:
    """Return rank 0's value on every rank. The value must be picklable."""
    if dist.get_world_size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def scattered(values: Sequence[Value]) -> Value:
    """Return the value that rank 0 has for this rank.

    values: on rank 0, a picklable value for each rank. Other ranks' values are ignored.
    """
    if dist.get_world_size() == 1:
        return values[0]
    share: list[Any] = [None]
    dist.scatter_object_list(share, list(values) if dist.get_rank() == 0 else None, src=0)
    scattered_value: Value = share[0]
    return scattered_value


def _reduce(values: Sequence[float], operation: str) -> list[float]:
    if dist.get_world_size() == 1:
        return list(values)
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    reduced = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(reduced, getattr(dist.ReduceOp, operation))
    return [float(value) for value in reduced.tolist()]


BUCKET = 50_000_000
"""The number of values that ZeRO 2 and 3 communicate at a time. With DeepSpeed's default of 500 million, a GPU needs 2
to 4 GB more, and a training on one GPU is not faster. ZeRO 2 without gradient checkpointing keeps the default."""


def deepspeed_config(config: OptimizerConfig, ranks: int) -> dict[str, Any]:
    """Return DeepSpeed's configuration for these settings.

    A single rank has nothing to shard. In float32 it uses ZeRO stage 0, which keeps no second copy of the weights. In
    bfloat16 it uses stage 1, because the optimizer of stage 0 sums gradients in bfloat16 and counts one step too many.
    """
    alone = ranks == 1 and config.dtype == "float32" and not config.offload
    zero: dict[str, Any] = {"stage": 0 if alone else max(config.zero_stage, int(config.dtype == "bfloat16"))}
    if config.offload and config.zero_stage >= 2:
        zero["offload_optimizer"] = {"device": "cpu"}
    if zero["stage"] == 3 or (zero["stage"] == 2 and config.gradient_checkpointing):
        zero |= dict.fromkeys(("reduce_bucket_size", "allgather_bucket_size"), BUCKET)
    settings: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 0.0 if zero["stage"] == 0 and config.dtype == "float32" else config.max_grad_norm,
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "optimizer": {
            "type": "AdamW",
            "params": {
                "lr": config.lr,
                "betas": list(config.betas),
                "weight_decay": config.weight_decay,
                "torch_adam": True,
                # The fused optimizer reads and writes memory once, without temporary copies.
                "fused": True,
            },
        },
        "steps_per_print": 2**31 - 1,
    }
    if config.dtype == "bfloat16":
        # Each gradient is added to the float32 sum as soon as it is computed. This saves memory.
        settings["bf16"] = {"enabled": True, "immediate_grad_update": True}
        # Sums over micro-batches and ranks in bfloat16 lose small summands.
        settings["data_types"] = {"grad_accum_dtype": "fp32"}
        settings["communication_data_type"] = "fp32"
    return settings


ANNOUNCE_S = 5.0
"""Seconds after which a wait for another build is announced. A build takes about 30 seconds."""
PATIENCE_S = 300.0
"""The timeout in seconds of a wait for another build."""
POLL_S = 0.1
"""Seconds between two checks of a lock."""


@contextmanager
def extensions_folder(note: Note) -> Iterator[None]:
    """Hold a lock on torch's folder of compiled extensions while DeepSpeed builds or loads its operator.

    It is a file lock, which the kernel releases when the process dies. A process that gets the lock exclusively knows
    that there is no other build. It removes stale lock files of torch. Then all ranks share the lock, because they
    build at the same time. Raises SetupError if another process holds the lock for longer than the timeout.
    """
    folder = Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(_folder_of_installation())))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "truegold.lock").open("w") as lock, _waits_end(note):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for stale in folder.glob("**/lock"):
                stale.unlink(missing_ok=True)
        _wait(lambda: not _try_to_share(lock), Path(lock.name), note, "fuser -k")
        yield


def _folder_of_installation() -> Path:
    """Return the folder of compiled extensions for this installation of Python, torch and DeepSpeed. Builds contain the
    paths of these packages. Two environments with one folder would compile again and again."""
    sources = [importlib.util.find_spec(package) for package in ("torch", "deepspeed")]
    versions = [importlib.metadata.version(package) for package in ("torch", "deepspeed")]
    installation = "\n".join([sys.version, *(str(source and source.origin) for source in sources), *versions])
    return cache_folder("torch_extensions") / hashlib.sha256(installation.encode()).hexdigest()[:12]


def _try_to_share(lock: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _waits_end(note: Note) -> Iterator[None]:
    """Give torch's own wait for another build the same announcement and timeout, within the context."""
    from torch.utils.file_baton import FileBaton

    def wait(baton: Any) -> None:
        path = Path(baton.lock_file_path)
        _wait(path.exists, path, note, "rm")

    original = FileBaton.wait
    FileBaton.wait = wait  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        FileBaton.wait = original  # type: ignore[method-assign]


def _wait(is_locked: Callable[[], bool], path: Path, note: Note, clear: str) -> None:
    """Wait while a lock is held. After a timeout, raises SetupError with the command that removes the lock."""
    started, announced = time.monotonic(), False
    while is_locked():
        waited = time.monotonic() - started
        if waited > ANNOUNCE_S and not announced:
            note(f"waiting for another process that compiles DeepSpeed's operator and holds the lock {path}")
            announced = True
        if waited > PATIENCE_S:
            raise SetupError(
                f"DeepSpeed's operator is locked: another build has held {path} for {waited:.0f} s.",
                f"If no other training is starting, remove the lock: {clear} {path}",
            )
        time.sleep(POLL_S)

"""The ranks: joins this process to its group, adds numbers up over all ranks, and configures DeepSpeed.

DeepSpeed compiles an operator on first use, in a folder that survives kills. torch marks a running build with a plain
file named `lock`; a build killed half-way leaves it behind, and every later process would wait for it for ever. Here a
wait is announced, and given up with the line that clears it.
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
"""Takes a line for the user."""


def print_note(text: str) -> None:
    """Write a line to the log of the stage."""
    print(text, file=sys.stderr, flush=True)


PATIENCE = timedelta(hours=2)
"""How long ranks wait for each other: one may have far longer completions to sample, or slower programs to judge."""


def init_distributed(note: Note = print_note) -> None:
    """Start torch.distributed through DeepSpeed: NCCL on GPUs, gloo on CPUs.

    Under the `deepspeed` or `torchrun` launcher the environment names the ranks; without one this is a group of one.
    note: takes a line that says what is waited for. Raises SetupError if DeepSpeed is missing, or where its operator is
    locked by a build that does not end.
    """
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    # cuDNN's attention builds a plan for each shape that is new, and nearly every micro-batch has one of its own.
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
    """Let DeepSpeed make its groups anew where torch's are gone: vLLM destroys every group of its process when an
    engine is closed, the trainer's among them, and DeepSpeed would go on with the handles it has kept."""
    from deepspeed.utils import groups

    if not dist.is_initialized():
        groups._release_process_group_references()


def rank() -> int:
    """Return this process's number among the ranks, from 0."""
    return int(dist.get_rank())


def world_size() -> int:
    """Return how many ranks there are."""
    return int(dist.get_world_size())


def local_device() -> Any:
    """Return the device that this rank trains on: its GPU, or the CPU."""
    return torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")


def barrier() -> None:
    """Wait until every rank is here."""
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
    """Return every rank's value, by rank; it has to be picklable, and small."""
    if dist.get_world_size() == 1:
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def from_first_rank(value: Value) -> Value:
    """Return rank 0's value on every rank; it has to be picklable."""
    if dist.get_world_size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def scattered(values: Sequence[Value]) -> Value:
    """Return this rank's of rank 0's values, of which it has one for each rank; they have to be picklable."""
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
"""Numbers that ZeRO 2 and 3 send at a time. DeepSpeed's own 500 million take 2 to 4 GB more of a GPU, except for ZeRO 2
without gradient checkpointing, and one GPU is not faster with them."""


def deepspeed_config(config: OptimizerConfig, ranks: int) -> dict[str, Any]:
    """Return DeepSpeed's own configuration for these settings.

    One rank has nothing to shard: in float32 it takes stage 0, which keeps no second copy of the weights. In bfloat16
    stage 0 would be another optimizer, which adds gradients up in bfloat16 and counts one step too many: 1 stands in.
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
                # Fused, it passes over memory once, without copies on the way.
                "fused": True,
            },
        },
        "steps_per_print": 2**31 - 1,
    }
    if config.dtype == "bfloat16":
        # Each gradient goes into the float32 sum as soon as it is there, instead of taking memory until the end.
        settings["bf16"] = {"enabled": True, "immediate_grad_update": True}
        # In bfloat16 sums over micro-batches and ranks would lose what comes late.
        settings["data_types"] = {"grad_accum_dtype": "fp32"}
        settings["communication_data_type"] = "fp32"
    return settings


ANNOUNCE_S = 5.0
"""A wait is announced after this many seconds; a build takes half a minute."""
PATIENCE_S = 300.0
"""A wait is given up after this many seconds."""
POLL_S = 0.1


@contextmanager
def extensions_folder(note: Note) -> Iterator[None]:
    """Share a lock of our own on torch's folder of compiled extensions while DeepSpeed builds or loads its operator.

    The kernel frees our lock when its process dies. A process that gets it alone knows that no other training builds,
    and removes what is left over; then all ranks hold it together, since they meet while they build. Raises SetupError
    if a lock does not go away.
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
    """Return the folder of this Python's torch and DeepSpeed.

    A build names their files. Where two environments share a folder, each compiles again what the other has compiled.
    """
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
    """Let torch's own wait for another build end as well while it lasts."""
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
    """Wait while a lock is held. Raises SetupError with the command that clears it."""
    started, announced = time.monotonic(), False
    while is_locked():
        waited = time.monotonic() - started
        if waited > ANNOUNCE_S and not announced:
            note(f"waiting for another process that builds DeepSpeed's operator: it holds {path}")
            announced = True
        if waited > PATIENCE_S:
            raise SetupError(
                f"DeepSpeed's operator is locked: another build has held {path} for {waited:.0f} s.",
                f"Where no other training is starting, clear it: {clear} {path}",
            )
        time.sleep(POLL_S)

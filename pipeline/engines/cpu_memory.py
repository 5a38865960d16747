"""Returns unused memory of vLLM on CPU to the system: freed memory, the key-value cache and the weights.

`discard` and `trim` need Linux with glibc; elsewhere they do nothing. `release_cache` and `release_weights` run inside
a vLLM worker, through `collective_rpc`.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

LARGE = 2**20
"""The minimum size of a tensor whose pages are returned, in bytes."""
WORTH_TRIMMING = 2**24
"""`trim` runs only if the process has grown by more than this number of bytes since the last call."""


def discard(address: int, size: int) -> None:
    """Return the whole pages within [address, address + size) to the system. Afterwards these pages read as zeros.

    The pages must be anonymous memory that is no longer needed.
    """
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (address + size - start) // mmap.PAGESIZE * mmap.PAGESIZE
    if sys.platform == "linux" and length > 0:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), mmap.MADV_DONTNEED)


def trim() -> None:
    """Return memory to the system that was freed, but that the allocator still holds (`malloc_trim`).

    This takes milliseconds. It is skipped unless the process has grown by WORTH_TRIMMING since the last call.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if release is None:
        return
    if _resident() > _Trimmed.resident + WORTH_TRIMMING:
        release(0)
        _Trimmed.resident = _resident()
    _Trimmed.resident = min(_Trimmed.resident, _resident())


class _Trimmed:
    """The resident memory of this process after the last trim, in bytes."""

    resident = 0


def _resident() -> int:
    """Return the resident memory of this process in bytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@contextmanager
def lazy_zeros() -> Iterator[None]:
    """Let torch allocate large zero buffers lazily, such as vLLM's key-value cache: a page takes memory on first use.

    `torch.zeros` itself writes every page. Then the whole cache takes memory as soon as the model is loaded.
    """
    import torch

    zeros = torch.zeros

    def lazily(*shape: Any, dtype: Any = None, device: Any = None, **others: Any) -> Tensor:
        is_buffer = len(shape) == 1 and isinstance(shape[0], int) and shape[0] >= LARGE and not others
        if is_buffer and dtype is torch.int8 and torch.device(device or "cpu").type == "cpu":
            pages = mmap.mmap(-1, shape[0], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            return torch.frombuffer(pages, dtype=torch.int8)
        return zeros(*shape, dtype=dtype, device=device, **others)

    torch.zeros = lazily
    try:
        yield
    finally:
        torch.zeros = zeros


def release_cache(worker: Any) -> None:
    """Empty the worker's key-value cache."""
    _discard_tensors(worker.model_runner.kv_caches)


def release_weights(worker: Any) -> None:
    """Drop the worker's weights. `reload_weights` has to restore them before the next generation.

    Linear layers hold packed weights in the closure `cpu_linear`. It is replaced by a function that raises an error.
    The other weights are tensors. Reloading overwrites them in place.
    """
    model = worker.get_model()
    for module in model.modules():
        if hasattr(module, "cpu_linear"):
            module.cpu_linear = _raise_asleep
    _discard_tensors(model.parameters())


def _discard_tensors(tensors: Iterable[Tensor]) -> None:
    # Several tensors may share a storage. Each storage is discarded once.
    storages = {(storage.data_ptr(), storage.nbytes()) for storage in (tensor.untyped_storage() for tensor in tensors)}
    for address, size in storages:
        if size >= LARGE:
            discard(address, size)


def _raise_asleep(*_: Any) -> Any:
    raise RuntimeError("The engine sleeps: it has no weights until update_weights.")

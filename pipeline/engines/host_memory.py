"""Gives memory of this process back to the system (Linux with glibc; elsewhere nothing happens)."""

from __future__ import annotations

import ctypes
import mmap
import sys


def discard(address: int, size: int) -> None:
    """Give back the whole pages of [address, address + size), which must be anonymous memory that is no longer needed:
    it reads as zeros afterwards."""
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (address + size - start) // mmap.PAGESIZE * mmap.PAGESIZE
    if sys.platform == "linux" and length > 0:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), mmap.MADV_DONTNEED)


def trim() -> None:
    """Give back what was freed and is still held for later allocations."""
    release = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if release is not None:
        release(0)

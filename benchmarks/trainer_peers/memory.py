"""The memory of a process and all its descendants, read every so often while they run (Linux)."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from math_peers.cpu import family_of

PROC = Path("/proc")
EVERY_S = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")
KCMP = {"x86_64": 312, "aarch64": 272}
"""The number of the system call that compares what two processes share."""
KCMP_VM = 1


def rss_mb(pid: int) -> float:
    """Return the memory that a process holds, shared libraries included; 0 for one that is gone."""
    try:
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * PAGE / 2**20


def share_memory(pid: int, other: int) -> bool:
    """Say whether two processes have one memory, as a process has with the one that has just started it (vfork) until
    it becomes another program."""
    if os.uname().machine not in KCMP:
        return False
    return bool(ctypes.CDLL(None).syscall(KCMP[os.uname().machine], pid, other, KCMP_VM, 0, 0) == 0)


def total_mb(pids: Iterable[int]) -> float:
    """Return the memory that processes hold, each memory once."""
    counted: list[int] = []
    for pid in sorted(pids):
        if not any(share_memory(pid, other) for other in counted):
            counted.append(pid)
    return sum(map(rss_mb, counted))


class MemoryWatch(threading.Thread):
    """Sums up what `pid` and its descendants hold at the same moments. samples: (seconds, as `time.monotonic`; MB)."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._stop_asked = threading.Event()
        self.samples: list[tuple[float, float]] = []

    def run(self) -> None:
        """Take samples until it is stopped."""
        while not self._stop_asked.wait(EVERY_S):
            self.samples.append((time.monotonic(), total_mb(family_of(self._pid))))

    def stop(self) -> None:
        """Take no further samples."""
        self._stop_asked.set()
        self.join()

    def peak_mb(self, until: float) -> float:
        """Return the most that was held at one of the moments up to `until`."""
        return max((held for seconds, held in self.samples if seconds <= until), default=0.0)

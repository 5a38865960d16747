"""Makes child processes end with their parent, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
"""The option of prctl(2) that asks for a signal when the parent ends."""


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when the thread that started it ends. Only Linux can do that.

    parent: the parent's process id, where it is known; this process then also ends where the parent is gone already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def die_with_process(pid: int) -> None:
    """End this process when process `pid` ends, whichever of its threads started this one. Only Linux can do that."""
    if sys.platform != "linux":
        return
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        os._exit(1)

    def exit_after_process() -> None:
        select.select([handle], [], [])
        os._exit(1)

    threading.Thread(target=exit_after_process, daemon=True).start()

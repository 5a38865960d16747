"""Working folders on disk, for tiers without mount namespaces, and those that a killed process left behind.

    box = Box()            a new empty folder, held by a lock
    box.close()            the folder is gone, whatever has been put there

A process that is killed cannot clear up. Its folders stay until the next process starts that uses such folders: a
folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path

from truegold.verifiers.sandbox.inside.confine.cleaning import empty_folder

PREFIX = "truegold-box-"
JUST_MADE_S = 60.0
"""A folder this young may not be locked yet."""


class Box:
    """A working folder that this process holds."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder with all its content."""
        _remove(self.path)
        self.forget()

    def forget(self) -> None:
        """Let go of the folder. In a forked copy of this process it belongs to the original, which keeps the lock."""
        os.close(self._lock)


def remove_abandoned() -> None:
    """Remove every folder of this kind that nobody holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < JUST_MADE_S:
                continue
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(str(path))
            finally:
                os.close(handle)


def _remove(path: str) -> None:
    empty_folder(path)
    with contextlib.suppress(OSError):
        Path(path).rmdir()

"""Emptying a folder that somebody else filled, to spite whoever empties it.

Folders a thousand deep, without the right to look into them, links that lead elsewhere: nothing is followed, nothing
recursive, and never more than two folders open.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

MAX_ROUNDS = 1_000_000
"""Folders taken apart. Stops a folder that grows as fast as it is emptied."""


def empty(box: str) -> None:
    """Remove everything in `box`; what cannot be removed is left, and the rest is not.

    A folder in a folder is moved up into the box before it is looked into, so that paths stay short.
    """
    # The folder's own program may have taken a name, but not one that is made up after it has ended.
    prefix = os.urandom(8).hex()
    names = (os.path.join(box, f"{prefix}-{number}") for number in itertools.count())
    pending = [box]
    for _ in range(MAX_ROUNDS):
        if not pending:
            return
        folder = pending.pop()
        for path in _entries(folder):
            if not _is_folder(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                continue
            with contextlib.suppress(OSError):
                os.chmod(path, 0o700)
                moved = next(names)
                os.rename(path, moved)
                pending.append(moved)
        if folder != box:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False

"""Empties a folder that a program filled, perhaps to spite whoever empties it.

The program may have made folders a thousand deep, folders that nobody may look into, and links that lead elsewhere. No
link is followed, nothing recurses, and never more than two folders are open.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

MAX_ROUNDS = 1_000_000
"""How many folders are taken apart. Stops a folder that grows as fast as it is emptied."""


def empty_folder(box: str) -> None:
    """Remove everything in `box` that can be removed.

    A folder in a folder is moved up into the box before it is looked into, so that paths stay short.
    """
    # The program has ended, so it cannot have taken a name that is made up now.
    prefix = os.urandom(8).hex()
    spare_paths = (os.path.join(box, f"{prefix}-{count}") for count in itertools.count())
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
                moved = next(spare_paths)
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

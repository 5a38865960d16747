"""The disk: where several runs share what they make, and one line that says what to do when it is full."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.verifiers import SetupError


def cache_folder(name: str) -> Path:
    """Return `~/.cache/truegold/NAME`, or the same below XDG_CACHE_HOME where that is set.

    Compiled operators and Prefect's databases are kept there.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truegold" / name


@contextmanager
def full_disk_reported(folder: Path) -> Iterator[None]:
    """Turn "no space left" while writing below `folder` into a SetupError; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise SetupError(
            f"No space left on the disk of {error.filename or folder}.",
            "Free some space and run the same command again: finished stages are kept.",
        ) from error

"""A full disk becomes one line that says what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.verifiers import SetupError


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

"""The one line for a full disk."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.verifiers import SetupError


@contextmanager
def full_disk_told(place: Path) -> Iterator[None]:
    """Turn "no space left" while writing below `place` into a SetupError; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise SetupError(
            f"No space left on the disk of {error.filename or place}.",
            "Free some space and run the same command again: finished stages are kept.",
        ) from error

"""Files that are whole or absent: they are written aside, under another name, and then renamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yield the path to write a file under; it is renamed to `path` when the block ends without an error.

    A kill or an error leaves `path` as it was. The folder that `path` is in has to exist.
    """
    aside = path.with_name(path.name + ".tmp")
    try:
        yield aside
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    aside.replace(path)


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that it is never seen half written."""
    with written_aside(path) as aside:
        aside.write_bytes(content)

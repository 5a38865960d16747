"""Files that are whole or absent: they are written aside, under another name, and then renamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from truegold.verifiers import ConfigError


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yield the path to write a file under; it is renamed to `path` when the block ends without an error.

    A kill or an error leaves `path` as it was. The folder that `path` is in has to exist. Raises ConfigError for a
    device or a pipe, which a file would take the place of.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ConfigError(f"{path} is no file but a device or a pipe.", "Name a file that is to be written.")
    aside = path.with_name(path.name + ".tmp")
    try:
        yield aside
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    aside.replace(path)


def refuse_input(target: Path, *inputs: Path) -> None:
    """Raise ConfigError where a file that is to be written is one that is read, under whatever name."""
    for path in inputs:
        if path.exists() and target.exists() and path.samefile(target):
            raise ConfigError(f"{target} is what is read: it would be overwritten.", "Name another one to write.")


def write_whole(path: Path, content: bytes) -> None:
    """Write a small file so that it is never seen half written."""
    with written_aside(path) as aside:
        aside.write_bytes(content)

"""The operator that DeepSpeed compiles on first use, in a folder that survives kills, and the locks on it.

torch marks a running build with a plain file named `lock`; a build killed half-way leaves it behind, and every later
process would wait for it for ever. Here a wait is announced, and given up with the line that clears it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from truegold.pipeline.running.disk import cache_folder
from truegold.verifiers import SetupError

ANNOUNCE_S = 5.0
"""A wait is announced after so many seconds; a build takes half a minute."""
PATIENCE_S = 300.0
"""A wait is given up after so many seconds."""
POLL_S = 0.1

Note = Callable[[str], None]
"""Takes a line for the user."""


def print_note(text: str) -> None:
    """Write a line to the log of the stage."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def extensions_folder(note: Note) -> Iterator[None]:
    """Share a lock of our own on torch's folder of compiled extensions while DeepSpeed builds or loads its operator.

    The kernel frees our lock when its process dies. A process that gets it alone knows that no other training builds,
    and removes what is left over; then all ranks hold it together, since they meet while they build. Raises SetupError
    where a lock does not go away.
    """
    folder = Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(_folder_of_installation())))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "truegold.lock").open("w") as lock, _waits_end(note):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for stale in folder.glob("**/lock"):
                stale.unlink(missing_ok=True)
        _wait(lambda: not _try_to_share(lock), Path(lock.name), note, "fuser -k")
        yield


def _folder_of_installation() -> Path:
    """Return the folder of this Python's torch and DeepSpeed.

    A build names their files. Where two environments share a folder, each compiles again what the other has compiled.
    """
    sources = [importlib.util.find_spec(package) for package in ("torch", "deepspeed")]
    versions = [importlib.metadata.version(package) for package in ("torch", "deepspeed")]
    installation = "\n".join([sys.version, *(str(source and source.origin) for source in sources), *versions])
    return cache_folder("torch_extensions") / hashlib.sha256(installation.encode()).hexdigest()[:12]


def _try_to_share(lock: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _waits_end(note: Note) -> Iterator[None]:
    """Let torch's own wait for another build end as well while it lasts."""
    from torch.utils.file_baton import FileBaton

    def wait(baton: Any) -> None:
        path = Path(baton.lock_file_path)
        _wait(path.exists, path, note, "rm")

    original = FileBaton.wait
    FileBaton.wait = wait  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        FileBaton.wait = original  # type: ignore[method-assign]


def _wait(is_locked: Callable[[], bool], path: Path, note: Note, clear: str) -> None:
    """Wait while a lock is held. Raises SetupError with the command that clears it."""
    started, announced = time.monotonic(), False
    while is_locked():
        waited = time.monotonic() - started
        if waited > ANNOUNCE_S and not announced:
            note(f"waiting for another process that builds DeepSpeed's operator: it holds {path}")
            announced = True
        if waited > PATIENCE_S:
            raise SetupError(
                f"DeepSpeed's operator is locked: another build has held {path} for {waited:.0f} s.",
                f"Where no other training is starting, clear it: {clear} {path}",
            )
        time.sleep(POLL_S)

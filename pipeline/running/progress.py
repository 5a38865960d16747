"""Reports the progress of long steps. Stages call `Progress`, and the command line shows it.

A stage in a separate process writes the calls as JSON lines into a pipe (`PipeProgress`). Its parent reads the pipe and
repeats the calls (`relay`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, Protocol, TypeVar

T = TypeVar("T")

REPORT_EVERY_S = 0.1
"""The minimum interval between reports of `paced`, in seconds. Reporting each row would take longer than reading it."""


class Progress(Protocol):
    """The progress of one long step."""

    def start(self, label: str, total: int | None = None) -> None:
        """Begin a step of `total` parts, or of an unknown number if `total` is None."""

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count `steps` more parts as done, show `detail`, and set the number of parts to `total` if it is given."""

    def note(self, text: str) -> None:
        """Show a line of text."""


class NullProgress:
    """A progress that shows nothing."""

    def start(self, label: str, total: int | None = None) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class PipeProgress:
    """A progress that writes each call as one JSON line. `relay` in another process repeats the calls."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def _send(self, call: str, *args: Any) -> None:
        self._stream.write(json.dumps([call, *args]) + "\n")
        self._stream.flush()

    def start(self, label: str, total: int | None = None) -> None:
        """Write the call `start`."""
        self._send("start", label, total)

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Write the call `advance`."""
        self._send("advance", steps, detail, total)

    def note(self, text: str) -> None:
        """Write the call `note`."""
        self._send("note", text)


def relay(lines: Iterable[str], progress: Progress) -> None:
    """Repeat the calls that a `PipeProgress` wrote. An incomplete last line of a killed process is ignored."""
    for line in lines:
        if line.endswith("\n"):
            call, *args = json.loads(line)
            getattr(progress, call)(*args)


def paced(iterable: Iterable[T], progress: Progress, label: str, total: int | None = None) -> Iterator[T]:
    """Yield the elements of `iterable`, and report their number to `progress` at most ten times a second."""
    progress.start(label, total)
    unreported = 0
    last_report = time.monotonic()
    for element in iterable:
        yield element
        unreported += 1
        if (now := time.monotonic()) - last_report >= REPORT_EVERY_S:
            progress.advance(unreported)
            unreported, last_report = 0, now
    if unreported:
        progress.advance(unreported)

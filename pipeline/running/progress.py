"""Reports the progress of long steps. Stages use the protocol `Progress`, whose implementations draw it.

A stage in a separate process writes JSON lines into a pipe (`PipeProgress`), and its parent draws them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, Protocol, TypeVar

T = TypeVar("T")

REPORT_EVERY_S = 0.1
"""The minimum interval between the reports of `paced`, in seconds, because a report takes longer than a streamed
row."""


class Progress(Protocol):
    """The progress of one long step."""

    def start(self, label: str, total: int | None = None) -> None:
        """Begin a step of `total` parts; None stands for an unknown number."""

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
    """A progress that writes each call as one JSON line, for `relay` in another process to replay."""

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
    """Replay the calls that a `PipeProgress` wrote, without a last line that a killed writer left incomplete."""
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

"""Reports how far a long step is. Stages talk to the protocol `Progress`; what is drawn is decided elsewhere.

A stage that runs in a process of its own writes JSON lines into a pipe (`PipeProgress`), and the parent draws them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, Protocol, TypeVar

T = TypeVar("T")

REPORT_EVERY_S = 0.1
"""A row takes microseconds in the streaming stages, and a report takes more: `paced` reports at most this often."""


class Progress(Protocol):
    """The progress of one long step."""

    def start(self, label: str, total: int | None = None) -> None:
        """Begin a step of `total` parts; None means that their number is not known."""

    def advance(self, steps: int = 1, detail: str = "", total: int | None = None) -> None:
        """Count `steps` more parts as done; `detail` is a few words for the reader, `total` how many parts there are,
        where more is known of it by now."""

    def note(self, text: str) -> None:
        """Leave a line for the reader."""


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
    """Replay what a `PipeProgress` wrote; a line cut short by a dying writer is left out."""
    for line in lines:
        if line.endswith("\n"):
            call, *args = json.loads(line)
            getattr(progress, call)(*args)


def paced(iterable: Iterable[T], progress: Progress, label: str, total: int | None = None) -> Iterator[T]:
    """Yield the elements of `iterable`, and report them to `progress` in lumps, at most ten times a second."""
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

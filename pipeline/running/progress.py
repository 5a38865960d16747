"""How a long step says how far it is. Stages talk to this protocol; who draws it is decided elsewhere.

A stage that runs in a process of its own writes JSON lines into a pipe (`PipeProgress`), and the parent draws them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Protocol, TypeVar

T = TypeVar("T")

REPORT_EVERY_S = 0.1
"""A row takes microseconds in the streaming stages, and a report takes more: `paced` reports at most this often."""


class Progress(Protocol):
    """One long step: `start` it with its total (None: unknown), `advance` it, leave a `note` for the reader."""

    def start(self, label: str, total: int | None = None) -> None: ...

    def advance(self, steps: int = 1, detail: str = "") -> None: ...

    def note(self, text: str) -> None: ...


class NullProgress:
    """Says nothing."""

    def start(self, label: str, total: int | None = None) -> None:
        pass

    def advance(self, steps: int = 1, detail: str = "") -> None:
        pass

    def note(self, text: str) -> None:
        pass


class PipeProgress:
    """Writes each call as one JSON line, for `relay` in another process to replay."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def _send(self, call: str, *args: Any) -> None:
        self._stream.write(json.dumps([call, *args]) + "\n")
        self._stream.flush()

    def start(self, label: str, total: int | None = None) -> None:
        self._send("start", label, total)

    def advance(self, steps: int = 1, detail: str = "") -> None:
        self._send("advance", steps, detail)

    def note(self, text: str) -> None:
        self._send("note", text)


def relay(lines: Iterable[str], progress: Progress) -> None:
    """Replay what a `PipeProgress` wrote; a line cut short by a dying writer is left out."""
    calls: dict[str, Callable[..., None]] = {
        "start": progress.start,
        "advance": progress.advance,
        "note": progress.note,
    }
    for line in lines:
        if line.endswith("\n"):
            call, *args = json.loads(line)
            calls[call](*args)


def track(items: Iterable[T], progress: Progress, label: str, total: int | None = None) -> Iterator[T]:
    """Yield `items`, advancing `progress` by one after each."""
    progress.start(label, total)
    for item in items:
        yield item
        progress.advance()


def paced(items: Iterable[T], progress: Progress, label: str, total: int | None = None) -> Iterator[T]:
    """Yield `items`, and tell `progress` of them in lumps."""
    progress.start(label, total)
    done = 0
    told = time.monotonic()
    for item in items:
        yield item
        done += 1
        if (now := time.monotonic()) - told >= REPORT_EVERY_S:
            progress.advance(done)
            done, told = 0, now
    if done:
        progress.advance(done)

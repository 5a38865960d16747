"""Advances a progress at most ten times a second: a row takes microseconds in the streaming stages, a report more."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from truegold.pipeline.progress import Progress

T = TypeVar("T")

REPORT_EVERY_S = 0.1


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

"""Work for worker processes, in a module that they can import."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from truegold.pipeline.tables.rows import Row


def squares() -> Callable[[Row], tuple[int, int]]:
    return lambda row: (row["index"] ** 2, os.getpid())


def fails_at(index: int) -> Callable[[Row], int]:
    def work(row: Row) -> int:
        if row["index"] == index:
            raise LookupError(f"no {index}")
        return index

    return work


def dies() -> Callable[[Row], None]:
    return lambda row: os.kill(os.getpid(), signal.SIGKILL) if row["index"] == 30 else None

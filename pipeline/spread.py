"""Work on rows in worker processes; results come in the order of the rows."""

from __future__ import annotations

import os
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from truegold.pipeline.rows import Row

R = TypeVar("R")

CHUNK = 500
"""Rows that a worker is given at a time."""
FEWEST = 8 * CHUNK
"""With fewer rows workers would cost more to start than they save."""


def spread(
    rows: Iterable[Row], total: int, make: Callable[[], Callable[[Row], R]], workers: int = 0
) -> Iterator[tuple[Row, R]]:
    """Each row with what `make()` makes of it. Both `make` and the results have to be picklable.

    make: called here as well, so that what it raises comes from the caller's own process. workers: processes; 0 takes
    one per core.
    """
    work = make()
    workers = workers or len(os.sched_getaffinity(0))
    if workers == 1 or total < FEWEST:
        for row in rows:
            yield row, work(row)
        return
    from joblib import Parallel, delayed

    under_way: deque[Sequence[Row]] = deque()

    def chunks() -> Iterator[Any]:
        rest, key = iter(rows), pickle.dumps(make)
        while chunk := list(islice(rest, CHUNK)):
            under_way.append(chunk)
            yield delayed(_apply)(key, sys.path, chunk)

    pool = Parallel(workers, return_as="generator", pre_dispatch="2 * n_jobs", batch_size=1)
    for results in pool(chunks()):
        yield from zip(under_way.popleft(), results, strict=True)


def _apply(key: bytes, path: list[str], chunk: Sequence[Row]) -> list[Any]:
    work = _worker(key, tuple(path))
    return [work(row) for row in chunk]


@lru_cache(maxsize=1)
def _worker(key: bytes, path: tuple[str, ...]) -> Callable[[Row], Any]:
    """Made once in each process."""
    sys.path[:] = path  # so that an import string means here what it means to the parent
    make: Callable[[], Callable[[Row], Any]] = pickle.loads(key)
    return make()

"""Work in a few threads: numpy, scipy and polars let go of Python's lock. Results come in order, few at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
"""Each holds some 100 MB while it works."""


def map_in_threads(work: Callable[[T], R], jobs: Iterable[T]) -> Iterator[R]:
    """Yield what `work` makes of each job, in order; no more than 2 * THREADS results wait to be taken."""
    with ThreadPoolExecutor(THREADS) as pool:
        under_way: deque[Future[R]] = deque()
        for job in jobs:
            if len(under_way) == 2 * THREADS:
                yield under_way.popleft().result()
            under_way.append(pool.submit(work, job))
        while under_way:
            yield under_way.popleft().result()


def read_ahead(source: Iterable[T]) -> Iterator[T]:
    """Yield what `source` gives, none of it None; the next is made in another thread while one is used."""
    rest = iter(source)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, rest, None)
        while (element := coming.result()) is not None:
            coming = pool.submit(next, rest, None)
            yield element

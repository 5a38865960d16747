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


def in_order_of(items: Iterable[T], work: Callable[[T], R]) -> Iterator[R]:
    """What `work` makes of each item; no more than THREADS results wait to be taken."""
    with ThreadPoolExecutor(THREADS) as pool:
        under_way: deque[Future[R]] = deque()
        for item in items:
            if len(under_way) == 2 * THREADS:
                yield under_way.popleft().result()
            under_way.append(pool.submit(work, item))
        while under_way:
            yield under_way.popleft().result()


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, none of them None; the next is made in another thread while one is used."""
    rest = iter(items)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, rest, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, rest, None)
            yield item

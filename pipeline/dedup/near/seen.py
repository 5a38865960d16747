"""Numbers distinct hashes in the order in which they first come, in 16 bytes each and a time that grows as n log n."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.sparse import Ints

Hashes = npt.NDArray[np.uint64]


class Seen:
    """Sorted arrays, each at least twice as long as the next: a lookup searches all, growing merges the last ones."""

    def __init__(self) -> None:
        self._levels: list[tuple[Hashes, Ints]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """The number of each hash, and the places of those that had not come before, in the order of their numbers."""
        distinct, first, back = np.unique(hashes, return_index=True, return_inverse=True)
        numbers = np.full(len(distinct), -1, dtype=np.int64)
        for known, number in self._levels:
            place = np.minimum(np.searchsorted(known, distinct), len(known) - 1)
            found = known[place] == distinct
            numbers[found] = number[place[found]]
        new = np.flatnonzero(numbers < 0)
        by_place = new[np.argsort(first[new])]
        numbers[by_place] = self._count + np.arange(len(by_place))
        self._count += len(by_place)
        if len(new):
            self._add(distinct[new], numbers[new])
        return numbers[back], first[by_place]

    def _add(self, hashes: Hashes, numbers: Ints) -> None:
        while self._levels and len(self._levels[-1][0]) < 2 * len(hashes):
            more, their = self._levels.pop()
            hashes, numbers = np.concatenate([more, hashes]), np.concatenate([their, numbers])
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
        self._levels.append((hashes, numbers))

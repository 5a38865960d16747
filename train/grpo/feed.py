"""Which problems come next: an endless stream over the selected rows, the same for every number of ranks.

Rows come in a fresh permutation each epoch. Refills, for groups that teach nothing, come from the reserve in the order
that selection gave it, and from the stream once the reserve is used up. The whole state is two numbers, which a
checkpoint keeps.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from truegold.pipeline.rows import Row


@dataclass
class Feed:
    """The stream of rows, and where it is."""

    rows: Sequence[Row]
    """Not empty."""
    reserve: Sequence[Row]
    seed: int
    taken: int = 0
    """Rows that came from the stream."""
    refilled: int = 0
    """Rows that came from the reserve."""

    def take(self, count: int) -> list[Row]:
        """Return the next `count` rows of the stream."""
        next_rows = []
        for taken in range(self.taken, self.taken + count):
            epoch, position = divmod(taken, len(self.rows))
            next_rows.append(self.rows[_permutation(len(self.rows), self.seed, epoch)[position]])
        self.taken += count
        return next_rows

    def refill(self, count: int) -> list[Row]:
        """Return the next `count` rows in place of groups that taught nothing."""
        reserved = list(self.reserve[self.refilled : self.refilled + count])
        self.refilled += len(reserved)
        return reserved + self.take(count - len(reserved))

    def state(self) -> dict[str, int]:
        """Return what a checkpoint keeps."""
        return {"taken": self.taken, "refilled": self.refilled}

    def restore(self, state: Mapping[str, int]) -> None:
        """Go on where the feed was at that state."""
        self.taken, self.refilled = state["taken"], state["refilled"]


@lru_cache(maxsize=2)
def _permutation(rows: int, seed: int, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order

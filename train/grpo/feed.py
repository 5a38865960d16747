"""Which problems come next: an endless stream over the selected rows, the same for every number of ranks.

Rows come in a fresh permutation each epoch. Refills, for groups that teach nothing, come from the reserve in the order
that selection gave it, and from the stream once the reserve is used up. The whole state is two numbers, which a
checkpoint keeps.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from truegold.pipeline.rows import Row


@dataclass
class Feed:
    """rows: not empty. taken, refilled: how many rows came from the stream and from the reserve."""

    rows: Sequence[Row]
    reserve: Sequence[Row]
    seed: int
    taken: int = 0
    refilled: int = field(default=0)

    def take(self, count: int) -> list[Row]:
        """The next `count` rows of the stream."""
        chosen = []
        for position in range(self.taken, self.taken + count):
            epoch, place = divmod(position, len(self.rows))
            chosen.append(self.rows[_order(len(self.rows), self.seed, epoch)[place]])
        self.taken += count
        return chosen

    def refill(self, count: int) -> list[Row]:
        """The next `count` rows for groups that taught nothing."""
        chosen = list(self.reserve[self.refilled : self.refilled + count])
        self.refilled += len(chosen)
        return chosen + self.take(count - len(chosen))

    def state(self) -> dict[str, int]:
        return {"taken": self.taken, "refilled": self.refilled}

    def restore(self, state: Mapping[str, int]) -> None:
        self.taken, self.refilled = state["taken"], state["refilled"]


@lru_cache(maxsize=2)
def _order(rows: int, seed: int, epoch: int) -> list[int]:
    order = list(range(rows))
    random.Random(f"{seed}-{epoch}").shuffle(order)
    return order

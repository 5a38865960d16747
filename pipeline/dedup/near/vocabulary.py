"""Numbers distinct texts in the order in which they first come, in bulk: polars holds and finds them."""

from __future__ import annotations

import numpy as np
import polars as pl

from truegold.pipeline.dedup.near.sparse import Ints


class Vocabulary:
    """Texts by number; some 20 bytes each besides the text itself."""

    def __init__(self) -> None:
        # polars numbers categories in an order of its own, so that its numbers are looked up in a table.
        self._categories = pl.Categorical(pl.Categories.random())
        self._alive = pl.Series([], dtype=self._categories)
        self._numbers = np.full(2**16, -1, dtype=np.int32)
        self._count = 0

    def number(self, texts: pl.Series) -> tuple[Ints, pl.Series]:
        """The number of each text, and the texts that had not come before, in the order of their numbers."""
        known = texts.cast(self._categories)
        self._alive = known.slice(0, 1)  # polars forgets categories that no series uses
        codes = known.to_physical().to_numpy()
        while len(self._numbers) <= codes.max(initial=0):
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, -1)])
        numbers = self._numbers[codes].astype(np.int64)
        new = np.flatnonzero(numbers < 0)
        distinct, first, back = np.unique(codes[new], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = self._count + np.arange(len(order))
        self._numbers[distinct] = rank
        self._count += len(order)
        numbers[new] = rank[back]
        return numbers, texts.gather(new[first[order]])

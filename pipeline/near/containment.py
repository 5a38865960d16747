"""Finds texts that contain an evaluation item (a problem of a test set) word for word, or nearly.

    item    "Tom has 3 red cars and buys 4 more. How many cars has he?"                                      share
    text    "Solve step by step. Tom has 3 red cars and buys 4 more. How many cars has he? Give a number."   1.00
    text    "Tom has 5 red cars and buys 9 more. How many cars has he?"                                      0.35

The share is the weighted part of the item's runs of five tokens that the text has. First, the runs of all items are
learnt. Then texts are streamed, and only the runs that they share with an item are stored, 8 bytes a run on disk. A run
that occurs in f of N texts and items weighs log((N + 1) / f): "how many does he have" weighs little, "3 red cars and
buys" much. Tokens are compared by their stems and quantities (`tokens`). So case, plurals and layout make no
difference, and "three" equals "3".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truegold.pipeline.near.arrays import TABLE_ROWS, Floats, Hashes, Ints, OnDisk, pack_pairs, unpack_pairs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

RUN_TOKENS = 5
"""The number of tokens in a run."""
MAX_PAIRS = 200_000
"""The maximum number of pairs of a text and an item that share one run. A run in more pairs is boilerplate and is
ignored."""
FILTER_BITS = 4
"""The prefilter discards most runs that no item has. It has at least 2**FILTER_BITS slots for each learnt run. So at
most one in sixteen such runs passes."""


@dataclass(frozen=True)
class Containment:
    """Pairs of a text and an item, in which the text contains a part of the item."""

    text: Ints
    item: Ints
    share: Floats
    """The weighted share of the item's runs that the text has."""
    weight: Floats
    """The total weight of the shared runs."""


class GramIndex:
    """Learns all items (`learn`), looks up texts in order (`look_up`), then adds up the shared runs (`contained`).

    Items and texts are identified by their row numbers.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self._learnt: list[tuple[Hashes, Ints]] = []
        # The sorted distinct runs, and a table [runs, items] of the runs of each item. Both are made at the first
        # look-up.
        self._runs: Hashes | None = None
        self._run_items: csr_array
        # Pairs of a text and a run that it shares with an item.
        self._text = OnDisk(np.int32, scratch)
        self._run = OnDisk(np.int32, scratch)
        self._texts_with: Ints
        self._rows = 0

    def learn(self, row: Ints, token: Hashes, rows: int) -> None:
        """Learn the tokens of `rows` more items. `row` has the row number of each token's item, ascending."""
        self._learnt.append(_hash_runs(row, token))
        self._rows += rows

    def _index_runs(self) -> Hashes:
        from scipy.sparse import csr_array

        learnt = np.concatenate([np.zeros(0, np.uint64), *(runs for runs, _ in self._learnt)])
        item = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._learnt)])
        self._learnt.clear()
        self._runs, run = np.unique(learnt, return_inverse=True)
        self._run_items = csr_array((np.ones(len(run)), (run, item)), shape=(len(self._runs), self._rows))
        self._run_items.data[:] = 1
        self._shift = np.uint64(64 - max(16, len(self._runs).bit_length() + FILTER_BITS))
        self._passes = np.zeros(1 << (64 - int(self._shift)), dtype=bool)
        self._passes[self._runs >> self._shift] = True
        self._texts_with = np.zeros(len(self._runs), dtype=np.int64)
        return self._runs

    def look_up(self, row: Ints, token: Hashes, rows: int) -> None:
        """Look up the tokens of `rows` more texts. `row` has the row number of each token's text, ascending."""
        learnt = self._index_runs() if self._runs is None else self._runs
        self._rows += rows
        if not len(learnt):
            return
        runs, text = _hash_runs(row, token)
        maybe = self._passes[runs >> self._shift]
        runs, text = runs[maybe], text[maybe]
        position = np.minimum(np.searchsorted(learnt, runs), len(learnt) - 1)
        is_shared = learnt[position] == runs
        text, run = unpack_pairs(np.unique(pack_pairs(text[is_shared], position[is_shared])))
        self._text.extend(text)
        self._run.extend(run)
        self._texts_with += np.bincount(run, minlength=len(learnt))

    def contained(self, share: float, weight: float) -> Containment:
        """Return the pairs in which a text has at least this share and this total weight of an item's runs."""
        from scipy.sparse import csr_array

        if self._runs is None:
            self._index_runs()
        text, run = self._text.array, self._run.array
        texts_with, items_with = self._texts_with, np.diff(self._run_items.indptr)
        run_weight = np.log((self._rows + 1) / np.maximum(texts_with + items_with, 1)) / np.log(self._rows + 2)
        is_useful = texts_with * items_with <= MAX_PAIRS
        item_weight = np.maximum(run_weight @ self._run_items, 1e-9)
        held = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.float32))]
        for first in range(0, self._rows, TABLE_ROWS):
            # `text` is sorted, because texts were looked up in order.
            part = slice(*np.searchsorted(text, (first, first + TABLE_ROWS)))
            useful = is_useful[run[part]]
            some_text, some_run = text[part][useful] - first, run[part][useful]
            has_run = csr_array((run_weight[some_run], (some_text, some_run)), (TABLE_ROWS, len(run_weight)))
            shared = (has_run @ self._run_items).tocoo()
            text_rows, item_rows = (coordinates.astype(np.int64) for coordinates in shared.coords)
            shared_weight = shared.data.astype(np.float32)
            ratio = shared_weight / item_weight[item_rows]
            enough = (ratio >= share) & (shared_weight >= weight)
            weights = shared_weight[enough]
            held.append((text_rows[enough] + first, item_rows[enough], ratio[enough].astype(np.float32), weights))
        return Containment(*map(np.concatenate, zip(*held, strict=True)))


def _hash_runs(row: Ints, token: Hashes) -> tuple[Hashes, Ints]:
    """Return a hash of every run of RUN_TOKENS tokens within a row, and the row of each run."""
    if len(row) < RUN_TOKENS:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    last = len(row) - RUN_TOKENS + 1
    mixed = np.zeros(last, dtype=np.uint64)
    for offset in range(RUN_TOKENS):
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + token[offset : offset + last]
        mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(32)
    inside = row[:last] == row[RUN_TOKENS - 1 :]
    return mixed[inside], row[:last][inside].astype(np.int64)

"""Which texts hold another text word for word, wholly or for the most part? Runs of five tokens, weighted by rarity.

    an item    "Tom has 3 red cars and buys 4 more. How many cars has he?"
    a text     "Solve step by step. Tom has 3 red cars and buys 4 more. How many cars has he? Give a number."   1.00
    another    "Tom has 5 red cars and buys 9 more. How many cars has he?"                                      0.35

The runs of all items are learnt first; then texts go by, and only what they share with an item is remembered, 8 bytes a
run. What counts is the share of an item's runs, each weighted by log((N + 1) / f) for a run that f of all N texts and
items have: "how many does he have" tells nothing, "3 red cars and buys" does. Tokens are compared by their stems and
quantities (`tokens`), so that case, plurals, "three" and layout make no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Codes, Floats, Growing, Hashes, Ints, count_within_runs, run_starts

RUN_TOKENS = 5
"""Tokens of a run."""
MAX_PAIRS = 200_000
"""A run that ties more pairs of a text and an item is boilerplate, whatever its weight: it counts as not shared."""
TEXT_BATCH = 100_000
"""Texts whose shared runs are added up at a time."""
FILTER_BITS = 4
"""The first filter has 2**FILTER_BITS slots for each learnt run: one run in sixteen passes it by chance."""


@dataclass(frozen=True)
class Containment:
    """Pairs of a text and an item that it holds a part of."""

    text: Ints
    item: Ints
    share: Floats
    """The share of the item's runs that the text has, by weight."""
    weight: Floats
    """The weight of the runs that they share."""


class GramIndex:
    """Learns all items (`learn`), then looks texts up in order (`look_up`), then adds up what they share (`contained`).

    Items and texts are called by their row numbers.
    """

    def __init__(self) -> None:
        self._learnt: list[tuple[Hashes, Ints]] = []
        # Distinct runs, sorted; None until the first text is looked up.
        self._runs: Hashes | None = None
        # The items that have run r are `self._run_items[self._starts[r]:self._starts[r + 1]]`.
        self._run_items: Ints = np.zeros(0, np.int64)
        self._starts: Ints = np.zeros(1, np.int64)
        # Pairs of a text and a run that it shares with an item.
        self._text = Growing(np.int32)
        self._run = Growing(np.int32)
        self._rows = 0

    def learn(self, row: Ints, token: Hashes, rows: int) -> None:
        """Learn `rows` more items by their tokens; `row` is the item of each token, ascending."""
        self._learnt.append(_hash_runs(row, token))
        self._rows += rows

    def _index_runs(self) -> Hashes:
        runs = np.concatenate([np.zeros(0, np.uint64), *(runs for runs, _ in self._learnt)])
        items_of_runs = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._learnt)])
        self._learnt.clear()
        order = np.lexsort((items_of_runs, runs))
        runs, items_of_runs = runs[order], items_of_runs[order]
        distinct = run_starts(runs) | run_starts(items_of_runs)
        runs, self._run_items = runs[distinct], items_of_runs[distinct]
        heads = np.flatnonzero(run_starts(runs))
        self._starts = np.append(heads, len(runs))
        self._runs = runs[heads]
        self._shift = np.uint64(64 - max(16, len(heads).bit_length() + FILTER_BITS))
        self._passes = np.zeros(1 << (64 - int(self._shift)), dtype=bool)
        self._passes[self._runs >> self._shift] = True
        return self._runs

    def look_up(self, row: Ints, token: Hashes, rows: int) -> None:
        """Look up `rows` more texts by their tokens; `row` is the text of each token, ascending."""
        learnt = self._index_runs() if self._runs is None else self._runs
        self._rows += rows
        if not len(learnt):
            return
        runs, text = _hash_runs(row, token)
        maybe = self._passes[runs >> self._shift]
        runs, text = runs[maybe], text[maybe]
        position = np.minimum(np.searchsorted(learnt, runs), len(learnt) - 1)
        is_shared = learnt[position] == runs
        pair = np.unique((text[is_shared] << 32) | position[is_shared])
        self._text.extend(pair >> 32)
        self._run.extend(pair & 0xFFFFFFFF)

    def contained(self, share: float, weight: float) -> Containment:
        """Return the pairs in which a text has at least this share and this weight of an item's runs."""
        text, run = self._text.array, self._run.array
        texts_with = np.bincount(run, minlength=len(self._starts) - 1)
        items_with = np.diff(self._starts)
        run_weight = np.log((self._rows + 1) / np.maximum(texts_with + items_with, 1)) / np.log(self._rows + 2)
        item_weight = np.zeros(int(self._run_items.max(initial=-1)) + 1)
        np.add.at(item_weight, self._run_items, np.repeat(run_weight, items_with))
        useful = texts_with * items_with <= MAX_PAIRS
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.float32))]
        for start in range(0, int(text.max(initial=-1)) + 1, TEXT_BATCH):
            first, last = np.searchsorted(text, (start, start + TEXT_BATCH))
            kept = first + np.flatnonzero(useful[run[first:last]])
            parts.append(self._add_up(text[kept], run[kept], run_weight))
        pair = np.concatenate([pairs for pairs, _ in parts])
        shared = np.concatenate([weights for _, weights in parts])
        text_rows, item_rows = pair >> 32, pair & 0xFFFFFFFF
        ratio = shared / np.maximum(item_weight[item_rows], 1e-9)
        enough = (ratio >= share) & (shared >= weight)
        return Containment(text_rows[enough], item_rows[enough], ratio[enough].astype(np.float32), shared[enough])

    def _add_up(self, text: Codes, run: Codes, run_weight: npt.NDArray[np.float64]) -> tuple[Ints, Floats]:
        """Return the pairs (text << 32 | item) and the weight of the runs that each pair shares."""
        counts = np.diff(self._starts)[run]
        item = self._run_items[np.repeat(self._starts[run], counts) + count_within_runs(counts)]
        pair = (np.repeat(text, counts).astype(np.int64) << 32) | item
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        heads = np.flatnonzero(run_starts(pair))
        weight = np.add.reduceat(np.repeat(run_weight[run], counts)[order], heads) if len(heads) else np.zeros(0)
        return pair[heads], weight.astype(np.float32)


def _hash_runs(row: Ints, token: Hashes) -> tuple[Hashes, Ints]:
    """Return a hash of every run of RUN_TOKENS tokens within a row, and the row of each."""
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

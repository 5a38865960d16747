"""Numbers for distinct texts, hashes and pairs, in the order in which they first come, for many of them at a time."""

from __future__ import annotations

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Codes, Hashes, Ints

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: its multiples spread evenly."""
SLOTS_PER_PAIR = 4
"""Slots for each pair, at least, so that most pairs are found at the first look."""
HALF = np.uint64(32)


class TextNumbers:
    """Numbers of texts, which polars holds and finds: some 20 bytes each besides the text itself."""

    def __init__(self) -> None:
        # The order in which polars numbers categories is its own, so that its numbers are looked up in a table.
        self._categories = pl.Categorical(pl.Categories.random())
        self._alive = pl.Series([], dtype=self._categories)
        self._numbers = np.full(2**16, -1, dtype=np.int32)
        self._count = 0

    def assign(self, texts: pl.Series) -> tuple[Ints, pl.Series]:
        """Return the number of each text, and the texts that had not come before, in the order of their numbers."""
        categories = texts.cast(self._categories)
        # A series has to stay alive: polars forgets categories that no series uses.
        self._alive = categories.slice(0, 1)
        codes = categories.to_physical().to_numpy()
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


class HashNumbers:
    """Numbers of hashes, in 16 bytes each and a time that grows as n log n.

    They are held in sorted arrays, each at least twice as long as the next: a lookup searches all of them, and growing
    merges the last ones.
    """

    def __init__(self) -> None:
        self._levels: list[tuple[Hashes, Ints]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def assign(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """Return the number of each hash, and the positions of those that had not come before, in numerical order."""
        distinct, first, back = np.unique(hashes, return_index=True, return_inverse=True)
        numbers = np.full(len(distinct), -1, dtype=np.int64)
        for level_hashes, level_numbers in self._levels:
            position = np.minimum(np.searchsorted(level_hashes, distinct), len(level_hashes) - 1)
            is_known = level_hashes[position] == distinct
            numbers[is_known] = level_numbers[position[is_known]]
        new = np.flatnonzero(numbers < 0)
        by_position = new[np.argsort(first[new])]
        numbers[by_position] = self._count + np.arange(len(by_position))
        self._count += len(by_position)
        if len(new):
            self._add_level(distinct[new], numbers[new])
        return numbers[back], first[by_position]

    def _add_level(self, hashes: Hashes, numbers: Ints) -> None:
        while self._levels and len(self._levels[-1][0]) < 2 * len(hashes):
            level_hashes, level_numbers = self._levels.pop()
            hashes, numbers = np.concatenate([level_hashes, hashes]), np.concatenate([level_numbers, numbers])
            order = np.argsort(hashes, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
        self._levels.append((hashes, numbers))


class PairNumbers:
    """A hash table in a flat array from pairs of numbers below 2**16 to another number; 30 to 60 bytes a pair."""

    def __init__(self) -> None:
        self._count = 0
        self._clear_slots(16)

    def _clear_slots(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._last = np.uint64((1 << bits) - 1)
        # A slot has the pair plus one in its upper half and the pair's number in its lower half, or it is 0.
        self._slots = np.zeros(1 << bits, dtype=np.uint64)

    def look_up(self, pairs: Hashes) -> Codes:
        """Return the number of each pair (left << 16 | right), -1 for those that are unknown."""
        slot = (pairs * FACTOR) >> self._shift
        entries = self._slots[slot]
        other = np.flatnonzero((entries >> HALF != pairs + np.uint64(1)) & (entries != 0))
        while len(other):
            slot[other] = (slot[other] + np.uint64(1)) & self._last
            entries[other] = self._slots[slot[other]]
            other = other[(entries[other] >> HALF != pairs[other] + np.uint64(1)) & (entries[other] != 0)]
        numbers: Codes = entries.astype(np.int32)
        numbers[entries == 0] = -1
        return numbers

    def add(self, pairs: Hashes, numbers: Codes) -> None:
        """Add pairs that are not in the table yet and that are all different."""
        entries = ((pairs + np.uint64(1)) << HALF) | numbers.astype(np.uint64)
        self._count += len(pairs)
        if self._count * SLOTS_PER_PAIR > len(self._slots):
            entries = np.concatenate([self._slots[self._slots != 0], entries])
            self._clear_slots((self._count * SLOTS_PER_PAIR).bit_length())
        slot = (((entries >> HALF) - np.uint64(1)) * FACTOR) >> self._shift
        while len(entries):
            free = self._slots[slot] == 0
            # Of several entries for one slot the last is written; the others try the next slot.
            self._slots[slot[free]] = entries[free]
            left_over = self._slots[slot] != entries
            entries, slot = entries[left_over], (slot[left_over] + np.uint64(1)) & self._last

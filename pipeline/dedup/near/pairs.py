"""A table from pairs of small numbers to another number, for many pairs at a time: a hash table in a flat array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from truegold.pipeline.dedup.near.sparse import Codes

Pairs = npt.NDArray[np.uint64]

FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: its multiples spread evenly."""
ROOM = 4
"""Slots for each pair, at least: most pairs are found at the first look."""
HALF = np.uint64(32)


class PairTable:
    """Numbers of pairs; both of a pair are below 2**16. 30 to 60 bytes a pair."""

    def __init__(self) -> None:
        self._count = 0
        self._make_room(16)

    def _make_room(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._last = np.uint64((1 << bits) - 1)
        # A slot has the pair and one more in its upper half, the pair's number in its lower one, or nothing.
        self._slots = np.zeros(1 << bits, dtype=np.uint64)

    def look_up(self, pairs: Pairs) -> Codes:
        """The number of each pair (one << 16 | other), -1 for those that are unknown."""
        slot = (pairs * FACTOR) >> self._shift
        found = self._slots[slot]
        other = np.flatnonzero((found >> HALF != pairs + np.uint64(1)) & (found != 0))
        while len(other):
            slot[other] = (slot[other] + np.uint64(1)) & self._last
            found[other] = self._slots[slot[other]]
            other = other[(found[other] >> HALF != pairs[other] + np.uint64(1)) & (found[other] != 0)]
        numbers: Codes = found.astype(np.int32)
        numbers[found == 0] = -1
        return numbers

    def add(self, pairs: Pairs, numbers: Codes) -> None:
        """Pairs that are not in it yet, all different."""
        entries = ((pairs + np.uint64(1)) << HALF) | numbers.astype(np.uint64)
        self._count += len(pairs)
        if self._count * ROOM > len(self._slots):
            entries = np.concatenate([self._slots[self._slots != 0], entries])
            self._make_room((self._count * ROOM).bit_length())
        slot = (((entries >> HALF) - np.uint64(1)) * FACTOR) >> self._shift
        while len(entries):
            free = self._slots[slot] == 0
            self._slots[slot[free]] = entries[free]  # of several for one slot one gets it
            left = self._slots[slot] != entries
            entries, slot = entries[left], (slot[left] + np.uint64(1)) & self._last

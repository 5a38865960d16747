"""A table from pairs of feature numbers to another number, for many pairs at a time: a hash table in flat arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]

EMPTY = np.uint64(2**64 - 1)
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio: its multiples spread evenly."""
ROOM = 4
"""Slots for each pair, at least: most pairs are found at the first look."""


class PairTable:
    """12 bytes a slot, that is 50 to 100 a pair. -1 stands for pairs that are not in it."""

    def __init__(self) -> None:
        self._count = 0
        self._make_room(16)

    def _make_room(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._mask = (1 << bits) - 1
        self._keys = np.full(1 << bits, EMPTY)
        self._values = np.full(1 << bits, -1, dtype=np.int32)

    def look_up(self, pairs: Keys) -> Numbers:
        """The number of each pair, -1 for those that are unknown."""
        slot = self._slots(pairs)
        found = self._keys[slot]
        numbers: Numbers = self._values[slot]
        other = np.flatnonzero((found != pairs) & (found != EMPTY))
        while len(other):
            slot[other] = (slot[other] + 1) & self._mask
            found = self._keys[slot[other]]
            numbers[other] = self._values[slot[other]]
            other = other[(found != pairs[other]) & (found != EMPTY)]
        return numbers

    def add(self, pairs: Keys, numbers: Numbers) -> None:
        """Pairs that are not in it yet, all different."""
        self._count += len(pairs)
        if self._count * ROOM > len(self._keys):
            filled = self._keys != EMPTY
            pairs, numbers = np.concatenate([self._keys[filled], pairs]), np.concatenate([self._values[filled], numbers])
            self._make_room((self._count * ROOM).bit_length())
        slot = self._slots(pairs)
        left = np.arange(len(pairs))
        while len(left):
            free = left[self._keys[slot[left]] == EMPTY]
            self._keys[slot[free]] = pairs[free]  # of several for one slot one gets it
            left = left[self._keys[slot[left]] != pairs[left]]
            slot[left] = (slot[left] + 1) & self._mask
        self._values[slot] = numbers

    def _slots(self, pairs: Keys) -> npt.NDArray[np.int64]:
        return ((pairs * FACTOR) >> self._shift).astype(np.int64)

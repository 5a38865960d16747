"""Which pairs cannot be related, told from a few bits of each text: no link is lost, and most measuring is saved.

    words of a text    128 bits, each word sets one    quantities    64 bits, those that are no weak ones 64 more

A bit that only one text has stands for at least one word that the other lacks. So the words in common are at most those
of either text less its bits of this kind: a bound on the overlap of all words. And two texts that each have a strong
quantity whose bit the other lacks have quantities replaced: they are not the same problem. A pair is measured when the
bound reaches what `relation` asks for, or when its quantities may agree and neither text is about a program.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import Codes, Hashes, Ints, Marks
from truegold.pipeline.near.features import Features
from truegold.pipeline.near.relation import RELATED, REPLACED
from truegold.pipeline.near.sparse import Sparse
from truegold.pipeline.near.workers import map_in_threads

CHUNK = 50_000
"""Rows outlined at a time: some 40 MB."""
MARGIN = 0.05
"""Weights are sums of rounded numbers: what counts as strong lies so far above the limit."""
CODE_BIT = np.uint64(1 << 63)
STRONG, NUMBERS, COUNT = 2, 3, 4
"""Columns of an outline after the two of its words; the last has the number of distinct words, with CODE_BIT."""


class Outlines:
    """Outlines of all rows of one set of features, 40 bytes each."""

    def __init__(self, features: Features) -> None:
        self._table = np.zeros((len(features), 5), dtype=np.uint64)

        def fill(start: int) -> None:
            part = self._table[start : start + CHUNK]
            words, numbers = (table.part(start, start + CHUNK) for table in (features.words, features.numbers))
            word_hashes = _hash_codes(words.codes, 7)
            for column in range(2):
                is_here = word_hashes >> 6 == column
                part[:, column] = _unite(words, np.where(is_here, _single_bit(word_hashes), np.uint64(0)))
            bits = _single_bit(_hash_codes(numbers.codes, 6))
            part[:, NUMBERS] = _unite(numbers, bits)
            part[:, STRONG] = _unite(numbers, np.where(numbers.values > REPLACED + MARGIN, bits, np.uint64(0)))
            part[:, COUNT] = np.diff(words.starts)

        deque(map_in_threads(fill, range(0, len(features), CHUNK)), maxlen=0)
        self._table[features.code, COUNT] |= CODE_BIT

    def may_relate(self, left: Ints, right: Ints) -> Marks:
        """Mark the pairs that may be related, as `relation.relate` says; what is not marked is not."""
        left_bits, right_bits = self._table.take(left, axis=0).T, self._table.take(right, axis=0).T
        code = (left_bits[COUNT] | right_bits[COUNT]) >= CODE_BIT
        # The conversion to 32 bits leaves CODE_BIT out.
        left_count, right_count = left_bits[COUNT].astype(np.int32), right_bits[COUNT].astype(np.int32)
        shared = np.minimum(
            left_count - _count_missing(left_bits, right_bits), right_count - _count_missing(right_bits, left_bits)
        )
        overlap = shared >= np.float32(RELATED) * (left_count + right_count - shared)
        left_replaced = (left_bits[STRONG] & ~right_bits[NUMBERS]) != 0
        right_replaced = (right_bits[STRONG] & ~left_bits[NUMBERS]) != 0
        marks: Marks = overlap | ~((left_replaced & right_replaced) | code)
        return marks


def _hash_codes(codes: Codes, width: int) -> npt.NDArray[np.uint32]:
    """Return a hash of so many bits for each feature."""
    return (codes.astype(np.uint32) * np.uint32(0x9E3779B1)) >> np.uint32(32 - width)


def _single_bit(bit: npt.NDArray[np.uint32]) -> Hashes:
    """Return a number of 64 bits with only this bit (modulo 64) set."""
    return np.left_shift(np.uint64(1), (bit & np.uint32(63)).astype(np.uint64))


def _unite(table: Sparse, bits: Hashes) -> Hashes:
    """Return the bits of each row's features in one number."""
    united = np.zeros(len(table), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(table.starts))
    if len(filled):
        united[filled] = np.bitwise_or.reduceat(bits, table.starts[filled])
    return united


def _count_missing(left: Hashes, right: Hashes) -> npt.NDArray[np.uint8]:
    """Return for each pair of outlines how many bits of words only the left one has."""
    missing: npt.NDArray[np.uint8] = np.bitwise_count(left[0] & ~right[0]) + np.bitwise_count(left[1] & ~right[1])
    return missing

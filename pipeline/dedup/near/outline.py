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

from truegold.pipeline.dedup.near.features import Features
from truegold.pipeline.dedup.near.relation import RELATED, REPLACED
from truegold.pipeline.dedup.near.sparse import Ints, Sparse
from truegold.pipeline.dedup.near.workers import in_order_of

Bits = npt.NDArray[np.uint64]

CHUNK = 50_000
"""Rows outlined at a time: some 40 MB."""
MARGIN = 0.05
"""Weights are sums of rounded numbers: what counts as strong lies so far above the limit."""
CODE_BIT = np.uint64(1 << 63)
STRONG, NUMBERS, COUNT = 2, 3, 4
"""Columns of an outline after the two of its words; the last one is the number of distinct words, with CODE_BIT."""


class Outlines:
    """Outlines of all rows of one set of features, 40 bytes each."""

    def __init__(self, features: Features) -> None:
        self._table = np.zeros((len(features), 5), dtype=np.uint64)

        def fill(start: int) -> None:
            part = self._table[start : start + CHUNK]
            words, numbers = (table.part(start, start + CHUNK) for table in (features.words, features.numbers))
            bits = _bits(words.codes, 7)
            for column in range(2):
                part[:, column] = _united(words, np.where(bits >> 6 == column, _one(bits), np.uint64(0)))
            ones = _one(_bits(numbers.codes, 6))
            part[:, NUMBERS] = _united(numbers, ones)
            part[:, STRONG] = _united(numbers, np.where(numbers.values > REPLACED + MARGIN, ones, np.uint64(0)))
            part[:, COUNT] = np.diff(words.starts)

        deque(in_order_of(range(0, len(features), CHUNK), fill), maxlen=0)
        self._table[features.code, COUNT] |= CODE_BIT

    def may_relate(self, left: Ints, right: Ints) -> npt.NDArray[np.bool_]:
        """Marks the pairs that may be related, as `relation.relate` says; what is not marked is not."""
        one, other = self._table.take(left, axis=0).T, self._table.take(right, axis=0).T
        code = (one[COUNT] | other[COUNT]) >= CODE_BIT
        own, its = one[COUNT].astype(np.int32), other[COUNT].astype(np.int32)  # which leaves CODE_BIT out
        shared = np.minimum(own - _missing(one, other), its - _missing(other, one))
        overlap = shared >= np.float32(RELATED) * (own + its - shared)
        replaced = ((one[STRONG] & ~other[NUMBERS]) != 0) & ((other[STRONG] & ~one[NUMBERS]) != 0)
        marks: npt.NDArray[np.bool_] = overlap | ~(replaced | code)
        return marks


def _bits(codes: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.uint32]:
    """A hash of so many bits for each feature."""
    return (codes.astype(np.uint32) * np.uint32(0x9E3779B1)) >> np.uint32(32 - width)


def _one(bits: npt.NDArray[np.uint32]) -> Bits:
    return np.left_shift(np.uint64(1), (bits & np.uint32(63)).astype(np.uint64))


def _united(table: Sparse, bits: Bits) -> Bits:
    """The bits of each row's features in one number."""
    united = np.zeros(len(table), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(table.starts))
    if len(filled):
        united[filled] = np.bitwise_or.reduceat(bits, table.starts[filled])
    return united


def _missing(one: Bits, other: Bits) -> npt.NDArray[np.uint8]:
    """For each pair of outlines, how many bits of words only the first has."""
    missing: npt.NDArray[np.uint8] = np.bitwise_count(one[0] & ~other[0]) + np.bitwise_count(one[1] & ~other[1])
    return missing

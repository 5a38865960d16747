"""Flat arrays that grow in place, for tables of which nobody knows the size beforehand."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from truegold.pipeline.dedup.near.sparse import Codes, Ints, Sparse

Whole = TypeVar("Whole", np.int64, np.uint64)


class Growing:
    """A flat array that values are appended to, one by one or many at a time.

    It is enlarged by half when it is full; collecting many small arrays instead would leave the memory in pieces.
    """

    def __init__(self, dtype: type) -> None:
        self._data: npt.NDArray[Any] = np.zeros(1024, dtype=dtype)
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def append(self, value: float) -> None:
        """One value more."""
        if self._filled == len(self._data):
            self._enlarge(self._filled + 1)
        self._data[self._filled] = value
        self._filled += 1

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Many values more."""
        end = self._filled + len(values)
        if end > len(self._data):
            self._enlarge(end)
        self._data[self._filled : end] = values
        self._filled = end

    def _enlarge(self, needed: int) -> None:
        larger = np.empty(max(needed, len(self._data) * 3 // 2), dtype=self._data.dtype)
        larger[: self._filled] = self._data[: self._filled]
        self._data = larger

    @property
    def array(self) -> npt.NDArray[Any]:
        """What has been appended so far; a view."""
        return self._data[: self._filled]


class GrowingSparse:
    """Collects (row, feature) pairs of consecutive chunks of rows into one `Sparse`."""

    def __init__(self, values: type) -> None:
        self._lengths = Growing(np.int32)
        self._codes = Growing(np.int32)
        self._values = Growing(values)

    def add(self, row: Codes, feature: Codes, rows: int) -> None:
        """The features of `rows` more rows, numbered from 0; all values are 1."""
        key = (row.astype(np.int64) << 32) | feature
        key = in_order(key)
        key = key[run_starts(key)]
        self._take(key, 32, np.ones(len(key), dtype=np.int8), rows)

    def add_marked(self, row: Codes, feature: Codes, marked: npt.NDArray[np.bool_], rows: int) -> None:
        """Likewise; features below 0 are none, and of one that is marked anywhere in the row the value is 2."""
        key = row.astype(np.int64) << 33
        key |= feature.astype(np.int64) << 1
        key |= marked
        key = in_order(key[feature >= 0])
        key = key[run_ends(key >> 1)]
        self._take(key, 33, (key & 1) + 1, rows)

    def add_sums(self, row: Codes, feature: Codes, value: npt.NDArray[np.float32], rows: int) -> None:
        """Likewise; the values of a feature that occurs twice add up."""
        key = (row.astype(np.int64) << 32) | feature
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(run_starts(key))
        sums = np.add.reduceat(value[order], first) if len(first) else np.zeros(0, np.float32)
        self._take(key[first], 32, sums, rows)

    def _take(self, key: Ints, shift: int, values: npt.NDArray[Any], rows: int) -> None:
        """key: sorted, with the row from bit `shift` on, and the feature in the 32 bits below."""
        self._lengths.extend(np.diff(np.searchsorted(key, np.arange(rows + 1) << shift)))
        self._codes.extend((key >> (shift - 32)).astype(np.int32))
        self._values.extend(values)

    def finish(self) -> Sparse:
        """All rows added."""
        starts = np.concatenate(([0], np.cumsum(self._lengths.array, dtype=np.int64)))
        return Sparse(starts, self._codes.array, self._values.array)


def in_order(values: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """The values sorted. polars takes a third of the time of numpy's own sort, and lets go of Python's lock."""
    ordered: npt.NDArray[Whole] = pl.Series(values).sort(multithreaded=False).to_numpy()
    return ordered


def run_starts(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Marks the first value of each run of equal ones in a sorted array."""
    marks = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=marks[1:])
    return marks


def run_ends(ordered: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Marks the last value of each run of equal ones in a sorted array."""
    marks = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=marks[:-1])
    return marks

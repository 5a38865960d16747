"""Sparse tables of features: each row has some feature numbers, sorted, and a value for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from truegold.pipeline.near.arrays import (
    Codes,
    Floats,
    Growing,
    Ints,
    Marks,
    run_ends,
    run_starts,
    sort_values,
    sum_runs,
)


@dataclass(frozen=True)
class Sparse:
    """Rows of sorted feature numbers."""

    starts: Ints
    """Row r is `codes[starts[r]:starts[r + 1]]`."""
    codes: Codes
    """The feature numbers of all rows, one row after the other."""
    values: npt.NDArray[Any]
    """The value of each feature, alongside `codes`."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, index: int) -> Codes:
        """Return the feature numbers of one row."""
        return self.codes[self.starts[index] : self.starts[index + 1]]

    def part(self, start: int, end: int) -> Sparse:
        """Return the rows from `start` on, before `end`, as views."""
        starts = self.starts[start : end + 1]
        span = slice(starts[0], starts[-1])
        return Sparse(starts - starts[0], self.codes[span], self.values[span])

    def row_sums(self, values: npt.NDArray[Any]) -> Floats:
        """Return for each row the sum of `values`, which stand alongside `codes`."""
        return sum_runs(self.starts, values)


class SparseBuilder:
    """Collects (row, feature) pairs of consecutive chunks of rows into one `Sparse`.

    Every method that adds a chunk takes its rows numbered from 0 and how many rows there are.
    """

    def __init__(self, dtype: type) -> None:
        self._lengths = Growing(np.int32)
        self._codes = Growing(np.int32)
        self._values = Growing(dtype)

    def add(self, row: Codes, feature: Codes, rows: int) -> None:
        """Add the features of `rows` more rows with the value 1."""
        key = sort_values((row.astype(np.int64) << 32) | feature)
        key = key[run_starts(key)]
        self._append(key, 32, np.ones(len(key), dtype=np.int8), rows)

    def add_marked(self, row: Codes, feature: Codes, marked: Marks, rows: int) -> None:
        """Add features with the value 2 where they are marked anywhere in the row, else 1. Negative ones are none."""
        key = row.astype(np.int64) << 33
        key |= feature.astype(np.int64) << 1
        key |= marked
        key = sort_values(key[feature >= 0])
        key = key[run_ends(key >> 1)]
        self._append(key, 33, (key & 1) + 1, rows)

    def add_sums(self, row: Codes, feature: Codes, weight: Floats, rows: int) -> None:
        """Add features with their weights; the weights of a feature that occurs twice in a row add up."""
        key = (row.astype(np.int64) << 32) | feature
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(run_starts(key))
        sums = np.add.reduceat(weight[order], first) if len(first) else np.zeros(0, np.float32)
        self._append(key[first], 32, sums, rows)

    def _append(self, key: Ints, shift: int, values: npt.NDArray[Any], rows: int) -> None:
        """Append sorted keys, which hold the row from bit `shift` on and the feature in the 32 bits below."""
        self._lengths.extend(np.diff(np.searchsorted(key, np.arange(rows + 1) << shift)))
        self._codes.extend((key >> (shift - 32)).astype(np.int32))
        self._values.extend(values)

    def finish(self) -> Sparse:
        """Return the table of all rows added."""
        starts = np.concatenate(([0], np.cumsum(self._lengths.array, dtype=np.int64)))
        return Sparse(starts, self._codes.array, self._values.array)

"""Sparse rows of feature numbers, and the types of arrays that go with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Sparse:
    """Rows of sorted feature numbers: row r is `codes[starts[r]:starts[r + 1]]`, with `values` alongside."""

    starts: Ints
    codes: Codes
    values: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, index: int) -> Codes:
        """The feature numbers of one text."""
        return self.codes[self.starts[index] : self.starts[index + 1]]

    def part(self, start: int, end: int) -> Sparse:
        """The rows from `start` on, before `end`, as views."""
        starts = self.starts[start : end + 1]
        inside = slice(starts[0], starts[-1])
        return Sparse(starts - starts[0], self.codes[inside], self.values[inside])

    def row_sums(self, values: npt.NDArray[Any]) -> Floats:
        """For each row the sum of `values`, which stand alongside `codes`."""
        return run_sums(self.starts, values)


def run_sums(starts: npt.NDArray[Any], values: npt.NDArray[Any]) -> Floats:
    """Sums of `values[starts[i]:starts[i + 1]]` as float32; 0 for an empty run."""
    sums = np.zeros(len(starts) - 1, dtype=np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(values, starts[filled], dtype=np.float32)
    return sums

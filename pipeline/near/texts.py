"""The distinct texts of a corpus as they were written, in a temporary file: memory holds 8 bytes of each."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Growing

MAX_CHARS = 6_000
"""Of a longer text only the beginning is held."""


class TextFile:
    """Takes texts in order (`add`) and gives back those with some numbers (`read`). The file goes with the object."""

    def __init__(self, folder: Path | None = None) -> None:
        self._descriptor, path = tempfile.mkstemp(dir=folder)
        # An open file without a name takes its space until it is closed, whatever becomes of this process.
        Path(path).unlink()
        weakref.finalize(self, os.close, self._descriptor)
        self._ends = Growing(np.int64)
        self._size = 0

    def add(self, texts: pl.Series) -> None:
        """Add more texts."""
        cut = texts.str.slice(0, MAX_CHARS)
        ends = self._size + np.cumsum(cut.str.len_bytes().to_numpy().astype(np.int64))
        data = memoryview("".join(cut.to_list()).encode())
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._ends.extend(ends)
        self._size = int(ends[-1]) if len(ends) else self._size

    def read(self, numbers: Iterable[int]) -> list[str]:
        """Return the texts with these numbers, from 0."""
        ends = self._ends.array
        texts = []
        for text in numbers:
            start = int(ends[text - 1]) if text else 0
            texts.append(os.pread(self._descriptor, int(ends[text]) - start, start).decode())
        return texts

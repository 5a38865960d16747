"""Helpers for the large numpy arrays of `near`: growing arrays, packed pairs, runs of equal values, and threads.

Docstrings write shapes in brackets: `left: [pairs]` has an entry for each pair, `rarest: [texts, 7]` has 7 entries for
each text.
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.bool_]
Pairs = npt.NDArray[np.int64]
"""Pairs of numbers below 2**32, each packed into an integer: `left << 32 | right` (`pack_pairs`)."""

Whole = TypeVar("Whole", np.int64, np.uint64)
T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
"""The number of worker threads. Each thread takes about 100 MB while it works."""
TABLE_ROWS = 50_000
"""The number of rows of a feature table that are processed at a time."""


class Growing:
    """A flat array that grows: values are appended one by one or many at a time.

    When the array is full, it grows by half. This fragments memory less than a list of many small arrays does.
    """

    def __init__(self, dtype: type) -> None:
        self._buffer: npt.NDArray[Any] = np.zeros(1024, dtype=dtype)
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

    def append(self, value: float) -> None:
        """Append a single value."""
        if self._filled == len(self._buffer):
            self._enlarge(self._filled + 1)
        self._buffer[self._filled] = value
        self._filled += 1

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Append many values."""
        end = self._filled + len(values)
        if end > len(self._buffer):
            self._enlarge(end)
        self._buffer[self._filled : end] = values
        self._filled = end

    def _enlarge(self, needed: int) -> None:
        larger = np.empty(max(needed, len(self._buffer) * 3 // 2), dtype=self._buffer.dtype)
        larger[: self._filled] = self._buffer[: self._filled]
        self._buffer = larger

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values appended so far, as a view."""
        return self._buffer[: self._filled]


class OnDisk:
    """A flat array in a temporary file. Values are appended in blocks; the file is deleted with the object.

    The file is memory-mapped for reading, so the system can take pages back when memory is short.
    """

    def __init__(self, dtype: npt.DTypeLike, folder: Path | None = None) -> None:
        """Make an empty array whose unnamed file lies in `folder`, by default the system's temporary folder."""
        self._dtype = np.dtype(dtype)
        # The space of an unnamed file is free once it is closed, also if this process is killed.
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._mapped: npt.NDArray[Any] | None = np.zeros(0, self._dtype)
        """The values in the mapped file. None if values were appended since."""

    def __len__(self) -> int:
        return self._file.tell() // self._dtype.itemsize

    def extend(self, values: npt.NDArray[Any]) -> None:
        """Append many values."""
        if len(values):
            self._file.write(np.ascontiguousarray(values, self._dtype).view(np.uint8).data)
            self._mapped = None

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values appended so far."""
        if self._mapped is None:
            self._file.flush()
            self._mapped = np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype)
        return self._mapped


class Numbering:
    """Numbers distinct keys in order of first appearance: 9 4 9 7 -> 0 1 0 2. Takes 16 bytes a key on disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._runs: list[tuple[Hashes, Ints]] = []
        """Sorted keys, and the number of each key. Each run is less than half as long as the run before."""
        self._recent: dict[int, int] = {}
        """The keys that are not in a run yet, and their numbers."""

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs) + len(self._recent)

    def number_keys(self, keys: Hashes) -> Ints:
        """Return the number of each key."""
        numbers = np.full(len(keys), -1, dtype=np.int64)
        unknown = np.arange(len(keys))
        for run_keys, run_numbers in self._runs:
            positions = np.minimum(np.searchsorted(run_keys, keys[unknown]), len(run_keys) - 1)
            known = run_keys[positions] == keys[unknown]
            numbers[unknown[known]] = run_numbers[positions[known]]
            unknown = unknown[~known]
        recent, first = self._recent, len(self) - len(self._recent)
        numbers[unknown] = [recent.setdefault(key, first + len(recent)) for key in keys[unknown].tolist()]
        if len(recent) > TABLE_ROWS:
            new_keys = np.fromiter(recent, np.uint64, len(recent))
            order = np.argsort(new_keys)
            run = new_keys[order], first + order
            while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
                run = self._merge(self._runs.pop(), run)
            self._runs.append(run)
            recent.clear()
        return numbers

    def _merge(self, earlier: tuple[Hashes, Ints], later: tuple[Hashes, Ints]) -> tuple[Hashes, Ints]:
        keys, numbers = OnDisk(np.uint64, self._folder), OnDisk(np.int64, self._folder)
        size = len(earlier[0])
        for start in range(0, size, TABLE_ROWS):
            stop = start + TABLE_ROWS
            # A block merges its earlier keys with the later keys up to the last of them. The last block takes all
            # remaining later keys.
            first = np.searchsorted(later[0], earlier[0][start - 1]) if start else 0
            last = np.searchsorted(later[0], earlier[0][stop - 1]) if stop < size else len(later[0])
            positions = np.searchsorted(earlier[0][start:stop], later[0][first:last])
            for merged, *parts in zip((keys, numbers), earlier, later, strict=True):
                merged.extend(np.insert(parts[0][start:stop], positions, parts[1][first:last]))
        return keys.array, numbers.array


def pack_pairs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Pairs:
    """Return each pair of numbers as an integer: (1, 5) gives `1 << 32 | 5`."""
    pairs: Pairs = (left.astype(np.int64) << 32) | right
    return pairs


def unpack_pairs(pairs: Pairs) -> tuple[Ints, Ints]:
    """Return the first and the second numbers of pairs."""
    return pairs >> 32, pairs & 0xFFFFFFFF


def sort_values(values: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """Return the values sorted by polars, which takes a third of numpy's time and releases Python's lock."""
    return pl.Series(values).sort(multithreaded=False).to_numpy()


def sort_distinct(values: npt.NDArray[Whole]) -> npt.NDArray[Whole]:
    """Return the distinct values sorted."""
    ordered = sort_values(values)
    return ordered[run_starts(ordered)]


def run_starts(ordered: npt.NDArray[Any]) -> Marks:
    """Mark the first value of each run of equal values in a sorted array: 3 3 7 gives True False True."""
    marks = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=marks[1:])
    return marks


def repeat_over_runs(values: npt.NDArray[Any], heads: Ints, length: int) -> npt.NDArray[Any]:
    """Repeat each run's value over the whole run. `heads` are the starts of the runs, `length` is the length of the
    result."""
    return np.repeat(values, np.diff(heads, append=length))


def places_in(order: Ints) -> Ints:
    """Return the inverse of an order: the place of each index. [2, 0, 1] gives [1, 2, 0]: index 0 is at place 1."""
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    return positions


def count_within_runs(counts: npt.NDArray[Any]) -> Ints:
    """Count from 0 within each of consecutive runs: lengths [2, 0, 3] give 0 1 0 1 2."""
    total = int(counts.sum())
    within: Ints = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return within


def sum_runs(starts: npt.NDArray[Any], values: npt.NDArray[Any]) -> Floats:
    """Return the sums of `values[starts[i]:starts[i + 1]]` as float32; the sum of an empty run is 0."""
    sums = np.zeros(len(starts) - 1, dtype=np.float32)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(values, starts[filled], dtype=np.float32)
    return sums


def row_slices(table: csr_array) -> Iterator[tuple[slice, slice]]:
    """Yield a table in blocks: the slice of its rows, and the slice of their entries in `data` and `indices`."""
    rows = len(table.indptr) - 1
    for start in range(0, rows, TABLE_ROWS):
        stop = min(start + TABLE_ROWS, rows)
        yield slice(start, stop), slice(int(table.indptr[start]), int(table.indptr[stop]))


def sum_rows(table: csr_array, value: Callable[[slice], npt.NDArray[Any]]) -> Floats:
    """Return the sum of each row of a table. `value` returns the values of a slice of the table's entries."""
    sums = np.zeros(len(table.indptr) - 1, dtype=np.float32)
    for rows, entries in row_slices(table):
        starts = table.indptr[rows.start : rows.stop + 1] - entries.start
        sums[rows] = sum_runs(starts, value(entries))
    return sums


def release_memory() -> None:
    """Return freed memory to the system. The C library of Linux keeps most of it after large arrays."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def map_in_threads(work: Callable[[T], R], jobs: Iterable[T]) -> Iterator[R]:
    """Yield the result of `work` for each job, in order. At most 2 * THREADS results wait.

    Threads help, because numpy, scipy and polars release Python's lock.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        under_way: deque[Future[R]] = deque()
        for job in jobs:
            if len(under_way) == 2 * THREADS:
                yield under_way.popleft().result()
            under_way.append(pool.submit(work, job))
        while under_way:
            yield under_way.popleft().result()


def read_ahead(source: Iterable[T]) -> Iterator[T]:
    """Yield the elements of `source`, while another thread makes the next element. The source must not yield None."""
    rest = iter(source)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, rest, None)
        while (element := coming.result()) is not None:
            coming = pool.submit(next, rest, None)
            yield element

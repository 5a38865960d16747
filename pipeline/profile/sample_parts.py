"""Stores samples in Parquet files of at most 65,536 samples, the parts, with an index of 24 bytes for each sample.

    part-000000.parquet              prompt, sample, token_ids, logprobs, finish_reason, counted
    index-000000-000007-8.bin        the keys and locations of the samples in the parts 0 to 7, sorted by key

Indexes are memory-mapped. To keep their number low, neighbouring indexes of similar size are merged. A missing index is
rebuilt from the parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.engines.base import Completion, FinishReason
from truegold.pipeline.running.disk import written_aside
from truegold.verifiers import SetupError

SampleKey = tuple[str, int]
"""The digest of a prompt, and the index of one of its samples."""
Array = np.ndarray[Any, np.dtype[Any]]

GROUP_ROWS = 256
"""The maximum number of samples in a row group of a Parquet file. A row group is always read as a whole."""
GROUP_TOKENS = 2**17
"""A row group with at least this number of tokens ends early."""
GROUPS_KEPT = 128
"""The maximum number of row groups that are cached in memory."""
FILES_KEPT = 16
"""The maximum number of files that are kept open."""
SPREAD = 0x9E3779B97F4A7C15
"""An odd factor. It spreads the samples of one prompt over the range of keys."""
ALL_BITS = 2**64 - 1
MERGED_AT_A_TIME = 256
"""Two indexes are merged in this number of steps, to limit the memory."""

PART_SCHEMA = pa.schema(
    [
        ("prompt", pa.string()),
        ("sample", pa.int32()),
        ("token_ids", pa.list_(pa.int32())),
        ("logprobs", pa.list_(pa.float32())),
        ("finish_reason", pa.string()),
        ("counted", pa.int32()),
    ]
)


class SampleParts:
    """The parts in a folder. Only one process at a time may add parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_group = lru_cache(GROUPS_KEPT)(self._read_group_anew)
        self._open_file = lru_cache(FILES_KEPT)(self._open_file_anew)
        self._numbers = sorted(int(path.stem.partition("-")[2]) for path in folder.glob("part-*.parquet"))
        covered: set[int] = set()
        indexes: list[_Index] = []
        opened = map(_Index.mapped, folder.glob("index-*.bin"))
        for index in sorted(opened, key=lambda index: (index.first, -index.last)):
            numbers = {part_index for part_index in self._numbers if index.first <= part_index <= index.last}
            if len(numbers) == index.parts and not numbers & covered:
                covered |= numbers
                indexes.append(index)
            else:  # Some parts of this index are missing, or another index has them, too.
                index.path.unlink()
        indexes += [self._make_index(part_index) for part_index in self._numbers if part_index not in covered]
        self._indexes: list[_Index] = []
        for index in sorted(indexes, key=lambda index: index.first):
            self._take_in(index)

    def find(self, key: SampleKey) -> int | None:
        """Return the location of a sample, or None if it does not exist."""
        high, low = _hash(key)
        for index in reversed(self._indexes):
            entry = int(np.searchsorted(index.high, high))
            while entry < len(index.high) and index.high[entry] == high:
                if index.low[entry] == low:
                    return int(index.location[entry])
                entry += 1
        return None

    def read(self, location: int) -> Completion:
        """Return the sample at a location."""
        group, row = self._read_group(location >> 8), location & 0xFF
        token_ids, logprobs = (
            tuple(values[offsets[row] : offsets[row + 1]].tolist())
            for values, offsets in (group.token_ids, group.logprobs)
        )
        return Completion(token_ids, logprobs, group.finish_reasons[row], (), group.counted[row])

    def add(self, samples: Iterable[tuple[SampleKey, Mapping[str, Any]]]) -> None:
        """Write a part, and return once all of it is on disk."""
        part_index = self._numbers[-1] + 1 if self._numbers else 0
        with written_aside(self._path(part_index)) as aside:
            with pq.ParquetWriter(aside, PART_SCHEMA, compression="zstd") as writer:
                group: list[Mapping[str, Any]] = []
                tokens = 0
                for (prompt, sample), record in samples:
                    group.append({**record, "prompt": prompt, "sample": sample})
                    tokens += len(record["token_ids"])
                    if len(group) == GROUP_ROWS or tokens >= GROUP_TOKENS:
                        writer.write_table(pa.Table.from_pylist(group, PART_SCHEMA))
                        group, tokens = [], 0
                if group:
                    writer.write_table(pa.Table.from_pylist(group, PART_SCHEMA))
            with aside.open("rb") as written:
                os.fsync(written.fileno())
        self._numbers.append(part_index)
        self._take_in(self._make_index(part_index))

    def close(self) -> None:
        """Close the files."""
        self._read_group.cache_clear()
        self._open_file.cache_clear()
        self._indexes.clear()

    def _path(self, part_index: int) -> Path:
        return self._folder / f"part-{part_index:06d}.parquet"

    def _open_file_anew(self, part_index: int) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self._path(part_index), pre_buffer=False)
        except (OSError, pa.ArrowInvalid) as error:
            raise SetupError(
                f"{self._path(part_index)} cannot be read: {error}.", "Delete it: its samples are then drawn again."
            ) from error

    def _read_group_anew(self, part_and_group: int) -> _Group:
        part_index, group = divmod(part_and_group, 2**24)
        table = (
            self._open_file(part_index).read_row_group(group, PART_SCHEMA.names[2:], use_threads=False).combine_chunks()
        )
        token_ids, logprobs = (
            (column.values.to_numpy(), column.offsets.to_numpy())
            for column in (table[name].chunk(0) for name in ("token_ids", "logprobs"))
        )
        return _Group(token_ids, logprobs, table["finish_reason"].to_pylist(), table["counted"].to_pylist())

    def _make_index(self, part_index: int) -> _Index:
        """Return the index of a part: keys -> locations."""
        file = self._open_file(part_index)
        keys: list[Array] = []
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, ["prompt", "sample"], use_threads=False)
            digests = np.frombuffer(bytes.fromhex("".join(table["prompt"].to_pylist())), ">u8").astype(np.uint64)
            samples = table["sample"].to_numpy().astype(np.uint64)
            high = digests[::2] ^ (samples * np.uint64(SPREAD))
            location = np.arange(len(samples), dtype=np.uint64) + np.uint64(part_index << 32 | group << 8)
            keys.append(np.stack([high, digests[1::2] ^ samples, location]))
        index = np.concatenate(keys, axis=1)
        path = self._folder / f"index-{part_index:06d}-{part_index:06d}-1.bin"
        with written_aside(path) as aside:
            index[:, np.argsort(index[0], kind="stable")].tofile(aside)
        return _Index.mapped(path)

    def _take_in(self, index: _Index) -> None:
        """Add the index of the last part. Then merge indexes until each is more than twice as large as the next one."""
        self._indexes.append(index)
        while len(self._indexes) > 1 and self._indexes[-2].size <= 2 * self._indexes[-1].size:
            self._indexes[-2:] = [self._merge(*self._indexes[-2:])]

    def _merge(self, left: _Index, right: _Index) -> _Index:
        name = f"index-{left.first:06d}-{right.last:06d}-{left.parts + right.parts}.bin"
        bounds = np.arange(1, MERGED_AT_A_TIME, dtype=np.uint64) * np.uint64(2**64 // MERGED_AT_A_TIME)
        ends = [[0, *np.searchsorted(each.high, bounds).tolist(), each.size] for each in (left, right)]
        with written_aside(self._folder / name) as aside:
            merged = np.memmap(aside, np.uint64, "w+", shape=(3, left.size + right.size))
            for step in range(MERGED_AT_A_TIME):
                (start, end), (other_start, other_end) = (each[step : step + 2] for each in ends)
                both = np.concatenate([left.entries[:, start:end], right.entries[:, other_start:other_end]], axis=1)
                merged[:, start + other_start : end + other_end] = both[:, np.argsort(both[0], kind="stable")]
            merged.flush()
            del merged
        for each in (left, right):
            each.path.unlink()
        return _Index.mapped(self._folder / name)


class _Group(NamedTuple):
    """A row group in memory."""

    token_ids: tuple[Array, Array]
    """The token ids of all samples in one array, and the offset at which each sample begins."""
    logprobs: tuple[Array, Array]
    """The log-probabilities, in the same form."""
    finish_reasons: list[FinishReason]
    counted: list[int | None]


class _Index:
    """The keys and locations of the samples in consecutive parts, sorted by key and memory-mapped."""

    def __init__(self, path: Path, first: int, last: int, parts: int) -> None:
        self.path, self.first, self.last, self.parts = path, first, last, parts
        self.entries: Array = np.memmap(path, np.uint64, "r").view(np.ndarray).reshape(3, -1)
        """Row 0 and 1: the two halves of each key. Row 2: the location (part, row group, row). Shape [3, samples]."""
        self.high, self.low, self.location = self.entries

    @classmethod
    def mapped(cls, path: Path) -> _Index:
        """Open an index. Its file name states its first part, its last part and its number of parts."""
        return cls(path, *map(int, path.stem.split("-")[1:]))

    @property
    def size(self) -> int:
        """The number of samples in the index."""
        return len(self.high)


def _hash(key: SampleKey) -> tuple[np.uint64, np.uint64]:
    """Return the two halves of the key of a sample in an index."""
    prompt, sample = key
    digest = int(prompt, 16)
    return np.uint64(digest >> 64 ^ (sample * SPREAD & ALL_BITS)), np.uint64(digest & ALL_BITS ^ sample)

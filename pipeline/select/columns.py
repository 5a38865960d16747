"""Reads the columns of profiled rows that selection needs, without texts. They take 80 bytes a row.

    rows.parquet         id, source, source_row, domain, split
    profile.parquet      passes 3, judged 8, posterior [{weight, a, b}, ...]    -> numbers, in the order of rows.parquet
    suspicion.parquet    suspicion .02

Equal posteriors are stored once, so a row has only the index of its posterior. All tables of a profile have the same
rows in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from truegold.pipeline.rates import Component, Mixture
from truegold.pipeline.tables.rows import KEY, read_batches
from truegold.verifiers import InputError

Array = np.ndarray[Any, np.dtype[Any]]

STRETCH_ROWS = 2**18
"""The number of rows that are looked up at a time."""
EMPTY = {"id": pl.String, "source": pl.UInt32, "source_row": pl.Int64, "domain": pl.UInt32}
NAMING = {"flags": [*KEY, "reason", "blocks"], "open_flags": KEY, "decided": KEY}
"""Tables that name some of the rows, and the columns that are read of each."""


class ProfiledRows:
    """The columns of the profiled rows, in the order of the table."""

    def __init__(self, inputs: Mapping[str, Path]) -> None:
        """Read the tables `rows`, `profile` and `suspicion`. Raises InputError if they are not of one profile."""
        self._rows = inputs["rows"]
        frames, is_heldout = [], []
        sources, domains = _Names(), _Names()
        for batch in read_batches(self._rows, [*KEY, "domain", "split"]):
            frames.append(
                pl.DataFrame(
                    {
                        "id": pl.Series(batch["id"]),
                        "source": sources.encode(batch["source"]),
                        "source_row": pl.Series(batch["source_row"]),
                        "domain": domains.encode(batch["domain"]),
                    }
                )
            )
            is_heldout.append((pl.Series(batch["split"]) == "heldout").to_numpy())
        keys = pl.concat(frames) if frames else pl.DataFrame(schema=EMPTY)
        self.names = {"source": sources.names, "domain": domains.names}
        """The distinct sources and domains, by index."""
        self.numbers = {name: keys[name].to_numpy() for name in self.names}
        """The index of each row's source and domain."""
        keys = keys.drop("domain")
        self.is_heldout = _join(is_heldout, bool)
        posteriors = _Posteriors()
        self.passes, self.judged = np.zeros((2, keys.height), np.int32)
        self.known = np.zeros(keys.height, np.uint32)
        """The index of each row's posterior."""
        self.suspicion = np.zeros(keys.height, np.float64)
        """The suspicion of each row, or 0 without evidence."""
        for here, batch in self._read_beside(inputs["profile"], keys, "id", ["passes", "judged", "posterior"]):
            self.passes[here], self.judged[here] = _numbers(batch["passes"]), _numbers(batch["judged"])
            self.known[here] = posteriors.encode(batch["posterior"])
        for here, batch in self._read_beside(inputs["suspicion"], keys, "row_id", ["suspicion"]):
            self.suspicion[here] = _numbers(batch["suspicion"].fill_null(0.0))
        self.posteriors = posteriors.mixtures()
        """The posteriors by index. The first is None, for rows without a judged sample."""

        source_codes = {name: code for code, name in enumerate(sources.names)}
        self.named = {
            name: _find(pl.read_parquet(inputs[name], columns=columns), keys, source_codes)
            for name, columns in NAMING.items()
            if name in inputs
        }
        """The tables that name some of the rows, with each row's index in the column `number`."""
        order, ranks = _name_ranks(sources.names)
        by_name = keys.with_columns(pl.col("source").replace_strict(order, ranks, return_dtype=pl.UInt32))
        self.order = _sort(by_name)
        """The indices of the rows, ordered by key."""

    def __len__(self) -> int:
        return len(self.known)

    def _read_beside(
        self, path: Path, keys: pl.DataFrame, name: str, columns: list[str]
    ) -> Iterator[tuple[slice, pa.RecordBatch]]:
        """Yield each batch of a table with all rows in the same order, and the slice of its rows.

        name: the column with the ids of the rows.
        """
        start = 0
        for batch in read_batches(path, [name, "source_row", *columns]):
            here = keys[start : start + len(batch)]
            start += len(batch)
            for column, key_column in ((name, "id"), ("source_row", "source_row")):
                if not pl.Series(batch[column]).equals(here[key_column]):
                    raise self._mismatch(path, start)
            yield slice(start - len(batch), start), batch
        if start < keys.height:
            raise self._mismatch(path, start)

    def _mismatch(self, path: Path, row: int) -> InputError:
        return InputError(
            f"{path} has other rows than {self._rows}, or another order, at or before row {row:,}.",
            "Take both from one profile.",
        )


def _find(table: pl.DataFrame, keys: pl.DataFrame, sources: Mapping[str, int]) -> pl.DataFrame:
    """Return the rows of a table that are in `keys`, with a column `number`: the index of the row in `keys`."""
    coded = table.with_columns(pl.col("source").replace_strict(sources, default=None, return_dtype=pl.UInt32))
    # The named rows are filtered first, a stretch at a time. A join with all rows at once takes much memory.
    stretches = keys.with_row_index("number").iter_slices(STRETCH_ROWS)
    looked_up = [stretch.join(coded, on=KEY, how="semi") for stretch in stretches]
    named = pl.concat(looked_up) if looked_up else keys.with_row_index("number")
    return coded.join(named, on=KEY, how="inner", maintain_order="left")


def _sort(keys: pl.DataFrame) -> Array:
    """Return the indices of the rows, ordered by key.

    The rows are sorted in groups with the same first letter of the id, to save memory.
    """
    letters = keys["id"].str.slice(0, 1).cast(pl.Categorical)
    parts = []
    for letter in sorted(letters.unique().cast(pl.String)):
        numbers = (letters == letter).arg_true().to_numpy()
        parts.append(numbers[keys[numbers].select(pl.arg_sort_by(KEY)).to_series().to_numpy()])
    return _join(parts, np.uint32)


class _Names:
    """Indices of names, in order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        """All names, by index."""
        return list(self._numbers)

    def encode(self, column: pa.Array) -> Array:
        """Return the indices of a column's names."""
        encoded = column.dictionary_encode()
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in encoded.dictionary.to_pylist()]
        codes: Array = np.array(numbers, np.uint32)[encoded.indices.to_numpy()]
        return codes


class _Posteriors:
    """Indices of posteriors, which a table stores as lists of components."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {b"": 0}

    def encode(self, column: pa.ListArray) -> Array:
        """Return the indices of a column's posteriors."""
        parts = column.values
        values = np.stack([parts.field(name).to_numpy() for name in Component.__annotations__], axis=1)
        numbers = self._numbers
        return np.fromiter(
            (
                numbers.setdefault(values[start:end].tobytes(), len(numbers))
                for start, end in pairwise(column.offsets.to_pylist())
            ),
            np.uint32,
            len(column),
        )

    def mixtures(self) -> list[Mixture | None]:
        """Return all posteriors, by index."""
        components = (np.frombuffer(packed).reshape(-1, len(Component.__annotations__)) for packed in self._numbers)
        return [Mixture(*each.T) if each.size else None for each in components]


def group_by(keys: Array, members: Array) -> Iterator[tuple[int, Array]]:
    """Yield each key with its members, in their given order."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    for key, (start, end) in zip(distinct.tolist(), pairwise([*starts, len(order)]), strict=True):
        yield key, members[order[start:end]]


def _name_ranks(names: list[str]) -> tuple[list[int], list[int]]:
    """Return the indices of names in alphabetical order, and the ranks 0, 1, 2, ... of those names."""
    order = sorted(range(len(names)), key=names.__getitem__)
    return order, list(range(len(names)))


def _numbers(column: pa.Array) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def _join(parts: Iterable[Array], kind: type) -> Array:
    joined: Array = np.concatenate([np.empty(0, kind), *parts]).astype(kind, copy=False)
    return joined

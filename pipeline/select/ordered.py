"""Sorts the rows of a large table on disk within bounded memory.

    ordered = OrderedRows(folder, order, rows)    order: the indices of the wanted rows, in the wanted order
    ordered.add(first, batch)                     a batch of the table; unwanted rows are ignored
    for number, row in ordered: ...               the rows in this order

The order is cut into stretches. Each stretch has a file, which is read and sorted when its rows are iterated over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from truegold.pipeline.select.columns import Array, group_by
from truegold.pipeline.tables.rows import BATCH_ROWS, ROW_SCHEMA, Row

STRETCH_ROWS = 2**16
"""The number of rows in memory at a time."""
NOT_WANTED = -1
ROW_INDEX = "row_index"


class OrderedRows:
    """A context manager that collects rows of a table and yields them in another order."""

    def __init__(self, folder: Path, order: Array, rows: int) -> None:
        """Open the files. `order` has the indices of the wanted rows; `rows` is the number of all rows of the table."""
        self._rank = np.full(rows, NOT_WANTED, np.int32)
        self._rank[order] = np.arange(len(order), dtype=np.int32)
        self._schema = ROW_SCHEMA.append(pa.field(ROW_INDEX, pa.int64()))
        self._paths = [folder / f"{stretch:05d}.arrow" for stretch in range(-(-len(order) // STRETCH_ROWS))]
        self._open = ExitStack()
        folder.mkdir(parents=True, exist_ok=True)
        self._writers = [
            self._open.enter_context(
                pa.ipc.new_stream(self._open.enter_context(pa.OSFile(str(path), "wb")), self._schema)
            )
            for path in self._paths
        ]

    def add(self, first: int, batch: pa.Table) -> None:
        """Add the wanted rows of a batch; `first` is the index of its first row in the table."""
        ranks = self._rank[first : first + len(batch)]
        chosen_rows = np.flatnonzero(ranks != NOT_WANTED)
        for stretch, members in group_by(ranks[chosen_rows] // STRETCH_ROWS, chosen_rows):
            rows = batch.take(pa.array(members)).append_column(ROW_INDEX, pa.array(first + members, pa.int64()))
            self._writers[stretch].write_table(rows)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Yield the index and the row, in the wanted order."""
        self._open.close()
        for path in self._paths:
            with pa.memory_map(str(path)) as file:
                rows = pa.ipc.open_stream(file).read_all()
                order = np.argsort(self._rank[rows[ROW_INDEX].to_numpy()])
                for start in range(0, len(order), BATCH_ROWS):
                    for row in rows.take(pa.array(order[start : start + BATCH_ROWS])).to_pylist():
                        yield row.pop(ROW_INDEX), row
            path.unlink()

    def __enter__(self) -> OrderedRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

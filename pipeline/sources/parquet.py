"""Reads Parquet in batches of bounded size; structs become dicts, lists become lists.

A row of a file with columns `prompt: list<struct<role, content>>, reward_model: struct<ground_truth>` becomes
`Record(1, {"prompt": [{"role": "user", "content": "..."}], "reward_model": {"ground_truth": "72"}}, 0)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from truegold.pipeline.sources.records import Record, Reject, first_line, value_size
from truegold.pipeline.tables.rows import BATCH_ROWS
from truegold.verifiers import InputError

BATCH_TEXT = 16 * 2**20
"""A batch is to hold about this many bytes, by the average row of the largest row group."""
PAGE_BUFFER = 2**20
"""Column chunks are streamed in pieces of this many bytes. Otherwise a row group is held whole, and some files are a
single one."""


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; raise InputError where it is none."""
    try:
        return pq.ParquetFile(path, buffer_size=PAGE_BUFFER, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} is no intact Parquet file: {first_line(error)}.") from None


def read_parquet(path: Path, max_row_bytes: int) -> Iterator[Record | Reject]:
    """Yield the records of a Parquet file."""
    row_number = 0
    with open_parquet(path) as file:
        try:
            for batch in file.iter_batches(batch_size=_batch_rows(file.metadata)):
                for values in decode_rows(batch):
                    row_number += 1
                    yield as_record(row_number, values, max_row_bytes)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path} is damaged after row {row_number}: {first_line(error)}.") from None


def as_record(row_number: int, values: dict[str, Any] | Exception, max_row_bytes: int) -> Record | Reject:
    """Return a record of decoded values, or the reject for values that are too long or could not be decoded."""
    if isinstance(values, UnicodeDecodeError):
        return Reject(row_number, "invalid_utf8", f"{values.reason} at byte {values.start} of a text", "")
    if isinstance(values, Exception):
        return Reject(row_number, "unreadable_value", first_line(values), "")
    size = value_size(values)
    if size > max_row_bytes:
        return Reject(row_number, "row_too_long", f"{size} characters, above max_row_bytes = {max_row_bytes}", "")
    return Record(row_number, values, size)


def decode_rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """Yield the rows of a table or a batch of one, and in place of a row that cannot be decoded the error."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        # One row holds invalid UTF-8 or a date that Python has not; the others can be read.
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except (ValueError, OverflowError, pa.ArrowInvalid) as error:
                yield error


def _batch_rows(metadata: Any) -> int:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    return int(min(BATCH_ROWS, max(1, BATCH_TEXT // max(widest, 1))))

"""Finds source identifiers that stand for more than one content, in 24 bytes a row.

Line 3 `{"id": "q7", "question": "1+1?", ...}` and line 9 `{"id": "q7", "question": "2+2?", ...}` make the note
"1 source id(s) stand for different rows; the first: rows 3 and 9". Nothing is dropped: truegold's own ids
do not depend on it. Identifiers are kept as 64-bit hashes: among ten million, one false alarm in about 400,000 runs.
"""

from __future__ import annotations

import hashlib
from array import array

import numpy as np

from truegold.pipeline.running.progress import Progress


class SourceIds:
    """`add` every row, then `warn` once."""

    def __init__(self) -> None:
        self._table = array("Q")

    def add(self, source: str, source_id: str, number: int, content: str) -> None:
        """`content` is the row's id: 20 hex digits over its content."""
        key = hashlib.blake2b(f"{source}\0{source_id}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self._table.extend((int.from_bytes(key, "big"), int(content[:16], 16), number))

    def warn(self, progress: Progress) -> dict[str, int]:
        """How many identifiers stand for different rows, as a count; a note names the rows of the first."""
        table = np.frombuffer(self._table, dtype=np.uint64).reshape(-1, 3)
        order = np.argsort(table[:, 0], kind="stable")
        keys, contents, numbers = table[order].T
        clash = (keys[1:] == keys[:-1]) & (contents[1:] != contents[:-1])
        if not clash.any():
            return {}
        count = len(np.unique(keys[1:][clash]))
        where = np.flatnonzero(clash)
        first = where[np.argmin(numbers[1:][where])]
        progress.note(
            f"{count} source id(s) stand for different rows; the first: rows {numbers[first]} and {numbers[first + 1]}."
        )
        return {"warn:duplicate_source_id": count}

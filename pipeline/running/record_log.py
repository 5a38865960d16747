"""JSON Lines that only grow, for work that a kill must not lose.

    log = RecordLog(folder)
    log.append({"key": "9c0e", "text": "SAME"})
    [record["text"] for _, record in log.scan()]      what all processes have appended, those that were killed too

Each process writes a file of its own, so that a line which a kill has cut short stays the last of its file and is
passed over.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a record."""

    file: int
    """The number of its file in the folder."""
    offset: int
    """The byte that its line starts at."""
    length: int
    """The bytes of its line."""


class RecordLog:
    """JSON Lines in a folder, which only grow. Every process that appends has a file of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: dict[int, BinaryIO] = {}
        self._writing: int | None = None
        self._end = 0

    def scan(self) -> Iterator[tuple[Position, Any]]:
        """Yield every whole record with its position, in the order of writing. Lines that a full disk has spoilt are
        passed over."""
        for path in sorted(self._folder.glob("*.jsonl")):
            offset = 0
            with path.open("rb") as lines:
                for line in lines:
                    if isinstance(record := _read_line(line), dict):
                        yield Position(int(path.stem), offset, len(line)), record
                    offset += len(line)

    def append(self, record: Mapping[str, Any]) -> Position:
        """Write a record so that a kill of this process cannot lose it, and return its position."""
        if self._writing is None:
            self._writing = self._open_new()
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
        position = Position(self._writing, self._end, len(line))
        written = self._files[self._writing].write(line)
        self._end += written
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path(self._writing)))
        return position

    def read(self, position: Position) -> Any:
        """Return the record that lies there."""
        file = self._files.get(position.file)
        if file is None:
            file = self._files[position.file] = self._path(position.file).open("rb")
        return orjson.loads(os.pread(file.fileno(), position.length, position.offset))

    def clear(self) -> None:
        """Delete all records, those of other processes too."""
        self.close()
        for path in self._folder.glob("*.jsonl"):
            path.unlink()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._writing, self._end = None, 0

    def _open_new(self) -> int:
        file_number = max((int(path.stem) for path in self._folder.glob("*.jsonl")), default=-1) + 1
        while True:
            try:
                # Unbuffered: every record is one write.
                self._files[file_number] = self._path(file_number).open("xb+", buffering=0)
                return file_number
            except FileExistsError:  # Another process has just taken it.
                file_number += 1

    def _path(self, file_number: int) -> Path:
        return self._folder / f"{file_number:06d}.jsonl"


def _read_line(line: bytes) -> Any:
    """Return the record of a line, or None if that is not whole."""
    try:
        return orjson.loads(line) if line.endswith(b"\n") else None
    except orjson.JSONDecodeError:
        return None

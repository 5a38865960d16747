"""An append-only log of JSON Lines, for results that must survive a kill.

    log = RecordLog(folder)
    log.append({"key": "9c0e", "text": "SAME"})
    [record["text"] for _, record in log.scan()]      # the records of all processes, including killed ones

Each process writes to its own file. If a kill cuts a line short, it is the last line of its file, and is skipped.
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
    """The position of a record in the log."""

    file: int
    """The number of the record's file in the folder."""
    offset: int
    """The offset of the record's line in the file, in bytes."""
    length: int
    """The length of the line in bytes."""


class RecordLog:
    """An append-only log of JSON Lines in a folder, with a file for each writing process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._files: dict[int, BinaryIO] = {}
        self._writing: int | None = None
        self._end = 0

    def scan(self) -> Iterator[tuple[Position, Any]]:
        """Yield every record with its position, file by file. Incomplete lines are skipped."""
        for path in sorted(self._folder.glob("*.jsonl")):
            offset = 0
            with path.open("rb") as lines:
                for line in lines:
                    if isinstance(record := _read_line(line), dict):
                        yield Position(int(path.stem), offset, len(line)), record
                    offset += len(line)

    def append(self, record: Mapping[str, Any]) -> Position:
        """Write a record, and return its position. The record survives if this process is killed."""
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
        """Return the record at a position."""
        file = self._files.get(position.file)
        if file is None:
            file = self._files[position.file] = self._path(position.file).open("rb")
        return orjson.loads(os.pread(file.fileno(), position.length, position.offset))

    def clear(self) -> None:
        """Delete all records, including those of other processes."""
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
                # Without a buffer, every record is a single write.
                self._files[file_number] = self._path(file_number).open("xb+", buffering=0)
                return file_number
            except FileExistsError:  # Another process has just taken this number.
                file_number += 1

    def _path(self, file_number: int) -> Path:
        return self._folder / f"{file_number:06d}.jsonl"


def _read_line(line: bytes) -> Any:
    """Return the record in a line, or None if the line is incomplete."""
    try:
        return orjson.loads(line) if line.endswith(b"\n") else None
    except orjson.JSONDecodeError:
        return None

"""Reads CSV with a header line, with bounded memory.

    question,answer
    "What is 6*7,
    please?",42

becomes `Record(2, {"question": "What is 6*7,\\nplease?", "answer": "42"}, 28)`, numbered by the line it starts on.

Commas, semicolons, tabs or bars separate fields, whichever gives the first records as many fields as the header.
Python's own `csv` does the parsing, in strict mode: a stray quote makes a reject, not a row with something else's text.
A record above the bound is given up where it passes it, and reading goes on with the next line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from truegold.pipeline.sources.jsonl import Line, read_lines
from truegold.pipeline.sources.records import Record, Reject, beginning, is_utf8
from truegold.verifiers import InputError

DELIMITERS = (",", "\t", ";", "|")
"""What may separate fields, the most usual first."""
DELIMITER_LINES = 50
"""So many lines are looked at to tell which of them does."""


class _TooLong(Exception):
    """A record is longer than the bound."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class _Lines:
    """The lines of a file, as text for `csv.reader`. It is a class because a generator would be dead after raising."""

    def __init__(self, lines: Iterator[Line], max_bytes: int) -> None:
        self._lines = lines
        self._max_bytes = max_bytes
        self.line_number = 0
        """The number of the line that was read last."""
        self.start_record()

    def start_record(self) -> None:
        """Forget the last record: its first line, its size so far, and that line's text."""
        self.first_line_number = 0
        self.size = 0
        self.text = ""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.line_number = line.line_number
        self.size += line.size
        # Invalid bytes become lone surrogates here, which the finished record is searched for.
        text = line.data.decode("utf-8", "surrogateescape")
        if not self.first_line_number:
            self.first_line_number = line.line_number
            self.text = text
        if self.size > self._max_bytes:
            raise _TooLong(self.size)
        return text


def read_csv(path: Path, max_row_bytes: int) -> Iterator[Record | Reject]:
    """Yield the records of a CSV file; raise InputError where its header cannot be read."""
    earlier_limit = csv.field_size_limit()
    # The limit belongs to the whole process: it is only ever raised, and put back.
    csv.field_size_limit(max(earlier_limit, max_row_bytes))
    try:
        lines = _Lines(read_lines(path, max_row_bytes), max_row_bytes)
        reader = csv.reader(lines, strict=True, delimiter=_find_delimiter(path, max_row_bytes))
        header = _read_header(path, reader, lines)
        while (outcome := _next_outcome(reader, lines, header, max_row_bytes)) is not None:
            if outcome is not _BLANK:
                yield outcome
    finally:
        csv.field_size_limit(earlier_limit)


def _find_delimiter(path: Path, max_row_bytes: int) -> str:
    """Return what separates the fields of a file, by its first lines; the comma where nothing does."""
    lines = [line.data.decode("utf-8", "replace") for line in islice(read_lines(path, max_row_bytes), DELIMITER_LINES)]
    shares = {delimiter: _fitting_share(lines, delimiter) for delimiter in DELIMITERS}
    return max(shares, key=lambda delimiter: shares[delimiter])  # The first of equals.


def _fitting_share(lines: list[str], delimiter: str) -> float:
    """Return the share of records with as many fields as the header, 0 for a header of one field."""
    records: list[list[str]] = []
    with suppress(csv.Error):  # The last record may go on in further lines.
        records.extend(fields for fields in csv.reader(lines, strict=True, delimiter=delimiter) if fields)
    if not records or len(records[0]) == 1:
        return 0.0
    return sum(len(fields) == len(records[0]) for fields in records) / len(records)


_BLANK = Reject(0, "", "", "")


def _read_header(path: Path, reader: Iterator[list[str]], lines: _Lines) -> list[str]:
    try:
        header = next((fields for fields in reader if fields), None)
    except (csv.Error, _TooLong) as error:
        raise InputError(f"{path}: its header (line {lines.line_number}) cannot be read: {error}.") from None
    if header is None:
        raise InputError(f"{path} is empty.", "Its first line should name the columns.")
    if not all(map(is_utf8, header)):
        raise InputError(f"{path}: its header (line {lines.line_number}) is not UTF-8.", "Convert the file with iconv.")
    header = [name.strip() for name in header]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise InputError(f"{path}: its header names {repeated[0]!r} more than once.", "Give every column its own name.")
    return header


def _next_outcome(
    reader: Iterator[list[str]], lines: _Lines, header: list[str], max_row_bytes: int
) -> Record | Reject | None:
    """Return the next record or reject, `_BLANK` for a blank line, None at the end."""
    lines.start_record()

    def reject(reason: str, detail: str) -> Reject:
        return Reject(lines.first_line_number, reason, detail, beginning(lines.text.rstrip("\r\n")))

    try:
        fields = next(reader)
    except StopIteration:
        return None
    except _TooLong as error:
        return reject("row_too_long", f"{error.size} bytes or more, above max_row_bytes = {max_row_bytes}")
    except csv.Error as error:
        return reject("invalid_csv", str(error))
    if not fields:
        outcome: Record | Reject = _BLANK
    elif len(fields) != len(header):
        outcome = reject("wrong_field_count", f"{len(fields)} fields where the header names {len(header)}")
    elif invalid := [name for name, field in zip(header, fields, strict=True) if not is_utf8(field)]:
        outcome = reject("invalid_utf8", f"bytes that are not UTF-8 in column {invalid[0]!r}")
    else:
        outcome = Record(lines.first_line_number, dict(zip(header, fields, strict=True)), lines.size)
    return outcome

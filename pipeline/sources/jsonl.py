"""Reads JSON Lines with bounded memory.

The line `{"question": "What is 6*7?", "answer": 42}\\r\\n` becomes `Record(1, {"question": ..., "answer": 42}, 42)`.

The reader accepts CRLF line ends, a byte order mark, UTF-16 with a mark, gzip and zstd. It also accepts an array of
objects, one object over several lines, and a last line without end. Blank lines are skipped. Lines longer than the
bound are skipped without being held in memory. Invalid UTF-8, NaN, Infinity and too deep nesting are rejects. Integers
beyond 64 bits are kept exactly. Python's `json` reads their lines, because `orjson` turns them into floats.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import shlex
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, cast

import pyarrow as pa

from truegold.pipeline.sources.records import EXCERPT_CHARS, Record, Reject, beginning
from truegold.verifiers import InputError
from truegold.verifiers.strict_json import LoneSurrogate, parse_json, repeated_key

if TYPE_CHECKING:
    from typing_extensions import Buffer

PACKINGS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
"""The first bytes of compressed files, by format."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8."""
SKIP_BYTES = 2**16
"""The number of bytes that are read at a time to skip an overlong line."""
SNIFF_BYTES = 4096
"""The number of bytes at the beginning of a file by which its format is recognised."""


@dataclass(frozen=True, slots=True)
class Line:
    """A physical line of a file."""

    line_number: int
    """The number of the line from 1."""
    data: bytes
    """The line with its terminator. Of a line that is too long, only the beginning."""
    size: int
    """The number of bytes of the whole line, without its terminator."""
    too_long: bool = False
    """Whether the line is longer than the bound."""


def packing_of(path: Path) -> str | None:
    """Return "gzip" or "zstd" by the first bytes of a file, else None."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((name for name, magic in PACKINGS.items() if start.startswith(magic)), None)


def open_packed(path: Path, packing: str | None, mode: Literal["rb", "wb"] = "wb") -> IO[bytes]:
    """Open a file and compress or decompress it as `packing` says; None for a plain file."""
    if packing == "gzip":
        return cast("IO[bytes]", gzip.open(path, mode))
    if packing == "zstd":
        raw = pa.CompressedInputStream if mode == "rb" else pa.CompressedOutputStream
        wrap = io.BufferedReader if mode == "rb" else io.BufferedWriter
        return cast("IO[bytes]", wrap(raw(pa.OSFile(str(path), mode), "zstd")))
    return path.open(mode)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading: decompressed if it is gzip or zstd, and as UTF-8 if it has the mark of UTF-16."""
    packing = packing_of(path)
    with open_packed(path, packing, "rb") as file:
        is_utf16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    file = open_packed(path, packing, "rb")
    return cast("IO[bytes]", io.BufferedReader(_Utf16File(file))) if is_utf16 else file


class _Utf16File(io.RawIOBase):
    """A file that reads the text of a UTF-16 file, such as Excel's "Unicode text", as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer, and return the number of bytes read, 0 at the end."""
        view = memoryview(buffer)
        while not self._rest:
            chunk = self._file.read(SKIP_BYTES)
            self._rest = self._decoder.decode(chunk, final=not chunk).encode()
            if not chunk:
                break
        part, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_lines(path: Path, max_bytes: int) -> Iterator[Line]:
    """Yield every physical line without the byte order mark, with at most `max_bytes` of it in memory."""
    line_number = 0
    with open_bytes(path) as file:
        try:
            # The terminator does not count, so two more bytes are read.
            while data := file.readline(max_bytes + 2):
                line_number += 1
                if line_number == 1:
                    data = data.removeprefix(BOM)
                size = len(data.rstrip(b"\r\n"))
                if size <= max_bytes:
                    yield Line(line_number, data, size)
                    continue
                start = data[: EXCERPT_CHARS * 4]
                while data and not data.endswith(b"\n"):
                    data = file.readline(SKIP_BYTES)
                    size += len(data.rstrip(b"\r\n") if data.endswith(b"\n") else data)
                yield Line(line_number, start, size, too_long=True)
        except (EOFError, OSError, UnicodeError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{path} is damaged after line {line_number}: {error}.", "Copy or download the file again."
            ) from None


def read_jsonl(path: Path, max_row_bytes: int) -> Iterator[Record | Reject]:
    """Yield the records of a JSON Lines file. Blank lines are skipped."""
    refuse_other_formats(path)
    _refuse_nested(path)
    if is_json_array(path):
        for line in _read_array(path, max_row_bytes):
            yield _parse_line(line) if not line.too_long else _too_long(line, max_row_bytes)
        return
    if is_over_lines(path) and (record := _only_object(path, max_row_bytes)) is not None:
        yield record
        return
    for line in read_lines(path, max_row_bytes):
        if line.too_long:
            yield _too_long(line, max_row_bytes)
        elif not line.data.isspace() and line.data:
            yield _parse_line(line)


def _too_long(line: Line, max_row_bytes: int) -> Reject:
    detail = f"{line.size} bytes, above max_row_bytes = {max_row_bytes}"
    return Reject(line.line_number, "row_too_long", detail, beginning(line.data.decode("utf-8", "replace")))


def is_json_array(path: Path) -> bool:
    """Return whether a file is a JSON array of objects rather than JSON Lines."""
    body = _beginning_of(path).removeprefix(BOM).lstrip()
    line, _, further = body.partition(b"\n")
    if further.strip() and line.rstrip().endswith(b"]"):  # One of several lines, each of which is an array.
        return False
    return body.startswith(b"[") and body[1:].lstrip()[:1] in (b"{", b"]")


_ARRAY_TOKEN = re.compile(rb"\\.|[\"\[\]{}]", re.DOTALL)
"""A character that matters for cutting an array: an escape, a quote, or a bracket."""


def _read_array(path: Path, max_bytes: int) -> Iterator[Line]:
    """Yield the entries of a JSON array as lines, numbered from 1, with at most `max_bytes` of each in memory.

    Text between objects, other than commas and spaces, is a separate entry. Raises InputError if the array does not
    end, or if text follows it.
    """
    cutter = _ArrayCutter(max_bytes)
    with open_bytes(path) as file:
        for chunk in _whole_escapes(file):
            yield from cutter.feed(chunk)
    if cutter.depth:
        raise InputError(
            f"{path} ends within its array, after {cutter.entries} objects.", "Copy or download the file again."
        )
    if stray := _stray(cutter.between):
        raise InputError(
            f"{path} has text after its array: {beginning(stray.decode('utf-8', 'replace').splitlines()[0])}.",
            "Put its records into one array, or write one record a line.",
        )


def _whole_escapes(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file in pieces, none of which ends between a backslash and the escaped character."""
    rest = b""
    while chunk := file.read(SKIP_BYTES):
        chunk, rest = rest + chunk, b""
        if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:
            chunk, rest = chunk[:-1], b"\\"
        yield chunk


class _ArrayCutter:
    """Cuts an array, which is read in pieces, into its entries."""

    def __init__(self, max_bytes: int) -> None:
        self.depth, self.entries = 0, 0
        self.between = bytearray()
        """The bytes between the objects of the array, and before and after the array."""
        self._max_bytes = max_bytes
        self._in_text = self._is_closed = False
        self._held = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yield the entries that end in this piece."""
        start = 0
        for match in () if self._is_closed else _ARRAY_TOKEN.finditer(chunk):
            token = match[0]
            if token == b'"':
                self._in_text = not self._in_text
            elif not self._in_text and token in b"{}[]":
                opens = token in b"{["
                if max(self.depth, self.depth + (1 if opens else -1)) <= 2:
                    cut = match.start() if opens else match.end()
                    yield from self._cross(chunk[start:cut], opens)
                    start = match.start() if opens and self.depth == 1 else cut + (opens and self.depth == 0)
                self.depth += 1 if opens else -1
                if self.depth == 0:
                    self._is_closed = True
                    break
        self._keep(chunk[start:])

    def _cross(self, part: bytes, opens: bool) -> Iterator[Line]:
        """Process the part before a bracket that begins or ends an object or the array. Yield an entry if it is
        complete."""
        if self.depth == 2:
            self._keep(part)
            self.entries += 1
            yield Line(self.entries, bytes(self._held), self._size, too_long=self._size > self._max_bytes)
            self._held.clear()
            self._size = 0
            return
        self._keep(part.rstrip(b"]") if not opens else part)
        if self.depth == 1 and (stray := _stray(self.between)):
            self.entries += 1
            yield Line(self.entries, stray, len(stray))
        self.between.clear()

    def _keep(self, part: bytes) -> None:
        if self.depth < 2:
            self.between += part[: self._max_bytes]
            return
        self._size += len(part)
        self._held += part[: max(0, self._max_bytes - len(self._held))]


def _stray(text: bytes | bytearray) -> bytes:
    """Return text between the objects of an array, without commas and spaces."""
    return bytes(text).removeprefix(BOM).strip(b" \t\r\n,")


def _parse_line(line: Line) -> Record | Reject:
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        detail = f"{error.reason} at byte {error.start} of the line"
        return Reject(line.line_number, "invalid_utf8", detail, beginning(line.data.decode("utf-8", "replace")))
    try:
        values = parse_json(text)
    except LoneSurrogate as error:
        return Reject(line.line_number, "invalid_unicode", str(error), beginning(text.strip()))
    except ValueError as error:
        return Reject(line.line_number, "invalid_json", str(error), beginning(text.strip()))
    if not isinstance(values, dict):
        detail = f"the line holds a JSON {_JSON_NAMES.get(type(values), 'value')}, not an object"
        return Reject(line.line_number, "not_an_object", detail, beginning(text.strip()))
    if (key := repeated_key(text, values)) is not None:
        detail = f"the key {key!r:.60} appears twice with different values"
        return Reject(line.line_number, "duplicate_key", detail, beginning(text.strip()))
    return Record(line.line_number, values, line.size)


_JSON_NAMES = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def _beginning_of(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed. Raises InputError if the file is damaged."""
    try:
        with open_bytes(path) as file:
            return file.read(SNIFF_BYTES)
    except (EOFError, OSError, UnicodeError, zlib.error, gzip.BadGzipFile) as error:
        packing = packing_of(path) or "readable"
        raise InputError(
            f"{path} is not an intact {packing} file: {error}.", "Copy or download the file again."
        ) from None


_LIST_OF_OBJECTS = re.compile(rb'"(\w+)"\s*:\s*\[\s*\{')
"""The beginning of a member that is a list of objects."""


def nested_records(path: Path | str, name: str) -> InputError:
    """Return the error for a file that is a single object, whose list `name` has the records."""
    return InputError(
        f"{path} is one JSON object, whose list {name!r} has the records.",
        f"Write a line for each: jq -c '.{name}[]' {shlex.quote(str(path))} > records.jsonl",
    )


def _is_json(line: bytes) -> bool:
    try:
        parse_json(line.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True


OTHER_FORMATS = {
    b"PAR1": ("a Parquet file", "Name it *.parquet, or set format: parquet."),
    b"PK\x03\x04": ("an Excel workbook or another ZIP archive", "Save the sheet as CSV UTF-8, or unpack the archive."),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "Save the sheet as CSV UTF-8."),
    b"ARROW1": ("an Arrow file", "Write it as Parquet: pyarrow.parquet.write_table."),
    b"%PDF": ("a PDF file", "Write its problems as JSON Lines or CSV."),
    b"\x93NUMPY": ("a NumPy array", "Write its rows as Parquet."),
    b"\x80\x04\x95": ("a pickle", "Write its rows as Parquet: DataFrame.to_parquet."),
    b"SQLite": ("a database", "Write its table as CSV."),
}
"""The names of formats that are not text, and what to do, by the first bytes of a file."""
CONTROL_SHARE = 0.05
"""The share of control characters above which a file is not text."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def refuse_other_formats(path: Path) -> None:
    """Raise InputError for a file that is not text. Otherwise every line of it would be a reject."""
    start = _beginning_of(path)
    for magic, (what, remedy) in OTHER_FORMATS.items():
        if start.startswith(magic):
            raise InputError(f"{path} is {what}.", remedy)
    if start and not start.strip(b"\0"):
        raise InputError(f"{path} begins with {len(start):,} null bytes.", "Copy or download the file again.")
    # Text of any encoding is left to the reader. In UTF-16 without a mark, every other byte of Latin text is null. A
    # file with a sound first line is damaged further on, and its other rows are read.
    nulls, odd_nulls = start.count(0), start[1::2].count(0)
    is_utf16 = min(odd_nulls, nulls - odd_nulls) <= CONTROL_SHARE * nulls and nulls >= CONTROL_SHARE * len(start)
    n_controls = len(_CONTROL.findall(start)) if _CONTROL.search(start.partition(b"\n")[0]) else 0
    if n_controls > CONTROL_SHARE * len(start) and not is_utf16:
        raise InputError(f"{path} is not text, but a binary file.", "Name a file of JSON Lines, Parquet or CSV.")


def _refuse_nested(path: Path) -> None:
    """Raise InputError for a file that is one object with a list of records. The error says how to unpack it."""
    start = _beginning_of(path)
    if is_over_lines(path):
        lists = [match[1].decode() for match in _LIST_OF_OBJECTS.finditer(start)]
        if lists and not set(lists) & {"messages", "conversations", "conversation"}:
            raise nested_records(path, lists[0])


def is_over_lines(path: Path) -> bool:
    """Return whether a file begins with a JSON object that continues on the next line."""
    first, _, further = _beginning_of(path).removeprefix(BOM).lstrip().partition(b"\n")
    is_whole = first.rstrip().endswith(b"}")
    return first.startswith(b"{") and not is_whole and bool(further.strip()) and not _is_json(first)


def _only_object(path: Path, max_bytes: int) -> Record | None:
    """Return the record of a file that has only one object, such as a file of MATH. Return None for any other file."""
    with open_bytes(path) as file:
        data = file.read(max_bytes + 1)
    only = _parse_line(Line(1, data.removeprefix(BOM), len(data))) if len(data) <= max_bytes else None
    return only if isinstance(only, Record) else None

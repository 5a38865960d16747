"""JSON Lines, read with bounded memory whatever stands in the file.

The line `{"question": "What is 6*7?", "answer": 42}\\r\\n` becomes `Record(1, {"question": ..., "answer": 42}, 44)`.

Covered: LF and CRLF, a byte order mark, gzip, a last line without an end, lines longer than the bound (skipped without
being held), invalid UTF-8, NaN and Infinity (not JSON), nesting beyond the parser's depth, integers of any size (kept
exactly; `orjson`, which reads all other lines, would turn those beyond 64 bits into floats). Blank lines are no rows.
Not covered: a JSON array and UTF-16, which are refused by name before any row is read.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, NoReturn, cast

import orjson

from truegold.pipeline.ingest.records import EXCERPT_CHARS, Record, Reject, excerpt
from truegold.verifiers import InputError

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
BLOCK_BYTES = 2**22
"""Read at a time where many lines are taken together."""
SKIP_BYTES = 2**16
"""How an overlong line is skipped: in pieces of this size."""
SNIFF_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Line:
    """A physical line with its terminator; `data` holds only its start where `size` is above the bound."""

    number: int
    data: bytes
    size: int
    too_long: bool = False


def is_packed(path: Path) -> bool:
    """Whether the file is gzip, whatever its name."""
    with path.open("rb") as file:
        return file.read(2) == GZIP_MAGIC


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, unpacked where it is gzip."""
    return cast(IO[bytes], gzip.open(path, "rb")) if is_packed(path) else path.open("rb")


def read_lines(path: Path, max_bytes: int) -> Iterator[Line]:
    """Every physical line, of which at most `max_bytes` are ever held; the byte order mark is taken off."""
    number = 0
    with open_bytes(path) as file:
        try:
            while data := file.readline(max_bytes + 2):  # room for the terminator, which does not count
                number += 1
                if number == 1:
                    data = data.removeprefix(BOM)
                size = len(data.rstrip(b"\r\n"))
                if size <= max_bytes:
                    yield Line(number, data, size)
                    continue
                start = data[: EXCERPT_CHARS * 4]
                while data and not data.endswith(b"\n"):
                    data = file.readline(SKIP_BYTES)
                    size += len(data.rstrip(b"\r\n") if data.endswith(b"\n") else data)
                yield Line(number, start, size, too_long=True)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"{path} is damaged after line {number}: {error}.", "Copy or download the file again."
            ) from None


def read_jsonl(path: Path, max_row_bytes: int, after: int = 0) -> Iterator[Record | Reject]:
    """The records of a JSON Lines file, without those of its first `after` lines."""
    _refuse_other_formats(path)
    yield from parse_lines(islice(read_lines(path, max_row_bytes), after, None), max_row_bytes)


def parse_lines(lines: Iterable[Line], max_row_bytes: int) -> Iterator[Record | Reject]:
    """The records of some lines; blank ones are none."""
    for line in lines:
        if line.too_long:
            detail = f"{line.size} bytes, above max_row_bytes = {max_row_bytes}"
            yield Reject(line.number, "row_too_long", detail, excerpt(line.data.decode("utf-8", "replace")))
        elif not line.data.isspace() and line.data:
            yield _parse(line)


def read_line_lists(path: Path, lines: int, max_bytes: int) -> Iterator[list[bytes] | None]:
    """The lines of a file that is not packed, so many at a time and without their ends, much faster than `read_lines`.

    None comes last where a line may be longer than `max_bytes`: it and the rest are left to `read_lines`.
    """
    found: list[bytes] = []
    with path.open("rb") as file:
        if file.read(len(BOM)) != BOM:
            file.seek(0)
        rest_left = False
        while not rest_left and (data := file.read(min(BLOCK_BYTES, max_bytes))):
            data += b"" if data.endswith(b"\n") else file.readline(max_bytes)
            *whole, last = data.split(b"\n")
            if len(last) >= max_bytes:
                rest_left = True
            elif last:
                whole.append(last)  # the file's last line has no end
            if len(whole[-1] if whole else b"") > max_bytes:
                rest_left = True
                whole.pop()
            found += whole
            while len(found) >= lines:
                yield found[:lines]
                found = found[lines:]
    if found:
        yield found
    if rest_left:
        yield None


def _parse(line: Line) -> Record | Reject:
    try:
        text = line.data.decode("utf-8")
    except UnicodeDecodeError as error:
        detail = f"{error.reason} at byte {error.start} of the line"
        return Reject(line.number, "invalid_utf8", detail, excerpt(line.data.decode("utf-8", "replace")))
    try:
        values = parse_json(text)
    except ValueError as error:
        return Reject(line.number, "invalid_json", str(error), excerpt(text.strip()))
    if not isinstance(values, dict):
        detail = f"the line holds a JSON {_JSON_NAMES.get(type(values), 'value')}, not an object"
        return Reject(line.number, "not_an_object", detail, excerpt(text.strip()))
    return Record(line.number, values, line.size)


_JSON_NAMES = {list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


_LONG_NUMBER = re.compile(r"\d{19}", re.ASCII)
"""Digits that may be an integer beyond 64 bits, which `orjson` would not keep exactly."""
_LONG_NUMBER_BYTES = re.compile(rb"\d{19}")


def has_long_number(line: bytes) -> bool:
    """Whether a line has to be read by `parse_json`, which keeps such numbers exactly."""
    return _LONG_NUMBER_BYTES.search(line) is not None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse_json(text: str) -> object:
    """Strict JSON; ValueError with one line that says what is wrong."""
    if _LONG_NUMBER.search(text) is None:
        try:
            parsed: object = orjson.loads(text)
            return parsed
        except orjson.JSONDecodeError:
            pass  # it is stricter about lone surrogates and huge floats, and says less about what is wrong
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:  # the parser's own depth bound: a line of a million "["
        raise ValueError("nested too deeply") from None


def _refuse_other_formats(path: Path) -> None:
    """Errors that name the real format, for files that would otherwise be nothing but rejects."""
    with open_bytes(path) as file:
        try:
            start = file.read(SNIFF_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path} is no intact gzip file: {error}.", "Copy or download the file again.") from None
    if start.startswith(b"PAR1"):
        raise InputError(f"{path} is a Parquet file.", "Set format: parquet, or name it *.parquet.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{path} is UTF-16, not UTF-8.", "Convert it: iconv -f UTF-16 -t UTF-8 in > out")
    body = start.removeprefix(BOM).lstrip()
    if body.startswith(b"[") and body[1:].lstrip()[:1] in (b"{", b""):
        raise InputError(
            f"{path} is one JSON array, not JSON Lines.", f"Convert it: jq -c '.[]' {path.name} > converted.jsonl"
        )

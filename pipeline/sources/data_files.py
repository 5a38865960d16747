"""Opens data files in the format of their name or of the configuration: JSON Lines (`jsonl`), CSV or Parquet.

`open_file(Path("data/train.jsonl.gz"), "auto", 2**23)` returns a `Source(name="train.jsonl.gz", ...)` whose `records`
are streamed in bounded memory. For a file that cannot be read, the error is one line with a remedy.

CSV (`.csv`, `.tsv`) has a header line. The separator is a comma, semicolon, tab or bar: the one that gives the first
records as many fields as the header. Python's `csv` parses the file in strict mode. So a record with a stray quote is
rejected, and its text is not misread. A record longer than the bound is skipped, and reading continues with the next
line. Records are numbered by their first line.

Parquet (`.parquet`, `.pq`) is read in batches of bounded size; structs become dicts, lists become lists.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import replace
from filecmp import cmp
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from truegold.pipeline.running.disk import is_pattern, is_run, matching_files, runs_in, written_aside
from truegold.pipeline.sources.jsonl import (
    Line,
    is_json_array,
    open_bytes,
    open_packed,
    packing_of,
    read_jsonl,
    read_lines,
    refuse_other_formats,
)
from truegold.pipeline.sources.missing_files import advice_on_missing
from truegold.pipeline.sources.places import local_copy
from truegold.pipeline.sources.records import Record, Reject, Source, beginning, first_line, in_file, value_size
from truegold.pipeline.tables.rows import BATCH_ROWS
from truegold.verifiers import InputError
from truegold.verifiers.columns import find_column
from truegold.verifiers.strict_json import is_utf8, parse_json
from truegold.verifiers.user_code import near_path

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
}
"""The format for each suffix of a file name."""
CONFIGS = (".yaml", ".yml")
"""Endings of configurations."""
SHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".numbers")
"""The suffixes of workbooks, which cannot be read."""

MAX_ROW_BYTES = 64 * 2**20
"""The longest line, in bytes, for commands on a single file. A run has its own bound (`data.max_row_bytes`)."""

FILE_NAME_CHARS = 255
"""The maximum number of characters of a file name. Names are quoted as excerpts, because their bytes may not be
text."""


def open_file(path: Path, form: str, max_row_bytes: int) -> Source:
    """Open a file in a format (`auto`: by its name), or the files of a folder or a pattern.

    Records of several files are numbered consecutively, in the order of the files' names, and have their file and row.
    Raises InputError if a file cannot be read, or its name does not show its format.
    """
    path = at_hand(path)
    check_data(path)
    if len(parts := data_files(path)) > 1 or path.is_dir():
        sources = [_empty(part) if _is_empty(part) else open_file(part, form, max_row_bytes) for part in parts]
        totals = [source.total for source in sources if source.total is not None]
        total = sum(totals) if len(totals) == len(sources) else None
        names = [str(part.relative_to(path)) if path.is_dir() else part.name for part in parts]
        records = _numbered_on(zip(names, sources, strict=True))
        return Source(beginning(path.name, FILE_NAME_CHARS), str(path), records, unit="row", total=total)
    (path,) = parts
    if form == "auto":
        form = form_by_suffix(path)
    name = beginning(path.name, FILE_NAME_CHARS)
    if form == "parquet":
        with open_parquet(path) as file:
            total = file.metadata.num_rows
        return Source(name, str(path), read_parquet(path, max_row_bytes), unit="row", total=total)
    read = read_csv if form == "csv" else read_jsonl
    unit = "row" if form == "jsonl" and is_json_array(path) else "line"
    return Source(name, str(path), read(path, max_row_bytes), unit=unit)


def at_hand(path: Path | str) -> Path:
    """Return the local path of a file or a URL, after a download if needed. Only the data files of a remote folder are
    loaded."""
    return local_copy(path, lambda name: _suffix_of(Path(name)) in SUFFIXES)


def data_files(path: Path) -> list[Path]:
    """Return the data files of a folder or of a pattern such as `data/*.jsonl`. For any other path, return the path.

    Hidden files and folders, files that describe data, and links to other files are left out.
    """
    if path.is_dir():
        files = [
            file
            for file in sorted(path.rglob("*"))
            if _suffix_of(file) in SUFFIXES and not _is_hidden(file.relative_to(path)) and _is_there(file)
        ]
    elif (files := matching_files(path)) != [path]:
        files = [file for file in files if not _is_hidden(Path(file.name)) and file.suffix not in _TEXTS]
    else:
        return files
    return _each_once([file for file in files if file.name not in _NO_DATA and not _describes_data(file, files)])


def is_within(data: Path, others: Iterable[Path]) -> bool:
    """Return whether every data file of a path is one of the files of other paths, or has the bytes of one."""
    known = [file for other in others for file in data_files(other) if file.is_file()]
    files = [file for file in data_files(data) if file.is_file()]
    return bool(files) and all(any(_is_same(file, other) for other in known) for file in files)


def _is_same(file: Path, other: Path) -> bool:
    return file.samefile(other) or (file.stat().st_size == other.stat().st_size and cmp(file, other, shallow=False))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _is_there(file: Path) -> bool:
    """Return whether this is a file. Raises InputError for a broken link."""
    if file.is_symlink() and not file.exists():
        raise InputError(f"{file} is a broken link ({file.readlink()}).", "Download it again, or remove the link.")
    return file.is_file()


def _each_once(files: list[Path]) -> list[Path]:
    """Return the files, each once. Links may give a file several names."""
    once: dict[tuple[int, int], Path] = {}
    for file in files:
        state = file.stat()
        once.setdefault((state.st_dev, state.st_ino), file)
    return list(once.values())


def _describes_data(file: Path, files: list[Path]) -> bool:
    """Return whether a `.json` file among others describes data, such as `dataset_infos.json`: an object without a
    question."""
    if file.suffix.lower() != ".json" or len(files) == 1 or file.stat().st_size > NOTE_BYTES:
        return False
    try:
        content = parse_json(file.read_text(encoding="utf-8-sig"))
    except ValueError:  # The file is JSON Lines, or it is not JSON, which the reader reports.
        return False
    return isinstance(content, dict) and find_column("prompt", [content]) is None


NOTE_BYTES = 2**22
"""The maximum number of bytes of a file that describes data."""
_TEXTS = (".md", ".txt", ".html", ".yaml", ".yml", ".toml", ".py", ".sh", ".lock", ".log")
"""The suffixes of texts that are not data. A wide pattern such as `*` may match them."""


def _split_of(file: Path) -> str | None:
    """Return the split at the beginning of a file's name: train, test, validation, dev or eval; else None."""
    match = _SPLIT.match(file.stem.lower())
    return match[1].replace("valid", "validation").replace("validationation", "validation") if match else None


_SPLIT = re.compile(r"(train|test|validation|valid|dev|eval)(?![a-z])")
"""The name of a split at the beginning of a file name."""
_NO_DATA = ("dataset_info.json", "dataset_dict.json", "state.json", "config.json", "package.json")
"""The names of files that describe data."""


def _numbered_on(sources: Iterable[tuple[str, Source]]) -> Iterator[Record | Reject]:
    """Yield the records of several files with consecutive numbers, each with its file and row."""
    before = 0
    for name, source in sources:
        last = 0
        for record in source.records:
            last = record.row_number
            file = f"{beginning(name, FILE_NAME_CHARS)}:{last}"
            if isinstance(record, Record):
                yield replace(record, row_number=before + last, file=file)
            else:
                yield replace(record, row_number=before + last, detail=in_file(record.detail, file))
        before += last


def check_data(path: Path) -> None:
    """Raise InputError if data cannot be read. `path` is a file, a folder of files, or a pattern."""
    path = at_hand(path)
    if path.is_dir() or (not path.exists() and is_pattern(path)):
        if (path / "state.json").exists() or (path / "dataset_dict.json").exists():
            raise InputError(
                f"{path} is a dataset that was saved to disk.", "Set type: hf and name: to the folder in place of path."
            )
        _refuse_run(path)
        if not path.is_dir() and not path.parent.is_dir() and not is_pattern(path.parent):
            raise InputError(f"{path} has no data file: its folder does not exist.", near_path(path.parent))
        if not (files := data_files(path)):
            raise InputError(f"{path} has no data file.", f"Names of data files end in {', '.join(SUFFIXES)}.")
        train = shlex.quote(f"{path if path.is_dir() else path.parent}/train*")
        if len(splits := {_split_of(file) for file in files} - {None}) > 1:
            raise InputError(
                f"{path} has files of several splits: {', '.join(sorted(map(str, splits)))}.",
                f"Name the files of one split by a pattern in quotes, such as {train}, "
                "and the other files as heldout_path.",
            )
        if all(_is_empty(file) for file in files):
            raise InputError(f"All {len(files)} data files of {path} are empty.")
        for file in files:
            check_file(file, may_be_empty=True)
    else:
        check_file(path)


def _is_empty(file: Path) -> bool:
    return file.stat().st_size == 0


def _empty(file: Path) -> Source:
    """Return a source for an empty file among others, with one reject that names the file."""
    rejects: list[Record | Reject] = [Reject(1, "empty_file", "the file is empty", "")]
    return Source(file.name, str(file), iter(rejects))


def check_file(path: Path, *, may_be_empty: bool = False) -> None:
    """Raise InputError for a file that is missing, empty, unreadable, or not a regular file."""
    path = at_hand(path)
    if str(path) == "-":
        raise InputError("Data are not read from standard input.", "Write them to a file first, and name it.")
    if path.is_dir():
        _refuse_run(path)
        raise InputError(f"{path} is a folder, not a file.", "Name a file in it.")
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path} is a link to {path.readlink()}, which does not exist.", "Mend or remove the link.")
    if not path.exists():
        raise InputError(f"{path} does not exist.", advice_on_missing(path, lambda file: _suffix_of(file) in SUFFIXES))
    if not path.is_file():
        raise InputError(f"{path} is not a regular file.", "Write the data to a file first.")
    try:
        with path.open("rb") as opened:
            empty = not opened.read(1)
    except PermissionError:
        raise InputError(
            f"{path} may not be read by this user.", f"Allow it: chmod u+r {shlex.quote(str(path))}"
        ) from None
    if empty and not may_be_empty:
        raise InputError(f"{path} is empty.")


def _refuse_run(folder: Path) -> None:
    if is_run(folder):
        raise InputError(
            f"{folder} is a run of truegold, not data.",
            "Give the run's configuration file to run it again, or the set that `truegold export` writes of it.",
        )
    if runs := runs_in(folder):
        raise InputError(f"{folder} holds runs of truegold, not data.", f"Name one of them: {runs}.")


def _suffix_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] in ([".gz"], [".zst"]):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_named_as_data(path: Path) -> bool:
    """Return whether a file's name shows that it has rows.

    A name in .json does not show this, since the file may have settings.
    """
    return _suffix_of(path) in SUFFIXES.keys() - {".json"}


def form_by_suffix(path: Path) -> str:
    """Return the format by a file's name: jsonl, parquet or csv. Raises InputError for other names."""
    if (form := SUFFIXES.get(_suffix_of(path))) is None:
        refuse_other_files(path)
        raise InputError(
            f"{path}: its name does not show its format.",
            f"End it in {', '.join(SUFFIXES)} (and .gz or .zst), or set format: to one of jsonl, parquet, csv.",
        )
    return form


def refuse_other_files(path: Path) -> None:
    """Raise InputError for a workbook, a configuration, and other files that are not rows."""
    if _suffix_of(path) in SHEETS:
        raise InputError(f"{path} is named as a workbook.", "Save its sheet as CSV UTF-8.")
    if _suffix_of(path) in CONFIGS:
        raise InputError(
            f"{path} is a configuration, not data.",
            f"Here, name the file of rows. The configuration is run by: truegold run {shlex.quote(str(path))}",
        )
    if path.is_file():
        refuse_other_formats(path)


DELIMITERS = (",", "\t", ";", "|")
"""The characters that may separate fields, the most common first."""
_SEPARATOR_LINE = re.compile(r"sep=([^\w\"\0])\s*")
"""A first line that Excel reads as the separator: `sep=;`."""
DELIMITER_LINES = 50
"""The number of lines by which the separator is found."""


class _TooLong(Exception):
    """An error for a record that is longer than the bound."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class _Lines:
    """An iterator over the lines of a file as text, for `csv.reader`. A generator would not continue after an error."""

    def __init__(self, lines: Iterator[Line], max_bytes: int) -> None:
        self._lines = lines
        self._max_bytes = max_bytes
        self.line_number = 0
        """The number of the last line read."""
        self.start_record()

    def start_record(self) -> None:
        """Reset the first line, the size and the text of the current record."""
        self.first_line_number = 0
        self.size = 0
        self.text = ""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.line_number = line.line_number
        self.size += line.size
        # Invalid bytes become lone surrogates. Finished records are searched for them.
        text = line.data.decode("utf-8", "surrogateescape")
        if not self.first_line_number:
            self.first_line_number = line.line_number
            self.text = text
        if self.size > self._max_bytes:
            raise _TooLong(self.size)
        return text


def read_csv(path: Path, max_row_bytes: int) -> Iterator[Record | Reject]:
    """Yield the records of a CSV file. Raises InputError if its header cannot be read."""
    refuse_other_formats(path)
    earlier_limit = csv.field_size_limit()
    # The limit is global to the process, so it is only raised, and restored afterwards.
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
    """Return the separator of fields by the first lines of a file, by default the comma."""
    lines = [line.data.decode("utf-8", "replace") for line in islice(read_lines(path, max_row_bytes), DELIMITER_LINES)]
    if lines and (stated := _SEPARATOR_LINE.fullmatch(lines[0])) is not None:
        return stated[1]
    shares = {delimiter: _fitting_share(lines, delimiter) for delimiter in DELIMITERS}
    return max(shares, key=lambda delimiter: shares[delimiter])  # The first of equals.


def _fitting_share(lines: list[str], delimiter: str) -> float:
    """Return the share of records with as many fields as the header, 0 for a header of one field."""
    records: list[list[str]] = []
    with suppress(csv.Error):  # The last record may continue on further lines.
        records.extend(fields for fields in csv.reader(lines, strict=True, delimiter=delimiter) if fields)
    if not records or len(records[0]) == 1:
        return 0.0
    return sum(len(fields) == len(records[0]) for fields in records) / len(records)


def not_utf8(location: str, part: str, encoding: str = "windows-1252") -> InputError:
    """Return the error for a file in another encoding, with a command to convert it. `part` is the invalid part."""
    return InputError(
        f"{location}: {part} is not UTF-8.",
        f"Convert the file, from {encoding} or the encoding of its writer: "
        f"iconv -f {encoding} -t utf-8 {_into(location, 'utf8')}",
    )


def _into(location: str, name: str) -> str:
    """Return the end of a command that converts a file: `data.csv > data-utf8.csv`."""
    path = Path(location)
    return f"{shlex.quote(location)} > {shlex.quote(str(path.with_name(f'{path.stem}-{name}{path.suffix}')))}"


_BLANK = Reject(0, "", "", "")


def _read_header(path: Path, reader: Iterator[list[str]], lines: _Lines) -> list[str]:
    try:
        header = next((fields for fields in reader if fields and fields != ["sep=", ""]), None)
    except (csv.Error, _TooLong) as error:
        mends = f"If its lines end in CR alone: tr '\\r' '\\n' < {_into(str(path), 'lines')}"
        raise InputError(
            f"{path}: its header (line {lines.line_number}) cannot be read: {error}.",
            mends if "new-line" in str(error) else None,
        ) from None
    if header is None:
        raise InputError(f"{path} is empty.", "Its first line should name the columns.")
    if not all(map(is_utf8, header)):
        raise not_utf8(str(path), f"its header (line {lines.line_number})")
    if any("\0" in name for name in header):
        raise not_utf8(str(path), f"its header (line {lines.line_number})", "utf-16le")
    if header[0].startswith('{"'):
        raise InputError(f"{path} is JSON Lines, not CSV.", "Name it *.jsonl, or set format: jsonl.")
    header = [name.strip() or f"column {position}" for position, name in enumerate(header, 1)]
    if repeated := sorted({name for name in header if header.count(name) > 1}):
        raise InputError(f"{path}: its header names {repeated[0]!r} more than once.", "Give every column its own name.")
    return header


def _next_outcome(reader: Any, lines: _Lines, header: list[str], max_row_bytes: int) -> Record | Reject | None:
    """Return the next record or reject. Return `_BLANK` for a blank line, and None at the end."""
    lines.start_record()

    def reject(reason: str, detail: str) -> Reject:
        return Reject(lines.first_line_number, reason, detail, beginning(lines.text.rstrip("\r\n")))

    try:
        fields = next(reader)
    except StopIteration:
        return None
    except _TooLong as error:
        return reject("row_too_long", f"at least {error.size} bytes, above max_row_bytes = {max_row_bytes}")
    except csv.Error as error:
        return reject("invalid_csv", str(error))
    while len(fields) > len(header) and not fields[-1]:
        fields.pop()
    if not fields:
        outcome: Record | Reject = _BLANK
    elif len(fields) != len(header):
        outcome = reject("wrong_field_count", _describe_count(len(fields), len(header), lines.text, reader))
    elif invalid := [name for name, field in zip(header, fields, strict=True) if not is_utf8(field)]:
        outcome = reject("invalid_utf8", f"bytes that are not UTF-8 in column {invalid[0]!r}")
    else:
        outcome = Record(lines.first_line_number, dict(zip(header, fields, strict=True)), lines.size)
    return outcome


def _describe_count(fields: int, expected: int, line: str, reader: Any) -> str:
    """Return a phrase about the numbers of fields in a record and in the header. It names a separator by which they
    agree."""
    used = reader.dialect.delimiter
    fitting = [mark for mark in DELIMITERS if len(next(csv.reader([line], delimiter=mark), ())) == expected]
    others = f"; by {fitting[0]!r} it has {expected}" if fitting and expected > 1 else ""
    return f"by the separator {used!r} it has {fields} field{'s' * (fields > 1)}, but the header {expected}{others}"


BATCH_TEXT = 16 * 2**20
"""The approximate size of a batch in bytes. The number of rows follows from the row group with the largest rows."""
PAGE_BUFFER = 2**20
"""The number of bytes of a column that are read at a time. By default, memory holds a row group or the whole file."""


def open_parquet(path: Path) -> Any:
    """Open a Parquet file. Raises InputError if it is not an intact Parquet file."""
    try:
        return pq.ParquetFile(path, buffer_size=PAGE_BUFFER, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"{path} is not an intact Parquet file: {first_line(error)}.",
            "Copy or download the file again. If it has another format, change the ending of its name, as to .csv.",
        ) from None


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
            raise InputError(
                f"{path} is damaged after row {row_number}: {first_line(error)}.", "Copy or download the file again."
            ) from None


def as_record(row_number: int, values: dict[str, Any] | Exception, max_row_bytes: int) -> Record | Reject:
    """Return the record of decoded values, or a reject if they are too long or could not be decoded."""
    if isinstance(values, UnicodeDecodeError):
        return Reject(row_number, "invalid_utf8", f"{values.reason} at byte {values.start} of a text", "")
    if isinstance(values, Exception):
        return Reject(row_number, "unreadable_value", first_line(values), "")
    size = value_size(values)
    if size > max_row_bytes:
        return Reject(row_number, "row_too_long", f"{size} characters, above max_row_bytes = {max_row_bytes}", "")
    return Record(row_number, values, size)


def decode_rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """Yield the rows of a table or a batch. For a row that cannot be decoded, yield the error."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        # A row has invalid UTF-8, or a date that Python cannot represent. Read the rows one by one.
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except (ValueError, OverflowError, pa.ArrowInvalid) as error:
                yield error


def _batch_rows(metadata: Any) -> int:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    widest = max((group.total_byte_size / max(group.num_rows, 1) for group in groups), default=0)
    return int(min(BATCH_ROWS, max(1, BATCH_TEXT // max(widest, 1))))


def split_names(path: Path, folder: Path) -> tuple[Path, Path]:
    """Return the files that `split_file` writes: `kept.jsonl.gz` and `dropped.jsonl.gz` for `train.jsonl.gz`."""
    suffixes = "".join(path.suffixes[-2:] if path.suffix in (".gz", ".zst") else path.suffixes[-1:])
    return folder / f"kept{suffixes}", folder / f"dropped{suffixes}"


def split_file(path: Path, dropped: Set[int], folder: Path) -> tuple[Path, Path]:
    """Write kept and dropped records of a file to two files in its format, and return their paths.

    `dropped` has the row numbers of dropped records. Lines are copied unchanged, and both files have the header of CSV.
    """
    path = at_hand(path)
    form, packing = form_by_suffix(path), packing_of(path)
    targets = split_names(path, folder)
    with written_aside(targets[0]) as kept_file, written_aside(targets[1]) as dropped_file:
        if form == "parquet":
            _split_parquet(path, dropped, kept_file, dropped_file)
        else:
            with open_packed(kept_file, packing) as kept, open_packed(dropped_file, packing) as gone:
                for line_number, part in _numbered_parts(path, form):
                    is_header = form == "csv" and line_number == 0
                    if is_header or line_number not in dropped:
                        kept.write(part)
                    if is_header or line_number in dropped:
                        gone.write(part)
    return targets


def _split_parquet(path: Path, dropped: Set[int], kept_file: Path, dropped_file: Path) -> None:
    row_number = 1
    with (
        open_parquet(path) as file,
        pq.ParquetWriter(kept_file, file.schema_arrow) as kept,
        pq.ParquetWriter(dropped_file, file.schema_arrow) as gone,
    ):
        for batch in file.iter_batches(batch_size=_batch_rows(file.metadata)):
            goes = pa.array([row in dropped for row in range(row_number, row_number + batch.num_rows)])
            kept.write_batch(batch.filter(pc.invert(goes)))
            gone.write_batch(batch.filter(goes))
            row_number += batch.num_rows


def _numbered_parts(path: Path, form: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, each with the number of the first line of its record. Long lines come in pieces.

    The header of CSV has the number 0.
    """
    starts: set[int] | None = None
    if form == "csv":
        starts = {record.row_number for record in read_csv(path, MAX_ROW_BYTES)}
    line_number, record, begins_line = 0, 0, True
    with open_bytes(path) as lines:
        while part := lines.readline(MAX_ROW_BYTES):
            line_number += begins_line
            if starts is None or line_number in starts:
                record = line_number
            begins_line = part.endswith(b"\n")
            yield record, part

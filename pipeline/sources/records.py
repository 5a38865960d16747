"""Defines the output of readers: a record with its values, or a reject with its reason.

The third line of a file, `{"question": "1+1?", "answer": }`, becomes

    Reject(row_number=3, reason="invalid_json", detail="Expecting value at character 31", excerpt='{"question": ...')

A reject never stops a run. Rejects are written to `rejects.jsonl`, and commands print the number of rejects and the
first reject of each reason (`describe_rejects`):

    30 of 31 records rejected: 30 gold_not_text
      train.jsonl:2: gold_not_text: column 'answer' holds an object, not an answer; name a part of it: answer.value

An `InputError` stops a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from truegold.verifiers import InputError

EXCERPT_CHARS = 200
"""The maximum number of characters of a record that a reject quotes."""

LOOK_AHEAD = 100
"""The roles of columns are found by this number of first records. Some of them may lack columns."""

LOOK_AHEAD_BYTES = 2**20
"""The number of bytes of first records after which `look_ahead` stops."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source."""

    row_number: int
    """The number of the record from 1; in a format with lines, the number of its first line."""
    values: Mapping[str, Any]
    """The record's values by column."""
    size: int
    """The approximate number of bytes of the record. It bounds the memory of `look_ahead`."""
    file: str | None = None
    """The file of the record and its row there, for a source of several files: `part1.jsonl:21`."""

    def excerpt(self) -> str:
        """Return the beginning of the values as JSON. If they are nested too deeply, return the names of the
        columns."""
        try:
            text = json.dumps(self.values, default=lambda value: f"<{type(value).__name__}>")
        except RecursionError:
            text = json.dumps(list(self.values))
        return beginning(text)

    def reject(self, reason: str, detail: str) -> Reject:
        """Return a reject for this record."""
        return Reject(self.row_number, reason, in_file(detail, self.file), self.excerpt())


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that cannot become a row."""

    row_number: int
    reason: str
    """The name of the reason, by which rejects are counted, such as `invalid_json`."""
    detail: str
    """The fault of this record, as part of a sentence."""
    excerpt: str
    """The beginning of the record."""


@dataclass(frozen=True, slots=True)
class Source:
    """An opened source."""

    name: str
    """The name of the source in the column `source` of every row."""
    location: str
    """The name of the source in errors: a path, or a name on the hub."""
    records: Iterator[Record | Reject]
    unit: str = "line"
    """The word for the unit of `row_number`."""
    total: int | None = None
    """The number of records, if the format stores it."""


def in_file(detail: str, file: str | None) -> str:
    """Return a detail with the name of its file, if the source has several files."""
    return detail if file is None else f"{detail} ({file})"


def beginning(text: str, chars: int = EXCERPT_CHARS) -> str:
    """Return the first `chars` characters of `text`, safe to write as UTF-8."""
    return text[:chars].encode("utf-8", "replace").decode("utf-8")


def value_size(values: Mapping[str, Any]) -> int:
    """Return the total length of all top-level texts and bytes. It is a cheap size for formats without lines."""
    return sum(len(value) for value in values.values() if isinstance(value, str | bytes))


def look_ahead(records: Iterable[Record | Reject], on_reject: Callable[[Reject], object]) -> list[Record]:
    """Return the first records, up to LOOK_AHEAD, and call `on_reject` for each reject among them."""
    ahead: list[Record] = []
    size = 0
    for record in records:
        if isinstance(record, Reject):
            on_reject(record)
            continue
        ahead.append(record)
        size += record.size
        if len(ahead) >= LOOK_AHEAD or size >= LOOK_AHEAD_BYTES:
            break
    return ahead


def readable(records: Iterable[Record | Reject]) -> list[Record]:
    """Return the records among records and rejects."""
    return [record for record in records if isinstance(record, Record)]


def sample_values(records: Iterable[Record | Reject]) -> list[Mapping[str, Any]]:
    """Return the values of the readable records, as samples to find the roles of columns."""
    return [record.values for record in readable(records)]


REMEDIES = {
    "unknown_verifier": "Name another column: --set data.columns.verifier=COLUMN, or --verifier-column COLUMN; or the "
    "verifier of all rows: --set data.verifier=NAME, or --verifier NAME.",
    "invalid_utf8": "Convert the file: iconv -f windows-1252 -t utf-8 FILE > NEW_FILE, or from what its writer used.",
    "invalid_json": "Write every record as one line of JSON: json.dumps(record), or df.to_json(FILE, orient='records', "
    "lines=True).",
    "not_an_object": 'Write every record as an object: {"question": "1+1?", "answer": "2"}.',
    "invalid_csv": 'A quote within a quoted text is written twice: "a 5"" pipe".',
    "wrong_field_count": "Use one separator in the header and all rows, and put a text with the separator or a line "
    'break in it into quotes: "Tom, 3 years".',
}
"""The remedy for each reason of rejects whose detail does not name a remedy."""


def nothing_usable(source: Source, rows: str, first: Reject | None, cause: str = "") -> InputError:
    """Return the error for a source without any usable record.

    `rows` describes the records that were read, such as `3 rows`. `cause` has the cause and its remedy, if known.
    """
    if first is None:
        return InputError(f"{source.location} holds no rows.")
    excerpt = f"It begins: {first.excerpt[:80]}" if first.excerpt else ""
    advice = cause or REMEDIES.get(first.reason, "")
    return InputError(
        f"{source.location}: none of its {rows} can be used; the first is {source.unit} "
        f"{first.row_number}: {first.reason}: {first.detail}.",
        ". ".join(filter(None, (excerpt, advice))),
    )


def check_readable(source: Source, first_records: Sequence[Record | Reject]) -> None:
    """Raise InputError if none of the first records of a source can be read."""
    if not readable(first_records):
        rejects = [record for record in first_records if isinstance(record, Reject)]
        looked_at = "first " if len(rejects) >= LOOK_AHEAD else ""
        raise nothing_usable(source, f"{looked_at}{len(rejects)} rows", next(iter(rejects), None))


def first_line(error: Exception) -> str:
    """Return the first line of an error message, without a full stop; the type of the error if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


REJECTS_FILE = "rejects.jsonl"
"""The file with the records that did not become rows, and the reasons."""
REJECT = "reject:"
"""The prefix of a reject's reason in the counts of `ingest`."""
DETAIL_CHARS = 300
"""The maximum number of characters of a detail that are shown."""


def first_rejects(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the first reject of each reason in the files `rejects.jsonl` of `paths`."""
    first: dict[str, dict[str, Any]] = {}
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                reject = orjson.loads(line)
                first.setdefault(reject["reason"], reject)
    return list(first.values())


def describe_rejects(rejected: Mapping[str, int], records: int, first: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return lines on the rejects, empty without rejects.

    `rejected` has the number of rejects by reason, `records` is the number of all records, and `first` has the first
    reject of each reason.
    """
    if not (total := sum(rejected.values())):
        return []
    return [f"{total:,} of {records:,} records rejected: {describe_reasons(rejected)}", *map(_describe_reject, first)]


def describe_reasons(rejected: Mapping[str, int]) -> str:
    """Return the counts by reason, the most frequent first: `30 gold_not_text, 6 system_message`."""
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(rejected.items(), key=lambda entry: -entry[1]))


def _describe_reject(reject: Mapping[str, Any]) -> str:
    remedy = REMEDIES.get(reject["reason"])
    text = f"{reject['detail']}"[:DETAIL_CHARS] + (f". {remedy}" if remedy else "")
    return f"  {reject['source']}:{reject['source_row']}: {reject['reason']}: {text}"

"""What readers yield: a record with its values, or a reject with the reason why there are none.

The third line of a file, `{"question": "1+1?", "answer": }`, becomes

    Reject(number=3, reason="invalid_json", detail="Expecting value at character 30", excerpt='{"question": ...')

A reject never stops a run; it lands in `rejects.jsonl`. What stops a run is an `InputError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

EXCERPT_CHARS = 200
"""What a reject shows of its row: enough to find it, never a whole 8 MB line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a source: its number from 1 (a line number where the format has lines) and its values."""

    number: int
    values: Mapping[str, Any]
    size: int
    """Roughly its bytes: bounds how much is held when looking ahead."""

    def excerpt(self) -> str:
        return excerpt(json.dumps(self.values, default=lambda value: f"<{type(value).__name__}>"))


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that cannot become a row."""

    number: int
    reason: str
    detail: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class Source:
    """An opened source."""

    name: str
    location: str
    """What errors call it: a path, or a hub name."""
    records: Iterator[Record | Reject]
    unit: str = "line"
    """What `number` counts, in words."""
    total: int | None = None
    """How many records there are, where the format says so."""


class Unusable(Exception):
    """One record cannot become a row; caught where records are turned into rows, and written down as a reject."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def excerpt(text: str, chars: int = EXCERPT_CHARS) -> str:
    """The start of `text`, safe to write as UTF-8."""
    return text[:chars].encode("utf-8", "replace").decode("utf-8")


def value_size(values: Mapping[str, Any]) -> int:
    """The length of all top-level texts and bytes: a cheap bound for formats without lines."""
    return sum(len(value) for value in values.values() if isinstance(value, str | bytes))

"""The lines of JSON that a sandboxed process left behind, which may have been made to cost their reader dear.

    for line in lines(result): ...              complete lines, without empty ones and without a list of all of them
    parts = Parts()
    parts.allow(b"[1,2,3]")                     True: few enough parts, over all lines

A result of 64 MB can be 64 million empty lines, or lines of ten million lists: seconds and gigabytes once read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PARTS = 8_000_000
LIST_PARTS, OBJECT_PARTS = 4, 12
"""What lists and objects count, beside their items: about as the memory and the time that they take."""

BYTES_A_PART = 4
"""Stops integers of thousands of digits, of which each byte takes as long as a short item."""

_LINE = re.compile(rb"[^\n]+")


def lines(result: bytes) -> Iterator[bytes]:
    """What stands behind the last end of a line was cut off, and is left out."""
    for found in _LINE.finditer(result):
        if found.end() < len(result):
            yield found[0]


class Parts:
    """Counts what lines are made of."""

    def __init__(self, most: int = MAX_PARTS) -> None:
        self._left = most

    def allow(self, line: bytes) -> bool:
        self._left -= parts_of(line)
        return self._left >= 0


def parts_of(line: bytes) -> int:
    containers = LIST_PARTS * line.count(b"[") + OBJECT_PARTS * line.count(b"{")
    return containers + line.count(b",") + len(line) // BYTES_A_PART + 1

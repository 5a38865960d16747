"""Reads the lines of JSON that a sandboxed process left behind, which may be built to exhaust memory.

    for line in lines(result): ...              complete lines, without empty ones and without a list of all of them
    budget = PartsBudget()
    budget.spend(b"[1,2,3]")                    True: few enough parts, over all lines

A result of 64 MB can be 64 million empty lines, or lines of ten million lists: seconds and gigabytes once read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_PARTS = 8_000_000
"""All lines together may have this many parts. Stops results that take gigabytes once read."""

LIST_PARTS, OBJECT_PARTS = 4, 12
"""What lists and objects count, beside their items: about the memory and the time that they take."""

BYTES_A_PART = 4
"""Stops integers of thousands of digits, of which each byte takes as long as a short item."""

_LINE = re.compile(rb"[^\n]+")


def lines(result: bytes) -> Iterator[bytes]:
    """Yield the complete lines. What stands behind the last end of a line was cut off, and is left out."""
    for line in _LINE.finditer(result):
        if line.end() < len(result):
            yield line[0]


class PartsBudget:
    """Bounds what lines may be made of, all of them together."""

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._left = max_parts

    def spend(self, line: bytes) -> bool:
        """Count a line's parts, and return whether they are still within the bound."""
        self._left -= count_parts(line)
        return self._left >= 0


def count_parts(line: bytes) -> int:
    """Return about how many values within values a line of JSON holds, without reading it."""
    containers = LIST_PARTS * line.count(b"[") + OBJECT_PARTS * line.count(b"{")
    return containers + line.count(b",") + len(line) // BYTES_A_PART + 1

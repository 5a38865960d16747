"""A program's output, token by token or line by line, without taking all of it apart at once.

list(tokens("1 2\\n3"))                                          [["1", "2", "3"]]
first_difference(tokens("1 2"), tokens("1 3"), str.__eq__)      (1, "2", "3")
first_difference(tokens("1 2"), tokens("1"), str.__eq__)        (1, "2", None)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

CHUNK_CHARS = 2**20
"""Characters that are taken apart at a time. Stops outputs of megabytes from becoming lists many times their size."""

_SPACE = re.compile(r"\s")
_NO_SPACE = re.compile(r"\S")


def tokens(text: str) -> Iterator[list[str]]:
    """Yield what stands between white space, a chunk at a time."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + CHUNK_CHARS)
        end = space.start() if space else len(text)
        yield text[start:end].split()
        start = end


def lines(text: str) -> Iterator[list[str]]:
    """Yield lines, a chunk at a time, without the blanks at their ends and the blank lines at the end of the text."""
    end, start = len(text.rstrip()), 0
    while start < end:
        newline = text.find("\n", start + CHUNK_CHARS, end)
        stop = end if newline < 0 else newline
        yield [line.rstrip() for line in text[start:stop].split("\n")]
        start = stop + 1


def nonblank_lines(text: str) -> Iterator[str]:
    """Yield the lines that hold more than white space."""
    start = 0
    # The search goes from one character to the next, so that a million blank lines cost nothing.
    while (character := _NO_SPACE.search(text, start)) is not None:
        begin = text.rfind("\n", start, character.start()) + 1 or start
        newline = text.find("\n", character.start())
        start = len(text) if newline < 0 else newline + 1
        yield text[begin:start].removesuffix("\n")


def first_difference(
    expected: Iterator[list[str]], got: Iterator[list[str]], are_equal: Callable[[str, str], bool]
) -> tuple[int, str | None, str | None] | None:
    """Return the index of the first units that differ, and both; None where all are equal.

    A side that has ended stands as None.
    """
    start, expected_units, got_units = 0, _Units(expected), _Units(got)
    while expected_units.refill() and got_units.refill():
        count = min(len(expected_units.units), len(got_units.units))
        expected_part, got_part = expected_units.take(count), got_units.take(count)
        if expected_part != got_part:
            for index, (expected_unit, got_unit) in enumerate(zip(expected_part, got_part, strict=True)):
                if expected_unit != got_unit and not are_equal(expected_unit, got_unit):
                    return start + index, expected_unit, got_unit
        start += count
    if expected_units.refill() or got_units.refill():
        return start, next(iter(expected_units.units), None), next(iter(got_units.units), None)
    return None


class _Units:
    """The tokens or lines of one side, of which `units` are what is left of the current chunk."""

    def __init__(self, chunks: Iterator[list[str]]) -> None:
        self.chunks = chunks
        self.units: list[str] = []

    def refill(self) -> bool:
        """Go on to the next chunk where the current one is used up, and return whether there are units left."""
        while not self.units:
            chunk = next(self.chunks, None)
            if chunk is None:
                return False
            self.units = chunk
        return True

    def take(self, count: int) -> list[str]:
        """Remove the next units and return them."""
        taken, self.units = self.units[:count], self.units[count:]
        return taken

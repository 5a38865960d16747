"""Reads inputs on stdin as values, so that further inputs can be made from them, and writes values as inputs.

    "3\\n1 5 2\\n", "2\\n7 7\\n"              (3, [1, 5, 2]), (2, [7, 7])
    "2 abc\\n", "5 x\\n"                    (2, "abc"), (5, "x")
    "2\\n1 2\\n3 4\\n", "1\\n5 6\\n"         (2, [(1, 2), (3, 4)]), (1, [(5, 6)])

If a line has the same number of words in all inputs, each word is a value; otherwise the line is a list. If the number
of lines varies, the lines from the second on are a list; they must all have the same number of words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Value = Any
_Lines = Sequence[Sequence[Value]]


def read_inputs(texts: Sequence[str]) -> tuple[list[tuple[Value, ...]], Callable[[Sequence[Value]], str]] | None:
    """Return the inputs as values, and a function that writes values as an input.

    Returns None if the inputs do not have a common form.
    """
    inputs = [[[_word(word) for word in line.split()] for line in text.strip().splitlines()] for text in texts]
    if not all(inputs) or any(_write(lines) != _squeezed(text) for lines, text in zip(inputs, texts, strict=True)):
        return None
    if len({len(lines) for lines in inputs}) == 1:
        return _read_lines(inputs, len(inputs[0]))
    widths = {len(line) for lines in inputs for line in lines[1:]}
    if len(widths) != 1 or 0 in widths:
        return None
    wide = widths != {1}
    read = _read_lines([lines[:1] for lines in inputs], 1)
    rests = [[tuple(line) if wide else line[0] for line in lines[1:]] for lines in inputs]
    values = [(*first, rest) for first, rest in zip(read[0], rests, strict=True)]

    def write(arguments: Sequence[Value]) -> str:
        return read[1](arguments[:-1]) + _write([line if wide else [line] for line in arguments[-1]])

    return values, write


def _read_lines(
    inputs: Sequence[_Lines], count: int
) -> tuple[list[tuple[Value, ...]], Callable[[Sequence[Value]], str]]:
    """Return the values of inputs with `count` lines, and a function that writes values as an input."""
    widths = [{len(lines[index]) for lines in inputs} for index in range(count)]
    # None stands for a line whose number of words varies, which is a list.
    fixed = [width.pop() if len(width) == 1 else None for width in widths]

    def write(arguments: Sequence[Value]) -> str:
        rest = list(arguments)
        lines = []
        for width in fixed:
            taken = rest[0] if width is None else rest[:width]
            rest = rest[1 if width is None else width :]
            lines.append(taken)
        return _write(lines)

    values: list[tuple[Value, ...]] = []
    for lines in inputs:
        parts = [[list(line)] if width is None else line for line, width in zip(lines, fixed, strict=True)]
        values.append(tuple(value for part in parts for value in part))
    return values, write


def _word(word: str) -> Value:
    """Return the number that a word spells, or else the word."""
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        if str(value) == word:
            return value
    return word


def _write(lines: _Lines) -> str:
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def _squeezed(text: str) -> str:
    return "".join(" ".join(line.split()) + "\n" for line in text.strip().splitlines())

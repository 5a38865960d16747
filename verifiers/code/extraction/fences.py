"""The fenced blocks of a response.

    ```python title="a.py"      Block("print(1)", "python", closed=True)
    print(1)
    ```

Fences are three or more backticks or tildes, indented or not; the language is the first word behind them, in any usual
spelling (`py`, `{.python}`, `python:main.py`). As in Markdown, a fence closes with at least as many characters of its
kind; beyond Markdown, for models that leave one out:

    - an opening fence with a language ends a block that is still open
    - a fence inside a triple-quoted string of Python is part of the string, where the longer reading closes the string
    - "```" at the end of a line of code closes its block
    - the last block may stay open: the response was cut off
    - the first block may begin with the text, where the prompt ends with its opening fence
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truegold.verifiers.sandbox.languages import language_name

MAX_BLOCKS = 64
"""Only so many of the last blocks are returned."""

MAX_FENCES = 1_000
"""Only so many of the last fences are looked at. Stops a response that is nothing but fences."""

MAX_FENCES_IN_STRING = 8
"""Fences that one triple-quoted string may hold. Stops many short blocks that each have the rest of the text read."""

_FENCE = re.compile(r"([ \t]{0,24})(`{3,}|~{3,})[ \t]*([^\n`]{0,200})$")
_FIRST_WORD = re.compile(r"[{\[]?\.?([A-Za-z][\w+#-]{0,30})")
_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*|'''|\"\"\"|'(?:[^'\\\n]|\\.)*(?:'|$)|\"(?:[^\"\\\n]|\\.)*(?:\"|$)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    text: str
    language: str
    """The language's name, "" where the fence names none."""
    closed: bool = True
    """Whether a fence ends the block."""


@dataclass(frozen=True, slots=True)
class _Fence:
    line: int
    indent: int
    mark: str
    info: str

    def closes(self, opening: _Fence) -> bool:
        return not self.info and self.mark[0] == opening.mark[0] and len(self.mark) >= len(opening.mark)


def fenced_blocks(text: str, prompt_opened: str | None = None) -> list[Block]:
    """Return the last MAX_BLOCKS blocks, in order.

    prompt_opened: the language of a block that the text begins inside; None where it begins outside of any.
    """
    lines = text.split("\n")
    fences = _fences(lines)
    if prompt_opened is not None:
        mark = fences[0].mark[0] * 3 if fences else "```"
        fences = [_Fence(-1, 0, mark, prompt_opened), *fences]
    blocks: list[Block] = []
    index = 0
    while index < len(fences):
        opening = fences[index]
        index, end, closed = _end(lines, fences, index)
        inside = lines[opening.line + 1 : end]
        if opening.indent:
            inside = [_without_indent(line, opening.indent) for line in inside]
        blocks.append(_block(inside, _language(opening.info), closed))
    return blocks[-MAX_BLOCKS:]


def _fences(lines: list[str]) -> list[_Fence]:
    fences: list[_Fence] = []
    for line_index in range(len(lines) - 1, -1, -1):
        line = lines[line_index]
        if "```" not in line and "~~~" not in line:
            continue
        match = _FENCE.match(line.rstrip())
        if match:
            fences.append(_Fence(line_index, len(match[1]), match[2], match[3].strip()))
        if len(fences) == MAX_FENCES:
            break
    return fences[::-1]


def _end(lines: list[str], fences: list[_Fence], opening_index: int) -> tuple[int, int, bool]:
    """Return where a block ends: the next fence to look at, the line after the block, and whether it was closed."""
    opening = fences[opening_index]
    python = _language(opening.info) in ("python", "")
    start = opening.line + 1
    for index in range(opening_index + 1, len(fences)):
        fence = fences[index]
        if not fence.closes(opening) and not _language(fence.info):
            continue
        if python and (later := _end_of_string(lines, fences, start, index)) is not None:
            return later + 1, fences[later].line, True
        return (index + 1, fence.line, True) if fence.closes(opening) else (index, fence.line, False)
    return len(fences), len(lines), False


def _end_of_string(lines: list[str], fences: list[_Fence], start: int, fence_index: int) -> int | None:
    """Return the first closing fence after the triple-quoted string that a fence stands in, None if it is in none."""
    quote = _open_quote("\n".join(lines[start : fences[fence_index].line]), None)
    if quote is None:
        return None
    for index in range(fence_index + 1, min(len(fences), fence_index + MAX_FENCES_IN_STRING)):
        quote = _open_quote("\n".join(lines[fences[index - 1].line : fences[index].line]), quote)
        if quote is None:
            return index if not fences[index].info else None
    return None


def _open_quote(source: str, quote: str | None) -> str | None:
    """Return the triple quote that is still open at the end of `source`, which begins inside `quote`."""
    position = 0
    while position < len(source):
        if quote is not None:
            closing = source.find(quote, position)
            if closing < 0:
                return quote
            position, quote = closing + 3, None
        string_or_comment = _STRING_OR_COMMENT.search(source, position)
        if string_or_comment is None:
            return None
        position = string_or_comment.end()
        if string_or_comment[0] in ("'''", '"""'):
            quote = string_or_comment[0]
    return quote


def _block(lines: list[str], language: str, closed: bool) -> Block:
    if not closed:
        last = next((index for index, line in enumerate(lines) if line.rstrip().endswith("```")), None)
        if last is not None:
            lines = [*lines[:last], lines[last].rstrip().rstrip("`")]
            closed = True
    return Block("\n".join(lines), language, closed)


def _language(info: str) -> str:
    word = _FIRST_WORD.match(info)
    return language_name(word[1]) if word else ""


def _without_indent(line: str, indent: int) -> str:
    line_indent = len(line) - len(line.lstrip(" \t"))
    return line[min(indent, line_indent) :]

"""Finds the fenced blocks of a response.

    ```python title="a.py"          Block("print(1)", "python", closed=True)
    print(1)
    ```

Fences are those of Markdown. The language is the first word after a fence, in any usual spelling (`py`, `{.python}`,
`python:main.py`). Some rules go beyond Markdown, for models that omit a fence:

    - an opening fence with a language ends a block that is still open
    - a fence inside a triple-quoted string of Python is part of the string, if the string is closed later
    - "```" at the end of a line of code closes its block
    - the last block may stay open, if the response was cut off
    - the first block may begin with the text, if the prompt ends with its opening fence
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from truegold.verifiers.sandbox.languages import language_name

MAX_BLOCKS, MAX_FENCES = 64, 1_000
"""The most blocks and fences that are read, counted from the end of the text."""

MAX_FENCES_IN_STRING = 8
"""The most fences inside one triple-quoted string."""

CODE_LINE = re.compile(
    r"^(?:(?:async[ \t]+def|def|class)[ \t]+[^\W\d]\w*[ \t]*[(:]"
    r"|@[^\W\d]\w*"
    r"|import[ \t]+[\w.]+(?:[ \t]+as\b|[ \t]*,|[ \t]*$)"
    r"|from[ \t]+[\w.]+[ \t]+import\b)",
    re.MULTILINE,
)
"""The start of a line of Python: `def f(`, `class A:`, `@cache`, `import a as b`, `from a import`."""

_FENCE = re.compile(r"([ \t]{0,24})(`{3,}|~{3,})[ \t]*([^\n`]{0,200})$")
"""The line of a fence, ```` ```python title="a.py" ```` or `~~~`: indentation, mark, and the text after the mark."""

_FIRST_WORD = re.compile(
    r"[{\[]?\.?(?:[\w/-]{1,60}\.(?=(?:py|java|js|ts|go|rs|cpp|rb|php)\b))?([A-Za-z][\w+#-]{0,30})", re.ASCII
)
"""The language in the text after a fence: `python title="a.py"`, `{.python}`, `[python]`, `add.py`, `Python代码`."""

_SENTENCE_END = " \t.,;:!?)。．，、；：！？）」』】*_"
"""Characters after a closing fence that are ignored."""

_MEANT = {
    **dict.fromkeys(("text", "txt", "plaintext", "plain", "code", "diff", "patch", "tool_code"), ""),
    **dict.fromkeys(("pycon", "python-repl", "ipython", "jupyter"), "python"),
}
"""The languages of further labels; an empty text stands for an unknown language."""

_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*|'''|\"\"\"|'(?:[^'\\\n]|\\.)*(?:'|$)|\"(?:[^\"\\\n]|\\.)*(?:\"|$)", re.MULTILINE | re.DOTALL
)
"""A triple quote, a comment, or a string on one line. Quotes inside comments and strings do not count: `"'''"`."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    text: str
    language: str
    """The name of the language, or an empty text if the fence does not name one."""
    closed: bool = True
    """Whether a closing fence ends the block."""


@dataclass(frozen=True, slots=True)
class _Fence:
    """A line that opens or closes a block."""

    line: int
    """The index of the line; -1 if the fence is in the prompt."""
    indent: int
    mark: str
    """The backticks or tildes."""
    info: str
    """The text after the mark."""

    def closes(self, opening: _Fence) -> bool:
        return not self.info and self.mark[0] == opening.mark[0] and len(self.mark) >= len(opening.mark)


def fenced_blocks(text: str, prompt_opened: str | None = None) -> list[Block]:
    """Return the blocks of a text in order, at most the last MAX_BLOCKS.

    prompt_opened: the language of a block that the prompt has opened, or None if the text begins outside of a block.
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
        blocks.append(_block(*_inside(opening, lines[opening.line + 1 : end]), closed))
    return blocks[-MAX_BLOCKS:]


def opened_block(prompt: str) -> str:
    """Return the text of the block that a prompt leaves open, or an empty text if all blocks are closed."""
    blocks = fenced_blocks(prompt) if "```" in prompt else []
    return "" if not blocks or blocks[-1].closed else blocks[-1].text


def text_before_fences(text: str) -> str:
    """Return the text before its first fence, or the whole text if it has none."""
    fences = _fences(lines := text.split("\n"))
    return "\n".join(lines[: fences[0].line] if fences else lines)


def _fences(lines: list[str]) -> list[_Fence]:
    """Return the last MAX_FENCES fences, in order."""
    fences: list[_Fence] = []
    for index in reversed(range(len(lines))):
        may_be = "```" in lines[index] or "~~~" in lines[index]
        if may_be and len(fences) < MAX_FENCES and (match := _FENCE.match(lines[index].rstrip())):
            info = match[3].strip() if match[3].strip(_SENTENCE_END) else ""
            fences.append(_Fence(index, len(match[1]), match[2], info))
    return fences[::-1]


def _end(lines: list[str], fences: list[_Fence], opening_index: int) -> tuple[int, int, bool]:
    """Return the index of the next fence to read, the line after the block, and whether a fence closed the block."""
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
    """Return the index of the closing fence after the triple-quoted string around a fence, or None without one."""
    quote = _open_quote("\n".join(lines[start : fences[fence_index].line]), None)
    if quote is None:
        return None
    for index in range(fence_index + 1, min(len(fences), fence_index + MAX_FENCES_IN_STRING)):
        quote = _open_quote("\n".join(lines[fences[index - 1].line : fences[index].line]), quote)
        if quote is None:
            return index if not fences[index].info else None
    return None


def _open_quote(source: str, quote: str | None) -> str | None:
    """Return the triple quote that is open at the end of `source`, or None. quote: the one open at its start."""
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
    """Return the block with these lines. An open block ends at backticks at the end of a line: `print(1)````."""
    if not closed:
        last = next((index for index, line in enumerate(lines) if line.rstrip().endswith("```")), None)
        if last is not None:
            lines = [*lines[:last], lines[last].rstrip().rstrip("`")]
            closed = True
    return Block("\n".join(lines), language, closed)


def _language(info: str) -> str:
    """Return the language in the text after a fence, or an empty text."""
    word = _FIRST_WORD.match(info)
    return language_name(word[1]) if word else ""


def _inside(opening: _Fence, lines: list[str]) -> tuple[list[str], str]:
    """Return the lines of a block and its language.

    Models may write the language on the first line of the block, or the first line of code on the line of the fence.
    """
    if opening.indent:
        lines = [line[min(opening.indent, len(line) - len(line.lstrip(" \t"))) :] for line in lines]
    name = _MEANT.get(language := _language(opening.info), language)
    _, _, behind = opening.info.partition(" ")
    if name == "python" and CODE_LINE.match(behind):
        return [behind, *lines], name
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if not name and lines and lines[first].strip().lower() in ("python", "python3", "py"):
        return lines[first + 1 :], "python"
    return lines, name

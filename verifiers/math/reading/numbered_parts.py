r"""Rewrites answers with numbered parts as a labelled list, so that each part is compared with the same part of gold.

    (1) 5; (2) 7        (a) 5 (b) 7        i) 5 ii) 7        Part A: 5 Part B: 7        1. 5 <line break> 2. 7

Each of these becomes `\text{part 1}: 5; \text{part 2}: 7`. `(ii) 5` alone becomes 5. Not covered: lists whose first
part is missing.
"""

from __future__ import annotations

import re

_NAMES = r"[1-9]|[A-Ea-e]|i{1,3}|iv|v"
_WRAPPED_MARK = re.compile(rf"\\(?:text|textbf|mathrm)\s*\{{\s*((?:[Pp]art\s+)?\(?(?:{_NAMES})[):]{{1,2}})\s*\}}")
r"""A mark in a text command: `\text{(a)}`, `\textbf{Part 1:}`."""
_FIRST_MARK = re.compile(r"(?:\\(?:text|textbf|mathrm)\s*\{\s*)?(?:\(?[1ai]\)|[Pp]art\s+\(?[A1ai])")
r"""The mark of a first part at the start of a text: `(1)`, `a)`, `Part A`, `\text{(i)`."""
_MARK = re.compile(rf"(?:\b[Pp]art\s+\(?({_NAMES})[):.]{{1,2}}|(?<![\w^_])\(?({_NAMES})\)[:.]?)\s*")
"""The mark of a part: `Part A:`, `(b)`. The brackets of `f(2)`, `x^(2)` and `a_(1)` are not marks."""
_POINTED_LINE = re.compile(rf"^({_NAMES})\.[ \t]+(?=\S)", re.MULTILINE)
"""A mark at the start of a line: `1. 5`, `a. 5`."""
_LONE_MARK = re.compile(r"\A\(i{1,3}v?\)\s+(?=[\\\w])")
r"""The mark of a single part: `(ii) \frac{1}{2}`. The product `i(1 + i)` does not match."""
_LINES = re.compile(r"\\begin\{(array|align|aligned|gathered|split)\*?\}(?:\{[lcr| ]*\})?(.*)\\end\{\1\*?\}", re.DOTALL)
"""An environment of lines, which may be numbered."""
_SEQUENCES = (tuple("123456789"), tuple("abcde"), ("i", "ii", "iii", "iv", "v"))


def with_numbered_parts(text: str) -> str:
    """Return a text with numbered parts as a labelled list. Other texts are returned unchanged."""
    if "\n" in text and text[1:2] == ".":
        text = _POINTED_LINE.sub(r"(\1) ", text)
    if text.startswith("\\begin") and (lines := _LINES.fullmatch(text)) is not None and "\\begin" not in lines[2]:
        inside = lines[2].replace("\\\\", " ").replace("&", " ").strip()
        parts = with_numbered_parts(inside)
        return text if parts == inside else parts
    if _FIRST_MARK.match(text) is None:
        return _LONE_MARK.sub("", text)
    unwrapped = _WRAPPED_MARK.sub(r"\1", text)
    marks = list(_MARK.finditer(unwrapped))
    if len(marks) < 2 or marks[0].start() > 0:
        return _LONE_MARK.sub("", text)
    names = tuple((mark[1] or mark[2]).lower() for mark in marks)
    if names not in {sequence[: len(names)] for sequence in _SEQUENCES}:
        return text
    ends = [*(mark.start() for mark in marks[1:]), len(unwrapped)]
    answers = [unwrapped[mark.end() : end].strip(" ;,.") for mark, end in zip(marks, ends, strict=True)]
    if not all(answers):
        return text
    return "; ".join(f"\\text{{part {index}}}: {answer}" for index, answer in enumerate(answers, 1))

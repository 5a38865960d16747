r"""Answers to the parts of a question: `(1) 5; (2) 7`, `(a) 5 (b) 7`, `i) 2 ii) 9`, `Part A: 12 Part B: 15`.

Each becomes a labelled item, `part 1: 5; part 2: 7`, so that their order counts. Not covered: parts that do not begin
with the first.
"""

from __future__ import annotations

import re

_MARK_LETTERS = r"[1-9]|[A-Ea-e]|i{1,3}|iv|v"
_WRAPPED = re.compile(rf"\\(?:text|textbf|mathrm)\s*\{{\s*((?:[Pp]art\s+)?\(?(?:{_MARK_LETTERS})[):]{{1,2}})\s*\}}")
_FIRST = re.compile(r"(?:\\(?:text|textbf|mathrm)\s*\{\s*)?(?:\(?[1ai]\)|[Pp]art\s+\(?[A1ai])")
_MARK = re.compile(rf"(?:\b[Pp]art\s+\(?({_MARK_LETTERS})[):.]{{1,2}}|(?<![\w^_])\(?({_MARK_LETTERS})\)[:.]?)\s*")
_SEQUENCES = (tuple("123456789"), tuple("abcde"), ("i", "ii", "iii", "iv", "v"))


def with_numbered_parts(text: str) -> str:
    """Return the text with its numbered parts as a labelled list; any other text as it is."""
    if _FIRST.match(text) is None:
        return text
    plain = _WRAPPED.sub(r"\1", text)
    marks = list(_MARK.finditer(plain))
    if len(marks) < 2 or marks[0].start() > 0:
        return text
    names = tuple((mark[1] or mark[2]).lower() for mark in marks)
    if names not in {sequence[: len(names)] for sequence in _SEQUENCES}:
        return text
    ends = [*(mark.start() for mark in marks[1:]), len(plain)]
    answers = [plain[mark.end() : end].strip(" ;,.") for mark, end in zip(marks, ends, strict=True)]
    if not all(answers):
        return text
    return "; ".join(f"\\text{{part {part}}}: {answer}" for part, answer in enumerate(answers, 1))

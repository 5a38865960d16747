"""Braces of LaTeX: where they stand, which closes which, and the ones that were lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_LOST_BRACES = 3
"""More braces than this are not lost: the text is something else."""

_BRACE = re.compile(r"\\.|([{}])", re.DOTALL)


def braces(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield index and character of each brace from `start` on; `\\{` is none."""
    for match in _BRACE.finditer(text, start):
        if match[1] is not None:
            yield match.start(), match[1]


def matching_brace(text: str, opening: int) -> int:
    """Return the index of the brace that closes the one at `opening`, or -1."""
    depth = 0
    for index, brace in braces(text, opening):
        depth += 1 if brace == "{" else -1
        if depth == 0:
            return index
    return -1


def with_balanced_braces(text: str) -> str:
    """Return the text without a brace too many, or with the ones that are missing at its end."""
    if text.count("{") == text.count("}"):
        return text
    depth = lost = start = 0
    kept: list[str] = []
    for index, brace in braces(text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            kept.append(text[start:index])
            start, depth, lost = index + 1, 0, lost + 1
    if not (depth or lost) or depth + lost > MAX_LOST_BRACES:
        return text
    return "".join((*kept, text[start:], "}" * depth))

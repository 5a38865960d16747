"""Whether two outputs look like two right answers to the same question.

"YES\\n0 0\\n3 4"   and  "YES\\n0 0\\n4 3"      alike: another solution of the same shape
"PATH\\n2 5 1"     and  "PATH\\n2 5 1 7"      alike: the same first line, then a solution of another length
"0\\n4\\n1\\n2"     and  "4\\n0\\n1\\n2"         alike: the same values in another order
"17"             and  "18"                not alike: a single value that differs is an error
"1\\n2\\n3"        and  "1\\n2\\n4"            not alike: one value for each of several questions
"2\\n1 5\\n3 4"    and  "1\\n2 6"             alike only where the problem asks for a construction
[1, 2, 3]        and  [3, 1, 2]           alike
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

MAX_COMPARED_CHARS = 2**20
MIN_TEXT = 3
"""Single words that differ are alike only from this length on, if they are of the same length."""

MIN_DISTINCT = 3
"""Different values in an output, from which on the same values in another order are no accident."""


def several_right(pairs: Sequence[tuple[Any, Any]], constructs: bool = False) -> bool:
    """Whether all of these pairs of outputs, which differ, are alike. constructs: the problem asks for something to be
    constructed."""
    return bool(pairs) and all(alike(one, other, constructs) for one, other in pairs)


def alike(one: Any, other: Any, constructs: bool = False) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return _texts_alike(one[:MAX_COMPARED_CHARS], other[:MAX_COMPARED_CHARS], constructs)
    collections = (list, tuple, dict, set)
    return isinstance(one, collections) and isinstance(other, collections) and len(one) == len(other) > 1


def _texts_alike(one: str, other: str, constructs: bool) -> bool:
    first, second = _lines(one), _lines(other)
    if [len(line) for line in first] == [len(line) for line in second] and all(
        _lines_alike(*pair, constructs) for pair in zip(first, second, strict=True) if pair[0] != pair[1]
    ):
        return True
    if _reordered(first, second):
        return True
    if constructs:
        return _has_list(first) and _has_list(second)
    return _has_list(first[1:]) and _has_list(second[1:]) and first[0] == second[0]


def _has_list(lines: Sequence[Sequence[str]]) -> bool:
    return any(len(line) > 1 for line in lines)


def _lines_alike(one: Sequence[str], other: Sequence[str], constructs: bool) -> bool:
    if len(one) > 1:
        return True
    number = any(char.isdigit() for char in one[0] + other[0])  # 17, 5/6, 0x1f
    # Of a construction, a row of digits such as 0110 is a text.
    return (not number or (constructs and len(one[0]) > MIN_TEXT)) and len(one[0]) == len(other[0]) >= MIN_TEXT


def _reordered(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> bool:
    values = Counter(token for line in first for token in line)
    return len(values) >= MIN_DISTINCT and values == Counter(token for line in second for token in line)


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]

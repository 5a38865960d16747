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
"""The part of an output that is compared. Stops outputs of megabytes from taking long."""

MIN_TEXT_CHARS = 3
"""Single words that differ are alike only from this length on, and only if both have the same length."""

MIN_DISTINCT = 3
"""With this many different values in an output, the same values in another order are no accident."""


def are_all_alike(pairs: Sequence[tuple[Any, Any]], constructs: bool = False) -> bool:
    """Whether there are pairs of outputs, and all of them are alike. constructs: as for `are_alike`."""
    return bool(pairs) and all(are_alike(left, right, constructs) for left, right in pairs)


def are_alike(left: Any, right: Any, constructs: bool = False) -> bool:
    """Whether two outputs that differ look like two right answers.

    constructs: whether the problem asks for something to be constructed.
    """
    if isinstance(left, str) and isinstance(right, str):
        return _are_texts_alike(_lines(left[:MAX_COMPARED_CHARS]), _lines(right[:MAX_COMPARED_CHARS]), constructs)
    collections = (list, tuple, dict, set)
    return isinstance(left, collections) and isinstance(right, collections) and len(left) == len(right) > 1


Line = Sequence[str]
"""The words of a line of output."""


def _lines(text: str) -> list[Line]:
    return [line.split() for line in text.splitlines() if line.strip()]


def _are_texts_alike(left: Sequence[Line], right: Sequence[Line], constructs: bool) -> bool:
    if [len(line) for line in left] == [len(line) for line in right] and all(
        _are_lines_alike(*pair, constructs) for pair in zip(left, right, strict=True) if pair[0] != pair[1]
    ):
        return True
    if _are_reordered(left, right):
        return True
    if constructs:
        return _has_list(left) and _has_list(right)
    return _has_list(left[1:]) and _has_list(right[1:]) and left[0] == right[0]


def _has_list(lines: Sequence[Line]) -> bool:
    return any(len(line) > 1 for line in lines)


def _are_lines_alike(left: Line, right: Line, constructs: bool) -> bool:
    if len(left) > 1:
        return True
    has_digit = any(char.isdigit() for char in left[0] + right[0])  # This covers 17, 5/6 and 0x1f.
    # In a construction a row of digits such as 0110 is a text.
    is_text = not has_digit or (constructs and len(left[0]) > MIN_TEXT_CHARS)
    return is_text and len(left[0]) == len(right[0]) >= MIN_TEXT_CHARS


def _are_reordered(left: Sequence[Line], right: Sequence[Line]) -> bool:
    values = Counter(word for line in left for word in line)
    return len(values) >= MIN_DISTINCT and values == Counter(word for line in right for word in line)

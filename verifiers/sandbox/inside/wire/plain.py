"""Plain data, which JSON says exactly as it stands: most arguments, and most results.

    are_plain([1, "x", [2.5, None], {"k": True}])       True
    are_plain([(1, 2)]), are_plain([math.nan])           False, False: they need a tag

Whoever knows this of a thousand values can write, read and compare them all at once.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from .encoding import JSON_INT, MAX_DEPTH

_NUMBERS = {int, float}
_FLAT = {*_NUMBERS, bool, type(None), str}
_JSON = {*_FLAT, list, dict}
_DATA = {*_JSON, tuple}


def are_plain(values: Collection[Any], tuples: bool = False, depth: int = 0) -> bool:
    """Return whether each value is plain, with all in it: exact types, finite floats, no nesting without end.

    tuples: whether they count as plain too.
    """
    kinds = set(map(type, values))
    if depth > MAX_DEPTH or not kinds <= (_DATA if tuples else _JSON):
        return False
    if not kinds.isdisjoint(_NUMBERS):
        numbers = values if kinds <= _NUMBERS else [value for value in values if type(value) in _NUMBERS]
        if not _all_fit(numbers, float in kinds):
            return False
    return kinds <= _FLAT or all(_is_plain(value, tuples, depth + 1) for value in values if type(value) not in _FLAT)


def _all_fit(numbers: Collection[float], has_floats: bool) -> bool:
    """Return whether JSON has them: finite floats, integers that its readers take."""
    try:
        finite = not has_floats or all(map(math.isfinite, numbers))
    except OverflowError:  # One of them is an integer beyond all floats.
        return False
    return finite and min(numbers) > -JSON_INT and max(numbers) < JSON_INT


def _is_plain(value: Any, tuples: bool, depth: int) -> bool:
    if type(value) is not dict:
        return are_plain(value, tuples, depth)
    return "$" not in value and set(map(type, value)) <= {str} and are_plain(value.values(), tuples, depth)

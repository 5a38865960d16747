"""An order for values of any types, so that two lists can be compared whatever order their items came in.

    sorted([[3], [1, 2], "a", None], key=sort_key)     [None, "a", [3], [1, 2]]
    sort_key([2, 1], inner=True) == sort_key([1, 2], inner=True)       True: lists within count as unordered too

Equal values have equal keys; 1, 1.0 and True are equal, as in Python.
"""

from __future__ import annotations

import array
import math
from collections import deque
from typing import Any

from truegold.verifiers.code.inside.wire import Array

MAX_DEPTH = 200
"""Containers within containers; what lies deeper is all alike. Stops nesting that overflows the stack."""

_SEQUENCES = (list, tuple, deque, array.array, range)


def sort_key(value: Any, inner: bool = False, depth: int = 0) -> tuple[Any, ...]:  # noqa: PLR0911  (one a type)
    if value is None:
        return (0,)
    if isinstance(value, bool | int | float):
        return (1,) if isinstance(value, float) and math.isnan(value) else (2, value)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, bytes | bytearray):
        return (4, bytes(value))
    if depth > MAX_DEPTH:
        return (9,)
    if isinstance(value, Array):
        return sort_key(value.items, inner, depth + 1)
    if isinstance(value, _SEQUENCES):
        keys = [sort_key(item, inner, depth + 1) for item in value]
        return (5, len(keys), *(sorted(keys) if inner else keys))
    if isinstance(value, set | frozenset):
        return (6, len(value), *sorted(sort_key(item, inner, depth + 1) for item in value))
    if isinstance(value, dict):
        pairs = [(sort_key(key, inner, depth + 1), sort_key(item, inner, depth + 1)) for key, item in value.items()]
        return (7, len(pairs), *sorted(pairs))
    if isinstance(value, complex):
        return (8, value.real, value.imag)
    return (9,)

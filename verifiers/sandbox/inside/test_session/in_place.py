"""Carries what a function did to its arguments back into the objects that they were copied from.

    def clear(a): a.clear()          test code:  x = [1]; clear(x); assert x == []

Both sides keep the mutable objects of the arguments in the same order (`track` of encoder and decoder). After the call
the contents of each travel as a list, in which an argument's object is named by its index, and are put into the objects
that the test code has: their identity stays.
"""

from __future__ import annotations

import array
import collections
from collections.abc import Mapping, Sequence
from typing import Any

from ..wire import Undecodable


def contents(value: Any, fields_of: Mapping[str, Sequence[str]]) -> list[Any]:
    """Return the contents of a mutable object of an argument."""
    if isinstance(value, dict):
        return [[key, element] for key, element in dict.items(value)]
    if isinstance(value, list | set | bytearray | collections.deque | array.array):
        return list(value)
    return [getattr(value, field, None) for field in _field_names(value, fields_of)]


def restore(value: Any, parts: Any, fields_of: Mapping[str, Sequence[str]]) -> None:
    """Replace the contents of an object by `parts`. Raises `Undecodable` or TypeError for what it cannot contain."""
    if type(parts) is not list:
        raise Undecodable("the contents of an argument are a list")
    if isinstance(value, dict):
        pairs = [(key, element) for key, element in parts]
        value.clear()
        for key, element in pairs:
            value[key] = element
    elif isinstance(value, list):
        value[:] = parts
    elif isinstance(value, bytearray):
        value[:] = bytes(parts)
    elif isinstance(value, array.array):
        value[:] = array.array(value.typecode, parts)
    elif isinstance(value, set):
        value.clear()
        value.update(parts)
    elif isinstance(value, collections.deque):
        value.clear()
        value.extend(parts)
    else:
        for field, part in zip(_field_names(value, fields_of), parts, strict=True):
            object.__setattr__(value, field, part)


def _field_names(value: Any, fields_of: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return next((fields_of[above.__name__] for above in type(value).__mro__ if above.__name__ in fields_of), ())

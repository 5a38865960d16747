"""What the tests of the codec share: a value after its trip between processes, and whether it is the same one."""

import array
import collections
from typing import Any

from truegold.verifiers.code.inside.wire import decode, encode, from_json, to_json


def travelled(value: object, codecs: Any = None) -> Any:
    return decode(from_json(to_json(encode(value, codecs))), codecs)


def told(value: Any) -> Any:
    """A value spelled out with the types of its parts, so that NaN is itself and 1 is not True."""
    kind = type(value).__name__
    if isinstance(value, int):
        return kind, hex(value)
    if isinstance(value, complex):
        return kind, repr(value.real), repr(value.imag)
    if isinstance(value, dict):
        return kind, [(told(key), told(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(map(repr, map(told, value)))
    if isinstance(value, list | tuple | collections.deque | array.array):
        return kind, list(map(told, value)), getattr(value, "maxlen", getattr(value, "typecode", None))
    return kind, repr(value)


def same(one: Any, other: Any) -> bool:
    return bool(told(one) == told(other))

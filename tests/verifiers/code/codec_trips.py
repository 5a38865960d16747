"""What the tests of the codec share: a value after its trip between processes, and whether it is the same one."""

import array
import collections
from typing import Any

from truegold.verifiers.sandbox.inside.wire.decoding import decode
from truegold.verifiers.sandbox.inside.wire.encoding import encode, from_json, to_json


def travelled(value: object, codecs: Any = None) -> Any:
    """Return a value as it arrives."""
    return decode(from_json(to_json(encode(value, codecs))), codecs)


def spell_out(value: Any) -> Any:
    """Return a value spelled out with the types of its parts, so that NaN is itself and 1 is not True."""
    kind = type(value).__name__
    if isinstance(value, int):
        return kind, hex(value)
    if isinstance(value, complex):
        return kind, repr(value.real), repr(value.imag)
    if isinstance(value, dict):
        return kind, [(spell_out(key), spell_out(item)) for key, item in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted(map(repr, map(spell_out, value)))
    if isinstance(value, list | tuple | collections.deque | array.array):
        return kind, list(map(spell_out, value)), getattr(value, "maxlen", getattr(value, "typecode", None))
    return kind, repr(value)


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal, with the types of all their parts."""
    return bool(spell_out(left) == spell_out(right))

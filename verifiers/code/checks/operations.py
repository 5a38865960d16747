"""Python's operators with bounds, for checks of results.

    BINARY[ast.Add](1, 2)                        3
    BINARY[ast.Mult](10**9, "x")                 Refused: longer than a check may make
    COMPARE[ast.Eq](Iterated([1]), [1])          Refused: only the process that has the object can tell

The values come from a process that wants a check to hold, to stall or to crash; they are of exact builtin types, or
stand-ins for what has none. `Refused` means that what Python would do cannot be told from the data, or costs too much;
any other exception is the one that Python would raise.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from truegold.verifiers.code.inside.wire import Array, Instance, Iterated, Opaque

MAX_BITS = 100_000
"""Of integers that are multiplied, divided or raised. Stops results of megabytes of digits."""

MAX_ITEMS = 1_000_000
"""Items that are walked through, and that repetition or `str.replace` may make. Stops `[0] * 10**9`, and a result of
megabytes that takes seconds to sort."""

MAX_WALKED = 1_000
"""Numbers of a range that are looked at for one that is no integer. A range costs nothing in the budget of work."""

MAX_COLLIDING = 1_000
"""Keys with the same hash. Stops integers chosen to make building a set quadratic."""

_STANDINS = (Opaque, Iterated, Array, Instance)
NUMBERS = (bool, int, float, complex)


class Refused(Exception):
    """Python itself, where the object is, has to decide."""


def truth(value: Any) -> bool:
    return bool(seen(value))


def items(value: Any, ordered: bool = True) -> Iterator[Any]:
    """The items of an iterable. The order within a set is not the same in every process."""
    if type(value) is Iterated and len(value.elements) <= MAX_ITEMS:
        return iter(value.elements)
    if ordered and type(value) in (set, frozenset):
        raise Refused("the order of a set")
    if hasattr(value, "__len__") and len(value) > MAX_ITEMS:
        raise Refused("many items")
    return iter(seen(value))


def hashed(keys: list[Any]) -> list[Any]:
    """Keys that may become a set or a dict."""
    if len(keys) > MAX_COLLIDING:
        hashes = len(set(map(hash, keys)))
        # Keys that are equal share a hash as well: only different ones count, told apart by how they are written.
        if len(keys) - hashes > MAX_COLLIDING and len(set(map(_written, keys))) - hashes > MAX_COLLIDING:
            raise Refused("keys with the same hash")
    return keys


def _written(key: Any) -> str:
    try:
        return hex(key) if isinstance(key, int) else repr(key)
    except ValueError:  # the digits of a large integer inside
        raise Refused("unusual keys") from None


def seen(value: Any) -> Any:
    """value, where it is the data itself."""
    if isinstance(value, _STANDINS):
        raise Refused(f"what stands for an object: {type(value).__name__}")
    return value


def no_arrays(*values: Any) -> None:
    for value in values:
        if type(value) is Array:
            raise Refused("an array")


def bounded(*values: Any) -> None:
    """Integers small enough for arithmetic that is not linear in their size."""
    if sum(value.bit_length() for value in values if isinstance(value, int)) > MAX_BITS:
        raise Refused("large integers")


def equal(left: Any, right: Any) -> bool:
    if type(left) in (Iterated, Array) or type(right) in (Iterated, Array):
        raise Refused("an iterator or an array")
    return bool(left == right)


def contains(item: Any, container: Any) -> bool:
    no_arrays(item)
    if type(container) is Iterated:
        return item in container.elements
    if type(container) is range and type(item) not in (int, bool) and len(container) > MAX_WALKED:
        raise Refused("a long range")
    return item in seen(container)


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        no_arrays(left, right)
        return bool(compare(left, right))

    return compared


COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: equal,
    ast.NotEq: lambda left, right: not equal(left, right),
    ast.Lt: _ordered(operator.lt),
    ast.LtE: _ordered(operator.le),
    ast.Gt: _ordered(operator.gt),
    ast.GtE: _ordered(operator.ge),
    ast.In: contains,
    ast.NotIn: lambda item, container: not contains(item, container),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _multiply(left: Any, right: Any) -> Any:
    no_arrays(left, right)
    for sequence, count in ((left, right), (right, left)):
        if isinstance(count, int) and hasattr(sequence, "__len__") and len(sequence) * max(count, 0) > MAX_ITEMS:
            raise Refused("a long sequence")
    bounded(left, right)
    return left * right


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(base, NUMBERS) or not isinstance(exponent, NUMBERS):
        raise Refused("powers of unusual numbers")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise Refused("a large power")
    return base**exponent


def _divided(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def divided(left: Any, right: Any) -> Any:
        no_arrays(left, right)
        if isinstance(left, str | bytes):
            raise Refused("formatting")
        bounded(left, right)
        return divide(left, right)

    return divided


def _combined(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def combined(left: Any, right: Any) -> Any:
        no_arrays(left, right)
        return combine(left, right)

    return combined


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _combined(operator.add),
    ast.Sub: _combined(operator.sub),
    ast.Mult: _multiply,
    ast.Div: _divided(operator.truediv),
    ast.FloorDiv: _divided(operator.floordiv),
    ast.Mod: _divided(operator.mod),
    ast.Pow: _power,
    ast.BitAnd: _combined(operator.and_),
    ast.BitOr: _combined(operator.or_),
    ast.BitXor: _combined(operator.xor),
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: lambda value: -seen(value),
    ast.UAdd: lambda value: +seen(value),
    ast.Not: lambda value: not truth(value),
    ast.Invert: lambda value: ~seen(value),
}


def item_of(value: Any, index: Any) -> Any:
    return seen(value)[index]

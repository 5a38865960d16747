"""Python's operators with bounds, for checks of results.

    BINARY[ast.Add](1, 2)                        3
    BINARY[ast.Mult](10**9, "x")                 Refused: longer than a check may make
    COMPARE[ast.Eq](Iterated([1]), [1])          Refused: only the process that has the object can tell

The values come from a process that may want a check to hold, to stall or to crash; they are of exact builtin types, or
stand-ins for what has none. `Refused` means that what Python would do cannot be told from the data, or costs too much;
any other exception is the one that Python would raise.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from truegold.verifiers.sandbox.inside.wire import Array, Instance, Iterated, Opaque

MAX_BITS = 100_000
"""Bits of integers that are multiplied, divided or raised. Stops results of megabytes of digits."""

MAX_ITEMS = 1_000_000
"""Items that are walked through, and that repetition or `str.replace` may make. Stops `[0] * 10**9`, and a result of
megabytes that takes seconds to sort."""

MAX_WALKED = 1_000
"""Numbers of a range that are looked at for one that is no integer. A range costs nothing in the budget of work."""

MAX_COLLIDING = 1_000
"""Keys that share their hash with others. Stops integers chosen to make building a set quadratic."""

_STANDINS = (Opaque, Iterated, Array, Instance)
NUMBERS = (bool, int, float, complex)


class Refused(Exception):
    """Python itself has to decide, in the process that has the object."""


def truth(value: Any) -> bool:
    """Return the truth value. Raises `Refused` for a stand-in."""
    return bool(require_data(value))


def iterate(value: Any, ordered: bool = True) -> Iterator[Any]:
    """Return an iterator over a value. The order within a set, which differs between processes, is refused."""
    if type(value) is Iterated and len(value.elements) <= MAX_ITEMS:
        return iter(value.elements)
    if ordered and type(value) in (set, frozenset):
        raise Refused("the order of a set")
    if hasattr(value, "__len__") and len(value) > MAX_ITEMS:
        raise Refused("many items")
    return iter(require_data(value))


def check_keys(keys: list[Any]) -> list[Any]:
    """Return keys, which may become a set or a dict. Raises `Refused` where too many share a hash."""
    if len(keys) > MAX_COLLIDING:
        hashes = len(set(map(hash, keys)))
        # Equal keys share a hash as well, so only different ones count, which are told apart by their text.
        if len(keys) - hashes > MAX_COLLIDING and len(set(map(_key_text, keys))) - hashes > MAX_COLLIDING:
            raise Refused("keys with the same hash")
    return keys


def _key_text(key: Any) -> str:
    try:
        return hex(key) if isinstance(key, int) else repr(key)
    except ValueError:
        # Python writes no integer of thousands of digits, which a tuple may hold.
        raise Refused("unusual keys") from None


def require_data(value: Any) -> Any:
    """Return a value that is the data itself. Raises `Refused` for a stand-in."""
    if isinstance(value, _STANDINS):
        raise Refused(f"what stands for an object: {type(value).__name__}")
    return value


def refuse_arrays(*values: Any) -> None:
    """Raise `Refused` where a value is an array, with which operators work item by item."""
    for value in values:
        if type(value) is Array:
            raise Refused("an array")


def refuse_large_integers(*values: Any) -> None:
    """Raise `Refused` where integers are too large for arithmetic that is not linear in their size."""
    if sum(value.bit_length() for value in values if isinstance(value, int)) > MAX_BITS:
        raise Refused("large integers")


def _are_equal(left: Any, right: Any) -> bool:
    if type(left) in (Iterated, Array) or type(right) in (Iterated, Array):
        raise Refused("an iterator or an array")
    return bool(left == right)


def _contains(item: Any, container: Any) -> bool:
    refuse_arrays(item)
    if type(container) is Iterated:
        return item in container.elements
    if type(container) is range and type(item) not in (int, bool) and len(container) > MAX_WALKED:
        raise Refused("a long range")
    return item in require_data(container)


def _on_data(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        refuse_arrays(left, right)
        return operation(left, right)

    return apply


COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: _are_equal,
    ast.NotEq: lambda left, right: not _are_equal(left, right),
    ast.Lt: _on_data(operator.lt),
    ast.LtE: _on_data(operator.le),
    ast.Gt: _on_data(operator.gt),
    ast.GtE: _on_data(operator.ge),
    ast.In: _contains,
    ast.NotIn: lambda item, container: not _contains(item, container),
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _multiply(left: Any, right: Any) -> Any:
    refuse_arrays(left, right)
    for sequence, count in ((left, right), (right, left)):
        if isinstance(count, int) and hasattr(sequence, "__len__") and len(sequence) * max(count, 0) > MAX_ITEMS:
            raise Refused("a long sequence")
    refuse_large_integers(left, right)
    return left * right


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(base, NUMBERS) or not isinstance(exponent, NUMBERS):
        raise Refused("powers of unusual numbers")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise Refused("a large power")
    return base**exponent


def _division(divide: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        refuse_arrays(left, right)
        if isinstance(left, str | bytes):
            raise Refused("formatting")
        refuse_large_integers(left, right)
        return divide(left, right)

    return apply


BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _on_data(operator.add),
    ast.Sub: _on_data(operator.sub),
    ast.Mult: _multiply,
    ast.Div: _division(operator.truediv),
    ast.FloorDiv: _division(operator.floordiv),
    ast.Mod: _division(operator.mod),
    ast.Pow: _power,
    ast.BitAnd: _on_data(operator.and_),
    ast.BitOr: _on_data(operator.or_),
    ast.BitXor: _on_data(operator.xor),
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: lambda value: -require_data(value),
    ast.UAdd: lambda value: +require_data(value),
    ast.Not: lambda value: not truth(value),
    ast.Invert: lambda value: ~require_data(value),
}


def item_of(value: Any, index: Any) -> Any:
    """Return `value[index]`."""
    return require_data(value)[index]

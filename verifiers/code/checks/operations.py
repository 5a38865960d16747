"""Python's operators with bounds, for checks of results.

    BINARY[ast.Add](1, 2)                        3
    BINARY[ast.Mult](10**9, "x")                 Refused: longer than a check may make
    COMPARE[ast.Eq](Iterated([1]), [1])          Refused: only the process that has the object can tell

The values come from a process that may want a check to hold, to stall or to crash; they are of exact builtin types, or
stand-ins for what has none. `Refused` means that what Python would do cannot be told from the data, or costs too much;
any other exception is the one that Python would raise.

Python's functions and methods with bounds, for checks of results.

FUNCTIONS["len"]([1, 2])                     2
FUNCTIONS["len"](Iterated([1, 2]))           Refused: only the process that has the object can tell
FUNCTIONS["list"](Iterated([1, 2]))          [1, 2]
call_method("lower", "ABC")                  "abc"
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
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


MAX_DIGITS = 1_000
"""Digits that `round` rounds to. Stops `round(1, -10**9)`."""

_SCALARS = (type(None), bool, int, float, complex, str)


def _text(write: Callable[[Any], str]) -> Callable[..., str]:
    """Return `str` or `repr` for data that reads the same in every process."""

    def text_of(value: Any = "") -> str:
        pending = [value]
        parts_left = MAX_ITEMS
        while pending:
            each = pending.pop()
            parts_left -= 1
            if parts_left < 0:
                raise Refused("a long text")
            if type(each) in (list, tuple):
                pending += each
            elif type(each) is dict:
                pending += chain(each.keys(), each.values())
            elif type(each) not in _SCALARS:
                raise Refused("the text of an object")
        return write(value)

    return text_of


def _length(value: Any) -> int:
    return len(require_data(value))


def _sorted(value: Any, *, reverse: bool = False) -> list[Any]:
    return sorted(iterate(value, ordered=False), reverse=reverse)


def _sum(value: Any, start: Any = 0) -> Any:
    numbers = list(iterate(value, ordered=False))
    if not set(map(type, [start, *numbers])) <= set(NUMBERS):
        raise Refused("a sum of what is no number")
    return sum(numbers, start)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def choose_from(*values: Any, **default: Any) -> Any:
        refuse_arrays(*values)
        return choose(list(iterate(values[0], ordered=False)) if len(values) == 1 else values, **default)

    return choose_from


def _dict(value: Any = (), **named: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return {**value, **named}
    pairs = [tuple(iterate(pair)) for pair in iterate(value)]
    check_keys([pair[0] for pair in pairs if pair])
    return dict(pairs, **named)


def _round(value: Any, digits: int | None = None) -> Any:
    value = require_data(value)
    if digits is not None and abs(digits) > MAX_DIGITS:
        raise Refused("rounding to many digits")
    return round(value) if digits is None else round(value, digits)


def _of_data(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        return function(*map(require_data, values))

    return apply


def _math(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*values: Any, **named: Any) -> Any:
        refuse_arrays(*values)
        refuse_large_integers(*values)
        return function(*values, **named)

    return apply


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": _length,
    "sorted": _sorted,
    "set": lambda value=(): set(check_keys(list(iterate(value, ordered=False)))),
    "frozenset": lambda value=(): frozenset(check_keys(list(iterate(value, ordered=False)))),
    "list": lambda value=(): list(iterate(value)),
    "tuple": lambda value=(): tuple(iterate(value)),
    "dict": _dict,
    "str": _text(str),
    "repr": _text(repr),
    "int": _of_data(int),
    "float": _of_data(float),
    "complex": _of_data(complex),
    "bool": lambda value=False: truth(value),
    "abs": _of_data(abs),
    "ord": _of_data(ord),
    "chr": _of_data(chr),
    "round": _round,
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": _sum,
    "any": lambda value: any(map(truth, iterate(value, ordered=False))),
    "all": lambda value: all(map(truth, iterate(value, ordered=False))),
    "range": range,
    "enumerate": lambda value, start=0: enumerate(iterate(value), start),
    "zip": lambda *values: zip(*map(iterate, values), strict=False),
    "reversed": lambda value: reversed(require_data(value)),
}
"""Builtins by name."""

KEYWORDS: Mapping[str, frozenset[str]] = {
    "sorted": frozenset({"reverse"}),
    "min": frozenset({"default"}),
    "max": frozenset({"default"}),
    "enumerate": frozenset({"start"}),
    "isclose": frozenset({"rel_tol", "abs_tol"}),
}
"""Keywords that the functions understand."""

CONSTANT_TIME = frozenset({"len", "get", "keys", "values", "items", "is_integer", "enumerate", "range"})
"""Functions and methods that take as long for any value."""

MATH: Mapping[str, Any] = {
    **{name: getattr(math, name) for name in ("pi", "e", "tau", "inf")},
    **{
        name: _math(getattr(math, name))
        for name in ("isclose", "sqrt", "fabs", "floor", "ceil", "isnan", "isinf", "isfinite", "exp", "log", "gcd")
    },
}
"""Names of the module `math`."""

TYPES: Mapping[str, type] = {
    each.__name__: each for each in (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)
}
"""What `isinstance` may ask for."""

_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        "lower upper strip lstrip rstrip title capitalize split splitlines join startswith endswith count find index "
        "isdigit isalpha isalnum isupper islower isspace replace".split()
    ),
    list: frozenset({"count", "index", "copy"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"keys", "values", "items", "get", "copy"}),
    set: frozenset({"issubset", "issuperset", "isdisjoint", "union", "intersection", "difference", "copy"}),
    float: frozenset({"is_integer"}),
}


def call_method(name: str, receiver: Any, *values: Any) -> Any:
    """Call a method of builtin data. Raises `Refused` for methods that are not known here."""
    kind = type(require_data(receiver))
    if name not in _METHODS.get(kind, ()) and hasattr(kind, name):
        raise Refused(f"{kind.__name__}.{name}")
    if kind is str and name == "join":
        parts = list(iterate(*values))
        if len(receiver) * len(parts) > MAX_ITEMS:
            raise Refused("a long text")
        return receiver.join(parts)
    if kind is str and name == "replace" and len(receiver) * max(map(_length, values[:2])) > MAX_ITEMS:
        raise Refused("a long text")
    if kind is set:
        values = tuple(check_keys(list(iterate(value, ordered=False))) for value in values)
    return getattr(receiver, name)(*values)


def map_over(function: Callable[[Any], Any], value: Any) -> Iterator[Any]:
    """Return `map(function, value)`."""
    return map(function, iterate(value))

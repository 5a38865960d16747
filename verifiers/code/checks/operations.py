"""Python's operators, functions and methods with bounds, for checks of results.

    BINARY[ast.Add](1, 2)                        3
    BINARY[ast.Mult](10**9, "x")                 Undecidable: longer than a check may make
    COMPARE[ast.Eq](Iterated([1]), [1])          Undecidable: only the process that has the object can tell
    FUNCTIONS["len"]([1, 2])                     2
    FUNCTIONS["len"](Iterated([1, 2]))           Undecidable
    FUNCTIONS["list"](Iterated([1, 2]))          [1, 2]
    call_method("lower", "ABC")                  "abc"

The values come from a process that may want a check to hold, to stall or to crash; they are of exact builtin types, or
stand-ins for what has none. `Undecidable` means that what Python would do cannot be told from the data, or costs too
much; any other exception is the one that Python would raise. No code of the tests or of a solution is run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from truegold.verifiers.sandbox.inside.wire.foreign_values import Array, Instance, Iterated, Opaque, Value

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


class Undecidable(Exception):
    """Python itself has to decide, in the process that has the object."""


def truth(value: Value) -> bool:
    """Return the truth value. Raises `Undecidable` for a stand-in."""
    return bool(require_data(value))


def iterate(value: Value, ordered: bool = True) -> Iterator[Value]:
    """Return an iterator over a value. The order within a set, which differs between processes, is refused."""
    if type(value) is Iterated and len(value.elements) <= MAX_ITEMS:
        return iter(value.elements)
    if ordered and type(value) in (set, frozenset):
        raise Undecidable("the order of a set")
    if hasattr(value, "__len__") and len(value) > MAX_ITEMS:
        raise Undecidable("many items")
    return iter(require_data(value))


def check_keys(keys: list[Value]) -> list[Value]:
    """Return keys, which may become a set or a dict. Raises `Undecidable` where too many share a hash."""
    if len(keys) > MAX_COLLIDING:
        hashes = len(set(map(hash, keys)))
        # Equal keys share a hash as well, so only different ones count, which are told apart by their text.
        if len(keys) - hashes > MAX_COLLIDING and len(set(map(_key_text, keys))) - hashes > MAX_COLLIDING:
            raise Undecidable("keys with the same hash")
    return keys


def _key_text(key: Value) -> str:
    try:
        return hex(key) if isinstance(key, int) else repr(key)
    except ValueError:
        # Python writes no integer of thousands of digits, which a tuple may hold.
        raise Undecidable("unusual keys") from None


def require_data(value: Value) -> Value:
    """Return a value that is the data itself. Raises `Undecidable` for a stand-in."""
    if isinstance(value, _STANDINS):
        raise Undecidable(f"what stands for an object: {type(value).__name__}")
    return value


def refuse_arrays(*values: Value) -> None:
    """Raise `Undecidable` where a value is an array, with which operators work item by item."""
    for value in values:
        if type(value) is Array:
            raise Undecidable("an array")


def refuse_large_integers(*values: Value) -> None:
    """Raise `Undecidable` where integers are too large for arithmetic that is not linear in their size."""
    if sum(value.bit_length() for value in values if isinstance(value, int)) > MAX_BITS:
        raise Undecidable("large integers")


def _are_equal(left: Value, right: Value) -> bool:
    if type(left) in (Iterated, Array) or type(right) in (Iterated, Array):
        raise Undecidable("an iterator or an array")
    return bool(left == right)


def _contains(item: Value, container: Value) -> bool:
    refuse_arrays(item)
    if type(container) is Iterated:
        return item in container.elements
    if type(container) is range and type(item) not in (int, bool) and len(container) > MAX_WALKED:
        raise Undecidable("a long range")
    return item in require_data(container)


def _on_data(operation: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        refuse_arrays(left, right)
        return operation(left, right)

    return apply


COMPARE: Mapping[type[ast.cmpop], Callable[[Value, Value], bool]] = {
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


def _multiply(left: Value, right: Value) -> Value:
    refuse_arrays(left, right)
    for sequence, count in ((left, right), (right, left)):
        if isinstance(count, int) and hasattr(sequence, "__len__") and len(sequence) * max(count, 0) > MAX_ITEMS:
            raise Undecidable("a long sequence")
    refuse_large_integers(left, right)
    return left * right


def _power(base: Value, exponent: Value) -> Value:
    if not isinstance(base, NUMBERS) or not isinstance(exponent, NUMBERS):
        raise Undecidable("powers of unusual numbers")
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise Undecidable("a large power")
    return base**exponent


def _division(divide: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        refuse_arrays(left, right)
        if isinstance(left, str | bytes):
            raise Undecidable("formatting")
        refuse_large_integers(left, right)
        return divide(left, right)

    return apply


BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
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
UNARY: Mapping[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.USub: lambda value: -require_data(value),
    ast.UAdd: lambda value: +require_data(value),
    ast.Not: lambda value: not truth(value),
    ast.Invert: lambda value: ~require_data(value),
}


def item_of(value: Value, index: Value) -> Value:
    """Return `value[index]`."""
    return require_data(value)[index]


MAX_DIGITS = 1_000
"""Digits that `round` rounds to. Stops `round(1, -10**9)`."""

_TEXT_PARTS = (type(None), bool, int, float, complex, str)


def _text(write: Callable[[Value], str]) -> Callable[..., str]:
    """Return `str` or `repr` for data that reads the same in every process."""

    def text_of(value: Value = "") -> str:
        pending = [value]
        parts_left = MAX_ITEMS
        while pending:
            each = pending.pop()
            parts_left -= 1
            if parts_left < 0:
                raise Undecidable("a long text")
            if type(each) in (list, tuple):
                pending += each
            elif type(each) is dict:
                pending += chain(each.keys(), each.values())
            elif type(each) not in _TEXT_PARTS:
                raise Undecidable("the text of an object")
        return write(value)

    return text_of


def _length(value: Value) -> int:
    return len(require_data(value))


def _sorted(value: Value, *, reverse: bool = False) -> list[Value]:
    return sorted(iterate(value, ordered=False), reverse=reverse)


def _sum(value: Value, start: Value = 0) -> Value:
    numbers = list(iterate(value, ordered=False))
    if not set(map(type, [start, *numbers])) <= set(NUMBERS):
        raise Undecidable("a sum of what is no number")
    return sum(numbers, start)


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value]:
    def choose_from(*values: Value, **default: Value) -> Value:
        refuse_arrays(*values)
        return choose(list(iterate(values[0], ordered=False)) if len(values) == 1 else values, **default)

    return choose_from


def _dict(value: Value = (), **named: Value) -> dict[Value, Value]:
    if isinstance(value, dict):
        return {**value, **named}
    pairs = [tuple(iterate(pair)) for pair in iterate(value)]
    check_keys([pair[0] for pair in pairs if pair])
    return dict(pairs, **named)


def _round(value: Value, digits: int | None = None) -> Value:
    value = require_data(value)
    if digits is not None and abs(digits) > MAX_DIGITS:
        raise Undecidable("rounding to many digits")
    return round(value) if digits is None else round(value, digits)


def _of_data(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(*values: Value) -> Value:
        return function(*map(require_data, values))

    return apply


def _math(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(*values: Value, **named: Value) -> Value:
        refuse_arrays(*values)
        refuse_large_integers(*values)
        return function(*values, **named)

    return apply


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
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

MATH: Mapping[str, Value] = {
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


def call_method(name: str, receiver: Value, *values: Value) -> Value:
    """Call a method of builtin data. Raises `Undecidable` for methods that are not known here."""
    kind = type(require_data(receiver))
    if name not in _METHODS.get(kind, ()) and hasattr(kind, name):
        raise Undecidable(f"{kind.__name__}.{name}")
    if kind is str and name == "join":
        parts = list(iterate(*values))
        if len(receiver) * len(parts) > MAX_ITEMS:
            raise Undecidable("a long text")
        return receiver.join(parts)
    if kind is str and name == "replace" and len(receiver) * max(map(_length, values[:2])) > MAX_ITEMS:
        raise Undecidable("a long text")
    if kind is set:
        values = tuple(check_keys(list(iterate(value, ordered=False))) for value in values)
    return getattr(receiver, name)(*values)

"""Python's functions and methods with bounds, for checks of results.

FUNCTIONS["len"]([1, 2])                     2
FUNCTIONS["len"](Iterated([1, 2]))           Undecidable: only the process that has the object can tell
FUNCTIONS["list"](Iterated([1, 2]))          [1, 2]
call_method("lower", "ABC")                  "abc"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain

from truegold.verifiers.code.checks import terms
from truegold.verifiers.code.checks.terms import MAX_ITEMS, Undecidable
from truegold.verifiers.sandbox.inside.wire.foreign_values import Value

MAX_DIGITS = 1_000
"""Digits that `round` rounds to. Stops `round(1, -10**9)`."""

_SCALARS = (type(None), bool, int, float, complex, str)
"""Types whose text is the same in every process."""


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
            elif type(each) not in _SCALARS:
                raise Undecidable("the text of an object")
        return write(value)

    return text_of


def _hashable_items(value: Value) -> list[Value]:
    """Return the items of a value, which may become a set. Raises `Undecidable` where too many share a hash."""
    return terms.check_keys(list(terms.iterate(value, ordered=False)))


def _length(value: Value) -> int:
    return len(terms.require_data(value))


def _sorted(value: Value, *, reverse: bool = False) -> list[Value]:
    return sorted(terms.iterate(value, ordered=False), reverse=reverse)


def _sum(value: Value, start: Value = 0) -> Value:
    numbers = list(terms.iterate(value, ordered=False))
    if not set(map(type, [start, *numbers])) <= set(terms.NUMBERS):
        raise Undecidable("a sum of what is no number")
    return sum(numbers, start)


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value]:
    """Return `min` or `max`, of the items of one value or of several values."""

    def choose_from(*values: Value, **default: Value) -> Value:
        terms.refuse_arrays(*values)
        return choose(list(terms.iterate(values[0], ordered=False)) if len(values) == 1 else values, **default)

    return choose_from


def _dict(value: Value = (), **named: Value) -> dict[Value, Value]:
    if isinstance(value, dict):
        return {**value, **named}
    pairs = [tuple(terms.iterate(pair)) for pair in terms.iterate(value)]
    terms.check_keys([pair[0] for pair in pairs if pair])
    return dict(pairs, **named)


def _round(value: Value, digits: int | None = None) -> Value:
    value = terms.require_data(value)
    if digits is not None and abs(digits) > MAX_DIGITS:
        raise Undecidable("rounding to many digits")
    return round(value) if digits is None else round(value, digits)


def _of_data(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function with stand-ins for objects refused: `abs(Iterated([1]))` is undecidable."""

    def apply(*values: Value) -> Value:
        return function(*map(terms.require_data, values))

    return apply


def _math(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function of `math` with arrays and large integers refused: `gcd` of such takes seconds."""

    def apply(*values: Value, **named: Value) -> Value:
        terms.refuse_arrays(*values)
        terms.refuse_large_integers(*values)
        return function(*values, **named)

    return apply


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "len": _length,
    "sorted": _sorted,
    "set": lambda value=(): set(_hashable_items(value)),
    "frozenset": lambda value=(): frozenset(_hashable_items(value)),
    "list": lambda value=(): list(terms.iterate(value)),
    "tuple": lambda value=(): tuple(terms.iterate(value)),
    "dict": _dict,
    "str": _text(str),
    "repr": _text(repr),
    "int": _of_data(int),
    "float": _of_data(float),
    "complex": _of_data(complex),
    "bool": lambda value=False: terms.truth(value),
    "abs": _of_data(abs),
    "ord": _of_data(ord),
    "chr": _of_data(chr),
    "round": _round,
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": _sum,
    "any": lambda value: any(map(terms.truth, terms.iterate(value, ordered=False))),
    "all": lambda value: all(map(terms.truth, terms.iterate(value, ordered=False))),
    "range": range,
    "enumerate": lambda value, start=0: enumerate(terms.iterate(value), start),
    "zip": lambda *values: zip(*map(terms.iterate, values), strict=False),
    "reversed": lambda value: reversed(terms.require_data(value)),
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
"""Methods whose cost is bounded by the size of their values, by type."""


def call_method(name: str, receiver: Value, *values: Value) -> Value:
    """Call a method of builtin data. Raises `Undecidable` for methods that are not known here."""
    kind = type(terms.require_data(receiver))
    # What the type does not have at all, as in `[].lower()`, falls through to Python's own AttributeError.
    if name not in _METHODS.get(kind, ()) and hasattr(kind, name):
        raise Undecidable(f"{kind.__name__}.{name}")
    if kind is str and name == "join":
        parts = list(terms.iterate(*values))
        if len(receiver) * len(parts) > MAX_ITEMS:
            raise Undecidable("a long text")
        return receiver.join(parts)
    if kind is str and name == "replace" and len(receiver) * max(map(_length, values[:2])) > MAX_ITEMS:
        raise Undecidable("a long text")
    if kind is set:
        values = tuple(map(_hashable_items, values))
    return getattr(receiver, name)(*values)

"""Lists the types that can be encoded, with functions that split an object into parts and build it from its parts.

    (1, 2)               tuple      parts [1, 2]
    Decimal("0.1")       Decimal    parts "0.1"
    deque([1], 5)        deque      built empty from its head, 5, and then filled with its parts, [1]

Functions of the builtin type read the parts of an object, so that an object of a subclass is encoded as the data in it.
Functions that build an object get parts of exact builtin types, but with values that may be malicious.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import NamedTuple

from .foreign_values import Opaque, Undecodable, Value

MAX_INT_BITS = 2**22
"""Maximum number of bits of an integer. Stops integers of megabytes."""

MAX_EXPONENT = 100_000
"""Maximum exponent of a Decimal. Stops `Decimal("1e999999999")`, a short text that is huge as an integer."""

MAX_FRACTION_BITS = 20_000
"""Maximum number of bits of a numerator or denominator. Stops fractions that take minutes to reduce."""

SHOWN_CHARS = 100
"""Maximum number of characters of data that error messages show."""


class TypeForm(NamedTuple):
    """The functions that encode and decode objects of a type."""

    kind: type
    parts: Callable[[Value], Value]
    """Returns the parts of an object: a text, a list of values, or pairs."""
    make: Callable[..., Value]
    """Builds an object from its parts. A mutable object is built empty, from its head if it has one."""
    fill: Callable[[Value, Value], None] | None = None
    """Puts the parts into an empty mutable object."""
    head: str = ""
    """The attribute that is sent before the parts."""
    is_text: bool = False

    @property
    def has_pairs(self) -> bool:
        """Whether the parts are pairs of keys and values."""
        return self.fill is _set_pairs

    def make_empty(self, value: Value) -> Value:
        """Return an empty object with the same head."""
        return self.make(getattr(value, self.head)) if self.head else self.make()


def _listed(kind: Value) -> Callable[[Value], list[Value]]:
    return lambda value: list(kind.__iter__(value))


def _pairs_of(kind: Value) -> Callable[[Value], list[Value]]:
    return lambda value: list(kind.items(value))


def _attributes(*names: str) -> Callable[[Value], list[Value]]:
    get = attrgetter(*names)
    return lambda value: list(get(value))


def _set_pairs(made: Value, pairs: list[Value]) -> None:
    for key, value in pairs:
        made[key] = value


def _to_base64(data: bytes | bytearray) -> str:
    return base64.b64encode(bytes(memoryview(data))).decode("ascii")


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _read_int(text: str) -> int:
    if len(text) > MAX_INT_BITS // 4 + 4 or not text.lstrip("-").startswith("0x"):
        raise Undecodable("not an integer in hexadecimal digits")
    return int(text, 16)


def _read_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise Undecodable("a float is a number, or nan, inf or -inf")
    return float(text)


def _read_decimal(text: str) -> decimal.Decimal:
    made = decimal.Decimal(text) if len(text) <= MAX_EXPONENT else None
    if made is None or made.is_snan() or (made.is_finite() and abs(made.adjusted()) > MAX_EXPONENT):
        raise Undecodable("a decimal number beyond bounds")
    return made


def _make_complex(parts: list[Value]) -> complex:
    if list(map(type, parts)) != [float, float]:
        raise Undecodable("the parts of a complex number are floats")
    return complex(*parts)


def _make_fraction(parts: list[Value]) -> fractions.Fraction:
    numerator, denominator = parts
    if max(numerator.bit_length(), denominator.bit_length()) > MAX_FRACTION_BITS:
        raise Undecodable("a fraction beyond bounds")
    return fractions.Fraction(numerator, denominator)


_TEXTS: tuple[tuple[type, Callable[[Value], str], Callable[[str], Value]], ...] = (
    (int, hex, _read_int),
    (float, repr, _read_float),
    (
        str,
        lambda value: _to_base64(value.encode("utf-8", "surrogatepass")),
        lambda text: _from_base64(text).decode("utf-8", "surrogatepass"),
    ),
    (bytes, _to_base64, _from_base64),
    (decimal.Decimal, decimal.Decimal.__str__, _read_decimal),
    (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    (datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    (type(...), lambda value: "", lambda text: ...),
    (Opaque, attrgetter("type_name"), lambda text: Opaque(text[:SHOWN_CHARS])),
)
"""Types that are sent as a text, with the functions that write and read it."""
_MAPPINGS: tuple[type, ...] = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)

_FORMS = (
    *(TypeForm(kind, spell, read, is_text=True) for kind, spell, read in _TEXTS),
    *(TypeForm(kind, _pairs_of(kind), kind, _set_pairs) for kind in _MAPPINGS),
    TypeForm(tuple, _listed(tuple), tuple),
    TypeForm(frozenset, _listed(frozenset), frozenset),
    TypeForm(complex, _attributes("real", "imag"), _make_complex),
    TypeForm(range, _attributes("start", "stop", "step"), lambda parts: range(*parts)),
    TypeForm(slice, _attributes("start", "stop", "step"), lambda parts: slice(*parts)),
    TypeForm(fractions.Fraction, _attributes("numerator", "denominator"), _make_fraction),
    TypeForm(
        datetime.timedelta, _attributes("days", "seconds", "microseconds"), lambda parts: datetime.timedelta(*parts)
    ),
    TypeForm(list, _listed(list), list, list.extend),
    TypeForm(set, _listed(set), set, set.update),
    TypeForm(
        collections.deque,
        _listed(collections.deque),
        lambda max_length=None: collections.deque(maxlen=max_length),
        collections.deque.extend,
        "maxlen",
    ),
    TypeForm(array.array, _listed(array.array), array.array, array.array.extend, "typecode"),
    TypeForm(bytearray, _to_base64, bytearray, lambda made, text: made.extend(_from_base64(text)), is_text=True),
)

FORMS: Mapping[str, TypeForm] = {"opaque" if form.kind is Opaque else form.kind.__name__: form for form in _FORMS}
"""The form of each type, by tag."""

MUTABLE: Mapping[type, TypeForm] = {form.kind: form for form in _FORMS if form.fill is not None}
"""The forms of mutable types."""

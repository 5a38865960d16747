"""Lists the types that can be encoded, and stand-ins for values whose type the decoding process does not have.

    value                type       how it is sent
    (1, 2)               tuple      parts [1, 2]
    Decimal("0.1")       Decimal    parts "0.1"
    deque([1], 5)        deque      head 5 (`maxlen`) and parts [1]; it is made empty with the head, and then filled

Functions of the builtin type read the parts of an object. So an object of a subclass is encoded as the data in it.
Functions that build an object get parts of exact builtin types, with values that may be malicious.

    Opaque("Fraction2")                a value that cannot be encoded; not equal to any value, not even to itself
    Iterated([1, 2, 3])                an iterator or a generator, read to its end
    Array("float64", (2, 2), [[..]])   an array of numpy, if numpy is not to be loaded
    Instance("ListNode", {...})        an object of a class whose fields are known, but which is not defined here

Stand-ins are not dataclasses, because every sandboxed process would have to load `dataclasses` and its imports.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

Json = Any
"""A JSON value: None, a boolean, a number, a text, a list, or a dict with texts as keys."""

Value = Any
"""Any value of a program or of its tests."""

Codecs = Mapping[str, Sequence[str]]
"""Maps the name of a class to the attributes that make up an instance."""

KNOWN_CODECS: Codecs = {"ListNode": ("val", "next"), "TreeNode": ("val", "left", "right")}
"""Classes of LeetCode, which its problems use without defining them."""


ARRAY_TIMES = re.compile(r"(datetime64|timedelta64)\[(Y|M|W|D|h|m|s|ms|us|ns)\]")
"""Names of dtypes for times: `datetime64[ns]`."""


class Undecodable(ValueError):
    """The data is not what an encoder writes: it is forged, cut off or too large."""


class ResultTooLarge(ValueError):
    """The value exceeds the limits of one result."""


class Opaque:
    """A value of which only the name of the type is known."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


class Iterated:
    """The elements of an iterator. They do not equal a list: `f() == [1, 2]` is false for a generator."""

    __slots__ = ("elements", "kind")

    def __init__(self, elements: list[Any], kind: str = "iterator") -> None:
        self.elements = elements
        self.kind = kind
        """The name of the iterator's type."""

    def __eq__(self, other: object) -> bool:
        return self.elements == other.elements if type(other) is Iterated else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Iterated({self.elements!r}, {self.kind!r})"


class Array:
    """An array of numpy."""

    __slots__ = ("dtype", "elements", "shape")

    DTYPES = frozenset(
        "bool str object int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
        " complex128".split()
    )
    """The dtypes of arrays that can be encoded, in addition to times (`ARRAY_TIMES`), which are sent as integers."""

    def __init__(self, dtype: str, shape: tuple[int, ...], elements: Any) -> None:
        self.dtype = dtype
        """numpy's name of the dtype, or "str"."""
        self.shape = shape
        self.elements = elements
        """Nested lists, or one number if the shape is ()."""

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if type(other) is Array else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Array({self.dtype!r}, {self.shape!r}, {self.elements!r})"

    def _parts(self) -> tuple[Any, ...]:
        return self.dtype, self.shape, self.elements


class Instance:
    """An object of a class that this process does not have."""

    __slots__ = ("class_name", "fields")

    def __init__(self, class_name: str, fields: dict[str, Any]) -> None:
        self.class_name = class_name
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is Instance and _same_graphs(self, other)

    __hash__ = object.__hash__  # Members of sets are distinguished by identity, as plain objects are.

    def __repr__(self) -> str:
        return f"<{self.class_name}>"


def _same_graphs(left: Instance, right: Instance) -> bool:
    """Return whether two objects have equal fields, recursively and in cycles too (Hopcroft and Karp)."""
    groups: dict[int, int] = {}
    pending: list[tuple[Any, Any]] = [(left, right)]
    while pending:
        first, second = pending.pop()
        if type(first) is Instance and type(second) is Instance:
            first_group, second_group = _find_group(groups, id(first)), _find_group(groups, id(second))
            if first_group == second_group:
                continue
            groups[first_group] = second_group
            if first.class_name != second.class_name or first.fields.keys() != second.fields.keys():
                return False
            pending += [(value, second.fields[name]) for name, value in first.fields.items()]
        elif type(first) in (list, tuple) and type(first) is type(second):
            if len(first) != len(second):
                return False
            pending += zip(first, second, strict=True)
        elif first != second:
            return False
    return True


def _find_group(groups: dict[int, int], member: int) -> int:
    while (above := groups.get(member, member)) != member:
        groups[member] = groups.get(above, above)
        member = above
    return member


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

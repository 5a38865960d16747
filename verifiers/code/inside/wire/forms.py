"""The less usual values and how an `Encoder` writes each; `values.py` has the table."""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Mapping
from typing import Any

from . import arrays
from .stand_ins import Array, Instance, Iterated, Opaque

Form = Callable[[Any, Any, int], Any]
"""(encoder, value, depth) -> JSON"""


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _collection(tag: str, parts: Callable[[Any], list[Any]], mutable: bool = False) -> Form:
    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.too_deep(depth):
            return encoder.foreign(value, depth)
        if mutable and (known := encoder.index(value)) is not None:
            return known
        encoder.spend(8 + 4 * len(value))
        return {"$": tag, "v": encoder.items(parts(value), depth)}

    return form


def _mapping(tag: str) -> Form:
    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.too_deep(depth):
            return encoder.foreign(value, depth)
        if (known := encoder.index(value)) is not None:
            return known
        encoder.spend(8 + 4 * len(value))
        return {"$": tag, "v": encoder.pairs(value.items(), depth)}

    return form


def _record(tag: str, parts: Callable[[Any], list[Any]]) -> Form:
    """For a fixed number of parts."""

    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.too_deep(depth):
            return encoder.foreign(value, depth)
        encoder.spend(16)
        return {"$": tag, "v": encoder.items(parts(value), depth)}

    return form


def _text(tag: str, text: Callable[[Any], str]) -> Form:
    def form(encoder: Any, value: Any, depth: int) -> Any:
        said = text(value)
        encoder.spend(16 + len(said))
        return {"$": tag, "v": said}

    return form


def _bytes(encoder: Any, value: Any, depth: int) -> Any:
    encoder.spend(len(value))
    return {"$": "bytes", "v": base64_text(bytes(memoryview(value)))}


def _bytearray(encoder: Any, value: Any, depth: int) -> Any:
    encoder.spend(len(value))
    known = encoder.index(value)
    return {"$": "bytearray", "v": base64_text(bytes(memoryview(value)))} if known is None else known


def _tuple_of_subclass(encoder: Any, value: Any, depth: int) -> Any:
    """A named tuple says its names as well, so that a test can read `result.x`."""
    data = encoder.value(tuple(tuple.__iter__(value)), depth)
    names = getattr(type(value), "_fields", None)
    if names and data["$"] == "tuple":
        data["names"] = [str(name) for name in names]
        data["of"] = type(value).__name__
    return data


def _iterated(encoder: Any, value: Iterated, depth: int) -> Any:
    encoder.spend(4 * len(value.items))
    return {"$": "iterator", "v": encoder.items(value.items, depth), "of": value.kind}


def _as_data_of(base: Callable[[Any], Any]) -> Form:
    return lambda encoder, value, depth: encoder.value(base(value), depth)


FORMS: Mapping[type, Form] = {
    set: _collection("set", list, mutable=True),
    frozenset: _collection("frozenset", list),
    bytes: _bytes,
    bytearray: _bytearray,
    complex: _record("complex", lambda value: [value.real, value.imag]),
    type(...): _text("ellipsis", lambda value: ""),
    range: _record("range", lambda value: [value.start, value.stop, value.step]),
    slice: _record("slice", lambda value: [value.start, value.stop, value.step]),
    collections.Counter: _mapping("Counter"),
    collections.OrderedDict: _mapping("OrderedDict"),
    collections.defaultdict: _mapping("defaultdict"),
    collections.deque: _collection("deque", lambda value: [value.maxlen, *value], mutable=True),
    array.array: _collection("array", lambda value: [value.typecode, *value], mutable=True),
    decimal.Decimal: _text("Decimal", str),
    fractions.Fraction: _record("Fraction", lambda value: [value.numerator, value.denominator]),
    datetime.datetime: _text("datetime", datetime.datetime.isoformat),
    datetime.date: _text("date", datetime.date.isoformat),
    datetime.time: _text("time", datetime.time.isoformat),
    datetime.timedelta: _record("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    Iterated: _iterated,
    Array: arrays.encode_array,
    Instance: lambda encoder, value, depth: encoder.node(value, value.class_name, list(value.fields.values())),
    Opaque: _text("opaque", lambda value: value.type_name),
}

SUBCLASS_FORMS: list[tuple[type, Form]] = [
    (int, _as_data_of(int.__index__)),
    (float, _as_data_of(float.__float__)),
    (str, _as_data_of(str.__str__)),
    (tuple, _tuple_of_subclass),
    (list, _as_data_of(lambda value: list(list.__iter__(value)))),
    (collections.Counter, _as_data_of(lambda value: collections.Counter(dict(dict.items(value))))),
    (
        collections.OrderedDict,
        _as_data_of(lambda value: collections.OrderedDict(collections.OrderedDict.items(value))),
    ),
    (dict, _as_data_of(lambda value: dict(dict.items(value)))),
    (collections.deque, _as_data_of(lambda value: collections.deque(collections.deque.__iter__(value), value.maxlen))),
    (set, _as_data_of(lambda value: set(set.__iter__(value)))),
    (frozenset, _as_data_of(lambda value: frozenset(frozenset.__iter__(value)))),
    (bytes, _bytes),
    (bytearray, _bytearray),
    (datetime.datetime, _text("datetime", datetime.datetime.isoformat)),
    (datetime.date, _text("date", datetime.date.isoformat)),
    (datetime.timedelta, _record("timedelta", lambda value: [value.days, value.seconds, value.microseconds])),
    (decimal.Decimal, _text("Decimal", decimal.Decimal.__str__)),
]
"""Objects of subclasses become the data that the builtin type holds, read by its own methods: an `int` that calls
itself equal to everything is the number it is."""

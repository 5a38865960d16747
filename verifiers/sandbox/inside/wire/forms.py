"""How an `Encoder` writes the less usual values; the table of forms is in the docstring of the folder."""

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
"""A function of an encoder, a value and its depth that returns JSON."""


def base64_text(data: bytes) -> str:
    """Return bytes as a text of ASCII."""
    return base64.b64encode(data).decode("ascii")


def _collection_form(tag: str, parts: Callable[[Any], list[Any]], mutable: bool = False) -> Form:
    """Return the form of a container; a mutable one may be named instead, where both sides have it."""

    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.is_too_deep(depth):
            return encoder.encode_foreign(value, depth)
        if mutable and (known := encoder.refer_to_known(value)) is not None:
            return known
        encoder.spend(8 + 4 * len(value))
        return {"$": tag, "v": encoder.encode_items(parts(value), depth)}

    return form


def _mapping_form(tag: str) -> Form:
    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.is_too_deep(depth):
            return encoder.encode_foreign(value, depth)
        if (known := encoder.refer_to_known(value)) is not None:
            return known
        encoder.spend(8 + 4 * len(value))
        return {"$": tag, "v": encoder.encode_pairs(value.items(), depth)}

    return form


def _record_form(tag: str, parts: Callable[[Any], list[Any]]) -> Form:
    """Return the form of a value with a fixed number of parts."""

    def form(encoder: Any, value: Any, depth: int) -> Any:
        if encoder.is_too_deep(depth):
            return encoder.encode_foreign(value, depth)
        encoder.spend(16)
        return {"$": tag, "v": encoder.encode_items(parts(value), depth)}

    return form


def _text_form(tag: str, spell: Callable[[Any], str]) -> Form:
    def form(encoder: Any, value: Any, depth: int) -> Any:
        text = spell(value)
        encoder.spend(16 + len(text))
        return {"$": tag, "v": text}

    return form


def _encode_bytes(encoder: Any, value: Any, depth: int) -> Any:
    encoder.spend(len(value))
    return {"$": "bytes", "v": base64_text(bytes(memoryview(value)))}


def _encode_bytearray(encoder: Any, value: Any, depth: int) -> Any:
    encoder.spend(len(value))
    known = encoder.refer_to_known(value)
    return {"$": "bytearray", "v": base64_text(bytes(memoryview(value)))} if known is None else known


def _encode_tuple_subclass(encoder: Any, value: Any, depth: int) -> Any:
    """Encode it as a tuple. A named tuple says its names as well, so that a test can read `result.x`."""
    data = encoder.encode_part(tuple(tuple.__iter__(value)), depth)
    names = getattr(type(value), "_fields", None)
    if names and data["$"] == "tuple":
        data["names"] = [str(name) for name in names]
        data["of"] = type(value).__name__
    return data


def _encode_iterated(encoder: Any, value: Iterated, depth: int) -> Any:
    encoder.spend(4 * len(value.elements))
    return {"$": "iterator", "v": encoder.encode_items(value.elements, depth), "of": value.kind}


def _base_form(to_base: Callable[[Any], Any]) -> Form:
    """Return the form of objects that are first turned into ones of a builtin type."""
    return lambda encoder, value, depth: encoder.encode_part(to_base(value), depth)


FORMS: Mapping[type, Form] = {
    set: _collection_form("set", list, mutable=True),
    frozenset: _collection_form("frozenset", list),
    bytes: _encode_bytes,
    bytearray: _encode_bytearray,
    complex: _record_form("complex", lambda value: [value.real, value.imag]),
    type(...): _text_form("ellipsis", lambda value: ""),
    range: _record_form("range", lambda value: [value.start, value.stop, value.step]),
    slice: _record_form("slice", lambda value: [value.start, value.stop, value.step]),
    collections.Counter: _mapping_form("Counter"),
    collections.OrderedDict: _mapping_form("OrderedDict"),
    collections.defaultdict: _mapping_form("defaultdict"),
    collections.deque: _collection_form("deque", lambda value: [value.maxlen, *value], mutable=True),
    array.array: _collection_form("array", lambda value: [value.typecode, *value], mutable=True),
    decimal.Decimal: _text_form("Decimal", decimal.Decimal.__str__),
    fractions.Fraction: _record_form("Fraction", lambda value: [value.numerator, value.denominator]),
    datetime.datetime: _text_form("datetime", datetime.datetime.isoformat),
    datetime.date: _text_form("date", datetime.date.isoformat),
    datetime.time: _text_form("time", datetime.time.isoformat),
    datetime.timedelta: _record_form("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    Iterated: _encode_iterated,
    Array: arrays.encode_array,
    Instance: lambda encoder, value, depth: encoder.encode_node(value, value.class_name, list(value.fields.values())),
    Opaque: _text_form("opaque", lambda value: value.type_name),
}

SUBCLASS_FORMS: list[tuple[type, Form]] = [
    (int, _base_form(int.__index__)),
    (float, _base_form(float.__float__)),
    (str, _base_form(str.__str__)),
    (tuple, _encode_tuple_subclass),
    (list, _base_form(lambda value: list(list.__iter__(value)))),
    (collections.Counter, _base_form(lambda value: collections.Counter(dict(dict.items(value))))),
    (
        collections.OrderedDict,
        _base_form(lambda value: collections.OrderedDict(collections.OrderedDict.items(value))),
    ),
    (dict, _base_form(lambda value: dict(dict.items(value)))),
    (collections.deque, _base_form(lambda value: collections.deque(collections.deque.__iter__(value), value.maxlen))),
    (set, _base_form(lambda value: set(set.__iter__(value)))),
    (frozenset, _base_form(lambda value: frozenset(frozenset.__iter__(value)))),
    *(
        (base, FORMS[base])
        for base in (bytes, bytearray, datetime.datetime, datetime.date, datetime.timedelta, decimal.Decimal)
    ),
]
"""Objects of subclasses become the data that the builtin type holds. Its own methods read them, so that an `int` that
calls itself equal to everything is the number it is."""

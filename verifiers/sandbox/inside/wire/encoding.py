"""Turns values into JSON, exact by type; the table of forms is in the docstring of the folder.

The encoder runs where the program runs, which may have changed everything it uses, so nobody believes a message because
an encoder wrote it. It owes exactness to honest programs, a bounded size, and speed: flat lists of numbers or texts are
looked through at C speed and stand in the JSON as they are.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping

from .foreign_values import (
    ARRAY_TIMES,
    KNOWN_CODECS,
    Array,
    Codecs,
    Instance,
    Iterated,
    Json,
    Opaque,
    ResultTooLarge,
    Value,
)
from .frames import encode_pandas, is_changeable, is_pandas

MAX_DEPTH = 100
"""How deep containers may nest; deeper ones are opaque. Stops nesting that overflows the stack of a JSON reader."""

MAX_ENCODED = 16 * 2**20
"""Characters of one encoded value, roughly. Stops a result that fills the memory of its reader."""

MAX_ITERATED = 1_000_000
"""How many items are read from an iterator. Stops generators without end."""

MAX_INT_BITS = 2**22
"""How large an integer may be. Stops integers of megabytes."""

JSON_INT = 1 << 13_000
"""Integers below this stand as they are: just under 4,000 digits, and Python's own readers refuse more than 4,300."""

_EMPTY: dict[object, object] = {}
DICT_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))

_NUMBERS = {int, float, bool, type(None)}


class Encoder:
    """Encodes one value.

    known: the index, by id, of each object that both sides have already; such objects are named by their index. track:
    whether every mutable object gets an index in the order in which it is met, and is kept in `tracked`.
    """

    def __init__(self, codecs: Codecs | None = None, known: dict[int, int] | None = None, track: bool = False) -> None:
        self._codecs = {**KNOWN_CODECS, **codecs} if codecs else KNOWN_CODECS
        self._left = MAX_ENCODED
        self._known = {} if track else known
        self._track = track
        self.tracked: list[object] = []
        self._nodes: list[tuple[str, list[object]]] = []
        self._node_index: dict[int, int] = {}
        self._names: dict[type, str | None] = {}
        self._kept: list[object] = []  # An id says which object is meant for as long as the object lives.

    sends_object_arrays = True
    """Whether arrays of objects have a form. numpy makes one of any list in which the solution put an object."""

    def encode(self, value: object) -> Json:
        """Return the JSON of the value. Raises `ResultTooLarge`."""
        body = self.encode_part(value, 0)
        if not self._nodes:
            return body
        # Objects of known classes refer to further ones, which are encoded here, without recursion.
        nodes: list[Json] = []
        while len(nodes) < len(self._nodes):
            name, fields = self._nodes[len(nodes)]
            nodes.append([name, [self.encode_part(field, 1) for field in fields]])
        return {"$": "graph", "nodes": nodes, "v": body}

    def encode_part(self, value: object, depth: int) -> Json:
        """Return the JSON of a value within `depth` containers."""
        form = _FORMS.get(type(value))
        return self.encode_uncommon(value, depth) if form is None else form(self, value, depth)

    def encode_foreign(self, value: object, depth: int) -> Json:
        """Return JSON for what has no form: iterators are read to their end, and the rest is named by its type."""
        kind = type(value)
        if depth <= MAX_DEPTH and (hasattr(kind, "__next__") or kind in DICT_VIEWS):
            elements = list(itertools.islice(iter(value), MAX_ITERATED + 1))  # type: ignore[call-overload]
            if len(elements) > MAX_ITERATED:
                raise ResultTooLarge(f"{kind.__name__} gives more than {MAX_ITERATED} items")
            return self.encode_iterated(Iterated(elements, kind.__name__[:100]), depth)
        return {"$": "opaque", "v": kind.__name__[:100]}

    def spend(self, size: int) -> None:
        """Count characters of the result. Raises `ResultTooLarge`."""
        self._left -= size
        if self._left < 0:
            raise ResultTooLarge("the value is larger than one result may be")

    def encode_items(self, elements: list[Value], depth: int) -> list[Json]:
        """Return the JSON of the elements of a container, which `spend` has counted already."""
        if self._is_flat(elements):
            return elements
        deeper = depth + 1
        return [self.encode_part(element, deeper) for element in elements]

    def encode_pairs(self, pairs: Iterable[tuple[object, object]], depth: int) -> list[Json]:
        """Return the JSON of keys and what they stand for, which `spend` has counted already."""
        deeper = depth + 1
        return [[self.encode_part(key, deeper), self.encode_part(value, deeper)] for key, value in pairs]

    def encode_iterated(self, value: Iterated, depth: int) -> Json:
        """Return the JSON of an iterator that was read to its end."""
        self.spend(4 * len(value.elements))
        return {"$": "iterator", "v": self.encode_items(value.elements, depth), "of": value.kind}

    def encode_node(self, value: object, name: str, fields: list[object]) -> Json:
        """Return a reference to an object of a known class, whose fields are encoded later."""
        index = self._node_index.get(id(value))
        if index is None:
            if (reference := self.refer_to_known(value)) is not None:
                return reference
            self.spend(8 + 4 * len(fields))
            index = self._node_index[id(value)] = len(self._nodes)
            self._nodes.append((name, fields))
            self._kept.append(value)
        return {"$": "node", "v": index}

    def refer_to_known(self, value: object) -> Json | None:
        """Return a reference to an object that both sides have, or None.

        Where mutable objects are tracked, it is known from here on.
        """
        if self._known is None:
            return None
        index = self._known.get(id(value))
        if index is not None:
            return {"$": "known", "v": index}
        if self._track:
            self._known[id(value)] = len(self.tracked)
            self.tracked.append(value)
        return None

    def encode_uncommon(self, value: object, depth: int) -> Json:
        """Return the JSON of a value whose exact type has no form: of a known class, of numpy or of a subclass."""
        kind = type(value)
        name = self._names.get(kind, "")
        if name == "":
            name = next((above.__name__ for above in kind.__mro__ if above.__name__ in self._codecs), None)
            self._names[kind] = name
        if name is not None:
            try:
                fields = [object.__getattribute__(value, field) for field in self._codecs[name]]
            except AttributeError:
                return self.encode_foreign(value, depth)
            return self.encode_node(value, name, fields)
        if "pandas" in sys.modules and depth <= MAX_DEPTH and is_pandas(value):
            return self._encode_pandas(value, depth)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return _encode_numpy(self, value, numpy, depth)
        for base, form in _SUBCLASS_FORMS:
            if issubclass(kind, base):
                return form(self, value, depth)
        return self.encode_foreign(value, depth)

    def _encode_pandas(self, value: Value, depth: int) -> Json:
        reference = self.refer_to_known(value) if is_changeable(value) else None
        if reference is None:
            reference = encode_pandas(value, lambda inner: self.encode_part(inner, depth + 1))
        return self.encode_foreign(value, depth) if reference is None else reference

    def _is_flat(self, elements: list[Value]) -> bool:
        """Return whether JSON can say all the elements as they stand."""
        kinds = set(map(type, elements))
        if kinds == {str}:
            text = "".join(elements)
            self.spend(len(text))
            return text.isascii() or _is_encodable(text)
        if not kinds <= _NUMBERS:
            return False
        numbers = list(filter(None, elements))
        try:
            if float in kinds and not math.isfinite(sum(numbers)):
                return False
        except OverflowError:
            return False
        return int not in kinds or not numbers or (min(numbers) > -JSON_INT and max(numbers) < JSON_INT)

    def _int(self, value: int, depth: int) -> Json:
        if -JSON_INT < value < JSON_INT:
            return value
        if value.bit_length() > MAX_INT_BITS:
            raise ResultTooLarge(f"an integer of {value.bit_length()} bits")
        self.spend(value.bit_length() // 4)
        return {"$": "int", "v": hex(value)}

    def _float(self, value: float, depth: int) -> Json:
        if math.isfinite(value):
            return value
        self.spend(16)
        return {"$": "float", "v": repr(value)}

    def _str(self, value: str, depth: int) -> Json:
        self.spend(len(value))
        if value.isascii() or _is_encodable(value):
            return value
        return {"$": "str", "v": _base64_text(value.encode("utf-8", "surrogatepass"))}

    def _list(self, value: list[Value], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.encode_foreign(value, depth)
        self.spend(8 + 4 * len(value))
        reference = self.refer_to_known(value)
        return self.encode_items(value, depth) if reference is None else reference

    def _dict(self, value: dict[Value, Value], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.encode_foreign(value, depth)
        reference = self.refer_to_known(value)
        if reference is not None:
            return reference
        self.spend(8 + 4 * len(value))
        keys = list(value)
        if (not keys or set(map(type, keys)) == {str}) and "$" not in value and self._is_flat(keys):
            if self._is_flat(list(value.values())):
                return value
            return {key: self.encode_part(element, depth + 1) for key, element in value.items()}
        return {"$": "dict", "v": self.encode_pairs(value.items(), depth)}


def encode(value: object, codecs: Codecs | None = None) -> Json:
    """Return what `to_json` can write. Raises `ResultTooLarge`; what has no form becomes opaque."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int and -JSON_INT < value < JSON_INT:
        return value
    return Encoder(codecs).encode(value)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_Form = Callable[[Encoder, Value, int], Json]
"""A function of an encoder, a value and its depth that returns JSON."""


def _container_form(
    tag: str,
    encode_parts: Callable[[Encoder, Value, int], list[Json]],
    size: int | None = None,
    is_mutable: bool = False,
) -> _Form:
    """Return the form of a container; a mutable one may be named instead, where both sides have it.

    size: what a value with a fixed number of parts counts.
    """

    def form(encoder: Encoder, value: Value, depth: int) -> Json:
        if depth > MAX_DEPTH:
            return encoder.encode_foreign(value, depth)
        if is_mutable and (known := encoder.refer_to_known(value)) is not None:
            return known
        encoder.spend(8 + 4 * len(value) if size is None else size)
        return {"$": tag, "v": encode_parts(encoder, value, depth)}

    return form


def _collection_form(tag: str, parts: Callable[[Value], list[Value]], is_mutable: bool = False) -> _Form:
    return _container_form(
        tag, lambda encoder, value, depth: encoder.encode_items(parts(value), depth), None, is_mutable
    )


def _mapping_form(tag: str) -> _Form:
    return _container_form(
        tag, lambda encoder, value, depth: encoder.encode_pairs(value.items(), depth), None, is_mutable=True
    )


def _record_form(tag: str, *names: str) -> _Form:
    """Return the form of a value whose parts are these attributes."""
    return _container_form(
        tag, lambda encoder, value, depth: encoder.encode_items([getattr(value, name) for name in names], depth), 16
    )


def _text_form(tag: str, spell: Callable[[Value], str]) -> _Form:
    def form(encoder: Encoder, value: Value, depth: int) -> Json:
        text = spell(value)
        encoder.spend(16 + len(text))
        return {"$": tag, "v": text}

    return form


def _bytes_form(tag: str) -> _Form:
    def form(encoder: Encoder, value: bytes | bytearray, depth: int) -> Json:
        encoder.spend(len(value))
        known = encoder.refer_to_known(value) if tag == "bytearray" else None
        return {"$": tag, "v": _base64_text(bytes(memoryview(value)))} if known is None else known

    return form


def _encode_tuple_subclass(encoder: Encoder, value: tuple[object, ...], depth: int) -> Json:
    """Encode it as a tuple. A named tuple says its names as well, so that a test can read `result.x`."""
    data = encoder.encode_part(tuple(tuple.__iter__(value)), depth)
    names = getattr(type(value), "_fields", None)
    if names and data["$"] == "tuple":
        data["names"] = [str(name) for name in names]
        data["of"] = type(value).__name__
    return data


def _encode_numpy(encoder: Encoder, value: Value, numpy: Value, depth: int) -> Json:
    """Return the JSON of an array or a number of numpy."""
    name = "str" if value.dtype.kind == "U" else value.dtype.name
    if value.dtype.kind in "mM" and ARRAY_TIMES.fullmatch(name):
        value = value.view("int64")
    elif name not in Array.DTYPES or (name == "object" and not encoder.sends_object_arrays):
        return encoder.encode_foreign(value, depth)
    if isinstance(value, numpy.generic):
        return {"$": "scalar", "dtype": name, "v": encoder.encode_part(value.item(), depth + 1)}
    encoder.spend(4 * value.size)
    flat = numpy.ndarray.tolist(numpy.ndarray.ravel(numpy.asarray(value)))
    return {"$": "ndarray", "dtype": name, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


def _encode_array(encoder: Encoder, value: Array, depth: int) -> Json:
    """Return the JSON of an array that stands for one of numpy's."""
    encoder.spend(4 * math.prod(value.shape))
    flat = [value.elements]
    for _ in value.shape:
        flat = list(itertools.chain.from_iterable(flat))
    return {"$": "ndarray", "dtype": value.dtype, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


def _base_form(to_base: Callable[[Value], object]) -> _Form:
    """Return the form of objects that are first turned into ones of a builtin type."""
    return lambda encoder, value, depth: encoder.encode_part(to_base(value), depth)


_FORMS: Mapping[type, _Form] = {
    type(None): lambda encoder, value, depth: value,
    bool: lambda encoder, value, depth: value,
    int: Encoder._int,
    float: Encoder._float,
    str: Encoder._str,
    list: Encoder._list,
    dict: Encoder._dict,
    tuple: _collection_form("tuple", list),
    set: _collection_form("set", list, is_mutable=True),
    frozenset: _collection_form("frozenset", list),
    bytes: _bytes_form("bytes"),
    bytearray: _bytes_form("bytearray"),
    complex: _record_form("complex", "real", "imag"),
    type(...): _text_form("ellipsis", lambda value: ""),
    range: _record_form("range", "start", "stop", "step"),
    slice: _record_form("slice", "start", "stop", "step"),
    collections.Counter: _mapping_form("Counter"),
    collections.OrderedDict: _mapping_form("OrderedDict"),
    collections.defaultdict: _mapping_form("defaultdict"),
    collections.deque: _collection_form("deque", lambda value: [value.maxlen, *value], is_mutable=True),
    array.array: _collection_form("array", lambda value: [value.typecode, *value], is_mutable=True),
    decimal.Decimal: _text_form("Decimal", decimal.Decimal.__str__),
    fractions.Fraction: _record_form("Fraction", "numerator", "denominator"),
    datetime.datetime: _text_form("datetime", datetime.datetime.isoformat),
    datetime.date: _text_form("date", datetime.date.isoformat),
    datetime.time: _text_form("time", datetime.time.isoformat),
    datetime.timedelta: _record_form("timedelta", "days", "seconds", "microseconds"),
    Iterated: Encoder.encode_iterated,
    Array: _encode_array,
    Instance: lambda encoder, value, depth: encoder.encode_node(value, value.class_name, list(value.fields.values())),
    Opaque: _text_form("opaque", lambda value: value.type_name),
}

_KEPT_TYPES = (bytes, bytearray, datetime.datetime, datetime.date, datetime.timedelta, decimal.Decimal)
_SUBCLASS_FORMS: list[tuple[type, _Form]] = [
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
    *((base, _FORMS[base]) for base in _KEPT_TYPES),
]
"""Objects of subclasses become the data that the builtin type holds. Its own methods read them, so that an `int` that
calls itself equal to everything is the number it is."""

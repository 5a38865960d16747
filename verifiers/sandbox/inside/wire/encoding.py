"""Encodes values as JSON that keeps their exact types, and reads and writes such JSON as lines.

`wire/__init__.py` has the table of types. The encoder runs in the process of the tested program, and a hostile program
may change it. So the reader checks every message (`decoding`). For honest programs the encoder is exact, limited in
size, and fast: flat lists of numbers or texts are checked at C speed and written unchanged.

    are_plain([1, "x", [2.5, None], {"k": True}])       True: JSON represents these values exactly
    are_plain([(1, 2)]), are_plain([math.nan])           False, False: they need a tag

A job writes lines to two descriptors: its results to a file, and its messages to a partner. A message is a list whose
first item names the kind of message. Partners take turns: after a message, the sender waits for the answer or for a
request in return. Anything else that arrives raises an exception.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from itertools import accumulate
from typing import NoReturn

from .packages import encode_packaged, is_changeable, is_packaged
from .value_types import (
    ARRAY_TIMES,
    FORMS,
    KNOWN_CODECS,
    MAX_INT_BITS,
    Array,
    Codecs,
    Instance,
    Iterated,
    Json,
    ResultTooLarge,
    TypeForm,
    Undecodable,
    Value,
)

MAX_DEPTH = 100
"""Maximum depth of nested containers, since deep ones could overflow a JSON reader's stack. A deeper container is
opaque: only the name of its type is sent."""

MAX_ENCODED = 16 * 2**20
"""Maximum number of characters of one encoded value, roughly. A larger result could fill the reader's memory."""

MAX_ITERATED = 1_000_000
"""Maximum number of items that are read from an iterator. Stops endless generators."""

JSON_INT = 1 << 13_000
"""The bound below which integers are JSON numbers: nearly 4,000 digits. Python's readers refuse more than 4,300."""

_EMPTY: dict[object, object] = {}
DICT_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))

_NUMBERS = {int, float, bool, type(None)}


class Encoder:
    """Encodes one value.

    known: the index of each object that both sides have, by id. Such objects are sent as their indices. track: whether
    mutable objects are collected in `tracked`, in the order in which they are found.
    """

    def __init__(self, codecs: Codecs | None = None, known: dict[int, int] | None = None, track: bool = False) -> None:
        self._codecs = {**KNOWN_CODECS, **codecs} if codecs else KNOWN_CODECS
        self._left = MAX_ENCODED
        self._known = {} if track else known
        self._track = track
        self.tracked: list[object] = []
        self._nodes: list[tuple[str, list[object], object]] = []
        self._node_index: dict[int, int] = {}
        self._names: dict[type, str | None] = {}

    sends_object_arrays = True
    """Whether arrays of objects are encoded. numpy makes such an array of any list that contains an object."""

    def encode(self, value: object) -> Json:
        """Return the JSON of the value. Raises `ResultTooLarge`."""
        body = self.encode_part(value, 0)
        if not self._nodes:
            return body
        # Nodes refer to further nodes. These are encoded in this loop, without recursion.
        nodes: list[Json] = []
        while len(nodes) < len(self._nodes):
            name, fields, _ = self._nodes[len(nodes)]
            nodes.append([name, [self.encode_part(field, 1) for field in fields]])
        return {"$": "graph", "nodes": nodes, "v": body}

    def encode_part(self, value: object, depth: int) -> Json:
        """Return the JSON of a value that is inside `depth` containers."""
        encode_kind = _ENCODERS.get(type(value))
        return self.encode_uncommon(value, depth) if encode_kind is None else encode_kind(self, value, depth)

    def encode_foreign(self, value: object, depth: int) -> Json:
        """Return the JSON of other values: the items of an iterator, or only the type's name (an opaque value)."""
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
        """Return the JSON of the elements of a container. The caller has counted the size of the container."""
        if self._is_flat(elements):
            return elements
        deeper = depth + 1
        return [self.encode_part(element, deeper) for element in elements]

    def encode_form(self, value: Value, depth: int, tag: str, form: TypeForm) -> Json:
        """Return the JSON of a value whose type is in the table `FORMS`."""
        if depth > MAX_DEPTH and not form.is_text:
            return self.encode_foreign(value, depth)
        if form.fill is not None and (known := self.refer_to_known(value)) is not None:
            return known
        parts = form.parts(value)
        self.spend(16 + (1 if form.is_text else 4) * len(parts))
        if form.has_pairs:
            deeper = depth + 1
            parts = [[self.encode_part(key, deeper), self.encode_part(element, deeper)] for key, element in parts]
        elif not form.is_text:
            parts = self.encode_items([getattr(value, form.head), *parts] if form.head else parts, depth)
        return {"$": tag, "v": parts}

    def encode_iterated(self, value: Iterated, depth: int) -> Json:
        """Return the JSON of an iterator that was read to its end."""
        self.spend(4 * len(value.elements))
        return {"$": "iterator", "v": self.encode_items(value.elements, depth), "of": value.kind}

    def encode_node(self, value: object, name: str, fields: list[object]) -> Json:
        """Return a reference to an object of a known class. Its fields are encoded later."""
        index = self._node_index.get(id(value))
        if index is None:
            if (reference := self.refer_to_known(value)) is not None:
                return reference
            self.spend(8 + 4 * len(fields))
            index = self._node_index[id(value)] = len(self._nodes)
            self._nodes.append((name, fields, value))  # Holding the value keeps its id from being used again.
        return {"$": "node", "v": index}

    def refer_to_known(self, value: object) -> Json | None:
        """Return a reference to an object that both sides have, or None. Start tracking a mutable object."""
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
        """Return the JSON of an object of a known class, a value of a package, or an object of a subclass."""
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
        if depth <= MAX_DEPTH and is_packaged(value):
            return self._encode_packaged(value, depth)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return _encode_numpy(self, value, numpy, depth)
        base = next((above for above in kind.__mro__ if above in _DATA_TYPES), None)
        if base is None:
            return self.encode_foreign(value, depth)
        plain = _PLAIN[base](value) if base in _PLAIN else value
        data = _ENCODERS[base](self, plain, depth)
        if base is tuple and data["$"] == "tuple" and (names := getattr(kind, "_fields", None)):
            # The names are sent too, so that a test can read `result.x`.
            data["names"] = [str(name) for name in names]
            data["of"] = kind.__name__
        return data

    def _encode_packaged(self, value: Value, depth: int) -> Json:
        reference = self.refer_to_known(value) if is_changeable(value) else None
        if reference is None:
            reference = encode_packaged(value, lambda inner: self.encode_part(inner, depth + 1))
        return self.encode_foreign(value, depth) if reference is None else reference

    def _is_flat(self, elements: list[Value]) -> bool:
        """Return whether JSON's own values represent all elements."""
        kinds = set(map(type, elements))
        if kinds == {str}:
            text = "".join(elements)
            self.spend(len(text))
            return text.isascii() or _is_encodable(text)
        if not kinds <= _NUMBERS:
            return False
        numbers = list(filter(None, elements))
        return not numbers or all_fit(numbers, float in kinds)

    def _int(self, value: int, depth: int) -> Json:
        if -JSON_INT < value < JSON_INT:
            return value
        if value.bit_length() > MAX_INT_BITS:
            raise ResultTooLarge(f"an integer of {value.bit_length()} bits")
        return self.encode_form(value, depth, "int", FORMS["int"])

    def _float(self, value: float, depth: int) -> Json:
        return value if math.isfinite(value) else self.encode_form(value, depth, "float", FORMS["float"])

    def _str(self, value: str, depth: int) -> Json:
        self.spend(len(value))
        if value.isascii() or _is_encodable(value):
            return value
        return self.encode_form(value, depth, "str", FORMS["str"])

    def _list(self, value: list[Value], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.encode_foreign(value, depth)
        self.spend(8 + 4 * len(value))
        reference = self.refer_to_known(value)
        return self.encode_items(value, depth) if reference is None else reference

    def _dict(self, value: dict[Value, Value], depth: int) -> Json:
        keys = list(value)
        if (keys and set(map(type, keys)) != {str}) or "$" in value or depth > MAX_DEPTH or not self._is_flat(keys):
            return self.encode_form(value, depth, "dict", FORMS["dict"])
        reference = self.refer_to_known(value)
        if reference is not None:
            return reference
        self.spend(8 + 4 * len(value))
        if self._is_flat(list(value.values())):
            return value
        return {key: self.encode_part(element, depth + 1) for key, element in value.items()}


def encode(value: object, codecs: Codecs | None = None) -> Json:
    """Return JSON for `to_json`. Values of other types become opaque. Raises `ResultTooLarge`."""
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


def all_fit(numbers: Collection[Value], has_floats: bool) -> bool:
    """Return whether JSON numbers represent these numbers: finite floats, and integers that its readers accept."""
    try:
        finite = not has_floats or all(map(math.isfinite, numbers))
    except OverflowError:  # An integer is larger than all floats.
        return False
    return finite and min(numbers) > -JSON_INT and max(numbers) < JSON_INT


def _encode_numpy(encoder: Encoder, value: Value, numpy: Value, depth: int) -> Json:
    """Return the JSON of an array or a number of numpy."""
    name = "str" if value.dtype.kind == "U" else value.dtype.name
    if value.dtype.kind in "mM" and ARRAY_TIMES.fullmatch(name):
        value = value.view("int64")
    elif value.dtype.names and depth <= MAX_DEPTH:
        return encoder._encode_packaged(value, depth)
    elif name not in Array.DTYPES or (name == "object" and not encoder.sends_object_arrays):
        return encoder.encode_foreign(value, depth)
    if isinstance(value, numpy.generic):
        return {"$": "scalar", "dtype": name, "v": encoder.encode_part(value.item(), depth + 1)}
    encoder.spend(4 * value.size)
    flat = numpy.ndarray.tolist(numpy.ndarray.ravel(numpy.asarray(value)))
    return {"$": "ndarray", "dtype": name, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


def _encode_array(encoder: Encoder, value: Array, depth: int) -> Json:
    """Return the JSON of an `Array`."""
    encoder.spend(4 * math.prod(value.shape))
    flat = [value.elements]
    for _ in value.shape:
        flat = list(itertools.chain.from_iterable(flat))
    return {"$": "ndarray", "dtype": value.dtype, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


_Encode = Callable[[Encoder, Value, int], Json]
"""Returns JSON for an encoder, a value and its depth."""


def _encoder_of(tag: str, form: TypeForm) -> _Encode:
    return lambda encoder, value, depth: encoder.encode_form(value, depth, tag, form)


_ENCODERS: Mapping[type, _Encode] = {
    **{form.kind: _encoder_of(tag, form) for tag, form in FORMS.items()},
    type(None): lambda encoder, value, depth: value,
    bool: lambda encoder, value, depth: value,
    int: Encoder._int,
    float: Encoder._float,
    str: Encoder._str,
    list: Encoder._list,
    dict: Encoder._dict,
    Iterated: Encoder.encode_iterated,
    Array: _encode_array,
    Instance: lambda encoder, value, depth: encoder.encode_node(value, value.class_name, list(value.fields.values())),
}

_PLAIN: Mapping[type, Callable[[Value], Value]] = {
    int: int.__index__,
    float: float.__float__,
    str: str.__str__,
    list: lambda value: list(list.__iter__(value)),
    dict: lambda value: dict(dict.items(value)),
}
"""Functions that convert an object of a subclass to the builtin type."""
_DATA_TYPES = {*_PLAIN, tuple, set, frozenset, bytes, bytearray, decimal.Decimal}
_DATA_TYPES |= {collections.Counter, collections.OrderedDict, collections.deque}
_DATA_TYPES |= {datetime.datetime, datetime.date, datetime.timedelta}
"""Types whose subclasses are encoded like the type itself. The methods of the type read objects of a subclass."""


MAX_LINE = 64 * 2**20
"""Maximum number of bytes of one line. Stops a line that fills the memory of its reader."""

MAX_BRACKETS = 900
"""Maximum depth of nested brackets: more than twice the depth that encoders write. Stops `[[[[...`."""

SAFE_RECURSION = 3000
"""The highest recursion limit with which Python's reader reports deep nesting. With a higher limit it could crash."""

MAX_DIGITS = 4300
"""Maximum number of digits of an integer, since reading takes quadratic time. It is Python's own limit, which a program
may have lifted in its process."""

_INT_OR_FLOAT = {int, float}
_FLAT = {*_INT_OR_FLOAT, bool, type(None), str}
"""Types of JSON values without parts."""
_JSON = {*_FLAT, list, dict}
_DATA = {*_JSON, tuple}
"""Types of JSON values, and tuples."""
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
"""A text or a bracket."""


def _no_form(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON: encode it first")


def _few_digits(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Undecodable(f"an integer of {len(digits)} digits")
    return int(digits)


def _refuse(constant: str) -> NoReturn:
    raise Undecodable(f"{constant} is not JSON")


# These are the core of Python's `dumps` and `loads`, which make a dozen more function calls for every line.
_JSON_TEXTS = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _no_form, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, False
)
_SCAN = json.JSONDecoder(parse_constant=_refuse).scan_once  # type: ignore[attr-defined]
_SCAN_DIGITS = json.JSONDecoder(parse_constant=_refuse, parse_int=_few_digits).scan_once  # type: ignore[attr-defined]


def to_json(data: Json) -> bytes:
    """Return data as one line of ASCII, without the line end."""
    return "".join(_JSON_TEXTS(data, 0)).encode("ascii")


def from_json(line: bytes, limit: int = MAX_LINE) -> Json:
    """Return the data of one line.

    Raises `Undecodable` for more than `limit` bytes, for deep nesting, and for text that is not strict JSON in ASCII.
    """
    if len(line) > limit:
        raise Undecodable(f"{len(line)} bytes, the limit is {limit}")
    if sys.getrecursionlimit() > SAFE_RECURSION and _too_deep(line):
        raise Undecodable("nested too deeply")
    try:
        text = line.decode("ascii")
        data, end = (_SCAN if 0 < sys.get_int_max_str_digits() <= MAX_DIGITS else _SCAN_DIGITS)(text, 0)
    except Undecodable:
        raise
    except (ValueError, RecursionError, StopIteration) as error:
        raise Undecodable(f"not JSON: {str(error)[:200]}") from error
    if end != len(text) and text[end:].strip(" \r\n"):
        raise Undecodable("something follows the value")
    return data


def _too_deep(line: bytes) -> bool:
    if line.count(b"[") + line.count(b"{") <= MAX_BRACKETS:
        return False
    tokens = (token.group()[0] for token in _TOKENS.finditer(line))
    depths = accumulate((first in b"[{") - (first in b"]}") for first in tokens)
    return any(depth > MAX_BRACKETS for depth in depths)


def are_plain(values: Collection[object], tuples: bool = False, depth: int = 0) -> bool:
    """Return whether JSON represents each value and all values in it exactly. tuples: whether tuples are allowed."""
    kinds = set(map(type, values))
    if depth > MAX_DEPTH or not kinds <= (_DATA if tuples else _JSON):
        return False
    if not kinds.isdisjoint(_INT_OR_FLOAT):
        numbers = values if kinds <= _INT_OR_FLOAT else [value for value in values if type(value) in _INT_OR_FLOAT]
        if not all_fit(numbers, float in kinds):
            return False
    return kinds <= _FLAT or all(_is_plain(value, tuples, depth + 1) for value in values if type(value) not in _FLAT)


def _is_plain(value: Json, tuples: bool, depth: int) -> bool:
    if type(value) is not dict:
        return are_plain(value, tuples, depth)
    return "$" not in value and set(map(type, value)) <= {str} and are_plain(value.values(), tuples, depth)


RESULT, PARTNER = 3, 4
"""Descriptors of a job in addition to the standard three: one for its results and one for its partner."""

MAX_RECEIVED = 512 * 2**20
"""Maximum number of bytes that are received over a whole run. Stops a partner that sends megabytes for ever."""

_CHUNK = 2**16


class PartnerGone(Exception):
    """The partner's process has ended."""


class PartnerLine:
    """The connection to the partner's process."""

    def __init__(self) -> None:
        self._received = 0

    def send(self, message: Json) -> None:
        """Send one message. Raises `PartnerGone`."""
        try:
            write_all(PARTNER, to_json(message) + b"\n")
        except OSError as error:
            raise PartnerGone(str(error)) from error

    def receive(self) -> list[Json]:
        """Return the next message. Raises `PartnerGone`, and `Undecodable` for a line that is not a message."""
        message = from_json(self._receive_line())
        if type(message) is not list or not message or type(message[0]) is not str:
            raise Undecodable("not a message")
        return message

    def _receive_line(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                part = os.read(PARTNER, _CHUNK)
            except OSError as error:
                raise PartnerGone(str(error)) from error
            if not part:
                raise PartnerGone("the line is closed")
            size += len(part)
            self._received += len(part)
            if size > MAX_LINE or self._received > MAX_RECEIVED:
                raise Undecodable("it sends too much")
            parts.append(part)
            end = part.find(b"\n")
            if end == len(part) - 1:
                return b"".join(parts)
            if end >= 0:
                raise Undecodable("two messages at once")


def write_result(message: Json) -> None:
    """Write data as one line to the results of this job."""
    write_result_line(to_json(message))


def write_result_line(line: bytes) -> None:
    """Write one line, which is JSON already, to the results of this job."""
    write_all(RESULT, line + b"\n")


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all data to a descriptor."""
    while data:
        data = data[os.write(descriptor, data) :]

"""Decodes JSON into values with exact types and within limits. `wire/__init__.py` has the table of types.

The data may be malicious: it may have colliding keys, deep nesting, or huge ranges and exponents. Data that exceeds a
limit or has no meaning raises `Undecodable`. No module is imported and no code is run on behalf of the data.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Mapping, Sequence

from .packages import CHANGEABLE, decode_packaged, make_objects
from .value_types import (
    ARRAY_TIMES,
    FORMS,
    KNOWN_CODECS,
    SHOWN_CHARS,
    Array,
    Codecs,
    Instance,
    Iterated,
    Json,
    Opaque,
    TypeForm,
    Undecodable,
    Value,
)

MAX_NESTED = 120
"""Maximum depth of nested containers. Stops nesting that overflows the stack."""

MAX_COMPARED = 4_000_000
"""Maximum number of comparisons of keys with equal hashes in one message, since they make building a dict slow."""

COSTLY_COMPARISON = 1000
"""The weight of a comparison of two keys that are not numbers, such as tuples that differ only at their end."""

FEW_KEYS = 16
"""A dict of at most this many keys is not checked for collisions."""

MAX_RANGE = 1_000_000
"""Maximum number of elements of all ranges in a message. Larger ranges, such as `range(10**18)`, are opaque."""

MAX_EMPTY = 1_000_000
"""Maximum number of lists in an array without items. Stops a short shape such as (10**12, 0)."""

MAX_LISTS = 1_000_000
"""Maximum number of lists that an array becomes. The shape (10**6, 1, 1, 1) has a million lists for each axis."""

MAX_AXES = 32
"""Maximum number of axes of an array. Stops shapes of a million ones, which take quadratic time."""

_NUMBERS = {bool, int, float}

_Handler = Callable[[Value, dict[str, Json], int], Value]
"""Returns a value for the decoder, the tagged JSON object, and the number of containers around it."""


class Decoder:
    """Decodes one message.

    codecs: the fields of each known class. classes: returns the class of a name; without it, objects are decoded as
    `Instance`. known: objects that both sides have. track: whether mutable objects are collected in `tracked`, in the
    same order as by the `Encoder`.
    """

    further: Mapping[str, Callable[[Value, dict[str, Json]], Value]] = {}
    """Functions for additional tags. Each takes the decoder and the tagged object, and returns the value."""

    def __init__(
        self,
        codecs: Codecs | None = None,
        classes: Callable[[str], type] | None = None,
        known: Sequence[Value] = (),
        track: bool = False,
    ) -> None:
        self._codecs = {**KNOWN_CODECS, **codecs} if codecs else KNOWN_CODECS
        self._classes = classes
        self._known = known
        self._track = track
        self._nodes: list[Value] = []
        self._tracked_nodes: set[int] = set()
        self._compared = 0
        self._ranged = 0
        self.tracked: list[Value] = []

    def decode(self, data: Json) -> Value:
        """Return the value of a message. Raises `Undecodable`."""
        try:
            return self._decode_message(data)
        except Undecodable:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise Undecodable(f"not a value: {type(error).__name__}: {str(error)[:SHOWN_CHARS]}") from error

    def numpy_module(self) -> Value:
        """Return numpy if arrays are to be decoded as its arrays, else None."""
        return None

    def make_iterated(self, elements: list[Value], kind: str) -> Value:
        """Return the object for an iterator with these elements."""
        return Iterated(elements, kind)

    def make_named_tuple(self, elements: tuple[Value, ...], data: dict[str, Json]) -> Value:
        """Return the object for a named tuple, whose names are in `data`."""
        return elements

    def decode_part(self, data: Json, depth: int) -> Value:
        """Return the value of JSON that is inside `depth` containers."""
        kind = type(data)
        if kind is list:
            elements: list[Value] = self._track_object([])
            elements += self.decode_items(data, depth)
            return elements
        if kind is not dict:
            return data
        _bound_depth(depth)
        if "$" not in data:
            mapping: dict[str, Value] = self._track_object({})
            for key, part in data.items():
                mapping[key] = self.decode_part(part, depth + 1)
            return mapping
        tag = data["$"]
        if (handler := _HANDLERS.get(tag)) is not None:
            return handler(self, data, depth)
        if (make := self.further.get(tag)) is None:
            raise Undecodable(f"unknown tag {str(tag)[:SHOWN_CHARS]!r}")
        return make(self, data)

    def decode_items(self, data: list[Json], depth: int) -> list[Value]:
        """Return the elements of a container."""
        if type(data) is not list:
            raise Undecodable(f"a list was expected, got {type(data).__name__}")
        _bound_depth(depth)
        kinds = set(map(type, data))
        if list not in kinds and dict not in kinds:
            return data
        deeper = depth + 1
        return [self.decode_part(part, deeper) for part in data]

    def _decode_message(self, data: Json) -> Value:
        """Return the value of a message. It may be a graph: nodes that refer to each other, and a body."""
        if type(data) is not dict or data.get("$") != "graph":
            return self.decode_part(data, 0)
        entries = data["nodes"]
        self._nodes = [self._new_object(name) for name, _ in entries]
        body = self.decode_part(data["v"], 0)
        for node, (name, parts) in zip(self._nodes, entries, strict=True):
            for field, part in zip(self._codecs[name], parts, strict=True):
                decoded = self.decode_part(part, 1)
                if self._classes is None:
                    node.fields[field] = decoded
                else:
                    object.__setattr__(node, field, decoded)
        return body

    def _new_object(self, name: str) -> Value:
        if name not in self._codecs:
            raise Undecodable(f"unknown class {str(name)[:SHOWN_CHARS]!r}")
        return Instance(name, {}) if self._classes is None else object.__new__(self._classes(name))

    def _track_object(self, made: Value) -> Value:
        """Return the object, after tracking it. An object gets its index before its parts do."""
        if self._track:
            self.tracked.append(made)
        return made

    def _node(self, data: dict[str, Json], depth: int) -> Value:
        index = _checked_index(data["v"], self._nodes)
        if index not in self._tracked_nodes:
            self._tracked_nodes.add(index)
            self._track_object(self._nodes[index])
        return self._nodes[index]

    def _known_object(self, data: dict[str, Json], depth: int) -> Value:
        known = self.tracked if self._track else self._known
        return known[_checked_index(data["v"], known)]

    def _decode_form(self, data: dict[str, Json], depth: int, form: TypeForm) -> Value:
        parts = data["v"]
        if form.is_text is not (type(parts) is str):
            raise Undecodable(f"{form.kind.__name__} cannot be made of {type(parts).__name__}")
        made: Value = None
        if form.fill is not None:
            count = 1 if form.head else 0
            made = self._track_object(form.make(*parts[:count]))  # The object gets its index before its parts do.
            parts = parts[count:]
        if form.has_pairs:
            deeper = depth + 1
            parts = [(self.decode_part(key, deeper), self.decode_part(value, deeper)) for key, value in parts]
        elif not form.is_text:
            parts = self.decode_items(parts, depth)
        if len(parts) > FEW_KEYS and (form.has_pairs or form.kind in (set, frozenset)):
            self._check_keys([key for key, _ in parts] if form.has_pairs else parts)
        if form.fill is None:
            made = form.make(parts)
            return self.make_named_tuple(made, data) if form.kind is tuple and "names" in data else made
        form.fill(made, parts)
        return made

    def _check_keys(self, keys: list[Value]) -> None:
        """Raise `Undecodable` if building a dict with these keys takes too long."""
        hashes = list(map(hash, keys))
        if len(set(hashes)) < len(hashes):
            pairs = sum(times * (times - 1) for times in collections.Counter(hashes).values()) // 2
            self._compared += pairs * (1 if set(map(type, keys)) <= _NUMBERS else COSTLY_COMPARISON)
            if self._compared > MAX_COMPARED:
                raise Undecodable("too many keys with the same hash")

    def _range(self, data: dict[str, Json], depth: int) -> range | Opaque:
        made: range = self._decode_form(data, depth, FORMS["range"])
        length = abs(made.stop - made.start) // abs(made.step) if made else 0
        self._ranged += min(length, MAX_RANGE + 1)
        return made if self._ranged <= MAX_RANGE else Opaque("range")

    def _iterator(self, data: dict[str, Json], depth: int) -> Value:
        return self.make_iterated(self.decode_items(data["v"], depth), str(data["of"])[:SHOWN_CHARS])

    def _packaged(self, data: dict[str, Json], depth: int) -> Value:
        if self._classes is None:
            return Opaque(str(data["of"])[:SHOWN_CHARS])
        position = len(self.tracked)
        if data["of"] in CHANGEABLE:
            self._track_object(None)
        with_numpy = self.numpy_module() is not None
        made = decode_packaged(data["of"], data["v"], lambda inner: self.decode_part(inner, depth + 1), with_numpy)
        if len(self.tracked) > position:
            self.tracked[position] = made
        return made


def _bound_depth(depth: int) -> None:
    if depth > MAX_NESTED:
        raise Undecodable(f"containers nested more than {MAX_NESTED} levels deep")


def _checked_index(index: Json, objects: Sequence[Value]) -> int:
    if type(index) is not int or not 0 <= index < len(objects):
        raise Undecodable("it refers to a missing object")
    return index


def _decode_array(decoder: Decoder, data: dict[str, Json], depth: int) -> Value:
    """Return an array of numpy, or an `Array` if numpy is not used. Raises `Undecodable`."""
    dtype, shape, flat = data["dtype"], data["shape"], decoder.decode_items(data["v"], depth)
    _check_shape(dtype, shape, len(flat))
    if (numpy := decoder.numpy_module()) is not None:
        return _numpy_array(numpy, flat, dtype).reshape(shape)
    return Array(dtype, tuple(shape), _nest(flat, shape))


def _check_shape(dtype: Json, shape: Json, length: int) -> None:
    """Raise `Undecodable` unless `length` items make an array of this type and shape within the limits."""
    max_size = max(MAX_EMPTY, length)
    known = _is_known(dtype) and len(shape) <= MAX_AXES
    if not known or not all(type(size) is int and 0 <= size <= max_size for size in shape):
        raise Undecodable("an array of an unknown kind")
    if math.prod(shape) != length or math.prod(filter(None, shape)) > max_size:
        raise Undecodable(f"{length} items do not make an array of this shape")
    if sum(math.prod(shape[:axis]) for axis in range(len(shape))) > MAX_LISTS:
        raise Undecodable("an array of too many lists")


def _decode_scalar(decoder: Decoder, data: dict[str, Json], depth: int) -> Value:
    """Return a number of numpy, or a plain number if numpy is not used. Raises `Undecodable`."""
    item = decoder.decode_part(data["v"], depth + 1)
    if not _is_known(data["dtype"]) or type(item) not in (bool, int, float, complex, str):
        raise Undecodable("a number of an unknown kind")
    numpy = decoder.numpy_module()
    if numpy is not None and "64[" in data["dtype"]:
        return _numpy_array(numpy, [item], data["dtype"])[0]
    return item if numpy is None else numpy.dtype(data["dtype"]).type(item)


def _is_known(dtype: Json) -> bool:
    return dtype in Array.DTYPES or (type(dtype) is str and ARRAY_TIMES.fullmatch(dtype) is not None)


def _numpy_array(numpy: Value, flat: list[Value], dtype: str) -> Value:
    if "64[" in dtype:
        return numpy.array(flat, dtype="int64").view(dtype)
    return make_objects(flat) if dtype == "object" else numpy.array(flat, dtype=dtype)


def _nest(flat: list[Value], shape: Sequence[int]) -> Value:
    """Return the items as nested lists, or the item itself if shape is ()."""
    if not shape:
        return flat[0]
    level = flat
    for axis in range(len(shape) - 1, 0, -1):
        size = shape[axis]
        level = [level[index * size : (index + 1) * size] for index in range(math.prod(shape[:axis]))]
    return level


def _handler_of(form: TypeForm) -> _Handler:
    return lambda decoder, data, depth: decoder._decode_form(data, depth, form)


_HANDLERS: Mapping[str, _Handler] = {
    **{tag: _handler_of(form) for tag, form in FORMS.items()},
    "range": Decoder._range,
    "ndarray": _decode_array,
    "scalar": _decode_scalar,
    "package": Decoder._packaged,
    "iterator": Decoder._iterator,
    "node": Decoder._node,
    "known": Decoder._known_object,
}


def decode(data: Json, codecs: Codecs | None = None) -> Value:
    """Return the value of a message. Objects of known classes are `Instance`, arrays `Array`. Raises `Undecodable`."""
    return Decoder(codecs).decode(data)

"""JSON -> values, exact by type and within bounds; `values.py` has the table of forms.

The data may have been made to do harm: to stall whoever builds a dict of colliding keys, to nest until the stack
overflows, to name huge ranges and exponents. What breaks a bound or has no meaning raises `Undecodable`. Nothing is
imported or run because data says so.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import arrays
from .encoding import MAX_INT_BITS, Json
from .stand_ins import KNOWN_CODECS, Codecs, Instance, Iterated, Opaque, Undecodable

MAX_NESTED = 120
"""Containers within containers. Stops nesting that overflows the stack here."""

MAX_COMPARED = 4_000_000
"""Comparisons of keys with equal hashes in one message. Stops integers chosen to make building a dict quadratic."""

COMPARED_AT_ONCE = 1000
"""What one comparison of keys that are not numbers may cost: tuples can agree for a long way."""

FEW_KEYS = 16

MAX_RANGE = 1_000_000
"""Elements of all ranges in a message; what is beyond is opaque. Stops `range(10**18)`, and thousands of shorter ones:
a reader might walk through them."""

MAX_EXPONENT = 100_000
"""Of a Decimal. Stops `Decimal("1e999999999")`, small to say and endless as an integer."""

MAX_FRACTION_BITS = 20_000
"""Of numerator and denominator. Stops fractions whose reduction, in quadratic time, takes minutes."""

SHOWN_CHARS = 100
_NUMBERS = {bool, int, float}


class Decoder:
    """Decodes one message.

    classes: the class to make for a name, where the process has it; without it there are `Instance`s.
    known: the objects that both sides have. track: keep every mutable object in `tracked`, in the order in which an
    `Encoder` that tracks meets them.
    """

    def __init__(
        self,
        codecs: Codecs | None = None,
        classes: Callable[[str], type] | None = None,
        known: Sequence[Any] = (),
        track: bool = False,
    ) -> None:
        self._codecs = {**KNOWN_CODECS, **codecs} if codecs else KNOWN_CODECS
        self._classes = classes
        self._known = known
        self._track = track
        self._nodes: list[Any] = []
        self._met: set[int] = set()
        self._compared = 0
        self._ranged = 0
        self.tracked: list[Any] = []

    def decode(self, data: Json) -> Any:
        try:
            return self._decode(data)
        except Undecodable:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise Undecodable(f"not a value: {type(error).__name__}: {str(error)[:SHOWN_CHARS]}") from error

    def foreign(self, tag: object, data: dict[str, Json]) -> Any:
        """For tags that the codec itself has no meaning for."""
        raise Undecodable(f"unknown tag {str(tag)[:SHOWN_CHARS]!r}")

    def numpy(self) -> Any:
        """The module, where arrays are to be arrays."""
        return None

    def iterated(self, items: list[Any], kind: str) -> Any:
        return Iterated(items, kind)

    def named_tuple(self, items: tuple[Any, ...], data: dict[str, Json]) -> Any:
        return items

    def value(self, data: Json, depth: int) -> Any:
        kind = type(data)
        if kind is list:
            made_list: list[Any] = self._keep([])
            made_list += self.items(data, depth)
            return made_list
        if kind is not dict:
            return data
        _bound_depth(depth)
        if "$" not in data:
            made: dict[str, Any] = self._keep({})
            for key, item in data.items():
                made[key] = self.value(item, depth + 1)
            return made
        handler = _HANDLERS.get(data["$"])
        return self.foreign(data["$"], data) if handler is None else handler(self, data, depth)

    def items(self, data: list[Json], depth: int) -> list[Any]:
        if type(data) is not list:
            raise Undecodable(f"a list was expected, got {type(data).__name__}")
        _bound_depth(depth)
        kinds = set(map(type, data))
        if list not in kinds and dict not in kinds:
            return data
        deeper = depth + 1
        return [self.value(item, deeper) for item in data]

    def _decode(self, data: Json) -> Any:
        if type(data) is not dict or data.get("$") != "graph":
            return self.value(data, 0)
        entries = data["nodes"]
        self._nodes = [self._new(name) for name, _ in entries]
        body = self.value(data["v"], 0)
        for node, (name, values) in zip(self._nodes, entries, strict=True):
            for field, value in zip(self._codecs[name], values, strict=True):
                decoded = self.value(value, 1)
                if self._classes is None:
                    node.fields[field] = decoded
                else:
                    object.__setattr__(node, field, decoded)
        return body

    def _new(self, name: str) -> Any:
        if name not in self._codecs:
            raise Undecodable(f"unknown class {str(name)[:SHOWN_CHARS]!r}")
        return Instance(name, {}) if self._classes is None else object.__new__(self._classes(name))

    def _keep(self, made: Any) -> Any:
        """An object gets its index before its parts do."""
        if self._track:
            self.tracked.append(made)
        return made

    def _node(self, data: dict[str, Json], depth: int) -> Any:
        at = _position(data["v"], self._nodes)
        if at not in self._met:
            self._met.add(at)
            self._keep(self._nodes[at])
        return self._nodes[at]

    def _shared(self, data: dict[str, Json], depth: int) -> Any:
        known = self.tracked if self._track else self._known
        return known[_position(data["v"], known)]

    def _tuple(self, data: dict[str, Json], depth: int) -> Any:
        made = tuple(self.items(data["v"], depth))
        return self.named_tuple(made, data) if "names" in data else made

    def _set(self, data: dict[str, Json], depth: int) -> set[Any]:
        made: set[Any] = self._keep(set())
        made.update(self._hashed(self.items(data["v"], depth)))
        return made

    def _frozenset(self, data: dict[str, Json], depth: int) -> frozenset[Any]:
        return frozenset(self._hashed(self.items(data["v"], depth)))

    def _mapping(self, data: dict[str, Json], depth: int) -> Any:
        made = self._keep(_MAPPINGS[data["$"]]())
        deeper = depth + 1
        pairs = [(self.value(key, deeper), self.value(item, deeper)) for key, item in data["v"]]
        self._hashed([key for key, _ in pairs])
        for key, item in pairs:
            made[key] = item
        return made

    def _hashed(self, keys: list[Any]) -> list[Any]:
        """keys, if building a dict of them is cheap."""
        if len(keys) <= FEW_KEYS:
            return keys
        hashes = list(map(hash, keys))
        if len(set(hashes)) < len(hashes):
            pairs = sum(times * (times - 1) for times in collections.Counter(hashes).values()) // 2
            self._compared += pairs * (1 if set(map(type, keys)) <= _NUMBERS else COMPARED_AT_ONCE)
            if self._compared > MAX_COMPARED:
                raise Undecodable("too many keys with the same hash")
        return keys

    def _range(self, data: dict[str, Json], depth: int) -> range | Opaque:
        start, stop, step = self.items(data["v"], depth)
        made = range(start, stop, step)
        length = abs(stop - start) // abs(step) if made else 0
        self._ranged += min(length, MAX_RANGE + 1)
        return made if self._ranged <= MAX_RANGE else Opaque("range")

    def _bytearray(self, data: dict[str, Json], depth: int) -> Any:
        return self._keep(bytearray(_bytes(data["v"])))

    def _deque(self, data: dict[str, Json], depth: int) -> Any:
        longest, *items = data["v"]
        made = self._keep(collections.deque(maxlen=longest))
        made.extend(self.items(items, depth))
        return made

    def _array(self, data: dict[str, Json], depth: int) -> Any:
        code, *items = data["v"]
        return self._keep(array.array(code, self.items(items, depth)))

    def _iterator(self, data: dict[str, Json], depth: int) -> Any:
        return self.iterated(self.items(data["v"], depth), str(data["of"])[:SHOWN_CHARS])


def _bound_depth(depth: int) -> None:
    if depth > MAX_NESTED:
        raise Undecodable(f"more than {MAX_NESTED} containers within each other")


def _position(at: Json, within: Sequence[Any]) -> int:
    if type(at) is not int or not 0 <= at < len(within):
        raise Undecodable("it refers to an object that is not there")
    return at


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _int(text: str) -> int:
    if len(text) > MAX_INT_BITS // 4 + 4 or not text.lstrip("-").startswith("0x"):
        raise Undecodable("not an integer in hexadecimal digits")
    return int(text, 16)


def _float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise Undecodable("a float is a number, or nan, inf or -inf")
    return float(text)


def _complex(real: object, imaginary: object) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise Undecodable("the parts of a complex number are floats")
    return complex(real, imaginary)


def _decimal(text: str) -> decimal.Decimal:
    if len(text) > MAX_EXPONENT:
        raise Undecodable("a decimal number beyond bounds")
    made = decimal.Decimal(text)
    if made.is_snan() or (made.is_finite() and abs(made.adjusted()) > MAX_EXPONENT):
        raise Undecodable("a decimal number beyond bounds")
    return made


def _fraction(numerator: int, denominator: int) -> fractions.Fraction:
    if max(numerator.bit_length(), denominator.bit_length()) > MAX_FRACTION_BITS:
        raise Undecodable("a fraction beyond bounds")
    return fractions.Fraction(numerator, denominator)


def _from_text(make: Callable[[str], Any]) -> Callable[[Decoder, dict[str, Json], int], Any]:
    def handler(decoder: Decoder, data: dict[str, Json], depth: int) -> Any:
        if type(data["v"]) is not str:
            raise Undecodable(f"a text was expected, got {type(data['v']).__name__}")
        return make(data["v"])

    return handler


def _from_parts(make: Callable[..., Any]) -> Callable[[Decoder, dict[str, Json], int], Any]:
    def handler(decoder: Decoder, data: dict[str, Json], depth: int) -> Any:
        return make(*decoder.items(data["v"], depth))

    return handler


_MAPPINGS: Mapping[str, Callable[[], Any]] = {
    "dict": dict,
    "Counter": collections.Counter,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": collections.defaultdict,
}

_HANDLERS: Mapping[str, Callable[[Any, dict[str, Json], int], Any]] = {
    "tuple": Decoder._tuple,
    "set": Decoder._set,
    "frozenset": Decoder._frozenset,
    **dict.fromkeys(_MAPPINGS, Decoder._mapping),
    "bytes": _from_text(_bytes),
    "bytearray": Decoder._bytearray,
    "int": _from_text(_int),
    "float": _from_text(_float),
    "str": _from_text(lambda text: _bytes(text).decode("utf-8", "surrogatepass")),
    "complex": _from_parts(_complex),
    "ellipsis": _from_text(lambda text: ...),
    "range": Decoder._range,
    "slice": _from_parts(slice),
    "deque": Decoder._deque,
    "array": Decoder._array,
    "Decimal": _from_text(_decimal),
    "Fraction": _from_parts(_fraction),
    "datetime": _from_text(datetime.datetime.fromisoformat),
    "date": _from_text(datetime.date.fromisoformat),
    "time": _from_text(datetime.time.fromisoformat),
    "timedelta": _from_parts(datetime.timedelta),
    "ndarray": arrays.decode_array,
    "scalar": arrays.decode_scalar,
    "iterator": Decoder._iterator,
    "node": Decoder._node,
    "known": Decoder._shared,
    "opaque": _from_text(lambda text: Opaque(text[:SHOWN_CHARS])),
}


def decode(data: Json, codecs: Codecs | None = None) -> Any:
    """The value. Raises `Undecodable`. Objects of known classes come as `Instance`, arrays as `Array`."""
    return Decoder(codecs).decode(data)

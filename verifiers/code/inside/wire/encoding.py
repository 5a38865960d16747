"""Values -> JSON, exact by type; `values.py` has the table of forms.

The encoder runs where the program runs, which may have changed everything it uses: nothing is believed because an
encoder wrote it. What it owes is exactness for honest programs, bounded size, and speed: flat lists of numbers or
texts are looked through at C speed and stand in the JSON as they are.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from . import arrays
from .forms import FORMS, SUBCLASS_FORMS, Form, base64_text
from .stand_ins import KNOWN_CODECS, Codecs, ResultTooLarge

MAX_DEPTH = 100
"""Containers within containers; deeper ones are opaque. Stops nesting that overflows the stack of a JSON reader."""

MAX_ENCODED = 16 * 2**20
"""Characters of one encoded value, roughly. Stops a result that fills the memory of whoever reads it."""

MAX_ITERATED = 1_000_000
"""Items read from an iterator. Stops generators without end."""

MAX_INT_BITS = 2**22
"""Stops integers of megabytes."""

JSON_INT = 1 << 13_000
"""Just under 4,000 digits. Python's own readers refuse integers of more than 4,300."""

Json = Any
_NUMBERS = {int, float, bool, type(None)}
_EMPTY: dict[Any, Any] = {}
DICT_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))


class Encoder:
    """Encodes one value, or several that share objects.

    known: the index of objects that both sides have already; they are named by it. track: give an index to every
    mutable object in the order it is met, and keep it in `tracked`.
    """

    def __init__(
        self,
        codecs: Codecs | None = None,
        limit: int = MAX_ENCODED,
        known: dict[int, int] | None = None,
        track: bool = False,
    ) -> None:
        self._codecs = {**KNOWN_CODECS, **codecs} if codecs else KNOWN_CODECS
        self._left = limit
        self._known = {} if track else known
        self._track = track
        self.tracked: list[Any] = []
        self._nodes: list[tuple[str, list[Any]]] = []
        self._node_at: dict[int, int] = {}
        self._names: dict[type, str | None] = {}
        self._kept: list[Any] = []  # an id says who an object is for as long as it lives

    def encode(self, value: object) -> Json:
        return self.finish(self.value(value, 0))

    def finish(self, body: Json) -> Json:
        """body with the objects of known classes that it refers to. Those refer to further ones, without recursion."""
        if not self._nodes:
            return body
        nodes: list[Json] = []
        while len(nodes) < len(self._nodes):
            name, values = self._nodes[len(nodes)]
            nodes.append([name, [self.value(value, 1) for value in values]])
        return {"$": "graph", "nodes": nodes, "v": body}

    def value(self, value: object, depth: int) -> Json:
        form = _FORMS.get(type(value))
        return self.uncommon(value, depth) if form is None else form(self, value, depth)

    def foreign(self, value: object, depth: int) -> Json:
        """For what has no form: here iterators are read to their end, and the rest is named by its type."""
        kind = type(value)
        if depth <= MAX_DEPTH and (hasattr(kind, "__next__") or kind in DICT_VIEWS):
            items = list(itertools.islice(iter(value), MAX_ITERATED + 1))  # type: ignore[call-overload]
            if len(items) > MAX_ITERATED:
                raise ResultTooLarge(f"{kind.__name__} gives more than {MAX_ITERATED} items")
            self.spend(4 * len(items))
            return {"$": "iterator", "v": self.items(items, depth), "of": kind.__name__[:100]}
        return {"$": "opaque", "v": kind.__name__[:100]}

    def too_deep(self, depth: int) -> bool:
        return depth > MAX_DEPTH

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ResultTooLarge("the value is larger than one result may be")

    def items(self, items: list[Any], depth: int) -> list[Json]:
        """items: whose number has been counted by `spend` already."""
        if self._flat(items):
            return items
        deeper = depth + 1
        return [self.value(item, deeper) for item in items]

    def pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> list[Json]:
        deeper = depth + 1
        return [[self.value(key, deeper), self.value(item, deeper)] for key, item in pairs]

    def node(self, value: object, name: str, fields: list[Any]) -> Json:
        at = self._node_at.get(id(value))
        if at is None:
            if (known := self.index(value)) is not None:
                return known
            self.spend(8 + 4 * len(fields))
            at = self._node_at[id(value)] = len(self._nodes)
            self._nodes.append((name, fields))
            self._kept.append(value)
        return {"$": "node", "v": at}

    def index(self, value: object) -> Json | None:
        """How an object that both sides have is named. Starts counting it where mutable objects are tracked."""
        if self._known is None:
            return None
        at = self._known.get(id(value))
        if at is not None:
            return {"$": "known", "v": at}
        if self._track:
            self._known[id(value)] = len(self.tracked)
            self.tracked.append(value)
        return None

    def uncommon(self, value: object, depth: int) -> Json:
        kind = type(value)
        name = self._names.get(kind, "")
        if name == "":
            name = next((above.__name__ for above in kind.__mro__ if above.__name__ in self._codecs), None)
            self._names[kind] = name
        if name is not None:
            try:
                return self.node(value, name, [object.__getattribute__(value, field) for field in self._codecs[name]])
            except AttributeError:
                return self.foreign(value, depth)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
            return arrays.encode_numpy(self, value, numpy, depth)
        for base, form in SUBCLASS_FORMS:
            if issubclass(kind, base):
                return form(self, value, depth)
        return self.foreign(value, depth)

    def _flat(self, items: list[Any]) -> bool:
        """Whether JSON can say all the items as they stand."""
        kinds = set(map(type, items))
        if kinds == {str}:
            text = "".join(items)
            self.spend(len(text))
            return text.isascii() or _encodable(text)
        if not kinds <= _NUMBERS:
            return False
        some = list(filter(None, items))
        try:
            if float in kinds and not math.isfinite(sum(some)):
                return False
        except OverflowError:
            return False
        return int not in kinds or not some or (min(some) > -JSON_INT and max(some) < JSON_INT)

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
        if value.isascii() or _encodable(value):
            return value
        return {"$": "str", "v": base64_text(value.encode("utf-8", "surrogatepass"))}

    def _list(self, value: list[Any], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.foreign(value, depth)
        self.spend(8 + 4 * len(value))
        known = self.index(value)
        return self.items(value, depth) if known is None else known

    def _tuple(self, value: tuple[Any, ...], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.foreign(value, depth)
        self.spend(8 + 4 * len(value))
        return {"$": "tuple", "v": self.items(list(value), depth)}

    def _dict(self, value: dict[Any, Any], depth: int) -> Json:
        if depth > MAX_DEPTH:
            return self.foreign(value, depth)
        known = self.index(value)
        if known is not None:
            return known
        self.spend(8 + 4 * len(value))
        keys = list(value)
        if (not keys or set(map(type, keys)) == {str}) and "$" not in value and self._flat(keys):
            if self._flat(list(value.values())):
                return value
            return {key: self.value(item, depth + 1) for key, item in value.items()}
        return {"$": "dict", "v": self.pairs(value.items(), depth)}


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_FORMS: Mapping[type, Form] = {
    type(None): lambda encoder, value, depth: value,
    bool: lambda encoder, value, depth: value,
    int: Encoder._int,
    float: Encoder._float,
    str: Encoder._str,
    list: Encoder._list,
    tuple: Encoder._tuple,
    dict: Encoder._dict,
    **FORMS,
}


def encode(value: object, codecs: Codecs | None = None, limit: int = MAX_ENCODED) -> Json:
    """What `json.dumps` can write. Raises `ResultTooLarge`; what has no form becomes opaque."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int and -JSON_INT < value < JSON_INT:
        return value
    return Encoder(codecs, limit).encode(value)

"""Containers of the solution's objects that test code got hold of, kept alike on both sides.

    stack = Stack()
    stack.data.append(5)         the solution's stack has 5 on it, too
    data = stack.data
    stack.pop()                  data is empty

What an attribute holds travels as a copy. The mutable containers in it are lent: each gets an index under which both
sides keep theirs. Before a request the test code's side sends the contents of those that the test code has changed, and
after it takes the contents of those that the solution has changed. Their identity stays on both sides, as with
arguments (`in_place.py`).
"""

from __future__ import annotations

import array
import collections
from collections.abc import Sequence
from typing import Any

from ..wire import Json, Undecodable, to_json
from .in_place import contents, restore

MAX_LENT = 256
"""How many containers are lent. Stops suites that look at large structures from comparing them before every request;
what comes beyond is a copy."""

MAX_ELEMENTS = 4096
"""How many elements a lent container may have."""

MAX_REACHABLE = 20_000
"""How many values are looked at for containers in a container."""

_PAIRS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_LENDABLE = frozenset({*_PAIRS, list, set, bytearray, collections.deque, array.array})
_LOOKED_INTO = frozenset({*_LENDABLE, tuple, frozenset}) - {bytearray, array.array}


class Lender:
    """The solution's side. handles: the objects that the test code knows, which encode and decode."""

    def __init__(self, handles: Any) -> None:
        self._handles = handles
        self._objects: list[Any] = []
        self._indices: dict[int, int] = {}
        self._last_sent: list[bytes] = []

    def lend(self, value: Any) -> list[Any] | None:
        """Return the answer that lends an attribute's value; None where it is not lent."""
        if type(value) not in _LENDABLE:
            return None
        containers = _containers(value)
        if containers is None:
            return None
        fresh = [container for container in containers if id(container) not in self._indices]
        if len(self._objects) + len(fresh) > MAX_LENT:
            return None
        for container in fresh:
            self._indices[id(container)] = len(self._objects)
            self._objects.append(container)
            self._last_sent.append(b"")
        shells = self._handles.encode([_empty_copy(container) for container in fresh])
        return ["lent", self._indices[id(value)], shells, self.changes()]

    def changes(self) -> Json:
        """Return the contents of what has changed since it was last sent: pairs of index and contents."""
        changed = []
        for index, value in enumerate(self._objects):
            data = self._handles.encode(contents(value, {}), self._indices)
            if (text := to_json(data)) != self._last_sent[index]:
                self._last_sent[index] = text
                changed.append([index, data])
        return changed

    def take(self, changed: Sequence[Any]) -> None:
        """Put contents that the test code has changed into the solution's objects."""
        for index, data in changed:
            restore(self._objects[index], self._handles.decode_known(data, self._objects), {})
            self._last_sent[index] = b""


class Borrower:
    """The test code's side. sender, receiver: what encodes and decodes."""

    def __init__(self, sender: Any, receiver: Any) -> None:
        self._sender = sender
        self._receiver = receiver
        self.objects: list[Any] = []
        self._indices: dict[int, int] = {}
        self._last_seen: list[bytes] = []

    def borrow(self, index: Json, shells: Json, changed: Json) -> Any:
        """Return the test code's own object for a container that is lent. Raises `Undecodable`."""
        for shell in self._receiver.decode(shells):
            if type(shell) not in _LENDABLE or len(self.objects) >= MAX_LENT:
                raise Undecodable("what it lends is no container")
            self._indices[id(shell)] = len(self.objects)
            self.objects.append(shell)
            self._last_seen.append(b"")
        self.take(changed)
        if type(index) is not int or not 0 <= index < len(self.objects):
            raise Undecodable("it lends what it has not described")
        return self.objects[index]

    def take(self, changed: Json) -> None:
        """Put contents that the solution has changed into the test code's objects. Raises `Undecodable`."""
        if type(changed) is not list:
            raise Undecodable("changes are a list")
        for index, data in changed:
            if type(index) is not int or not 0 <= index < len(self.objects):
                raise Undecodable("it changes what it has not lent")
            restore(self.objects[index], self._receiver.decode(data, known=self.objects), {})
        for index, _ in changed:
            self._last_seen[index] = to_json(self._encode(index))

    def changes(self) -> list[Any]:
        """Return the contents of what the test code has changed: pairs of index and contents."""
        changed = []
        for index in range(len(self.objects)):
            data = self._encode(index)
            if (text := to_json(data)) != self._last_seen[index]:
                self._last_seen[index] = text
                changed.append([index, data])
        return changed

    def _encode(self, index: int) -> Json:
        data: Json = self._sender.encode_known(contents(self.objects[index], {}), self._indices)
        return data


def _containers(value: Any) -> list[Any] | None:
    """Return a container and all mutable ones in it; None where there are too many or too large ones."""
    containers: dict[int, Any] = {}
    waiting, looked_at = [value], 0
    while waiting:
        container = waiting.pop()
        if type(container) in _LENDABLE:
            if id(container) in containers:
                continue
            if len(container) > MAX_ELEMENTS:
                return None
            containers[id(container)] = container
        if type(container) in _LOOKED_INTO:
            parts = [*container, *dict.values(container)] if type(container) in _PAIRS else list(container)
            waiting += [part for part in parts if type(part) in _LENDABLE or type(part) in _LOOKED_INTO]
            looked_at += len(parts)
        if looked_at > MAX_REACHABLE or len(containers) > MAX_LENT:
            return None
    return list(containers.values())


def _empty_copy(value: Any) -> Any:
    if isinstance(value, collections.deque):
        return collections.deque(maxlen=value.maxlen)
    if isinstance(value, array.array):
        return array.array(value.typecode)
    return type(value)()

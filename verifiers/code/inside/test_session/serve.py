"""Role `serve`: load the program and do what the test code's process asks for, until it is gone.

    ["call", 0, args, names]             ["ok", 3]  or  ["changed", contents]  or  ["error", class, message, args, {}]
    ["call", 0, args, names, true]       ["changed", contents, 3] as well
    ["method", 2, "push", args, names]   the same
    ["attribute", 2, "size"]  ["set", 2, "size", 5]  ["special", 2, "__len__", args]
    ["name", "helper"]  ["entry", "Solution().twoSum"]  ["public"]

Numbers are those of `handles.py`. args: a tuple, of which the last ones belong to the keyword arguments in `names`.
`changed` answers a call that had mutable arguments (`in_place.py`), and returned None or was made with `true`, for
tests that look at its arguments afterwards (`later.py`). While a function runs it may call functions of the test code:
["callback", number, args, names], to which the answer is a message like those above, or further requests first.

The first message says whether the program could be loaded. What this process says is what the solution says.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping
from types import CoroutineType, ModuleType
from typing import Any

from ..program import Missing, entry, load, to_its_end, told
from ..wire import Json, ResultTooLarge, from_json
from ..wire.lines import Closed, Wire
from .handles import Handles
from .in_place import contents
from .shared_names import EXCEPTIONS, asked_name, may_stand_for


def run_serve(payload: bytes) -> None:
    request = from_json(payload, len(payload))
    wire = Wire()
    try:
        namespace = load(request["prelude"], request["program"])
    except BaseException as error:
        wire.send(["not loaded", *told(error)])
        return
    wire.send(["loaded"])
    server = Server(wire, namespace, request["codecs"])
    try:
        while True:
            server.answer(wire.receive())
    except Closed:
        os._exit(0)


class Server:
    def __init__(self, wire: Wire, namespace: dict[str, Any], codecs: dict[str, list[str]]) -> None:
        self._wire = wire
        self._namespace = namespace
        self._handles = Handles(namespace, codecs, self._call_back)
        self._turn = threading.RLock()

    def answer(self, request: list[Any]) -> None:
        try:
            reply = _REQUESTS[request[0]](self, *request[1:])
        except Closed:
            os._exit(0)
        except BaseException as error:
            reply = self._error(error)
        self._wire.send(reply)

    def call(self, number: int, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._called(self._handles[number], args, names, keep)

    def method(self, number: int, name: str, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._called(getattr(self._handles[number], name), args, names, keep)

    def special(self, number: int, name: str, args: Json) -> Json:
        target = self._handles[number]
        values = self._handles.decode(args)
        if name in _COPIES:
            return ["ok", self._handles.refer(_COPIES[name](target))]
        method = getattr(type(target), name, None)
        if method is None:
            raise TypeError(f"{type(target).__name__!r} object has no {name}")
        return ["ok", self._handles.encode(method(target, *values))]

    def attribute(self, number: int, name: str) -> Json:
        return ["ok", self._handles.encode(getattr(self._handles[number], name))]

    def set(self, number: int, name: str, value: Json) -> Json:
        setattr(self._handles[number], name, self._handles.decode(value))
        return ["ok", None]

    def name(self, name: str) -> Json:
        """A global of the program. What it took from the standard library is only named: both sides have it."""
        if name not in self._namespace:
            return ["missing"]
        value = self._namespace[name]
        if isinstance(value, ModuleType) and may_stand_for(name, value.__name__):
            return ["ok", {"$": "module", "v": value.__name__}]
        known = asked_name(name, value)
        return ["ok", {"$": "local", "v": known} if known else self._handles.encode(value)]

    def entry(self, expression: str) -> Json:
        try:
            return ["ok", self._handles.refer(entry(self._namespace, expression))]
        except Missing:
            return ["missing"]

    def public(self) -> Json:
        return ["ok", [name for name in self._namespace if not name.startswith("_")]]

    def _called(self, function: Callable[..., Any], args: Json, names: list[str], keep: bool) -> Json:
        objects: list[Any] = []
        values = self._handles.decode(args, objects)
        first = len(values) - len(names)
        result = function(*values[:first], **dict(zip(names, values[first:], strict=True)))
        if type(result) is CoroutineType:
            result = to_its_end(result)
        # An instance that was asked for stays one, whatever it derives from.
        made = isinstance(function, type) and isinstance(result, function)
        if objects and (keep or result is None):
            known = {id(value): at for at, value in enumerate(objects)}
            parts = [contents(value, self._handles.codecs) for value in objects]
            changed = ["changed", self._handles.encode(parts, known)]
            if result is None:
                return changed
            return [*changed, self._handles.refer(result) if made else self._handles.encode(result, known)]
        return ["ok", self._handles.refer(result) if made else self._handles.encode(result)]

    def _call_back(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._turn:
            data = self._handles.encode((*args, *kwargs.values()))
            self._wire.send(["callback", number, data, list(kwargs)])
            while True:
                kind, *rest = self._wire.receive()
                if kind == "value":
                    return self._handles.decode(rest[0])
                if kind == "raise":
                    raise self._exception(*rest)
                self.answer([kind, *rest])

    def _exception(self, kind: Json, args: Json) -> BaseException:
        made: BaseException = self._handles.decode(kind)(*self._handles.decode(args))
        return made

    def _error(self, error: BaseException) -> Json:
        """error for the test code: its class, what it says, its arguments and attributes."""
        error.__traceback__ = error.__context__ = None
        kind, message, _ = told(error)
        try:
            args = self._handles.encode(error.args)
            attributes = {name: self._handles.encode(value) for name, value in vars(error).items()}
            return ["error", self._handles.refer_to_class(type(error)), message, args, attributes]
        except (ResultTooLarge, RecursionError, MemoryError):
            return ["error", {"$": "builtin", "v": kind if kind in EXCEPTIONS else "Exception"}, message, None, {}]


_COPIES: Mapping[str, Callable[[Any], Any]] = {"__copy__": copy.copy, "__deepcopy__": copy.deepcopy}

_REQUESTS: Mapping[str, Callable[..., Json]] = {
    "call": Server.call,
    "method": Server.method,
    "special": Server.special,
    "attribute": Server.attribute,
    "set": Server.set,
    "name": Server.name,
    "entry": Server.entry,
    "public": Server.public,
}

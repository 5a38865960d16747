"""Role `serve`: loads the program and does what the test code's process asks for, until that process is gone.

    ["call", 0, args, names]             ["ok", 3]  or  ["changed", contents]  or  ["error", class, message, args, {}]
    ["call", 0, args, names, true]       ["changed", contents, 3] as well
    ["method", 2, "push", args, names]   the same
    ["attribute", 2, "size"]  ["set", 2, "size", 5]  ["special", 2, "__len__", args]
    ["take", changes]  ["changes"]                     ["changes", changes]: of lent containers (`lending.py`)
    ["name", "helper"]  ["entry", "Solution().twoSum"]  ["public"]

Objects are named by their handles (`handles.py`). args is a tuple, of which the last ones belong to the keyword
arguments in `names`. `changed` answers a call that had mutable arguments (`in_place.py`), and returned None or was made
with `true`, for tests that look at its arguments afterwards (`argument_use.py`). While a function runs it may call
functions of the test code: ["callback", index, args, names]. The answer is ["value", value] or ["raise", class, args],
and further requests may come before it.

The first message says whether the program could be loaded. All that this process says is the solution's word.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping
from types import CoroutineType, ModuleType
from typing import Any

from ..program import NotDefined, describe_error, load, look_up, run_coroutine
from ..wire import Json, ResultTooLarge, from_json
from ..wire.lines import PartnerGone, PartnerLine
from .handles import Handles
from .in_place import contents
from .lending import Lender
from .shared_names import EXCEPTIONS, local_name_as_asked, may_stand_for


def run_serve(payload: bytes) -> None:
    """Load the program of the payload, a line of JSON, and serve requests."""
    request = from_json(payload, len(payload))
    line = PartnerLine()
    try:
        namespace = load(request["prelude"], request["program"])
    except BaseException as error:
        line.send(["not loaded", *describe_error(error)])
        return
    line.send(["loaded"])
    server = _Server(line, namespace, request["codecs"])
    try:
        while True:
            server.answer(line.receive())
    except PartnerGone:
        os._exit(0)


class _Server:
    """Answers requests. Each of the methods in `_REQUESTS` answers one kind."""

    def __init__(self, line: PartnerLine, namespace: dict[str, Any], codecs: dict[str, list[str]]) -> None:
        self._line = line
        self._namespace = namespace
        self._handles = Handles(namespace, codecs, self._call_back)
        self._lender = Lender(self._handles)
        self._turn = threading.RLock()

    def answer(self, request: list[Any]) -> None:
        try:
            reply = _REQUESTS[request[0]](self, *request[1:])
        except PartnerGone:
            os._exit(0)
        except BaseException as error:
            reply = self._encode_error(error)
        self._line.send(reply)

    def call(self, handle: int, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._call(self._handles[handle], args, names, keep)

    def method(self, handle: int, name: str, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._call(getattr(self._handles[handle], name), args, names, keep)

    def special(self, handle: int, name: str, args: Json) -> Json:
        """Call a method of the language, such as `__len__`."""
        target = self._handles[handle]
        values = self._handles.decode(args)
        if name in _COPIES:
            return ["ok", self._handles.refer(_COPIES[name](target))]
        method = getattr(type(target), name, None)
        if method is None:
            raise TypeError(f"{type(target).__name__!r} object has no {name}")
        return ["ok", self._handles.encode(method(target, *values))]

    def attribute(self, handle: int, name: str) -> Json:
        value = getattr(self._handles[handle], name)
        return self._lender.lend(value) or ["ok", self._handles.encode(value)]

    def take(self, changed: list[Any]) -> Json:
        """Take over what the test code did to containers that it was lent."""
        self._lender.take(changed)
        return ["ok", None]

    def changes(self) -> Json:
        """Send what has become of the containers that were lent."""
        return ["changes", self._lender.changes()]

    def set(self, handle: int, name: str, value: Json) -> Json:
        setattr(self._handles[handle], name, self._handles.decode(value))
        return ["ok", None]

    def name(self, name: str) -> Json:
        """Send a global of the program. What it took from the standard library is only named: both sides have it."""
        if name not in self._namespace:
            return ["missing"]
        value = self._namespace[name]
        if isinstance(value, ModuleType) and may_stand_for(name, value.__name__):
            return ["ok", {"$": "module", "v": value.__name__}]
        path = local_name_as_asked(name, value)
        return ["ok", {"$": "local", "v": path} if path else self._handles.encode(value)]

    def entry(self, expression: str) -> Json:
        try:
            return ["ok", self._handles.refer(look_up(self._namespace, expression))]
        except NotDefined:
            return ["missing"]

    def public(self) -> Json:
        return ["ok", [name for name in self._namespace if not name.startswith("_")]]

    def _call(self, function: Callable[..., Any], args: Json, names: list[str], keep: bool) -> Json:
        objects: list[Any] = []
        values = self._handles.decode(args, objects)
        first = len(values) - len(names)
        result = function(*values[:first], **dict(zip(names, values[first:], strict=True)))
        if type(result) is CoroutineType:
            result = run_coroutine(result)
        # An instance that the test code made stays one, whatever it derives from.
        is_new_instance = isinstance(function, type) and isinstance(result, function)
        if objects and (keep or result is None):
            known = {id(value): index for index, value in enumerate(objects)}
            parts = [contents(value, self._handles.codecs) for value in objects]
            changed = ["changed", self._handles.encode(parts, known)]
            if result is None:
                return changed
            return [*changed, self._handles.refer(result) if is_new_instance else self._handles.encode(result, known)]
        return ["ok", self._handles.refer(result) if is_new_instance else self._handles.encode(result)]

    def _call_back(self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._turn:
            data = self._handles.encode((*args, *kwargs.values()))
            self._line.send(["callback", index, data, list(kwargs)])
            while True:
                kind, *rest = self._line.receive()
                if kind == "value":
                    return self._handles.decode(rest[0])
                if kind == "raise":
                    raise self._decode_exception(*rest)
                self.answer([kind, *rest])

    def _decode_exception(self, kind: Json, args: Json) -> BaseException:
        error: BaseException = self._handles.decode(kind)(*self._handles.decode(args))
        return error

    def _encode_error(self, error: BaseException) -> Json:
        """Return an exception for the test code: its class, its message, its arguments and its attributes."""
        error.__traceback__ = error.__context__ = None
        kind, message, _ = describe_error(error)
        try:
            args = self._handles.encode(error.args)
            attributes = {name: self._handles.encode(value) for name, value in vars(error).items()}
            return ["error", self._handles.refer_to_class(type(error)), message, args, attributes]
        except (ResultTooLarge, RecursionError, MemoryError):
            return ["error", {"$": "builtin", "v": kind if kind in EXCEPTIONS else "Exception"}, message, None, {}]


_COPIES: Mapping[str, Callable[[Any], Any]] = {"__copy__": copy.copy, "__deepcopy__": copy.deepcopy}

_METHODS = (_Server.call, _Server.method, _Server.special, _Server.attribute, _Server.set)
_LENDING = (_Server.take, _Server.changes)
_REQUESTS: Mapping[str, Callable[..., Json]] = {
    method.__name__: method for method in (*_METHODS, *_LENDING, _Server.name, _Server.entry, _Server.public)
}

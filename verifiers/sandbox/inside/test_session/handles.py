"""Encodes and decodes values on the solution's side: data as data, and a handle for each object that has to stay here.

    a function, a class, an instance     {"$": "function" | "class" | "remote", "v": 7, ...}
    the same coming back as an argument  {"$": "handle", "v": 7}, which is the object itself again
    a function of the test code          {"$": "callback", "v": 0}, called over the connection to the test process

A class is described when it is first mentioned: its name, bases and methods, so that the test code can have a class
that looks the same (`remote_objects.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import CO_COROUTINE
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from ..program import class_finder
from ..wire import DICT_VIEWS, KNOWN_CODECS, MAX_DEPTH, Codecs, Decoder, Encoder, Json
from .shared_names import BUILTIN_TYPES, EXCEPTIONS, SPECIAL_METHODS, local_object, make_view, numpy_if_installed

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)

CallBack = Callable[[int, tuple[Any, ...], dict[str, Any]], Any]
"""Calls a function of the test code: its number, arguments and keyword arguments."""


class Handles:
    """The objects that the test code knows, by handle."""

    def __init__(self, namespace: Mapping[str, Any], codecs: Codecs, call_back: CallBack) -> None:
        self.codecs = {**KNOWN_CODECS, **codecs}
        self.find_class = class_finder(namespace, self.codecs)
        self._call_back = call_back
        self._objects: list[Any] = []
        self._handles: dict[int, int] = {}
        self._callbacks: dict[int, Callable[..., Any]] = {}
        self._callback_indices: dict[int, int] = {}
        self._described: set[int] = set()

    def __getitem__(self, handle: int) -> Any:
        return self._objects[handle]

    def encode(self, value: Any, known: dict[int, int] | None = None) -> Json:
        """Return the JSON of a value. known: the index, by id, of each object that the test code has."""
        return _Encoder(self, known).encode(value)

    def decode_known(self, data: Json, known: Sequence[Any]) -> Any:
        """Return the value of JSON that may name objects that both sides have by their index."""
        return _Decoder(self, False, known).decode(data)

    def decode(self, data: Json, tracked: list[Any] | None = None) -> Any:
        """Return the value of an argument. tracked: a list to which the mutable objects in it are added."""
        decoder = _Decoder(self, tracked is not None)
        value = decoder.decode(data)
        if tracked is not None:
            tracked += decoder.tracked
        return value

    def callback(self, index: int, name: str = "function") -> Callable[..., Any]:
        """Return a function that stands for one of the test code's."""
        if index not in self._callbacks:

            def function(*args: Any, **kwargs: Any) -> Any:
                return self._call_back(index, args, kwargs)

            function.__name__ = function.__qualname__ = name
            self._callbacks[index] = function
            self._callback_indices[id(function)] = index
        return self._callbacks[index]

    def knows(self, value: Any) -> bool:
        """Return whether an object has a handle."""
        return id(value) in self._handles

    def refer(self, value: Any) -> Json:
        """Return how the test code is told of an object that stays here."""
        if (index := self._callback_indices.get(id(value))) is not None:
            return {"$": "callback", "v": index}
        if isinstance(value, type):
            return self.refer_to_class(value)
        if isinstance(value, _FUNCTIONS):
            function = getattr(value, "__func__", value)
            is_coroutine = bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_COROUTINE)
            name = str(getattr(value, "__name__", "function"))
            return {"$": "function", "v": self._handle_of(value), "name": name, "async": is_coroutine}
        return {"$": "remote", "v": self._handle_of(value), "of": self.refer_to_class(type(value))}

    def refer_to_class(self, cls: type) -> Json:
        """Return how the test code is told of a class, which is described when it is first mentioned."""
        name = cls.__name__
        if BUILTIN_TYPES.get(name) is cls or EXCEPTIONS.get(name) is cls:
            return {"$": "builtin", "v": name}
        if issubclass(cls, Exception) and cls.__module__ != "solution":
            builtin = next(base for base in cls.__mro__ if EXCEPTIONS.get(base.__name__) is base)
            return {"$": "library", "v": [cls.__module__, name], "else": builtin.__name__}
        handle = self._handle_of(cls)
        if handle in self._described:
            return {"$": "class", "v": handle}
        self._described.add(handle)
        return {"$": "class", "v": handle, "is": self._describe(cls)}

    def _handle_of(self, value: Any) -> int:
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._objects)
            self._objects.append(value)
        return handle

    def _describe(self, cls: type) -> dict[str, Json]:
        members: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            members.update(vars(base))
        functions = {name: value for name, value in members.items() if type(value) is FunctionType and name[:2] != "__"}
        return {
            "name": cls.__name__,
            "bases": [self.refer_to_class(base) for base in cls.__bases__ if base is not object],
            "methods": list(functions),
            "async": [name for name, value in functions.items() if value.__code__.co_flags & CO_COROUTINE],
            "special": [name for name in SPECIAL_METHODS if members.get(name) is not None],
            "error": issubclass(cls, BaseException),
        }


class _Encoder(Encoder):
    def __init__(self, handles: Handles, known: dict[int, int] | None) -> None:
        super().__init__(handles.codecs, known=known)
        self._handles = handles

    def encode_uncommon(self, value: object, depth: int) -> Json:
        if self._handles.knows(value):
            return self._handles.refer(value)
        return super().encode_uncommon(value, depth)

    def encode_foreign(self, value: object, depth: int) -> Json:
        if type(value) in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().encode_foreign(value, depth)
        if isinstance(value, BaseException) and EXCEPTIONS.get(type(value).__name__) is type(value):
            return {"$": "exception", "of": type(value).__name__, "v": self.encode_items(list(value.args), depth)}
        self.spend(64)
        return self._handles.refer(value)


class _Decoder(Decoder):
    def __init__(self, handles: Handles, track: bool, known: Sequence[Any] = ()) -> None:
        super().__init__(handles.codecs, handles.find_class, known=known, track=track)
        self.handles = handles

    def decode_foreign(self, tag: object, data: dict[str, Json]) -> Any:
        handler = _HANDLERS.get(str(tag))
        return super().decode_foreign(tag, data) if handler is None else handler(self, data)

    def make_iterated(self, elements: list[Any], kind: str) -> Any:
        return make_view(elements, kind)

    def numpy_module(self) -> Any:
        return numpy_if_installed()


_HANDLERS: Mapping[str, Callable[[_Decoder, dict[str, Json]], Any]] = {
    "handle": lambda decoder, data: decoder.handles[data["v"]],
    "callback": lambda decoder, data: decoder.handles.callback(data["v"], data["name"]),
    "pull": lambda decoder, data: _pull(decoder.handles.callback(data["v"])),
    "builtin": lambda decoder, data: getattr(builtins, data["v"]),
    "local": lambda decoder, data: local_object(*data["v"]),
    "exception": lambda decoder, data: EXCEPTIONS[data["of"]](*decoder.decode_items(data["v"], 0)),
}


def _pull(advance: Callable[[], Sequence[Any]]) -> Iterator[Any]:
    """Yield what an iterator of the test code gives; each item is asked for when it is needed."""
    while item := advance():
        yield item[0]

"""The solution's side of the values that cross: data as data, and a number for each object that has to stay here.

    a function, a class, an instance     {"$": "function" | "class" | "remote", "v": 7, ...}
    the same coming back as an argument  {"$": "handle", "v": 7}, which is the object itself again
    a function of the test code          {"$": "callback", "v": 0}, which is called by way of the line

A class is described when it is first mentioned: its name, bases and methods, so that the test code can have a class
that looks the same (`stubs.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import CO_COROUTINE
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from ..program import class_finder
from ..wire import DICT_VIEWS, KNOWN_CODECS, MAX_DEPTH, Codecs, Decoder, Encoder, Json
from .shared_names import BUILTIN_TYPES, EXCEPTIONS, SPECIAL, local, numpy_if_installed, view_of

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)

CallBack = Callable[[int, tuple[Any, ...], dict[str, Any]], Any]


class Handles:
    """The objects that the test code knows by number. call_back: calls one of its functions."""

    def __init__(self, namespace: Mapping[str, Any], codecs: Codecs, call_back: CallBack) -> None:
        self.codecs = {**KNOWN_CODECS, **codecs}
        self.find_class = class_finder(namespace, self.codecs)
        self._call_back = call_back
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._given: dict[int, Callable[..., Any]] = {}
        self._given_numbers: dict[int, int] = {}
        self._described: set[int] = set()

    def __getitem__(self, number: int) -> Any:
        return self._objects[number]

    def encode(self, value: Any, known: dict[int, int] | None = None) -> Json:
        return _Encoder(self, known).encode(value)

    def decode(self, data: Json, tracked: list[Any] | None = None) -> Any:
        """tracked: is given the mutable objects of the value."""
        decoder = _Decoder(self, tracked is not None)
        value = decoder.decode(data)
        if tracked is not None:
            tracked += decoder.tracked
        return value

    def callback(self, number: int, name: str = "function") -> Callable[..., Any]:
        """A function that stands for one of the test code's."""
        if number not in self._given:

            def function(*args: Any, **kwargs: Any) -> Any:
                return self._call_back(number, args, kwargs)

            function.__name__ = function.__qualname__ = name
            self._given[number] = function
            self._given_numbers[id(function)] = number
        return self._given[number]

    def knows(self, value: Any) -> bool:
        return id(value) in self._numbers

    def refer(self, value: Any) -> Json:
        """How the test code is told of an object that stays here."""
        if (number := self._given_numbers.get(id(value))) is not None:
            return {"$": "callback", "v": number}
        if isinstance(value, type):
            return self.refer_to_class(value)
        if isinstance(value, _FUNCTIONS):
            function = getattr(value, "__func__", value)
            runs_later = bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & CO_COROUTINE)
            name = str(getattr(value, "__name__", "function"))
            return {"$": "function", "v": self._number(value), "name": name, "async": runs_later}
        return {"$": "remote", "v": self._number(value), "of": self.refer_to_class(type(value))}

    def refer_to_class(self, kind: type) -> Json:
        name = kind.__name__
        if BUILTIN_TYPES.get(name) is kind or EXCEPTIONS.get(name) is kind:
            return {"$": "builtin", "v": name}
        if issubclass(kind, Exception) and kind.__module__ != "solution":
            above = next(above for above in kind.__mro__ if EXCEPTIONS.get(above.__name__) is above)
            return {"$": "library", "v": [kind.__module__, name], "else": above.__name__}
        number = self._number(kind)
        if number in self._described:
            return {"$": "class", "v": number}
        self._described.add(number)
        return {"$": "class", "v": number, "is": self._description(kind)}

    def _number(self, value: Any) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return number

    def _description(self, kind: type) -> dict[str, Json]:
        own: dict[str, Any] = {}
        for above in reversed(kind.__mro__[:-1]):
            own.update(vars(above))
        functions = {name: value for name, value in own.items() if type(value) is FunctionType and name[:2] != "__"}
        return {
            "name": kind.__name__,
            "bases": [self.refer_to_class(base) for base in kind.__bases__ if base is not object],
            "methods": list(functions),
            "async": [name for name, value in functions.items() if value.__code__.co_flags & CO_COROUTINE],
            "special": [name for name in SPECIAL if own.get(name) is not None],
            "error": issubclass(kind, BaseException),
        }


class _Encoder(Encoder):
    def __init__(self, handles: Handles, known: dict[int, int] | None) -> None:
        super().__init__(handles.codecs, known=known)
        self._handles = handles

    def uncommon(self, value: object, depth: int) -> Json:
        if self._handles.knows(value):
            return self._handles.refer(value)
        return super().uncommon(value, depth)

    def foreign(self, value: object, depth: int) -> Json:
        if type(value) in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().foreign(value, depth)
        if isinstance(value, BaseException) and EXCEPTIONS.get(type(value).__name__) is type(value):
            return {"$": "exception", "of": type(value).__name__, "v": self.items(list(value.args), depth)}
        self.spend(64)
        return self._handles.refer(value)


class _Decoder(Decoder):
    def __init__(self, handles: Handles, track: bool) -> None:
        super().__init__(handles.codecs, handles.find_class, track=track)
        self.handles = handles

    def foreign(self, tag: object, data: dict[str, Json]) -> Any:
        made = _RECEIVED.get(str(tag))
        return super().foreign(tag, data) if made is None else made(self, data)

    def iterated(self, items: list[Any], kind: str) -> Any:
        return view_of(items, kind)

    def numpy(self) -> Any:
        return numpy_if_installed()


_RECEIVED: Mapping[str, Callable[[_Decoder, dict[str, Json]], Any]] = {
    "handle": lambda decoder, data: decoder.handles[data["v"]],
    "callback": lambda decoder, data: decoder.handles.callback(data["v"], data["name"]),
    "pull": lambda decoder, data: _pulled(decoder.handles.callback(data["v"])),
    "builtin": lambda decoder, data: getattr(builtins, data["v"]),
    "local": lambda decoder, data: local(*data["v"]),
    "exception": lambda decoder, data: EXCEPTIONS[data["of"]](*decoder.items(data["v"], 0)),
}


def _pulled(advance: Callable[[], Sequence[Any]]) -> Iterator[Any]:
    """An iterator of the test code: each item is asked for when it is needed."""
    while item := advance():
        yield item[0]

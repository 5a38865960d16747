"""Encodes values of the test code for the solution: data as data, its functions and iterators as numbers.

What has no form, such as an object of a class that the test code defines, cannot be passed between processes. The test
code then needs the solution in its own process (`CannotIsolate`), which depends on the test code alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from io import IOBase
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ..wire import DICT_VIEWS, MAX_DEPTH, Encoder, Json, Undecodable
from .remote_objects import CLASS_HANDLE, CannotIsolate, RemoteFunction, RemoteObject
from .shared_names import EXCEPTIONS, builtin_name, local_name

TEST_MODULE = "suite"
"""The module that the test code runs in, and that classes which it defines belong to."""

_DATA_MODULES = frozenset({"builtins", "numpy"})
"""The modules of classes whose objects can be made of data: `numpy.array` of a list with None in it holds objects."""

_CALLBACK_TYPES = (FunctionType, MethodType, BuiltinFunctionType, functools.partial, type(functools.cache(len)))


class Sender:
    """Encodes arguments, and keeps the functions that were passed."""

    def __init__(self, codecs: Mapping[str, Sequence[str]]) -> None:
        self.codecs = codecs
        self._functions: list[Callable[..., Any]] = []
        self._indices: dict[int, int] = {}

    def encode(self, value: Any) -> tuple[Json, list[Any]]:
        """Return the JSON and the mutable objects in it. Raises `CannotIsolate` and `ResultTooLarge`."""
        encoder = _Encoder(self)
        return encoder.encode(value), encoder.tracked

    def encode_known(self, value: Any, known: dict[int, int]) -> Json:
        """Return the JSON of a value, in which objects that both sides have are named by the index that `known` has for
        their id. Raises `CannotIsolate` and `ResultTooLarge`."""
        return _Encoder(self, known).encode(value)

    def register(self, function: Callable[..., Any]) -> int:
        """Return the number under which the solution can call a function of the test code."""
        index = self._indices.get(id(function))
        if index is None:
            index = self._indices[id(function)] = len(self._functions)
            self._functions.append(function)
        return index

    def function(self, index: Json) -> Callable[..., Any]:
        """Return the function that was passed under this number. Raises `Undecodable`."""
        if type(index) is not int or not 0 <= index < len(self._functions):
            raise Undecodable("it calls a function that it was not given")
        return self._functions[index]


class _Encoder(Encoder):
    def __init__(self, sender: Sender, known: dict[int, int] | None = None) -> None:
        """known: the index, by id, of each object that both sides have; without it mutable objects are tracked."""
        super().__init__(sender.codecs, known=known, track=known is None)
        self._sender = sender

    def encode_foreign(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if kind in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().encode_foreign(value, depth)
        if isinstance(value, BaseException) and EXCEPTIONS.get(kind.__name__) is kind:
            return {"$": "exception", "of": kind.__name__, "v": self.encode_items(list(value.args), depth)}
        reference = _refer_to_shared(value)
        if reference is not None:
            return reference
        if kind in _CALLBACK_TYPES:
            name = str(getattr(value, "__name__", "function"))
            return {"$": "callback", "v": self._sender.register(value), "name": name}
        if hasattr(kind, "__next__") and not isinstance(value, IOBase):
            return {"$": "pull", "v": self._sender.register(_advance(value))}
        made_by = value.__module__ if isinstance(value, type) else kind.__module__
        receivable = isinstance(value, type | BaseException | ModuleType) or kind.__module__ in _DATA_MODULES
        raise CannotIsolate(
            f"it passes an object of type {kind.__name__} to the solution", receivable and made_by != TEST_MODULE
        )


def _refer_to_shared(value: Any) -> Json | None:
    """Return a reference to what the solution's process has as well; None where it does not have it."""
    if isinstance(value, RemoteObject | RemoteFunction):
        return {"$": "handle", "v": value._truegold_handle}
    if isinstance(value, type) and (handle := vars(value).get(CLASS_HANDLE)) is not None:
        return {"$": "handle", "v": handle}
    if (name := builtin_name(value)) is not None:
        return {"$": "builtin", "v": name}
    path = local_name(value)
    return None if path is None else {"$": "local", "v": path}


def _advance(iterator: Any) -> Callable[[], list[Any]]:
    """Return a function that gives the next item in a list, and an empty list at the end."""

    def advance() -> list[Any]:
        for item in iterator:
            return [item]
        return []

    return advance

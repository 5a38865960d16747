"""How values of the test code travel to the solution: data as data, its functions and iterators as numbers.

What has no form, such as an object of a class that the test code defines, cannot be passed between processes: the test
code needs the solution in its own (`CannotIsolate`). That depends on the test code alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from io import IOBase
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ..wire import DICT_VIEWS, MAX_DEPTH, Encoder, Json, Undecodable
from .remote_objects import CannotIsolate, RemoteFunction, RemoteObject, RemoteType
from .shared_names import EXCEPTIONS, builtin_name, local_name

OF_TEST_CODE = "suite"
"""The module that classes say they are of which test code defines (`tests.py`)."""

_OF_DATA = frozenset({"builtins", "numpy"})
"""Where classes are whose objects can come of data: of a list with None in it `numpy.array` makes one of objects."""

NUMBER_OF_CLASS = "_truegold_number_of_class"
"""Where a class that stands for an exception of the solution's says which."""

_CALLED_BACK = (FunctionType, MethodType, BuiltinFunctionType, functools.partial, type(functools.cache(len)))


class Sender:
    """Encodes arguments, and keeps the functions that were passed."""

    def __init__(self, codecs: Mapping[str, Sequence[str]]) -> None:
        self.codecs = codecs
        self._functions: list[Callable[..., Any]] = []
        self._numbers: dict[int, int] = {}

    def encode(self, value: Any) -> tuple[Json, list[Any]]:
        """The data and the mutable objects in it. Raises `CannotIsolate` and `ResultTooLarge`."""
        encoder = _Encoder(self)
        return encoder.encode(value), encoder.tracked

    def number(self, function: Callable[..., Any]) -> int:
        number = self._numbers.get(id(function))
        if number is None:
            number = self._numbers[id(function)] = len(self._functions)
            self._functions.append(function)
        return number

    def function(self, number: Json) -> Callable[..., Any]:
        """The one that was passed under this number."""
        if type(number) is not int or not 0 <= number < len(self._functions):
            raise Undecodable("it calls a function that it was not given")
        return self._functions[number]


class _Encoder(Encoder):
    def __init__(self, sender: Sender) -> None:
        super().__init__(sender.codecs, track=True)
        self._sender = sender

    def foreign(self, value: Any, depth: int) -> Json:
        kind = type(value)
        if kind in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().foreign(value, depth)
        if isinstance(value, BaseException) and EXCEPTIONS.get(kind.__name__) is kind:
            return {"$": "exception", "of": kind.__name__, "v": self.items(list(value.args), depth)}
        named = _name(value)
        if named is not None:
            return named
        if kind in _CALLED_BACK:
            name = str(getattr(value, "__name__", "function"))
            return {"$": "callback", "v": self._sender.number(value), "name": name}
        if hasattr(kind, "__next__") and not isinstance(value, IOBase):
            return {"$": "pull", "v": self._sender.number(_advance(value))}
        made_by = value.__module__ if isinstance(value, type) else kind.__module__
        receivable = isinstance(value, type | BaseException | ModuleType) or kind.__module__ in _OF_DATA
        raise CannotIsolate(
            f"it passes an object of type {kind.__name__} to the solution", receivable and made_by != OF_TEST_CODE
        )


def _name(value: Any) -> Json | None:
    """How something is called that the solution's process has as well; None where it has not."""
    if isinstance(value, RemoteObject | RemoteFunction):
        return {"$": "handle", "v": value._truegold_number}
    if type(value) is RemoteType:
        return {"$": "handle", "v": value._number}
    if isinstance(value, type) and (number := vars(value).get(NUMBER_OF_CLASS)) is not None:
        return {"$": "handle", "v": number}
    if (name := builtin_name(value)) is not None:
        return {"$": "builtin", "v": name}
    place = local_name(value)
    return None if place is None else {"$": "local", "v": place}


def _advance(iterator: Any) -> Callable[[], list[Any]]:
    """What gives the next item in a list, and an empty list at the end."""

    def advance() -> list[Any]:
        for item in iterator:
            return [item]
        return []

    return advance

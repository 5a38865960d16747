"""Encodes values of test code for the solution's process, and decodes its answers.

Plain values are sent to the solution as data. Functions and iterators of the test code are sent as numbers. Other
values, such as an object of a class that the test code defines, cannot be sent: the test code then needs the solution
in its own process (`CannotIsolate`).

The solution sends data of built-in types. For other objects it sends handles, and the decoder makes proxies of them. An
answer can only hold values of a closed list of kinds (`wire`, `shared_objects.py`). An invalid answer ends the session.
No answer is run as code.
"""

from __future__ import annotations

import base64
import functools
import itertools
import operator
import pickle
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType

from ..wire.decoding import Decoder
from ..wire.encoding import DICT_VIEWS, MAX_DEPTH, Encoder
from ..wire.value_types import Json, Undecodable, Value
from . import shared_objects
from .remote_objects import (
    CLASS_HANDLE,
    SEARCH_METHODS,
    CannotIsolate,
    RemoteCoroutineFunction,
    RemoteError,
    RemoteFunction,
    RemoteObject,
    RemoteSession,
    make_remote_class,
)
from .shared_objects import BUILTIN_TYPES, EXCEPTIONS, SPECIAL_METHODS
from .surroundings import TEST_MODULE, StandIn, may_stand_in

MAX_CLASSES = 10_000
MAX_NAMES = 2000
MAX_NAME_CHARS = 200
"""Limits on the classes that a program describes: their number, the methods of each, and the length of a name. Without
limits, descriptions could fill the memory."""

_DATA_TYPES = frozenset(BUILTIN_TYPES.values())
"""Types whose objects can be sent as data."""

_ITERATOR_MODULES = frozenset({"builtins", "itertools", "_csv", TEST_MODULE})
"""The modules of plain iterators. Iterators of other modules, such as a cursor of sqlite3, can do more."""

_NOT_PICKLED = frozenset({"builtins", "numpy", "unittest", "solution", TEST_MODULE})
"""Packages whose objects are not sent as pickles. They are sent in another form, or belong to one process."""

_CALLBACK_TYPES = (
    *(FunctionType, MethodType, BuiltinFunctionType, functools.partial, type(functools.cache(len))),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller),
)
"""Types of functions that are sent as numbers."""


class RemoteValues:
    """Encodes values for the solution and decodes its answers.

    An instance keeps the functions that were sent, and one proxy for each object and class of the solution.
    """

    def __init__(self, session: RemoteSession) -> None:
        self.session = session
        self._functions: list[Callable[..., Value]] = []
        self._indices: dict[int, int] = {}
        self._stand_ins: dict[int, StandIn] = {}
        self._objects: dict[int, Value] = {}
        self._classes: dict[int, type] = {}
        self._tuple_classes: dict[tuple[str, ...], type] = {}

    def encode(self, value: Value) -> tuple[Json, list[Value]]:
        """Return the JSON of a value, and the mutable objects in it. Raises `CannotIsolate` and `ResultTooLarge`."""
        encoder = _Encoder(self)
        return encoder.encode(value), encoder.tracked

    def encode_known(self, value: Value, known: dict[int, int]) -> Json:
        """Return the JSON of a value, with the indices of objects that both sides have.

        known: the index of each such object, by id. Raises `CannotIsolate` and `ResultTooLarge`.
        """
        return _Encoder(self, known).encode(value)

    def decode(self, data: Json, known: Sequence[Value] = (), asked: str | None = None) -> Value:
        """Return the value of an answer. Raises `Undecodable`.

        known: objects that the data refers to by index. asked: the name that was asked for, if any.
        """
        return _Decoder(self, known, asked).decode(data)

    def register(self, function: Callable[..., Value]) -> int:
        """Return the number by which the solution can call a function of the test code."""
        index = self._indices.get(id(function))
        if index is None:
            index = self._indices[id(function)] = len(self._functions)
            self._functions.append(function)
        return index

    def register_stand_in(self, value: Value) -> int:
        """Return the number by which the solution can use an object of the test code."""
        if id(value) not in self._stand_ins:
            self._stand_ins[id(value)] = StandIn(value)
        return self.register(self._stand_ins[id(value)])

    def function(self, index: Json) -> Callable[..., Value]:
        """Return the function that was sent under this number. Raises `Undecodable`."""
        if type(index) is not int or not 0 <= index < len(self._functions):
            raise Undecodable("it calls a function that it did not receive")
        return self._functions[index]

    def decode_exception(self, kind: Json, message: Json, args: Json, attributes: Json, cause: Json) -> BaseException:
        """Return an exception that the solution raised, with its attributes and cause."""
        values = self.decode(args) if args is not None else (_checked_text(message),)
        if type(values) is not tuple or type(attributes) is not dict:
            raise Undecodable("arguments of an exception are a tuple")
        error = _new_error(self.decode(kind), values)
        error_class = type(error)
        if isinstance(error, RemoteError):
            error._solution_message = _checked_text(message)
        for name, value in attributes.items():
            if (name[:1] != "_" or name == "__notes__") and type(error_class) is type and hasattr(error, "__dict__"):
                vars(error)[name] = self.decode(value)
        if cause is not None:
            error.__cause__ = self.decode_exception(*cause)
        return error

    def class_handle(self, kind: type) -> int | None:
        """Return the handle of the solution's class for a proxy class, or None."""
        return next((handle for handle, known in self._classes.items() if known is kind), None)

    def remote_object(self, handle: Json, kind: type) -> Value:
        """Return the proxy for an object of the solution. kind: the proxy for its class."""
        _check(type(handle) is int and issubclass(kind, RemoteObject))
        self.session.operators.note_return(handle)
        if handle not in self._objects:
            remote: RemoteObject = object.__new__(kind)
            self._objects[handle] = remote
            object.__setattr__(remote, "_truegold_handle", handle)
            object.__setattr__(remote, "_truegold_session", self.session)
        return self._objects[handle]

    def remote_function(self, handle: Json, name: Json, is_coroutine: Json) -> Value:
        """Return the proxy for a function of the solution."""
        _check(type(handle) is int)
        if handle not in self._objects:
            kind = RemoteCoroutineFunction if is_coroutine is True else RemoteFunction
            self._objects[handle] = kind(self.session, handle, _checked_text(name)[:MAX_NAME_CHARS])
        return self._objects[handle]

    def remote_class(self, handle: Json, about: Json) -> type:
        """Return the proxy for a class of the solution. about: the description of a new class (`serve.py`)."""
        _check(type(handle) is int)
        if handle in self._classes:
            return self._classes[handle]
        _check(type(about) is dict and len(self._classes) < MAX_CLASSES)
        names = [about["name"], *about["methods"], *about["async"]]
        _check(len(names) <= MAX_NAMES and all(type(name) is str and len(name) <= MAX_NAME_CHARS for name in names))
        _check(all(name in SPECIAL_METHODS for name in about["special"]))
        _check(not any(name[:2] == "__" for name in names[1:]))
        bases = [base for base in map(self.decode, about["bases"]) if isinstance(base, type)]
        if about["error"] is True:
            error_bases = [base for base in bases if issubclass(base, BaseException)]
            first = [] if any(issubclass(base, RemoteError) for base in error_bases) else [RemoteError]
            namespace: dict[str, Value] = {"__module__": "solution", CLASS_HANDLE: handle}
            self._classes[handle] = type(about["name"], (*first, *error_bases), namespace)
        else:
            remote_bases = tuple(base for base in bases if issubclass(base, RemoteObject))
            data_base = next((base for base in bases if BUILTIN_TYPES.get(base.__name__) is base), None)
            self._classes[handle] = make_remote_class(self.session, handle, about, remote_bases, data_base)
        return self._classes[handle]

    def tuple_class(self, name: str, fields: tuple[str, ...]) -> type:
        """Return the class of a named tuple: a tuple with names for its elements."""
        key = (name, *fields)
        if key not in self._tuple_classes:
            _check(len(self._tuple_classes) < MAX_CLASSES and len(fields) <= MAX_NAMES)
            _check(all(type(field) is str and field.isidentifier() and field[:1] != "_" for field in fields))
            namespace: dict[str, Value] = {
                field: property(operator.itemgetter(index))
                for index, field in enumerate(fields)
                if field not in SEARCH_METHODS
            }
            as_dict: dict[str, Callable[..., Value]] = {
                "_asdict": lambda self: dict(zip(fields, self, strict=True)),
                "_replace": lambda self, **new: tuple.__new__(type(self), (self._asdict() | new).values()),
            }
            self._tuple_classes[key] = type(
                name, (tuple,), {**namespace, "__slots__": (), "_fields": fields, **as_dict}
            )
        return self._tuple_classes[key]


class _Encoder(Encoder):
    sends_object_arrays = False

    def __init__(self, values: RemoteValues, known: dict[int, int] | None = None) -> None:
        """known: the index of each object of both sides, by id. If it is None, mutable objects are tracked."""
        super().__init__(values.session.codecs, known=known, track=known is None)
        self._values = values

    def encode_foreign(self, value: Value, depth: int) -> Json:
        kind = type(value)
        if kind in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().encode_foreign(value, depth)
        if isinstance(value, BaseException) and EXCEPTIONS.get(kind.__name__) is kind:
            error_class = {"$": "builtin", "v": kind.__name__}
            return {"$": "exception", "of": error_class, "v": self.encode_items(list(value.args), depth)}
        if (reference := self._stand_in(value) or _refer_to_shared(value)) is not None:
            return reference
        if kind in _CALLBACK_TYPES:
            name = str(getattr(value, "__name__", "function"))
            return {"$": "callback", "v": self._values.register(value), "name": name}
        if hasattr(kind, "__next__") and kind.__module__ in _ITERATOR_MODULES:
            # The function returns a list with the next item, or an empty list at the end.
            return {"$": "pull", "v": self._values.register(lambda: list(itertools.islice(value, 1)))}
        return self._copy(value)

    def _stand_in(self, value: Value) -> Json | None:
        return {"$": "stand_in", "v": self._values.register_stand_in(value)} if may_stand_in(value) else None

    def _copy(self, value: Value) -> Json:
        if (pickled := _pickled(value)) is not None:
            return {"$": "pickle", "v": pickled}
        kind = type(value)
        made_by = value.__module__ if isinstance(value, type) else kind.__module__
        receivable = (
            isinstance(value, type | BaseException | ModuleType) or kind in _DATA_TYPES or kind.__module__ == "numpy"
        )
        raise CannotIsolate(
            f"it passes an object of type {kind.__name__} to the solution", receivable and made_by != TEST_MODULE
        )


def _pickled(value: Value) -> str | None:
    """Return a library's object as a pickle for the solution, or None. Pickles from the solution are never loaded."""
    if isinstance(value, type | ModuleType) or type(value).__module__.partition(".")[0] in _NOT_PICKLED:
        return None
    try:
        return base64.b64encode(pickle.dumps(value)).decode("ascii")
    except Exception:  # Classes that cannot be pickled raise errors of many types.
        return None


def _refer_to_shared(value: Value) -> Json | None:
    """Return a reference to a value that the solution's process has too, or None."""
    if isinstance(value, RemoteObject | RemoteFunction):
        return {"$": "handle", "v": value._truegold_handle}
    if isinstance(value, type) and (handle := vars(value).get(CLASS_HANDLE)) is not None:
        return {"$": "handle", "v": handle}
    if (name := shared_objects.builtin_name(value)) is not None:
        return {"$": "builtin", "v": name}
    if type(value) is MethodDescriptorType and BUILTIN_TYPES.get(value.__objclass__.__name__) is value.__objclass__:
        return {"$": "method", "of": value.__objclass__.__name__, "v": value.__name__}
    path = shared_objects.local_name(value)
    return None if path is None else {"$": "local", "v": path}


class _Decoder(Decoder):
    def __init__(self, values: RemoteValues, known: Sequence[Value], asked: str | None) -> None:
        super().__init__(values.session.codecs, values.session.find_class, known=known)
        self.values = values
        self._asked = asked

    @property
    def asked(self) -> str:
        if self._asked is None:
            raise Undecodable("it names an object without being asked for one")
        return self._asked

    def numpy_module(self) -> Value:
        return shared_objects.numpy_if_installed() if self.values.session.uses_numpy else None

    def make_iterated(self, elements: list[Value], kind: str) -> Value:
        return shared_objects.make_view(elements, kind)

    def make_named_tuple(self, elements: tuple[Value, ...], data: dict[str, Json]) -> Value:
        names = data["names"]
        _check(type(names) is list and len(names) == len(elements))
        kind = self.values.tuple_class(_checked_text(data["of"])[:MAX_NAME_CHARS], tuple(names))
        return tuple.__new__(kind, elements)


_Decoder.further = {
    "remote": lambda decoder, data: decoder.values.remote_object(data["v"], decoder.decode_part(data["of"], 0)),
    "function": lambda decoder, data: decoder.values.remote_function(data["v"], data["name"], data["async"]),
    "class": lambda decoder, data: decoder.values.remote_class(data["v"], data.get("is")),
    "builtin": lambda decoder, data: {**EXCEPTIONS, **BUILTIN_TYPES}[_checked_text(data["v"])],
    "library": lambda decoder, data: _library_exception(data["v"], data["else"]),
    "exception": lambda decoder, data: _new_error(
        decoder.decode_part(data["of"], 0), tuple(decoder.decode_items(data["v"], 0))
    ),
    "callback": lambda decoder, data: _own_object(decoder.values.function(data["v"])),
    "module": lambda decoder, data: shared_objects.module_under_name(decoder.asked, data["v"]),
    "local": lambda decoder, data: _local_as_asked(decoder.asked, *data["v"]),
}


def _new_error(kind: Value, args: tuple[Value, ...]) -> BaseException:
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise Undecodable("what it raised is not an exception")
    try:
        return kind(*args)
    except (TypeError, ValueError):
        error = kind.__new__(kind)
        error.args = args
        return error


def _own_object(function: Callable[..., Value]) -> Value:
    return function.value if isinstance(function, StandIn) else function


def _local_as_asked(asked: str, module: Json, name: Json) -> Value:
    if name != asked:
        raise Undecodable("it names another object than the one asked for")
    return shared_objects.local_object(module, asked)


def _library_exception(path: Json, nearest: Json) -> type:
    try:
        return shared_objects.library_class(path[0], path[1], Exception)
    except LookupError:
        return EXCEPTIONS[_checked_text(nearest)]


def _checked_text(value: Json) -> str:
    if type(value) is not str:
        raise Undecodable("a text was expected")
    return value


def _check(holds: bool) -> None:
    if not holds:
        raise Undecodable("an invalid description")

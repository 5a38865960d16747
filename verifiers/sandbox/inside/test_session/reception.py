"""Decodes what the solution sends for the test code: data of exact built-in types, remote objects for the rest.

Nothing is believed: a description that makes no sense raises, and the session ends. What a value can be is a closed
list (`wire`, `shared_names.py`, `remote_objects.py`). Nothing in it is run, and nothing compares by rules of the
solution's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..wire import Decoder, Json, Undecodable
from .remote_objects import (
    CLASS_HANDLE,
    SEARCH_METHODS,
    RemoteCoroutineFunction,
    RemoteFunction,
    RemoteObject,
    remote_class,
    remote_object,
)
from .sending import Sender
from .shared_names import (
    BUILTIN_TYPES,
    EXCEPTIONS,
    SPECIAL_METHODS,
    library_exception,
    local_object,
    make_view,
    module_under_name,
    numpy_if_installed,
)

MAX_CLASSES = 10_000
MAX_NAMES = 2000
MAX_NAME_CHARS = 200
"""How many classes there may be, how many methods each, and how long their names. They stop descriptions that are made
to fill the memory."""


class Receiver:
    """Decodes answers, and keeps one remote object for each object and class of the solution."""

    def __init__(self, session: Any, sender: Sender) -> None:
        self.session = session
        self.sender = sender
        self._objects: dict[int, Any] = {}
        self._classes: dict[int, type] = {}
        self._tuple_classes: dict[tuple[str, ...], type] = {}

    def decode(self, data: Json, known: Sequence[Any] = (), asked: str | None = None) -> Any:
        """Return the value of an answer. Raises `Undecodable`.

        known: objects that the data may refer to. asked: the name that was asked for, where one was.
        """
        return _Decoder(self, known, asked).decode(data)

    def decode_exception(self, kind: Json, message: Json, args: Json, attributes: Json) -> BaseException:
        """Return an exception that the solution raised."""
        error_class = self.decode(kind)
        if not isinstance(error_class, type) or not issubclass(error_class, BaseException):
            raise Undecodable("what it raised is no exception")
        values = self.decode(args) if args is not None else (_checked_text(message),)
        if type(values) is not tuple or type(attributes) is not dict:
            raise Undecodable("arguments of an exception are a tuple")
        try:
            error = error_class(*values)
        except (TypeError, ValueError):
            error = error_class.__new__(error_class)
            error.args = values
        if isinstance(error, _RemoteError):
            error._solution_message = _checked_text(message)
        for name, value in attributes.items():
            if name[:1] != "_" and type(error_class) is type and hasattr(error, "__dict__"):
                vars(error)[name] = self.decode(value)
        return error

    def class_handle(self, kind: type) -> int | None:
        """Return the handle of the solution's class that this one stands for."""
        return next((handle for handle, known in self._classes.items() if known is kind), None)

    def remote_object(self, handle: Json, kind: type) -> Any:
        """Return what stands for an object of the solution. kind: the class that stands for its class."""
        _check(type(handle) is int and issubclass(kind, RemoteObject))
        self.session.note_return(handle)
        if handle not in self._objects:
            self._objects[handle] = remote_object(self.session, handle, kind)
        return self._objects[handle]

    def remote_function(self, handle: Json, name: Json, is_coroutine: Json) -> Any:
        """Return what stands for a function of the solution."""
        _check(type(handle) is int)
        if handle not in self._objects:
            kind = RemoteCoroutineFunction if is_coroutine is True else RemoteFunction
            self._objects[handle] = kind(self.session, handle, _checked_text(name)[:MAX_NAME_CHARS])
        return self._objects[handle]

    def remote_class(self, handle: Json, about: Json) -> type:
        """Return what stands for a class of the solution. about: its description, if it is a new one."""
        _check(type(handle) is int)
        if handle in self._classes:
            return self._classes[handle]
        _check(type(about) is dict and len(self._classes) < MAX_CLASSES)
        names = [about["name"], *about["methods"], *about["async"]]
        _check(len(names) <= MAX_NAMES and all(type(name) is str and len(name) <= MAX_NAME_CHARS for name in names))
        _check(all(name in SPECIAL_METHODS for name in about["special"]))
        _check(not any(name[:2] == "__" for name in names[1:]))
        bases = tuple(self.decode(base) for base in about["bases"])
        if about["error"] is True:
            self._classes[handle] = _exception_class(about["name"], bases, handle)
        else:
            remote_bases = tuple(base for base in bases if isinstance(base, type) and issubclass(base, RemoteObject))
            self._classes[handle] = remote_class(self.session, handle, about, remote_bases)
        return self._classes[handle]

    def tuple_class(self, name: str, fields: tuple[str, ...]) -> type:
        """Return the class of a named tuple: a tuple with names for its elements."""
        key = (name, *fields)
        if key not in self._tuple_classes:
            _check(len(self._tuple_classes) < MAX_CLASSES and len(fields) <= MAX_NAMES)
            _check(all(type(field) is str and field.isidentifier() and field[:1] != "_" for field in fields))
            namespace: dict[str, Any] = {
                field: property(operator.itemgetter(index))
                for index, field in enumerate(fields)
                if field not in SEARCH_METHODS
            }
            namespace |= {"__slots__": (), "_fields": fields, "_asdict": _as_dict}
            self._tuple_classes[key] = type(name, (tuple,), namespace)
        return self._tuple_classes[key]


class _Decoder(Decoder):
    def __init__(self, receiver: Receiver, known: Sequence[Any], asked: str | None) -> None:
        session = receiver.session
        super().__init__(session.codecs, session.find_class, known=known)
        self.receiver = receiver
        self.asked = asked

    def numpy_module(self) -> Any:
        return numpy_if_installed() if self.receiver.session.uses_numpy else None

    def make_iterated(self, elements: list[Any], kind: str) -> Any:
        return make_view(elements, kind)

    def make_named_tuple(self, elements: tuple[Any, ...], data: dict[str, Json]) -> Any:
        names = data["names"]
        _check(type(names) is list and len(names) == len(elements))
        kind = self.receiver.tuple_class(_checked_text(data["of"])[:MAX_NAME_CHARS], tuple(names))
        return tuple.__new__(kind, elements)

    def decode_foreign(self, tag: object, data: dict[str, Json]) -> Any:
        handler = _HANDLERS.get(str(tag))
        return super().decode_foreign(tag, data) if handler is None else handler(self, data)


_HANDLERS: Mapping[str, Callable[[_Decoder, dict[str, Json]], Any]] = {
    "remote": lambda decoder, data: decoder.receiver.remote_object(data["v"], decoder.decode_part(data["of"], 0)),
    "function": lambda decoder, data: decoder.receiver.remote_function(data["v"], data["name"], data["async"]),
    "class": lambda decoder, data: decoder.receiver.remote_class(data["v"], data.get("is")),
    "builtin": lambda decoder, data: _builtin_class(_checked_text(data["v"])),
    "library": lambda decoder, data: _library_exception(data["v"], data["else"]),
    "exception": lambda decoder, data: EXCEPTIONS[_checked_text(data["of"])](*decoder.decode_items(data["v"], 0)),
    "callback": lambda decoder, data: decoder.receiver.sender.function(data["v"]),
    "module": lambda decoder, data: module_under_name(_asked_name(decoder), data["v"]),
    "local": lambda decoder, data: _local_as_asked(_asked_name(decoder), *data["v"]),
}


def _builtin_class(name: str) -> type:
    return BUILTIN_TYPES.get(name) or EXCEPTIONS[name]


def _asked_name(decoder: _Decoder) -> str:
    if decoder.asked is None:
        raise Undecodable("it names what nobody asked for")
    return decoder.asked


def _local_as_asked(asked: str, module: Json, name: Json) -> Any:
    if name != asked:
        raise Undecodable("it names another thing than was asked for")
    return local_object(module, asked)


class _RemoteError:
    """A base of the classes that stand for the solution's exceptions: their text is the one that they have there."""

    _solution_message: str | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        vars(self).update(named)

    def __str__(self) -> str:
        return super().__str__() if self._solution_message is None else self._solution_message


def _exception_class(name: str, bases: tuple[Any, ...], handle: int) -> type:
    error_bases = tuple(base for base in bases if isinstance(base, type) and issubclass(base, BaseException))
    first = () if any(issubclass(base, _RemoteError) for base in error_bases) else (_RemoteError,)
    return type(name, (*first, *error_bases), {"__module__": "solution", CLASS_HANDLE: handle})


def _library_exception(path: Json, nearest: Json) -> type:
    try:
        return library_exception(*path)
    except LookupError:
        return EXCEPTIONS[_checked_text(nearest)]


def _as_dict(value: Any) -> dict[str, Any]:
    return dict(zip(type(value)._fields, value, strict=True))


def _checked_text(value: Json) -> str:
    if type(value) is not str:
        raise Undecodable("a text was expected")
    return value


def _check(holds: bool) -> None:
    if not holds:
        raise Undecodable("a description that makes no sense")

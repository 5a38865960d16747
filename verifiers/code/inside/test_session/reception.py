"""How what the solution sends becomes values of the test code: data of exact built-in types, stubs for the rest.

Nothing is believed: a description that makes no sense raises, and the session ends. What a value can be is a closed
list (`values.py`, `shared.py`, `stubs.py`); nothing in it is run, and nothing compares by rules of the solution's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..wire import Decoder, Json, Undecodable
from .remote_objects import TELLING, RemoteCoroutineFunction, RemoteFunction, RemoteObject, object_class, stub_of
from .sending import NUMBER_OF_CLASS, Sender
from .shared_names import (
    BUILTIN_TYPES,
    EXCEPTIONS,
    SPECIAL,
    library_exception,
    local,
    module_for,
    numpy_if_installed,
    view_of,
)

MAX_CLASSES = 10_000
MAX_NAMES = 2000
"""Of a class's methods. Both stop descriptions made to fill the memory."""

_NAME_CHARS = 200


class Receiver:
    """Decodes answers, and keeps one stub for each object and class of the solution."""

    def __init__(self, session: Any, sender: Sender) -> None:
        self.session = session
        self.sender = sender
        self._stubs: dict[int, Any] = {}
        self._classes: dict[int, type] = {}
        self._tuples: dict[tuple[str, ...], type] = {}

    def decode(self, data: Json, known: Sequence[Any] = (), asked: str | None = None) -> Any:
        """known: objects that the data may refer to. asked: the name that was asked for, where one was."""
        return _Decoder(self, known, asked).decode(data)

    def exception(self, kind: Json, message: Json, args: Json, attributes: Json) -> BaseException:
        """An exception that the solution raised."""
        of = self.decode(kind)
        if not isinstance(of, type) or not issubclass(of, BaseException):
            raise Undecodable("what it raised is no exception")
        values = self.decode(args) if args is not None else (_text(message),)
        if type(values) is not tuple or type(attributes) is not dict:
            raise Undecodable("arguments of an exception are a tuple")
        try:
            made = of(*values)
        except (TypeError, ValueError):
            made = of.__new__(of)
            made.args = values
        if hasattr(of, "_said"):
            made._said = _text(message)  # type: ignore[attr-defined]
        for name, value in attributes.items():
            if name[:1] != "_" and type(of) is type and hasattr(made, "__dict__"):
                vars(made)[name] = self.decode(value)
        return made

    def number_of(self, kind: type) -> int | None:
        """The number of the solution's class that this one stands for."""
        return next((number for number, made in self._classes.items() if made is kind), None)

    def stub(self, number: Json, kind: type) -> Any:
        _check(type(number) is int and issubclass(kind, RemoteObject))
        self.session.came_back(number)
        if number not in self._stubs:
            self._stubs[number] = stub_of(self.session, number, kind)
        return self._stubs[number]

    def function(self, number: Json, name: Json, later: Json) -> Any:
        _check(type(number) is int)
        if number not in self._stubs:
            kind = RemoteCoroutineFunction if later is True else RemoteFunction
            self._stubs[number] = kind(self.session, number, _text(name)[:_NAME_CHARS])
        return self._stubs[number]

    def class_of(self, number: Json, about: Json) -> type:
        _check(type(number) is int)
        if number in self._classes:
            return self._classes[number]
        _check(type(about) is dict and len(self._classes) < MAX_CLASSES)
        names = [about["name"], *about["methods"], *about["async"]]
        _check(len(names) <= MAX_NAMES and all(type(name) is str and len(name) <= _NAME_CHARS for name in names))
        _check(all(name in SPECIAL for name in about["special"]))
        _check(not any(name[:2] == "__" for name in names[1:]))
        bases = tuple(self.decode(base) for base in about["bases"])
        if about["error"] is True:
            self._classes[number] = _exception_class(about["name"], bases, number)
        else:
            stubs = tuple(base for base in bases if isinstance(base, type) and issubclass(base, RemoteObject))
            self._classes[number] = object_class(self.session, number, about, stubs)
        return self._classes[number]

    def tuple_class(self, name: str, fields: tuple[str, ...]) -> type:
        """For named tuples: a tuple with names for its places."""
        key = (name, *fields)
        if key not in self._tuples:
            _check(len(self._tuples) < MAX_CLASSES and len(fields) <= MAX_NAMES)
            _check(all(type(field) is str and field.isidentifier() and field[:1] != "_" for field in fields))
            named = [(at, field) for at, field in enumerate(fields) if field not in TELLING]
            places: dict[str, Any] = {field: property(operator.itemgetter(at)) for at, field in named}
            places |= {"__slots__": (), "_fields": fields, "_asdict": _as_dict}
            self._tuples[key] = type(name, (tuple,), places)
        return self._tuples[key]


class _Decoder(Decoder):
    def __init__(self, receiver: Receiver, known: Sequence[Any], asked: str | None) -> None:
        session = receiver.session
        super().__init__(session.codecs, session.find_class, known=known)
        self.receiver = receiver
        self.asked = asked

    def numpy(self) -> Any:
        return numpy_if_installed() if self.receiver.session.uses_numpy else None

    def iterated(self, items: list[Any], kind: str) -> Any:
        return view_of(items, kind)

    def named_tuple(self, items: tuple[Any, ...], data: dict[str, Json]) -> Any:
        names = data["names"]
        _check(type(names) is list and len(names) == len(items))
        return tuple.__new__(self.receiver.tuple_class(_text(data["of"])[:_NAME_CHARS], tuple(names)), items)

    def foreign(self, tag: object, data: dict[str, Json]) -> Any:
        made = _RECEIVED.get(str(tag))
        return super().foreign(tag, data) if made is None else made(self, data)


_RECEIVED: Mapping[str, Callable[[_Decoder, dict[str, Json]], Any]] = {
    "remote": lambda decoder, data: decoder.receiver.stub(data["v"], decoder.value(data["of"], 0)),
    "function": lambda decoder, data: decoder.receiver.function(data["v"], data["name"], data["async"]),
    "class": lambda decoder, data: decoder.receiver.class_of(data["v"], data.get("is")),
    "builtin": lambda decoder, data: BUILTIN_TYPES.get(_text(data["v"])) or EXCEPTIONS[_text(data["v"])],
    "library": lambda decoder, data: _library(data["v"], data["else"]),
    "exception": lambda decoder, data: EXCEPTIONS[_text(data["of"])](*decoder.items(data["v"], 0)),
    "callback": lambda decoder, data: decoder.receiver.sender.function(data["v"]),
    "module": lambda decoder, data: module_for(_asked(decoder), data["v"]),
    "local": lambda decoder, data: _local(_asked(decoder), *data["v"]),
}


def _asked(decoder: _Decoder) -> str:
    if decoder.asked is None:
        raise Undecodable("it names what nobody asked for")
    return decoder.asked


def _local(asked: str, module: Json, name: Json) -> Any:
    if name != asked:
        raise Undecodable("it names another thing than was asked for")
    return local(module, asked)


class _SaidError:
    """What the classes of the solution's exceptions have besides: they say what they said there."""

    _said: str | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        vars(self).update(named)

    def __str__(self) -> str:
        return super().__str__() if self._said is None else self._said


def _exception_class(name: str, bases: tuple[Any, ...], number: int) -> type:
    above = tuple(base for base in bases if isinstance(base, type) and issubclass(base, BaseException))
    own = () if any(issubclass(base, _SaidError) for base in above) else (_SaidError,)
    return type(name, (*own, *above), {"__module__": "solution", NUMBER_OF_CLASS: number})


def _library(place: Json, nearest: Json) -> type:
    try:
        return library_exception(*place)
    except LookupError:
        return EXCEPTIONS[_text(nearest)]


def _as_dict(value: Any) -> dict[str, Any]:
    return dict(zip(type(value)._fields, value, strict=True))


def _text(value: Json) -> str:
    if type(value) is not str:
        raise Undecodable("a text was expected")
    return value


def _check(holds: bool) -> None:
    if not holds:
        raise Undecodable("a description that makes no sense")

"""Loads the program of a test session, and answers requests of the test code's process until that process ends.

The test code runs in another process, which asks for calls and values of the program. These are the requests:

    ["call", 0, args, names]             call a function, given by its handle
    ["method", 2, "push", args, names]   call a method of an object
    ["special", 2, "__len__", args]      call a special method
    ["operate", "add", args]             apply an operator
    ["attribute", 2, "size"]             get an attribute
    ["set", 2, "size", 5]                set an attribute
    ["data", 2]                          get the data of an object whose class is derived from a built-in type
    ["name", "helper"]                   get a global variable of the program
    ["entry", "Solution().twoSum"]       get the function to test
    ["library", "matplotlib.pyplot", "gcf"]
                                         get a function of a library that holds objects of the program
    ["public"]                           get the names of the program's public variables

args is a tuple. Its last items are the keyword arguments in `names`. These are the answers:

    ["ok", 3]                            the value
    ["error", class, message, args, attributes, cause]
    ["missing"]                          a name that the program does not define
    ["lent", value, containers, changes] a value with containers that the program still uses: they are lent (`Lender`)
    ["changed", contents]                the new contents of the arguments, if the call returned None
    ["changed", contents, 3]             the new contents and the value, if the request ends with `true`

A request ends with `true` if the tests check the arguments after the call (`session.ArgumentUse`).

Both processes have a copy of each lent container. A request or answer can begin with the sender's changes:

    ["also", {"take": changes, "follow": surroundings}, "call", ...]
    ["also", {"changes": changes, "printed": texts}, "ok", 3]

`changes` has the new contents of lent containers. `surroundings` has changes by the test code to names, streams, folder
and environment, which the program must see (`surroundings.py`). `printed` has the texts that the program printed.

A running function may call functions of the test code with ["callback", index, args, names]. The answer is ["value",
value] or ["raise", class, args]. Other requests may come before this answer.

The first message says whether the program could be loaded. Plain data is sent as data. Other objects stay here. They
are sent as handles, which are numbers:

    a function, a class, an instance     {"$": "function" | "class" | "remote", "v": 7, ...}
    the same object as an argument       {"$": "handle", "v": 7}
    a function of the test code          {"$": "callback", "v": 0}, called over the connection to the test process

The first message with a class describes it, so that the test code can build a proxy with the same name and methods.
"""

from __future__ import annotations

import base64
import builtins
import copy
import enum
import operator
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import CO_COROUTINE, Parameter, signature
from types import BuiltinFunctionType, CoroutineType, FunctionType, MethodType, ModuleType

from ..program import MODULE, NotDefined, class_finder, describe_error, load, look_up, run_coroutine
from ..wire.decoding import Decoder
from ..wire.encoding import DICT_VIEWS, MAX_DEPTH, Encoder, PartnerGone, PartnerLine, from_json
from ..wire.value_types import KNOWN_CODECS, Codecs, Json, ResultTooLarge, Value
from . import shared_objects
from .remote_objects import OPERATORS
from .shared_objects import BUILTIN_TYPES, EXCEPTIONS, SPECIAL_METHODS, Lender, make_view, numpy_if_installed
from .surroundings import Followed, Used


def run_serve(payload: bytes) -> None:
    """Load the program of the payload, a line of JSON, and serve requests."""
    request = from_json(payload, len(payload))
    line = PartnerLine()
    try:
        line.receive()  # The tests import their modules first, so that the solution cannot change them before.
    except PartnerGone:
        os._exit(0)
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

    def __init__(self, line: PartnerLine, namespace: dict[str, Value], codecs: dict[str, list[str]]) -> None:
        self._line = line
        self._namespace = namespace
        self._handles = Handles(namespace, codecs, self._call_back)
        self._lender = Lender(self._handles.encode, self._handles.decode_known)
        self._followed = Followed(sys.modules[MODULE], self._handles.decode)
        self._captures = False
        """Whether the test code reads printed text."""
        self._turn = threading.RLock()

    def answer(self, request: list[Value]) -> None:
        try:
            kind, *parts = request
            if kind == "also":
                before, kind, *parts = parts
                self._lender.take(before["take"])
                self._followed.follow(before["follow"])
                self._captures = before["follow"].get("captures", self._captures)
            reply = _REQUESTS[kind](self, *parts)
        except PartnerGone:
            os._exit(0)
        except BaseException as error:
            reply = self._encode_error(error)
        printed = self._followed.printed() if self._captures else ["", ""]
        # An answer that lends containers includes the contents of all lent containers.
        after = {"changes": [] if reply[0] == "lent" else self._lender.changes(), "printed": printed}
        if after["changes"] or any(printed):
            reply = ["also", after, *reply]
        self._line.send(reply)

    def call(self, handle: int, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._call(self._handles[handle], args, names, keep)

    def method(self, handle: int, name: str, args: Json, names: list[str], keep: bool = False) -> Json:
        return self._call(getattr(self._handles[handle], name), args, names, keep)

    def special(self, handle: int, name: str, args: Json) -> Json:
        target = self._handles[handle]
        values = self._handles.decode(args)
        if name in _COPIES:
            return ["ok", self._handles.refer(_COPIES[name](target))]
        if name == "__signature__":
            return ["ok", self._handles.encode(list(map(_describe_parameter, signature(target).parameters.values())))]
        method = getattr(type(target), name, None)
        if method is None:
            raise TypeError(f"{type(target).__name__!r} object has no {name}")
        result = method(target, *values)
        return self._answer(result)

    def operate(self, name: str, args: Json) -> Json:
        return ["ok", self._handles.encode(OPERATORS[name](*self._handles.decode(args)))]

    def data(self, handle: int) -> Json:
        encoder = _Encoder(self._handles, None)
        return ["ok", Encoder.encode_uncommon(encoder, self._handles[handle], 0)]

    def attribute(self, handle: int, name: str) -> Json:
        value = getattr(self._handles[handle], name)
        return self._lender.lend(value) or ["ok", self._handles.encode(value)]

    def set(self, handle: int, name: str, value: Json) -> Json:
        setattr(self._handles[handle], name, self._handles.decode(value))
        return ["ok", None]

    def name(self, name: str) -> Json:
        """Send a global variable of the program. Objects of shared modules are sent by name."""
        if name not in self._namespace:
            return ["missing"]
        value = self._namespace[name]
        if isinstance(value, ModuleType) and shared_objects.may_stand_for(name, value.__name__):
            return ["ok", {"$": "module", "v": value.__name__}]
        path = shared_objects.local_name_as_asked(name, value)
        return ["ok", {"$": "local", "v": path} if path else self._handles.encode(value)]

    def entry(self, expression: str) -> Json:
        try:
            return ["ok", self._handles.refer(look_up(self._namespace, expression))]
        except NotDefined:
            return ["missing"]

    def library(self, module: str, name: str) -> Json:
        """Send a function of a module that holds objects of the program, as pyplot holds figures."""
        return ["ok", self._handles.refer(getattr(import_module(module), name))]

    def public(self) -> Json:
        return ["ok", [name for name in self._namespace if not name.startswith("_")]]

    def _call(self, function: Callable[..., Value], args: Json, names: list[str], keep: bool) -> Json:
        objects: list[Value] = []
        values = self._handles.decode(args, objects)
        first = len(values) - len(names)
        result = function(*values[:first], **dict(zip(names, values[first:], strict=True)))
        if type(result) is CoroutineType:
            result = run_coroutine(result)
        # The result of a class is an instance for the test code, even if the class is derived from a built-in type.
        is_new_instance = isinstance(function, type) and isinstance(result, function)
        if objects and (keep or result is None):
            known = {id(value): index for index, value in enumerate(objects)}
            parts = [shared_objects.contents(value, self._handles.codecs) for value in objects]
            changed = ["changed", self._handles.encode(parts, known)]
            if result is None:
                return changed
            return [*changed, self._handles.refer(result) if is_new_instance else self._handles.encode(result, known)]
        if is_new_instance or any(result is each for each in objects):
            return ["ok", self._handles.refer(result) if is_new_instance else self._handles.encode(result)]
        del values
        return self._answer(result)

    def _answer(self, result: Value) -> Json:
        """Return the answer with a result. Containers that the program also holds are lent."""
        held = sys.getrefcount(result) > _REFERENCES or shared_objects.has_shared_parts(result)
        return (held and self._lender.lend(result)) or ["ok", self._handles.encode(result)]

    def _call_back(self, index: int, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        with self._turn:
            data = self._handles.encode((*args, *kwargs.values()))
            self._line.send(["callback", index, data, list(kwargs)])
            while True:
                kind, *rest = self._line.receive()
                if kind == "value":
                    return self._handles.decode(rest[0])
                if kind == "raise":
                    error_class, args = map(self._handles.decode, rest)
                    raise error_class(*args)
                self.answer([kind, *rest])

    def _encode_error(self, error: BaseException, depth: int = 0) -> Json:
        """Return an exception for the test code: its class, message, arguments, attributes and cause."""
        error.__traceback__ = error.__context__ = None
        kind, message, _ = describe_error(error)
        try:
            args = self._handles.encode(error.args)
            attributes = {name: self._handles.encode(value) for name, value in vars(error).items()}
            cause = (
                self._encode_error(error.__cause__, depth + 1)[1:] if error.__cause__ and depth < MAX_CAUSES else None
            )
            return ["error", self._handles.refer_to_class(type(error)), message, args, attributes, cause]
        except (ResultTooLarge, RecursionError, MemoryError):
            builtin = {"$": "builtin", "v": kind if kind in EXCEPTIONS else "Exception"}
            return ["error", builtin, message, None, {}, None]


def _describe_parameter(parameter: Parameter) -> list[Value]:
    has_default = parameter.default is not parameter.empty
    return [parameter.name, int(parameter.kind), {"default": parameter.default} if has_default else {}]


MAX_CAUSES = 5
"""Maximum length of the chain of causes that is sent with an exception."""

_COPIES: Mapping[str, Callable[[Value], Value]] = {"__copy__": copy.copy, "__deepcopy__": copy.deepcopy}

_REQUESTS: Mapping[str, Callable[..., Json]] = {
    name: getattr(_Server, name)
    for name in "call method special operate data attribute set name entry library public".split()
}


_REFERENCES = 3
"""Number of references to a result from this module: two variables and an argument. Further ones are the program's."""

_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)

CallBack = Callable[[int, tuple[Value, ...], dict[str, Value]], Value]
"""Calls a function of the test code: its number, arguments and keyword arguments."""


class Handles:
    """Maps handles, which are numbers, to the objects of this process that the test code knows."""

    def __init__(self, namespace: Mapping[str, Value], codecs: Codecs, call_back: CallBack) -> None:
        self.codecs = {**KNOWN_CODECS, **codecs}
        self.find_class = class_finder(namespace, self.codecs)
        self._call_back = call_back
        self._objects: list[Value] = []
        self._handles: dict[int, int] = {}
        self._stand_ins: dict[int, Value] = {}
        self._callbacks: dict[int, Callable[..., Value]] = {}
        self._callback_indices: dict[int, int] = {}
        self._described: set[int] = set()

    def __getitem__(self, handle: int) -> Value:
        return self._objects[handle]

    def encode(self, value: Value, known: dict[int, int] | None = None) -> Json:
        """Return the JSON of a value. known: the index of each object that the test code has too, by id."""
        return _Encoder(self, known).encode(value)

    def decode_known(self, data: Json, known: Sequence[Value]) -> Value:
        """Return the value of JSON that may refer to objects of both sides by index."""
        return _Decoder(self, False, known).decode(data)

    def decode(self, data: Json, tracked: list[Value] | None = None) -> Value:
        """Return the value of an argument. tracked: a list to which its mutable objects are added."""
        decoder = _Decoder(self, tracked is not None)
        value = decoder.decode(data)
        if tracked is not None:
            tracked += decoder.tracked
        return value

    def callback(self, index: int, name: str = "function") -> Callable[..., Value]:
        """Return the proxy for a function of the test code."""
        if index not in self._callbacks:

            def function(*args: Value, **kwargs: Value) -> Value:
                return self._call_back(index, args, kwargs)

            function.__name__ = function.__qualname__ = name
            self._callbacks[index] = function
            self._callback_indices[id(function)] = index
        return self._callbacks[index]

    def stand_in(self, index: int) -> Value:
        """Return the proxy for an object of the test code."""
        if index not in self._stand_ins:
            used = self._stand_ins[index] = Used(self.callback(index))
            self._callback_indices[id(used)] = index
        return self._stand_ins[index]

    def knows(self, value: Value) -> bool:
        """Return whether an object has a handle."""
        return id(value) in self._handles

    def refer(self, value: Value) -> Json:
        """Return the reference to an object that stays in this process."""
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
        """Return the reference to a class. The first reference includes a description."""
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

    def _handle_of(self, value: Value) -> int:
        handle = self._handles.get(id(value))
        if handle is None:
            handle = self._handles[id(value)] = len(self._objects)
            self._objects.append(value)
        return handle

    def _describe(self, cls: type) -> dict[str, Json]:
        members: dict[str, Value] = {}
        for base in reversed(cls.__mro__[:-1]):
            members.update(vars(base))
        functions = {name: value for name, value in members.items() if type(value) is FunctionType and name[:2] != "__"}
        return {
            "name": cls.__name__,
            "module": cls.__module__,
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
        if self._handles.knows(value) or isinstance(value, enum.Enum):
            return self._handles.refer(value)
        return super().encode_uncommon(value, depth)

    def encode_foreign(self, value: object, depth: int) -> Json:
        if type(value) in DICT_VIEWS and depth <= MAX_DEPTH:
            return super().encode_foreign(value, depth)
        if isinstance(value, BaseException):
            error_class = self._handles.refer_to_class(type(value))
            return {"$": "exception", "of": error_class, "v": self.encode_items(list(value.args), depth)}
        self.spend(64)
        return self._handles.refer(value)


class _Decoder(Decoder):
    def __init__(self, handles: Handles, track: bool, known: Sequence[Value] = ()) -> None:
        super().__init__(handles.codecs, handles.find_class, known=known, track=track)
        self.handles = handles

    def make_iterated(self, elements: list[Value], kind: str) -> Value:
        return make_view(elements, kind)

    def numpy_module(self) -> Value:
        return numpy_if_installed()


_Decoder.further = {
    "handle": lambda decoder, data: decoder.handles[data["v"]],
    "callback": lambda decoder, data: decoder.handles.callback(data["v"], data["name"]),
    "library": lambda decoder, data: _library_class(*data["v"]) or getattr(builtins, data["else"]),
    "pickle": lambda decoder, data: pickle.loads(base64.b64decode(data["v"])),
    "stand_in": lambda decoder, data: decoder.handles.stand_in(data["v"]),
    "pull": lambda decoder, data: _pull(decoder.handles.callback(data["v"])),
    "builtin": lambda decoder, data: getattr(builtins, data["v"]),
    "method": lambda decoder, data: getattr(BUILTIN_TYPES[data["of"]], data["v"]),
    "local": lambda decoder, data: shared_objects.local_object(*data["v"]),
    "exception": lambda decoder, data: decoder.decode_part(data["of"], 0)(*decoder.decode_items(data["v"], 0)),
}


def _library_class(module: str, name: str) -> Value:
    """Return a class by its name in its module, or None."""
    try:
        return operator.attrgetter(name)(import_module(module))
    except (ImportError, AttributeError):
        return None


def _pull(advance: Callable[[], Sequence[Value]]) -> Iterator[Value]:
    """Yield the items of an iterator of the test code. Each item is requested when it is needed."""
    while item := advance():
        yield item[0]

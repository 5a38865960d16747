"""Proxies by which test code uses a solution in another process.

    candidate(3)         a call in the solution's process
    stack = Stack()      an object whose class has the name, the bases and the methods of the solution's class
    stack.push(3)        a call there; so are attributes, len(), iteration, indexing, `in`, str() and `with`

A solution must not pass by lying about itself. So its own `__eq__` is ignored when an object is compared with plain
data (`operators.py`). Methods such as `startswith` are refused for an object that a function returned: the tests expect
a text or a list there, and the object could answer yes to everything. Objects that the test code made, `Trie()`, may
answer, because that is how classes are tested.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import decimal
import fractions
import functools
import inspect
import itertools
import operator
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodDescriptorType, MethodType, ModuleType
from typing import NoReturn, Protocol

from ..wire.decoding import Decoder
from ..wire.encoding import DICT_VIEWS, MAX_DEPTH, Encoder
from ..wire.foreign_values import Json, Undecodable, Value
from . import shared_objects
from .operators import CLASS_HANDLE, OPERATOR_METHODS, Operators
from .shared_objects import BUILTIN_TYPES, EXCEPTIONS, SPECIAL_METHODS
from .surroundings import TEST_MODULE, StandIn, may_stand_in, mock_names

SEARCH_METHODS = frozenset(
    "startswith endswith issubset issuperset isdisjoint find rfind index rindex count equals identical all any".split()
)
"""Methods that search an object for an expected value: `startswith`, `count`. Only objects that the test code made may
answer them."""

_READING_METHODS = frozenset("decode encode format join translate".split())
"""Methods of data whose arguments are never expected values."""

_DATA_TYPES_ASKED: tuple[type, ...] = (
    *(str, bytes, tuple, frozenset, int, float, complex, decimal.Decimal, fractions.Fraction),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
)
"""Immutable types whose methods tests call on expected data."""
DATA_METHODS = SEARCH_METHODS | (
    {name for kind in _DATA_TYPES_ASKED for name in dir(kind) if callable(getattr(kind, name))} - _READING_METHODS
)
"""Methods of immutable data. Test code that calls one expects data. An object of the solution may answer only if the
test code names its class."""

DESCRIBING_NAMES = frozenset({"__annotations__", "__dict__", "__doc__", "__qualname__"})
"""Names with two underscores that a solution may answer. Other names, such as `__array_function__`, let an object do the
work of a library."""

MAX_CLASSES = 10_000
MAX_NAMES = 2000
MAX_NAME_CHARS = 200
"""Limits on the number of classes, the methods of a class and the characters of a name. Stop descriptions made to fill
the memory."""

_DATA_TYPES = frozenset(BUILTIN_TYPES.values())
"""Types whose objects can be sent as data."""

_ITERATOR_MODULES = frozenset({"builtins", "itertools", "_csv", TEST_MODULE})
"""The modules of plain iterators. Iterators of other modules, such as a cursor of sqlite3, can do more."""

_NOT_PICKLED = frozenset({"builtins", "numpy", "unittest", "solution", TEST_MODULE})
"""Packages whose objects are not sent as pickles: they are sent in another form, or belong to one process."""

_CALLBACK_TYPES = (
    *(FunctionType, MethodType, BuiltinFunctionType, functools.partial, type(functools.cache(len))),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller),
)

_BUILTIN_LOOKS: dict[str, type] = {
    "generator": GeneratorType,
    **{kind.__name__: kind for kind in (map, filter, zip, enumerate, reversed)},
}
"""Types that a proxy pretends to have, so that `isinstance(proxy, GeneratorType)` is true."""


class _Session(Protocol):
    """The part of the session that proxies need (`session.py`)."""

    codecs: dict[str, Sequence[str]]
    find_class: Callable[[str], type]
    uses_numpy: bool
    replaced_methods: dict[tuple[int, str], Value]
    operators: Operators

    def call(self, request: list[Json], shown: str, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value: ...
    def call_special(self, handle: int, name: str, *args: Value) -> Value: ...
    def get_attribute(self, handle: int, name: str) -> Value: ...
    def set_attribute(self, handle: int, name: str, value: Value) -> None: ...
    def refuse_isolation(self, reason: str) -> NoReturn: ...


class CannotIsolate(BaseException):
    """Raised when test code needs the solution in its own process.

    It is not an `Exception`, so that `except Exception` in the test code does not catch it.
    """

    def __init__(self, reason: str, maybe_from_solution: bool = False) -> None:
        super().__init__(reason)
        self.maybe_from_solution = maybe_from_solution
        """Whether the value may come from the solution, which must not decide how it is tested."""


class RemoteType(type):
    """The metaclass of proxies for classes of the solution.

    described: whether the class was made from the solution's description. Otherwise the test code defines a subclass.
    """

    _truegold_class_session: _Session
    _truegold_class_handle: int

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Value], described: bool = False
    ) -> RemoteType:
        if not described:
            above = next(base for base in bases if type(base) is RemoteType)
            above._truegold_class_session.refuse_isolation(f"it derives the class {name} from one of the solution's")
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Value], described: bool = False) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Value, **kwargs: Value) -> Value:
        return cls._truegold_class_session.call(["call", cls._truegold_class_handle], cls.__name__, args, kwargs)

    def __getattr__(cls, name: str) -> Value:
        _refuse_protocol(name)
        return _asked(cls, name, cls._truegold_class_session.get_attribute(cls._truegold_class_handle, name))

    def __setattr__(cls, name: str, value: Value) -> None:
        cls._truegold_class_session.set_attribute(cls._truegold_class_handle, name, value)

    def __bool__(cls) -> bool:
        return True

    def __len__(cls) -> Value:
        return cls._truegold_class_session.call_special(cls._truegold_class_handle, "__len__")

    def __iter__(cls) -> Iterator[Value]:
        elements: Iterator[Value] = cls._truegold_class_session.call_special(cls._truegold_class_handle, "__iter__")
        return elements

    def __getitem__(cls, key: Value) -> Value:
        return cls._truegold_class_session.call_special(cls._truegold_class_handle, "__getitem__", key)

    def __contains__(cls, item: Value) -> bool:
        return any(item is element or item == element for element in cls)


class RemoteObject:
    """The proxy for an object of the solution, whose class may be the solution's or a library's."""

    __slots__ = ("_truegold_handle", "_truegold_session")

    _truegold_handle: int
    _truegold_session: _Session
    _truegold_base: type | None = None
    """The built-in type from which the class is derived, or None."""
    __no_type_check__ = True
    """Stops `typing.get_type_hints`, which would run the solution's annotations as code."""

    def __getattr__(self, name: str) -> Value:
        _refuse_protocol(name)
        return _asked(self, name, self._truegold_session.get_attribute(self._truegold_handle, name))

    def __setattr__(self, name: str, value: Value) -> None:
        self._truegold_session.set_attribute(self._truegold_handle, name, value)
        if callable(getattr(type(self), name, None)):
            self._truegold_session.replaced_methods[self._truegold_handle, name] = value

    def __copy__(self) -> Value:
        return self._truegold_session.call_special(self._truegold_handle, "__copy__")

    def __deepcopy__(self, memo: Value) -> Value:
        return self._truegold_session.call_special(self._truegold_handle, "__deepcopy__")

    def __reduce_ex__(self, protocol: Value) -> Value:
        raise TypeError("an object of the solution cannot be pickled")


for _name, _operator_method in OPERATOR_METHODS.items():
    setattr(RemoteObject, _name, _operator_method)


class RemoteFunction:
    """The proxy for a function or a bound method of the solution."""

    __no_type_check__ = True

    __slots__ = ("__name__", "_truegold_handle", "_truegold_session")

    def __init__(self, session: _Session, handle: int, name: str) -> None:
        self._truegold_session = session
        self._truegold_handle = handle
        self.__name__ = name

    def __call__(self, *args: Value, **kwargs: Value) -> Value:
        return self._truegold_session.call(["call", self._truegold_handle], self.__name__, args, kwargs)

    def __getattr__(self, name: str) -> Value:
        _refuse_protocol(name)
        return _asked(self, name, self._truegold_session.get_attribute(self._truegold_handle, name))

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the function, for libraries that inspect them."""
        described = self._truegold_session.call_special(self._truegold_handle, "__signature__")
        return inspect.Signature([inspect.Parameter(name, kind, **default) for name, kind, default in described])

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class RemoteCoroutineFunction(RemoteFunction):
    """The proxy for an `async def` function. The function runs when the test code awaits it."""

    __slots__ = ()

    async def __call__(self, *args: Value, **kwargs: Value) -> Value:
        return super().__call__(*args, **kwargs)


def _refuse_protocol(name: str) -> None:
    if name[:2] == "__" and name not in DESCRIBING_NAMES:
        raise AttributeError(f"the solution's objects are not asked for {name!r}")


def _asked(remote: Value, name: str, value: Value) -> Value:
    """Return the value of an attribute, if the solution may answer for it (`_refuse_lies`)."""
    if callable(value) or (name in mock_names() and not isinstance(remote, RemoteFunction)):
        _refuse_lies(remote, name)
    return value


def _refuse_lies(remote: Value, name: str) -> None:
    """Raise AttributeError if the solution could lie with this attribute, because tests expect data or a mock.

    Methods of data are allowed if the test code names the class of the object. Methods that search, and those of mocks,
    are allowed if the test code made the object.
    """
    is_mocks = name in mock_names()
    if not is_mocks and name not in DATA_METHODS and name not in _table_methods(sys.modules.get("pandas")):
        return
    kind = remote if isinstance(remote, RemoteType) else type(remote)
    operators = remote._truegold_session.operators if kind is not remote else kind._truegold_class_session.operators
    if (is_mocks or name in SEARCH_METHODS) and isinstance(remote, RemoteObject):
        is_tested = operators.made_by_tests(remote)
    else:
        is_tested = operators.names_class(kind)
    if not is_tested:
        raise AttributeError(f"an object of the solution whose class the tests do not name is not asked {name!r}")


@functools.cache
def _table_methods(pandas: Value) -> frozenset[str]:
    """Return the methods of pandas that compare with another table: `compare`, `eq`, `sub`."""
    kinds = () if pandas is None else (pandas.DataFrame, pandas.Series, pandas.Index)
    codes = {name: getattr(getattr(kind, name), "__code__", None) for kind in kinds for name in dir(kind)}
    others = {"other", "right", "values"}
    return frozenset(name for name, code in codes.items() if code and others & {*code.co_varnames[1:2]})


def _method(session: _Session, handle: int, name: str, is_coroutine: bool) -> Callable[..., Value]:
    def method(self: Value, *args: Value, **kwargs: Value) -> Value:
        if isinstance(self, RemoteObject):
            if args or kwargs or name in SEARCH_METHODS or name in mock_names():
                _refuse_lies(self, name)
            return session.call(["method", self._truegold_handle, name], name, args, kwargs)
        # The test code calls the method on the class: `Solution.f(None, 3)`.
        return session.call(["method", handle, name], name, (self, *args), kwargs)

    async def coroutine_method(self: Value, *args: Value, **kwargs: Value) -> Value:
        return method(self, *args, **kwargs)

    chosen = coroutine_method if is_coroutine else method
    chosen.__name__ = name
    return chosen


class _Replaceable:
    """A method that the test code may replace: `stack.push = Mock()`."""

    def __init__(self, method: Callable[..., Value], name: str) -> None:
        self._method = method
        self._name = name

    def __get__(self, target: Value, owner: type | None = None) -> Value:
        if not isinstance(target, RemoteObject):
            _refuse_lies(owner, self._name)
            return self._method
        replaced = target._truegold_session.replaced_methods.get((target._truegold_handle, self._name))
        return MethodType(self._method, target) if replaced is None else replaced


def _special_method(name: str) -> Callable[..., Value]:
    def method(self: Value, *args: Value) -> Value:
        answer = self._truegold_session.call_special(self._truegold_handle, name, *args)
        return str(answer) if name in ("__str__", "__repr__", "__format__") else answer

    return method


def _call(self: RemoteObject, *args: Value, **kwargs: Value) -> Value:
    return self._truegold_session.call(["call", self._truegold_handle], type(self).__name__, args, kwargs)


def _exit(self: RemoteObject, kind: Value, error: Value, traceback: Value) -> None:
    # The result is dropped. With True, a solution could suppress failed assertions of a `with` block.
    self._truegold_session.call_special(self._truegold_handle, "__exit__", kind, error, None)


def _contains(self: Value, item: Value) -> Value:
    if self._truegold_session.operators.made_by_tests(self):
        return self._truegold_session.call_special(self._truegold_handle, "__contains__", item)
    return any(item is element or item == element for element in self)


_SPECIAL_METHODS: dict[str, Callable[..., Value]] = {
    **{name: _special_method(name) for name in SPECIAL_METHODS},
    "__call__": _call,
    "__contains__": _contains,
    "__exit__": _exit,
}


class RemoteValues:
    """Encodes values for the solution and decodes its answers.

    It keeps the functions that were sent, and one proxy for each object and class of the solution.
    """

    def __init__(self, session: _Session) -> None:
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

        known: maps the ids of these objects to their indices. Raises `CannotIsolate` and `ResultTooLarge`.
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
            raise Undecodable("it calls a function that it was not given")
        return self._functions[index]

    def decode_exception(self, kind: Json, message: Json, args: Json, attributes: Json, cause: Json) -> BaseException:
        """Return an exception that the solution raised, with its attributes and cause."""
        values = self.decode(args) if args is not None else (_checked_text(message),)
        if type(values) is not tuple or type(attributes) is not dict:
            raise Undecodable("arguments of an exception are a tuple")
        error = _new_error(self.decode(kind), values)
        error_class = type(error)
        if isinstance(error, _RemoteError):
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
            first = [] if any(issubclass(base, _RemoteError) for base in error_bases) else [_RemoteError]
            namespace: dict[str, Value] = {"__module__": "solution", CLASS_HANDLE: handle}
            self._classes[handle] = type(about["name"], (*first, *error_bases), namespace)
        else:
            remote_bases = tuple(base for base in bases if issubclass(base, RemoteObject))
            data_base = next((base for base in bases if BUILTIN_TYPES.get(base.__name__) is base), None)
            self._classes[handle] = _remote_class(self.session, handle, about, remote_bases, data_base)
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


def _remote_class(
    session: _Session, handle: int, about: dict[str, Json], bases: tuple[type, ...], data_base: type | None
) -> RemoteType:
    coroutines = set(about["async"])
    namespace: dict[str, Value] = {"__slots__": (), "__module__": "solution"}
    namespace |= {"_truegold_class_session": session, CLASS_HANDLE: handle}
    for name in about["methods"]:
        namespace[name] = _Replaceable(_method(session, handle, name, name in coroutines), name)
    for name in about["special"]:
        namespace[name] = _SPECIAL_METHODS[name]
    looks = _BUILTIN_LOOKS.get(about["name"], data_base)
    with contextlib.suppress(LookupError):
        looks = shared_objects.library_class(about["module"], about["name"])
    if looks is not data_base:
        namespace["__module__"] = looks.__module__
    if looks is not None:
        namespace["__class__"] = property(lambda self: looks)
    elif not any(vars(above).get("_truegold_base") for base in bases for above in base.__mro__):
        namespace["__class__"] = property(type)  # A subclass that the program defines is not taken for the library's.
    if data_base is not None:
        namespace["_truegold_base"] = data_base
    return RemoteType(about["name"], bases or (RemoteObject,), namespace, described=True)


class _RemoteError:
    """The base of proxies for exceptions of the solution. It keeps the text of the exception."""

    _solution_message: str | None = None

    def __init__(self, *args: Value, **named: Value) -> None:
        vars(self).update(named)

    def __str__(self) -> str:
        return super().__str__() if self._solution_message is None else self._solution_message


class _Encoder(Encoder):
    sends_object_arrays = False

    def __init__(self, values: RemoteValues, known: dict[int, int] | None = None) -> None:
        """known: maps ids of objects that both sides have to indices. If it is None, mutable objects are tracked."""
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
            raise Undecodable("it names what nobody asked for")
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
        raise Undecodable("it names another thing than was asked for")
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
        raise Undecodable("a description that makes no sense")

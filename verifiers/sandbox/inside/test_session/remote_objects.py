"""Provides proxies by which test code uses a solution in another process.

    candidate(3)         a call in the solution's process
    stack = Stack()      an object whose class has the name, the bases and the methods of the solution's class
    stack.push(3)        a call in the solution's process; attributes, len(), iteration, indexing, `in`, str() and
                         `with` ask that process too

A solution must not pass by lying about itself. So its own `__eq__` is ignored when an object is compared with plain
data (below). Methods such as `startswith` are refused for an object that a function returned: the tests expect
a text or a list there, and the object could answer yes to everything. Objects that the test code made, `Trie()`, may
answer, because that is how classes are tested.

The solution's own code may answer some operators on its objects (`add` and `make` are its functions, `P` and `S` are
its classes):

    add(1, 2) == P(3)            answered: both sides are of a class whose name is in the test code
    P(3) == 3                    not answered: only data can equal plain data
    S([1, 2]) == [1, 2]          not answered: if S is derived from list, the list in the object is compared
    add(1, 2) == add(2, 1)       not answered if the test code does not name their class
    sorted(make())               answered: the order alone proves nothing
    make(1) < make(2)            not answered: here the answer would be the verdict

A class that the test code names is under test, with its operators. An object that equals `_UNLIKELY`, a word that no
test uses, equals everything. The answers of its class on equality are then ignored.

A call may return an object where the test code expects a number. The test code would then pass the expected number to
this object:

    abs(v.norm() - 5) < 1e-9     v.norm() returns an object whose `-` is always 0.0

So an operator on a returned object and plain data has to give an object again, or else the test fails. Objects that the
test code made may compute data, but not by subtraction: in `abs(Area(1) - 3.14) < 0.01` the test expects a function
`Area`, and a program may define a class of that name.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import fractions
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from opcode import opmap
from types import GeneratorType, MethodType
from typing import NoReturn, Protocol

from ..wire.value_types import Json, Value
from . import shared_objects
from .shared_objects import SPECIAL_METHODS
from .surroundings import mock_names

EQUALITY = ("eq", "ne")
ORDER = ("lt", "le", "gt", "ge")
_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
_IN_PLACE = ["i" + name.rstrip("_") for name in _ARITHMETIC]
_UNARY = "neg pos invert abs round index".split()

OPERATORS: Mapping[str, Callable[..., Value]] = {
    **{
        name: getattr(operator, name)
        for name in (*EQUALITY, *ORDER, *_ARITHMETIC, *_IN_PLACE, *_UNARY)
        if name != "round"
    },
    **{"round": round, "divmod": divmod, "hash": hash, "bool": bool},
}
"""Operators that run in the solution's process, by name."""

_SUBTRACTIONS = ("sub", "isub")
_UNLIKELY = "a word that no object has been given"
"""A value to which only objects that equal everything are equal."""
_COMPARISON = opmap["COMPARE_OP"]
"""The bytecode instruction of a comparison."""


class _Asking(Protocol):
    """The part of the session that operators need."""

    def ask_operator(self, name: str, operands: tuple[Value, ...]) -> Value: ...
    def data_of(self, handle: int) -> Value: ...


CLASS_HANDLE = "_truegold_class_handle"
"""The attribute of a proxy class that holds the handle of the solution's class. A handle is the number of an object in
the solution's process."""


class Operators:
    """Applies operators to objects of the solution. remote_class: the class of their proxies."""

    def __init__(self, session: _Asking, remote_class: type) -> None:
        self._session = session
        self._remote_class = remote_class
        self.function_holders = {"Solution"}
        """Names of classes that only hold functions."""
        self._named_classes: dict[int, str] = {}
        """The name of each class that the test code asked for by a capitalised name, by handle."""
        self._made: dict[int, str] = {}
        """The class name of each object that the test code made of such a class, by handle."""
        self._returned: set[int] = set()
        """Handles of objects that came as answers and were not made by the test code."""
        self._marked: set[int] = set()
        """Handles of objects computed from a returned object and plain data."""
        self._honest: dict[type, bool] = {}
        """By class: False if its objects equal everything."""

    def note_class(self, name: str, handle: int) -> None:
        """Note that the test code asked for a class by this name."""
        if name.lstrip("_")[:1].isupper():
            self._named_classes[handle] = name

    def note_call(self, callee: int, handle: int) -> None:
        """Note that a call by the test code returned this object."""
        if callee in self._named_classes:
            self._made[handle] = self._named_classes[callee]
            self._returned.discard(handle)

    def note_return(self, handle: int) -> None:
        """Note that an answer contained this object.

        A class such as `Solution` only holds functions, which should return data. If one of them returns an object of
        the class, this object no longer counts as made by the test code. Methods of other classes may return their
        object, for chained calls.
        """
        self._returned.add(handle)
        if self._made.get(handle) in self.function_holders:
            del self._made[handle]

    def made_by_tests(self, remote: Value) -> bool:
        """Return whether the test code made this object itself, from a class that it calls by a capitalised name."""
        return remote._truegold_handle in self._made

    def compare(self, name: str, left: Value, right: Value, by_tests: bool) -> Value:
        """Return the result of a comparison, or NotImplemented if the solution is not asked.

        by_tests: whether test code contains the comparison. It is False for a comparison by `sorted`.
        """
        kinds = type(left), type(right)
        if not self._is_remote(right) or not (issubclass(*kinds) or issubclass(*kinds[::-1])):
            return self._compare_data(name, left, right)
        if not self._is_named(kinds[0]) and (name in EQUALITY or by_tests):
            return self._compare_data(name, left, right)
        holds = self._holds(name, left, right)
        if name in EQUALITY and holds is (name == "eq") and not (self._is_honest(left) and self._is_honest(right)):
            return name == "ne"
        return holds

    def hash(self, remote: Value) -> int:
        """Return the hash of an object."""
        if remote._truegold_base is not None:
            return hash(self._plain(remote))
        answer = self._session.ask_operator("hash", (remote,))
        return answer if type(answer) is int else 0

    def truth(self, remote: Value) -> bool:
        """Return the truth value of an object that the test code made. Other objects are true."""
        if not self.made_by_tests(remote):
            return True
        return self._session.ask_operator("bool", (remote,)) is True

    def compute(self, name: str, *operands: Value) -> Value:
        """Return the result of an arithmetic operator."""
        remotes = [each for each in operands if self._is_remote(each)]
        handles = [each._truegold_handle for each in remotes]
        made = self._made.keys() >= set(handles) and self._returned.isdisjoint(handles)
        if not all(self._is_named(type(each)) for each in remotes):
            if any(each._truegold_base is None for each in remotes):
                return NotImplemented
            return OPERATORS[name](*map(self._plain, operands))
        answer = self._session.ask_operator(name, operands)
        has_data = len(remotes) < len(operands)
        marked = (has_data and (not made or name in _SUBTRACTIONS)) or not self._marked.isdisjoint(handles)
        if self._is_remote(answer):
            if made and not marked:
                self._made.setdefault(answer._truegold_handle, self._made[handles[0]])
                self._returned.discard(answer._truegold_handle)
            elif marked:
                self._marked.add(answer._truegold_handle)
        elif marked:
            raise TypeError("an object that a call returned may not compute data from the value it is compared with")
        return answer

    def _compare_data(self, name: str, left: Value, right: Value) -> Value:
        if left._truegold_base is None or (self._is_remote(right) and right._truegold_base is None):
            return NotImplemented
        return OPERATORS[name](self._plain(left), self._plain(right))

    def _plain(self, value: Value) -> Value:
        return self._session.data_of(value._truegold_handle) if self._is_remote(value) else value

    def _is_named(self, kind: type) -> bool:
        """Return whether the test code has asked for this class, or one of its bases, by a capitalised name."""
        return any(vars(above).get(CLASS_HANDLE) in self._named_classes for above in kind.__mro__)

    def names_class(self, kind: type) -> bool:
        """Return whether the test code has asked for this class itself by a capitalised name."""
        return vars(kind).get(CLASS_HANDLE) in self._named_classes

    def _is_remote(self, value: Value) -> bool:
        return issubclass(type(value), self._remote_class)

    def _holds(self, name: str, *operands: Value) -> bool:
        answer = self._session.ask_operator(name, operands)
        return not self._is_remote(answer) and bool(answer)

    def _is_honest(self, remote: Value) -> bool:
        """Return False if an object equals everything."""
        kind = type(remote)
        if kind not in self._honest:
            try:
                self._honest[kind] = not self._holds("eq", remote, _UNLIKELY)
            except Exception:
                self._honest[kind] = True
        return self._honest[kind]


def _comparison(name: str) -> Callable[[Value, Value], Value]:
    def method(self: Value, other: Value) -> Value:
        frame = sys._getframe(1)
        by_tests = name in ORDER and frame.f_code.co_code[frame.f_lasti] == _COMPARISON
        return self._truegold_session.operators.compare(name, self, other, by_tests)

    return method


def _computation(name: str, reflected: bool = False) -> Callable[..., Value]:
    def method(self: Value, *others: Value) -> Value:
        operands = (*others, self) if reflected else (self, *others)
        return self._truegold_session.operators.compute(name, *operands)

    return method


def _dunder(name: str, prefix: str = "") -> str:
    return f"__{prefix}{name.rstrip('_')}__"


OPERATOR_METHODS: Mapping[str, Callable[..., Value]] = {
    **{_dunder(name): _comparison(name) for name in (*EQUALITY, *ORDER)},
    **{_dunder(name): _computation(name) for name in (*_ARITHMETIC, *_IN_PLACE, *_UNARY, "divmod")},
    **{_dunder(name, "r"): _computation(name, reflected=True) for name in (*_ARITHMETIC, "divmod")},
    "__hash__": lambda self: self._truegold_session.operators.hash(self),
    "__bool__": lambda self: self._truegold_session.operators.truth(self),
}
"""Special methods by which an object of the solution is an operand."""


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
"""Methods of immutable data. Test code that calls such a method expects data. An object of the solution may answer only
if the test code names the object's class."""

DESCRIBING_NAMES = frozenset({"__annotations__", "__dict__", "__doc__", "__qualname__"})
"""Names with two underscores that a solution may answer. Other names are refused: with `__array_function__`, for
example, an object replaces functions of numpy."""

_BUILTIN_LOOKS: dict[str, type] = {
    "generator": GeneratorType,
    **{kind.__name__: kind for kind in (map, filter, zip, enumerate, reversed)},
}
"""Types that a proxy pretends to have, so that `isinstance(proxy, GeneratorType)` is true."""


class RemoteSession(Protocol):
    """The part of the session that proxies need (`session.py`)."""

    codecs: dict[str, Sequence[str]]
    find_class: Callable[[str], type]
    uses_numpy: bool
    replaced_methods: dict[tuple[int, str], Value]
    operators: Operators

    def call(self, request: list[Json], shown: str, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        """Return the result of a call."""

    def call_special(self, handle: int, name: str, *args: Value) -> Value:
        """Return the result of a special method."""

    def get_attribute(self, handle: int, name: str) -> Value:
        """Return an attribute of an object."""

    def set_attribute(self, handle: int, name: str, value: Value) -> None:
        """Set an attribute of an object."""

    def refuse_isolation(self, reason: str) -> NoReturn:
        """Raise `CannotIsolate`."""
        ...


class CannotIsolate(BaseException):
    """Raised when test code needs the solution in its own process.

    It is not an `Exception`, so that `except Exception` in the test code does not catch it.
    """

    def __init__(self, reason: str, maybe_from_solution: bool = False) -> None:
        super().__init__(reason)
        self.maybe_from_solution = maybe_from_solution
        """Whether the cause is a value that may come from the solution. Then tests and solution stay separate."""


class RemoteType(type):
    """The metaclass of proxies for classes of the solution.

    described: True if the proxy was made from a description of the solution's class, False if the test code derives a
    class from a proxy.
    """

    _truegold_class_session: RemoteSession
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
    _truegold_session: RemoteSession
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

    def __init__(self, session: RemoteSession, handle: int, name: str) -> None:
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

    Methods of data (`DATA_METHODS`) are allowed if the test code names the class of the object. Methods that search and
    methods of mocks are allowed if the test code made the object.
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
        raise AttributeError(f"an object of the solution whose class the tests do not name may not answer {name!r}")


@functools.cache
def _table_methods(pandas: Value) -> frozenset[str]:
    """Return the methods of pandas that compare with another table: `compare`, `eq`, `sub`."""
    kinds = () if pandas is None else (pandas.DataFrame, pandas.Series, pandas.Index)
    codes = {name: getattr(getattr(kind, name), "__code__", None) for kind in kinds for name in dir(kind)}
    others = {"other", "right", "values"}
    return frozenset(name for name, code in codes.items() if code and others & {*code.co_varnames[1:2]})


def _method(session: RemoteSession, handle: int, name: str, is_coroutine: bool) -> Callable[..., Value]:
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
"""Special methods of proxies, by name."""


def make_remote_class(
    session: RemoteSession, handle: int, about: dict[str, Json], bases: tuple[type, ...], data_base: type | None
) -> RemoteType:
    """Return the proxy for a class of the solution. about: its description. data_base: its built-in base, or None."""
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
        namespace["__class__"] = property(type)  # A subclass that the program defines does not claim a library's class.
    if data_base is not None:
        namespace["_truegold_base"] = data_base
    return RemoteType(about["name"], bases or (RemoteObject,), namespace, described=True)


class RemoteError:
    """The base of proxies for exceptions of the solution. It keeps the text of the exception."""

    _solution_message: str | None = None

    def __init__(self, *args: Value, **named: Value) -> None:
        vars(self).update(named)

    def __str__(self) -> str:
        return super().__str__() if self._solution_message is None else self._solution_message

"""What the test code holds in place of the solution's functions, classes and instances.

    candidate(3)         a call in the solution's process
    stack = Stack()      an object whose class has the name, the bases and the methods of the solution's class
    stack.push(3)        a call there; so are attributes, len(), iteration, indexing, `in`, str() and `with`

Nothing that compares, orders, computes or hashes is asked of the solution: two stubs are equal where they are the same
object, and each is true. What an `__eq__` of the solution says about a value is no evidence. For the same reason an
object that a function returned is not asked whether it contains something, or starts with it: where the test code
expects a list or a text, such an object would say yes to everything. Objects that the test code itself made of a class,
`Trie()`, are asked: that is what tests of classes consist of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

TELLING = frozenset("startswith endswith issubset issuperset isdisjoint find rfind index rindex count".split())
"""Methods of built-in data that are given what is expected, and answer yes or no, or where. Test code that calls others
expects an object of the solution's class."""

ASKED = frozenset({"__annotations__", "__dict__", "__doc__", "__qualname__"})
"""Names with two underscores that say something of an object. Others are how libraries ask an object to do their work
for them (`__array_function__`, `__array_interface__`): that is not for a solution to do."""


class CannotIsolate(BaseException):
    """The test code does something that needs the solution in its own process. Not an `Exception`, so that test code
    does not take it for one of the solution's.

    maybe_theirs: what the test code passes on may have come from the solution, which must not decide how it is tested.
    """

    def __init__(self, reason: str, maybe_theirs: bool = False) -> None:
        super().__init__(reason)
        self.maybe_theirs = maybe_theirs


class RemoteType(type):
    """The class of classes that stand for the solution's."""

    _session: Any
    _number: int

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], made: bool = False) -> RemoteType:
        if not made:
            above = next(base for base in bases if type(base) is RemoteType)
            above._session.isolate_not(f"it derives the class {name} from one of the solution's")
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], made: bool = False) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._session.call(["call", cls._number], cls.__name__, args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        _refuse_protocols(name)
        return cls._session.attribute(cls._number, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._session.set(cls._number, name, value)

    def __bool__(cls) -> bool:
        return True

    def __len__(cls) -> Any:
        return cls._session.special(cls._number, "__len__")

    def __iter__(cls) -> Iterator[Any]:
        made: Iterator[Any] = cls._session.special(cls._number, "__iter__")
        return made

    def __getitem__(cls, key: Any) -> Any:
        return cls._session.special(cls._number, "__getitem__", key)

    def __contains__(cls, item: Any) -> bool:
        return any(item is own or item == own for own in cls)


class RemoteObject:
    """An instance of a class of the solution's, or of one that Python's library made for it."""

    __slots__ = ("_truegold_number", "_truegold_session")

    _truegold_number: int
    _truegold_session: Any

    def __getattr__(self, name: str) -> Any:
        _refuse_protocols(name)
        _refuse_telling(self, name)
        return self._truegold_session.attribute(self._truegold_number, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._truegold_session.set(self._truegold_number, name, value)

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Any:
        return self._truegold_session.special(self._truegold_number, "__copy__")

    def __deepcopy__(self, memo: Any) -> Any:
        return self._truegold_session.special(self._truegold_number, "__deepcopy__")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an object of the solution cannot be pickled")


class RemoteFunction:
    """A function or bound method of the solution."""

    __slots__ = ("__name__", "_truegold_number", "_truegold_session")

    def __init__(self, session: Any, number: int, name: str) -> None:
        self._truegold_session = session
        self._truegold_number = number
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._truegold_session.call(["call", self._truegold_number], self.__name__, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        _refuse_protocols(name)
        return self._truegold_session.attribute(self._truegold_number, name)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class RemoteCoroutineFunction(RemoteFunction):
    """An `async def` function; it runs where the test code awaits it."""

    __slots__ = ()

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


_LIKE: dict[str, type] = {
    "generator": GeneratorType,
    **{kind.__name__: kind for kind in (map, filter, zip, enumerate, reversed)},
}
"""Types that `isinstance` finds in their stubs."""


def object_class(session: Any, number: int, about: dict[str, Any], bases: tuple[type, ...]) -> RemoteType:
    """A class that stands for the solution's class of this number. about: its description (`handles.py`)."""
    later = set(about["async"])
    namespace: dict[str, Any] = {"__slots__": (), "__module__": "solution", "_session": session, "_number": number}
    for name in about["methods"]:
        namespace[name] = (_coroutine_method if name in later else _method)(session, number, name)
    for name in about["special"]:
        namespace[name] = _SPECIAL_FORMS.get(name, _special)(name)
    if about["name"] in _LIKE:
        namespace["__class__"] = property(lambda self: _LIKE[about["name"]])
    return RemoteType(about["name"], bases or (RemoteObject,), namespace, made=True)


def stub_of(session: Any, number: int, kind: type) -> RemoteObject:
    made: RemoteObject = object.__new__(kind)
    object.__setattr__(made, "_truegold_number", number)
    object.__setattr__(made, "_truegold_session", session)
    return made


def _refuse_protocols(name: str) -> None:
    if name[:2] == "__" and name not in ASKED:
        raise AttributeError(f"the solution's objects are not asked for {name!r}")


def _refuse_telling(stub: RemoteObject, name: str) -> None:
    if name in TELLING and not stub._truegold_session.may_tell(stub._truegold_number):
        raise AttributeError(f"an object that the solution returned is not asked {name!r}")


def _method(session: Any, number: int, name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, RemoteObject):
            _refuse_telling(self, name)
            return session.call(["method", self._truegold_number, name], name, args, kwargs)
        return session.call(["method", number, name], name, (self, *args), kwargs)  # `Solution.f(None, 3)`

    method.__name__ = name
    return method


def _coroutine_method(session: Any, number: int, name: str) -> Callable[..., Any]:
    made = _method(session, number, name)

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return made(self, *args, **kwargs)

    method.__name__ = name
    return method


def _special(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        return self._truegold_session.special(self._truegold_number, name, *args)

    return method


def _text_special(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> str:
        return str(self._truegold_session.special(self._truegold_number, name, *args))

    return method


def _call_special(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(self).__name__
        return self._truegold_session.call(["call", self._truegold_number], kind, args, kwargs)

    return method


def _exit_special(name: str) -> Callable[..., Any]:
    def method(self: Any, kind: Any, error: Any, traceback: Any) -> None:
        # What it returns is not: a solution could swallow the assertions of a `with` block.
        self._truegold_session.special(self._truegold_number, name, kind, error, None)

    return method


def _contains_special(name: str) -> Callable[..., Any]:
    def method(self: Any, item: Any) -> Any:
        if self._truegold_session.may_tell(self._truegold_number):
            return self._truegold_session.special(self._truegold_number, name, item)
        return any(item is own or item == own for own in self)

    return method


_SPECIAL_FORMS: dict[str, Callable[[str], Callable[..., Any]]] = {
    "__str__": _text_special,
    "__repr__": _text_special,
    "__format__": _text_special,
    "__call__": _call_special,
    "__contains__": _contains_special,
    "__exit__": _exit_special,
}

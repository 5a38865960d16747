"""Objects that the test code holds in place of the solution's functions, classes and instances.

    candidate(3)         a call in the solution's process
    stack = Stack()      an object whose class has the name, the bases and the methods of the solution's class
    stack.push(3)        a call there; so are attributes, len(), iteration, indexing, `in`, str() and `with`

The solution is not asked for anything that compares, orders, computes or hashes: two remote objects are equal where
they are the same object, and each is true. What an `__eq__` of the solution says about a value is no evidence. For the
same reason an object that a function returned is not asked whether it contains something, or starts with it: where the
test code expects a list or a text, such an object would say yes to everything. Objects that the test code itself made
of a class, `Trie()`, are asked: tests of classes consist of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

SEARCH_METHODS = frozenset("startswith endswith issubset issuperset isdisjoint find rfind index rindex count".split())
"""Methods of built-in data that take what is expected and answer yes or no, or where. Test code that calls others
expects an object of the solution's class."""

DESCRIBING_NAMES = frozenset({"__annotations__", "__dict__", "__doc__", "__qualname__"})
"""Names with two underscores that describe an object. By others libraries ask an object to do their work for them
(`__array_function__`, `__array_interface__`), which is not for a solution to do."""


CLASS_HANDLE = "_truegold_class_handle"
"""The attribute in which classes that stand for the solution's, exceptions among them, have their handle."""


class CannotIsolate(BaseException):
    """The test code does something that needs the solution in its own process.

    This is not an `Exception`, so that test code does not take it for one of the solution's.
    """

    def __init__(self, reason: str, maybe_from_solution: bool = False) -> None:
        super().__init__(reason)
        self.maybe_from_solution = maybe_from_solution
        """Whether what the test code passes on may come from the solution, which must not decide how it is tested."""


class RemoteType(type):
    """The class of classes that stand for the solution's.

    described: whether a class is made from a description of the solution's, and not by a statement of the test code.
    """

    _truegold_class_session: Any
    _truegold_class_handle: int

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], described: bool = False
    ) -> RemoteType:
        if not described:
            above = next(base for base in bases if type(base) is RemoteType)
            above._truegold_class_session.refuse_isolation(f"it derives the class {name} from one of the solution's")
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], described: bool = False) -> None:
        super().__init__(name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._truegold_class_session.call(["call", cls._truegold_class_handle], cls.__name__, args, kwargs)

    def __getattr__(cls, name: str) -> Any:
        _refuse_protocol(name)
        return cls._truegold_class_session.get_attribute(cls._truegold_class_handle, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._truegold_class_session.set_attribute(cls._truegold_class_handle, name, value)

    def __bool__(cls) -> bool:
        return True

    def __len__(cls) -> Any:
        return cls._truegold_class_session.call_special(cls._truegold_class_handle, "__len__")

    def __iter__(cls) -> Iterator[Any]:
        elements: Iterator[Any] = cls._truegold_class_session.call_special(cls._truegold_class_handle, "__iter__")
        return elements

    def __getitem__(cls, key: Any) -> Any:
        return cls._truegold_class_session.call_special(cls._truegold_class_handle, "__getitem__", key)

    def __contains__(cls, item: Any) -> bool:
        return any(item is element or item == element for element in cls)


class RemoteObject:
    """An instance of a class of the solution's, or of one that Python's library made for it."""

    __slots__ = ("_truegold_handle", "_truegold_session")

    _truegold_handle: int
    _truegold_session: Any

    def __getattr__(self, name: str) -> Any:
        _refuse_protocol(name)
        _refuse_search(self, name)
        return self._truegold_session.get_attribute(self._truegold_handle, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._truegold_session.set_attribute(self._truegold_handle, name, value)

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Any:
        return self._truegold_session.call_special(self._truegold_handle, "__copy__")

    def __deepcopy__(self, memo: Any) -> Any:
        return self._truegold_session.call_special(self._truegold_handle, "__deepcopy__")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an object of the solution cannot be pickled")


class RemoteFunction:
    """A function or bound method of the solution."""

    __slots__ = ("__name__", "_truegold_handle", "_truegold_session")

    def __init__(self, session: Any, handle: int, name: str) -> None:
        self._truegold_session = session
        self._truegold_handle = handle
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._truegold_session.call(["call", self._truegold_handle], self.__name__, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        _refuse_protocol(name)
        return self._truegold_session.get_attribute(self._truegold_handle, name)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class RemoteCoroutineFunction(RemoteFunction):
    """An `async def` function; it runs where the test code awaits it."""

    __slots__ = ()

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


_BUILTIN_LOOKS: dict[str, type] = {
    "generator": GeneratorType,
    **{kind.__name__: kind for kind in (map, filter, zip, enumerate, reversed)},
}
"""Types that `isinstance` sees in the objects that stand for theirs."""


def remote_class(session: Any, handle: int, about: dict[str, Any], bases: tuple[type, ...]) -> RemoteType:
    """Return what stands for the class of the solution with this handle. about: its description (`handles.py`)."""
    coroutines = set(about["async"])
    namespace: dict[str, Any] = {"__slots__": (), "__module__": "solution"}
    namespace |= {"_truegold_class_session": session, CLASS_HANDLE: handle}
    for name in about["methods"]:
        namespace[name] = (_coroutine_method if name in coroutines else _method)(session, handle, name)
    for name in about["special"]:
        namespace[name] = _SPECIAL_METHODS.get(name) or _special_method(name)
    if about["name"] in _BUILTIN_LOOKS:
        namespace["__class__"] = property(lambda self: _BUILTIN_LOOKS[about["name"]])
    return RemoteType(about["name"], bases or (RemoteObject,), namespace, described=True)


def remote_object(session: Any, handle: int, kind: type) -> RemoteObject:
    """Return what stands for the object of the solution with this handle. kind: the class that stands for its class."""
    remote: RemoteObject = object.__new__(kind)
    object.__setattr__(remote, "_truegold_handle", handle)
    object.__setattr__(remote, "_truegold_session", session)
    return remote


def _refuse_protocol(name: str) -> None:
    if name[:2] == "__" and name not in DESCRIBING_NAMES:
        raise AttributeError(f"the solution's objects are not asked for {name!r}")


def _refuse_search(remote: RemoteObject, name: str) -> None:
    if name in SEARCH_METHODS and not remote._truegold_session.made_by_tests(remote._truegold_handle):
        raise AttributeError(f"an object that the solution returned is not asked {name!r}")


def _method(session: Any, handle: int, name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, RemoteObject):
            _refuse_search(self, name)
            return session.call(["method", self._truegold_handle, name], name, args, kwargs)
        return session.call(
            ["method", handle, name], name, (self, *args), kwargs
        )  # It is written `Solution.f(None, 3)`.

    method.__name__ = name
    return method


def _coroutine_method(session: Any, handle: int, name: str) -> Callable[..., Any]:
    call = _method(session, handle, name)

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(self, *args, **kwargs)

    method.__name__ = name
    return method


def _special_method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        return self._truegold_session.call_special(self._truegold_handle, name, *args)

    return method


def _text_method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> str:
        return str(self._truegold_session.call_special(self._truegold_handle, name, *args))

    return method


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._truegold_session.call(["call", self._truegold_handle], type(self).__name__, args, kwargs)


def _exit(self: Any, kind: Any, error: Any, traceback: Any) -> None:
    # What it returns is not passed on: a solution could swallow the assertions of a `with` block.
    self._truegold_session.call_special(self._truegold_handle, "__exit__", kind, error, None)


def _contains(self: Any, item: Any) -> Any:
    if self._truegold_session.made_by_tests(self._truegold_handle):
        return self._truegold_session.call_special(self._truegold_handle, "__contains__", item)
    return any(item is element or item == element for element in self)


_SPECIAL_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _text_method(name) for name in ("__str__", "__repr__", "__format__")},
    "__call__": _call,
    "__contains__": _contains,
    "__exit__": _exit,
}

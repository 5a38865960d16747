"""The types, exceptions and modules that both processes have, and may name instead of sending.

    int                  {"$": "builtin", "v": "int"}
    math.sqrt            {"$": "local", "v": ["math", "sqrt"]}

The solution's process chooses what it names, and so could choose an object that answers every comparison with yes.
Types and exceptions are therefore a closed list, and of the standard library it can name only what the test code asked
for under that very name, in modules where nothing of the kind exists.

Carries what a function did to its arguments back into the objects that they were copied from.

    def clear(a): a.clear()          test code:  x = [1]; clear(x); assert x == []

Both sides keep the mutable objects of the arguments in the same order (`track` of encoder and decoder). After the call
the contents of each travel as a list, in which an argument's object is named by its index, and are put into the objects
that the test code has: their identity stays.

Containers of the solution's objects that test code got hold of, kept alike on both sides.

    stack = Stack()
    stack.data.append(5)         the solution's stack has 5 on it, too
    data = stack.data
    stack.pop()                  data is empty

What an attribute holds travels as a copy. The mutable containers in it are lent: each gets an index under which both
sides keep theirs. Before a request the test code's side sends the contents of those that the test code has changed, and
after it takes the contents of those that the solution has changed. Their identity stays on both sides, as with
arguments (`in_place.py`).
"""

from __future__ import annotations

import array
import builtins
import collections
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, ModuleType
from typing import Any

from ..wire import Json, Undecodable, to_json

BUILTIN_TYPES = {
    kind.__name__: kind
    for kind in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, slice, object),
        type(None),
    )
}

EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
}

SHARED_MODULES = tuple(
    "math cmath collections itertools functools heapq bisect string re typing datetime decimal fractions random copy"
    " operator statistics dataclasses enum abc numbers json time collections.abc".split()
)

SHARED_PACKAGES = ("numpy", "scipy", "sympy", "networkx", "sortedcontainers")

ALIASES = {"np": "numpy", "nx": "networkx", "dt": "datetime", "sp": "sympy", "it": "itertools"}
"""Short names that people have for modules."""

NOT_FOR_EXCEPTIONS = frozenset({"unittest", "doctest", "bdb", "pytest", "_pytest"})
"""Packages that have exceptions which end a test otherwise than as failed."""

SPECIAL_METHODS = tuple(
    "__len__ __iter__ __next__ __reversed__ __contains__ __getitem__ __setitem__ __delitem__ __call__ __enter__"
    " __exit__ __str__ __repr__ __format__ __int__ __float__".split()
)
"""Methods of the language that are passed on to the solution's objects. None of them compares, computes, hashes or
tells truth, because what such a method of the solution says about a value is no evidence."""


def local_name(value: Any) -> list[str] | None:
    """Return [module, name] of what goes by its own name in a shared module."""
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    # `operator.add` says that it is in `_operator`.
    candidates = [each for each in (module, module.removeprefix("_")) if each in SHARED_MODULES]
    return local_name_as_asked(name, value, candidates)


def local_name_as_asked(name: str, value: Any, modules: Sequence[str] = SHARED_MODULES) -> list[str] | None:
    """Return [module, name] where a shared module has the value under the name that was asked for."""
    for module in modules:
        loaded = sys.modules.get(module)
        if loaded is not None and name in vars(loaded) and vars(loaded)[name] is value:
            return [module, name]
    return None


def local_object(module: object, name: object) -> Any:
    """Return what a shared module has under a name. Raises LookupError where it may not be named."""
    if module not in SHARED_MODULES:
        raise LookupError(f"{str(module)[:100]} is not among the shared modules")
    return vars(importlib.import_module(str(module)))[str(name)]


def may_stand_for(name: str, module: object) -> bool:
    """Return whether a program may have this module under this name, by which nothing else can be meant."""
    root = str(module).partition(".")[0]
    known = root in SHARED_PACKAGES or root in sys.stdlib_module_names
    return known and str(module).rpartition(".")[2] == ALIASES.get(name, name)


def module_under_name(name: str, module: object) -> ModuleType:
    """Return the module that a program has under a name. Raises LookupError where it may not be that."""
    if not may_stand_for(name, module):
        raise LookupError(f"{name!r} may not stand for the module {str(module)[:100]}")
    return importlib.import_module(str(module))


def shared_module(name: str) -> ModuleType:
    """Return the module that everybody means by this name. Raises LookupError where there is none."""
    module = ALIASES.get(name, name)
    if module not in SHARED_MODULES and module not in SHARED_PACKAGES:
        raise LookupError(name)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise LookupError(name) from None


def builtin_name(value: Any) -> str | None:
    """Return the name of a builtin type, exception or function; None for anything else."""
    name = str(getattr(value, "__name__", None))
    if isinstance(value, type | BuiltinFunctionType) and vars(builtins).get(name) is value:
        return name
    return None


def library_exception(module: object, name: object) -> type[Exception]:
    """Return an exception class of a library module that is loaded here. Raises LookupError where there is none."""
    root = str(module).partition(".")[0]
    loaded = sys.modules.get(str(module))
    kind = vars(loaded).get(str(name)) if loaded is not None else None
    known = root in SHARED_PACKAGES or (root in sys.stdlib_module_names and root not in NOT_FOR_EXCEPTIONS)
    if not known or not isinstance(kind, type) or not issubclass(kind, Exception):
        raise LookupError(f"{str(module)[:100]} has no exception {str(name)[:100]}")
    return kind


def numpy_if_installed() -> Any:
    """Return numpy, or None."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def make_view(elements: list[Any], kind: str) -> Any:
    """Return a view of a dict where the elements are of one, else an iterator."""
    if kind == "dict_keys":
        return dict.fromkeys(elements).keys()
    if kind == "dict_values":
        return dict(enumerate(elements)).values()
    if kind == "dict_items":
        return dict(elements).items()
    return iter(elements)


def contents(value: Any, fields_of: Mapping[str, Sequence[str]]) -> list[Any]:
    """Return the contents of a mutable object of an argument."""
    if isinstance(value, dict):
        return [[key, element] for key, element in dict.items(value)]
    if isinstance(value, list | set | bytearray | collections.deque | array.array):
        return list(value)
    return [getattr(value, field, None) for field in _field_names(value, fields_of)]


def restore(value: Any, parts: Any, fields_of: Mapping[str, Sequence[str]]) -> None:
    """Replace the contents of an object by `parts`. Raises `Undecodable` or TypeError for what it cannot contain."""
    if type(parts) is not list:
        raise Undecodable("the contents of an argument are a list")
    if isinstance(value, dict):
        pairs = [(key, element) for key, element in parts]
        value.clear()
        for key, element in pairs:
            value[key] = element
    elif isinstance(value, list):
        value[:] = parts
    elif isinstance(value, bytearray):
        value[:] = bytes(parts)
    elif isinstance(value, array.array):
        value[:] = array.array(value.typecode, parts)
    elif isinstance(value, set):
        value.clear()
        value.update(parts)
    elif isinstance(value, collections.deque):
        value.clear()
        value.extend(parts)
    else:
        for field, part in zip(_field_names(value, fields_of), parts, strict=True):
            object.__setattr__(value, field, part)


def _field_names(value: Any, fields_of: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return next((fields_of[above.__name__] for above in type(value).__mro__ if above.__name__ in fields_of), ())


MAX_LENT = 256
"""How many containers are lent. Stops suites that look at large structures from comparing them before every request;
what comes beyond is a copy."""

MAX_ELEMENTS = 4096
"""How many elements a lent container may have."""

MAX_REACHABLE = 20_000
"""How many values are looked at for containers in a container."""

_PAIRS = (dict, collections.Counter, collections.OrderedDict, collections.defaultdict)
_LENDABLE = frozenset({*_PAIRS, list, set, bytearray, collections.deque, array.array})
_LOOKED_INTO = frozenset({*_LENDABLE, tuple, frozenset}) - {bytearray, array.array}


class Lender:
    """The solution's side. handles: the objects that the test code knows, which encode and decode."""

    def __init__(self, handles: Any) -> None:
        self._handles = handles
        self._objects: list[Any] = []
        self._indices: dict[int, int] = {}
        self._last_sent: list[bytes] = []

    def lend(self, value: Any) -> list[Any] | None:
        """Return the answer that lends an attribute's value; None where it is not lent."""
        if type(value) not in _LENDABLE:
            return None
        containers = _containers(value)
        if containers is None:
            return None
        fresh = [container for container in containers if id(container) not in self._indices]
        if len(self._objects) + len(fresh) > MAX_LENT:
            return None
        for container in fresh:
            self._indices[id(container)] = len(self._objects)
            self._objects.append(container)
            self._last_sent.append(b"")
        shells = self._handles.encode([_empty_copy(container) for container in fresh])
        return ["lent", self._indices[id(value)], shells, self.changes()]

    def changes(self) -> Json:
        """Return the contents of what has changed since it was last sent: pairs of index and contents."""
        changed = []
        for index, value in enumerate(self._objects):
            data = self._handles.encode(contents(value, {}), self._indices)
            if (text := to_json(data)) != self._last_sent[index]:
                self._last_sent[index] = text
                changed.append([index, data])
        return changed

    def take(self, changed: Sequence[Any]) -> None:
        """Put contents that the test code has changed into the solution's objects."""
        for index, data in changed:
            restore(self._objects[index], self._handles.decode_known(data, self._objects), {})
            self._last_sent[index] = b""


class Borrower:
    """The test code's side. sender, receiver: what encodes and decodes."""

    def __init__(self, sender: Any, receiver: Any) -> None:
        self._sender = sender
        self._receiver = receiver
        self.objects: list[Any] = []
        self._indices: dict[int, int] = {}
        self._last_seen: list[bytes] = []

    def borrow(self, index: Json, shells: Json, changed: Json) -> Any:
        """Return the test code's own object for a container that is lent. Raises `Undecodable`."""
        for shell in self._receiver.decode(shells):
            if type(shell) not in _LENDABLE or len(self.objects) >= MAX_LENT:
                raise Undecodable("what it lends is no container")
            self._indices[id(shell)] = len(self.objects)
            self.objects.append(shell)
            self._last_seen.append(b"")
        self.take(changed)
        if type(index) is not int or not 0 <= index < len(self.objects):
            raise Undecodable("it lends what it has not described")
        return self.objects[index]

    def take(self, changed: Json) -> None:
        """Put contents that the solution has changed into the test code's objects. Raises `Undecodable`."""
        if type(changed) is not list:
            raise Undecodable("changes are a list")
        for index, data in changed:
            if type(index) is not int or not 0 <= index < len(self.objects):
                raise Undecodable("it changes what it has not lent")
            restore(self.objects[index], self._receiver.decode(data, known=self.objects), {})
        for index, _ in changed:
            self._last_seen[index] = to_json(self._encode(index))

    def changes(self) -> list[Any]:
        """Return the contents of what the test code has changed: pairs of index and contents."""
        changed = []
        for index in range(len(self.objects)):
            data = self._encode(index)
            if (text := to_json(data)) != self._last_seen[index]:
                self._last_seen[index] = text
                changed.append([index, data])
        return changed

    def _encode(self, index: int) -> Json:
        data: Json = self._sender.encode_known(contents(self.objects[index], {}), self._indices)
        return data


def _containers(value: Any) -> list[Any] | None:
    """Return a container and all mutable ones in it; None where there are too many or too large ones."""
    containers: dict[int, Any] = {}
    waiting, looked_at = [value], 0
    while waiting:
        container = waiting.pop()
        if type(container) in _LENDABLE:
            if id(container) in containers:
                continue
            if len(container) > MAX_ELEMENTS:
                return None
            containers[id(container)] = container
        if type(container) in _LOOKED_INTO:
            parts = [*container, *dict.values(container)] if type(container) in _PAIRS else list(container)
            waiting += [part for part in parts if type(part) in _LENDABLE or type(part) in _LOOKED_INTO]
            looked_at += len(parts)
        if looked_at > MAX_REACHABLE or len(containers) > MAX_LENT:
            return None
    return list(containers.values())


def _empty_copy(value: Any) -> Any:
    if isinstance(value, collections.deque):
        return collections.deque(maxlen=value.maxlen)
    if isinstance(value, array.array):
        return array.array(value.typecode)
    return type(value)()

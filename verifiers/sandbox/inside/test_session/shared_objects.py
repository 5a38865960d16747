"""Refers to objects that both processes have: types, exceptions and modules by name, mutable objects by index.

    int                  {"$": "builtin", "v": "int"}
    math.sqrt            {"$": "local", "v": ["math", "sqrt"]}

The solution's process could name an object of a library that equals everything. So types and exceptions are a closed
list, and another object of the standard library can be named only if the test code asked for it by the same name.

Both processes see each change of a mutable object:

    def clear(a): a.clear()      test code:  x = [1]; clear(x); assert x == []
    data = stack.data            after `stack.clear()` data is empty; after `data.append(5)` the stack has 5 on it

Both sides keep the mutable objects of the arguments in the same order (`track` of encoder and decoder). After the call,
the new contents are put into the test code's own objects, which keep their identity.

A container in the value of an attribute is lent: both sides have a copy with the same index. When one side has changed
its copy, the new contents are sent with its next message.
"""

from __future__ import annotations

import array
import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, ModuleType

from ..wire.encoding import to_json
from ..wire.packages import is_changeable
from ..wire.value_types import MUTABLE, Json, TypeForm, Undecodable, Value

BUILTIN_TYPES = {
    kind.__name__: kind
    for kind in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, slice, object),
        type(None),
    )
}
"""Built-in types that may be sent by name."""

EXCEPTIONS = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
}
"""Built-in exceptions by name."""

SHARED_MODULES = tuple(
    "math cmath collections itertools functools heapq bisect string re typing datetime decimal fractions random copy"
    " operator statistics dataclasses enum abc numbers json time collections.abc".split()
)
"""Modules of the standard library whose objects may be sent by name."""

SHARED_PACKAGES = tuple(
    "numpy pandas scipy sympy networkx requests sortedcontainers matplotlib mpl_toolkits sklearn seaborn".split()
)
"""Packages whose modules both processes may import."""

ALIASES = {"np": "numpy", "pd": "pandas", "nx": "networkx", "dt": "datetime", "sp": "sympy", "it": "itertools"}
"""Usual short names of modules."""

NOT_FOR_EXCEPTIONS = frozenset({"unittest", "doctest", "bdb", "pytest", "_pytest"})
"""Packages with exceptions that end a test without a failure, such as `unittest.SkipTest`."""

NOT_LOOKED_LIKE = tuple(
    "numpy pandas scipy.sparse sympy networkx builtins collections _collections array datetime decimal _decimal"
    " fractions numbers pathlib uuid re types typing abc enum".split()
)
"""Modules whose classes a proxy never claims as its `__class__`. Their objects are sent as data or define `==`."""

SPECIAL_METHODS = tuple(
    "__len__ __iter__ __next__ __reversed__ __contains__ __getitem__ __setitem__ __delitem__ __call__ __enter__"
    " __exit__ __str__ __repr__ __format__ __int__ __float__".split()
)
"""Special methods that proxies pass on to the solution's objects, except operators (`remote_objects.py`)."""


def local_name(value: Value) -> list[str] | None:
    """Return ["math", "sqrt"] for `math.sqrt`, or None if no shared module has the object by its `__name__`."""
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    # The module of `operator.add` is `_operator`.
    candidates = [each for each in (module, module.removeprefix("_")) if each in SHARED_MODULES]
    return local_name_as_asked(name, value, candidates)


def local_name_as_asked(name: str, value: Value, modules: Sequence[str] = SHARED_MODULES) -> list[str] | None:
    """Return [module, name] if a shared module has the value under this name, or None."""
    for module in modules:
        loaded = sys.modules.get(module)
        if loaded is not None and name in vars(loaded) and vars(loaded)[name] is value:
            return [module, name]
    return None


def local_object(module: object, name: object) -> Value:
    """Return the object of a shared module with this name. Raises LookupError if it may not be sent by name."""
    if module not in SHARED_MODULES:
        raise LookupError(f"{str(module)[:100]} is not among the shared modules")
    return vars(importlib.import_module(str(module)))[str(name)]


def may_stand_for(name: str, module: object) -> bool:
    """Return whether a program's name can mean only this module: `np` and numpy."""
    root = str(module).partition(".")[0]
    known = root in SHARED_PACKAGES or root in sys.stdlib_module_names
    return known and str(module).rpartition(".")[2] == ALIASES.get(name, name)


def module_under_name(name: str, module: object) -> ModuleType:
    """Return the module that a program has under a name. Raises LookupError if the name may mean something else."""
    if not may_stand_for(name, module):
        raise LookupError(f"{name!r} may not stand for the module {str(module)[:100]}")
    return importlib.import_module(str(module))


def shared_module(name: str) -> ModuleType:
    """Return the module with this name or usual short name. Raises LookupError if it is not shared."""
    module = ALIASES.get(name, name)
    if module not in SHARED_MODULES and module not in SHARED_PACKAGES:
        raise LookupError(name)
    try:
        return importlib.import_module(module)
    except ImportError:
        raise LookupError(name) from None


def builtin_name(value: Value) -> str | None:
    """Return the name of a built-in type, exception or function, or None for other objects."""
    name = str(getattr(value, "__name__", None))
    return name if isinstance(value, type | BuiltinFunctionType) and vars(builtins).get(name) is value else None


def library_class(module: object, name: object, base: type = object) -> type:
    """Return a class of a loaded library that is derived from `base`. Raises LookupError for other names.

    base: Exception for a class to be raised, object for a class that a proxy claims as its `__class__`.
    """
    root = str(module).partition(".")[0]
    loaded = sys.modules.get(str(module))
    kind = vars(loaded).get(str(name)) if loaded is not None else None
    known = root in SHARED_PACKAGES or root in sys.stdlib_module_names
    barred = root in NOT_FOR_EXCEPTIONS or (base is object and str(module).startswith(NOT_LOOKED_LIKE))
    if not known or barred or not isinstance(kind, type) or not issubclass(kind, base):
        raise LookupError(f"{str(module)[:100]} has no class {str(name)[:100]}")
    return kind


def numpy_if_installed() -> Value:
    """Return numpy, or None if it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def make_view(elements: list[Value], kind: str) -> Value:
    """Return a view of a dict with these elements if `kind` names one, such as "dict_keys", else an iterator."""
    if kind == "dict_keys":
        return dict.fromkeys(elements).keys()
    if kind == "dict_values":
        return dict(enumerate(elements)).values()
    if kind == "dict_items":
        return dict(elements).items()
    return iter(elements)


def contents(value: Value, fields_of: Mapping[str, Sequence[str]]) -> Value:
    """Return the contents of a mutable object of an argument."""
    if (form := _form_of(value)) is not None:
        return list(map(list, form.parts(value))) if form.has_pairs else form.parts(value)
    if is_changeable(value):
        return [value.copy()]
    return [getattr(value, field, None) for field in _field_names(value, fields_of)]


def restore(value: Value, parts: Value, fields_of: Mapping[str, Sequence[str]]) -> None:
    """Replace the contents of an object by `parts`. Raises `Undecodable` or TypeError if it cannot contain them."""
    form = _form_of(value)
    if type(parts) is not (str if form is not None and form.is_text else list):
        raise Undecodable("these are not the contents of an argument")
    if form is not None and form.fill is not None:
        value.clear() if hasattr(value, "clear") else value.__delitem__(slice(None))
        form.fill(value, parts)
    elif is_changeable(value):
        value._update_inplace(*parts)
    else:
        for field, part in zip(_field_names(value, fields_of), parts, strict=True):
            object.__setattr__(value, field, part)


def _form_of(value: Value) -> TypeForm | None:
    return next((MUTABLE[above] for above in type(value).__mro__ if above in MUTABLE), None)


def _field_names(value: Value, fields_of: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return next((fields_of[above.__name__] for above in type(value).__mro__ if above.__name__ in fields_of), ())


MAX_LENT = 256
"""Maximum number of containers that are lent and compared before every request. Further containers are copied."""

MAX_ELEMENTS = 4096
"""Maximum number of elements of a lent container."""

MAX_REACHABLE = 20_000
"""Maximum number of values that are searched for containers."""

_LOOKED_INTO = frozenset({*MUTABLE, tuple, frozenset}) - {bytearray, array.array}
"""Types whose elements may be containers."""


class _SharedContainers:
    """The lent containers of one side. encode and decode refer to them by index."""

    def __init__(
        self, encode: Callable[[Value, dict[int, int]], Json], decode: Callable[[Json, Sequence[Value]], Value]
    ) -> None:
        self.objects: list[Value] = []
        self.indices: dict[int, int] = {}
        self.encode = encode
        self._decode = decode
        self._last_texts: list[bytes] = []

    def add(self, container: Value) -> None:
        """Add a container, with the next index."""
        self.indices[id(container)] = len(self.objects)
        self.objects.append(container)
        self._last_texts.append(b"")

    def take(self, changed: Json) -> None:
        """Update the containers with contents that the other side has changed. Raises `Undecodable`."""
        if type(changed) is not list:
            raise Undecodable("changes are a list")
        for index, data in changed:
            if type(index) is not int or not 0 <= index < len(self.objects):
                raise Undecodable("it changes a container that it has not lent")
            restore(self.objects[index], self._decode(data, self.objects), {})
            self._last_texts[index] = b""

    def changes(self) -> list[Json]:
        """Return [index, contents] of each container that has changed since the last call."""
        changed = []
        for index, value in enumerate(self.objects):
            data = self.encode(contents(value, {}), self.indices)
            if (text := to_json(data)) != self._last_texts[index]:
                self._last_texts[index] = text
                changed.append([index, data])
        return changed


class Lender(_SharedContainers):
    """The lent containers on the solution's side."""

    def lend(self, value: Value) -> list[Json] | None:
        """Return the answer that lends the containers in a value, or None if it has none or too many."""
        containers = _containers(value)
        if not containers:
            return None
        fresh = [container for container in containers if id(container) not in self.indices]
        if len(self.objects) + len(fresh) > MAX_LENT:
            return None
        for container in fresh:
            self.add(container)
        shells = self.encode([MUTABLE[type(container)].make_empty(container) for container in fresh], {})
        return ["lent", self.encode(value, self.indices), shells, self.changes()]


class Borrower(_SharedContainers):
    """The lent containers on the test code's side."""

    def borrow(self, data: Json, shells: Json, changed: Json) -> Value:
        """Return a value with the test code's own objects for lent containers. Raises `Undecodable`."""
        for shell in self._decode(shells, ()):
            if type(shell) not in MUTABLE or len(self.objects) >= MAX_LENT:
                raise Undecodable("it lends an object that is not a container")
            self.add(shell)
        self.take(changed)
        return self._decode(data, self.objects)

    def take(self, changed: Json) -> None:
        """Update the containers with the solution's changes, which then do not count as changes of the test code."""
        super().take(changed)
        for index, _ in changed:
            self._last_texts[index] = to_json(self.encode(contents(self.objects[index], {}), self.indices))


def _containers(value: Value) -> list[Value] | None:
    """Return the mutable containers in a value and the value itself, or None if they are too many or too large."""
    containers: dict[int, Value] = {}
    waiting, looked_at = [value], 0
    while waiting:
        container = waiting.pop()
        if type(container) in MUTABLE:
            if id(container) in containers:
                continue
            if len(container) > MAX_ELEMENTS:
                return None
            containers[id(container)] = container
        if type(container) in _LOOKED_INTO:
            parts = [*container, *dict.values(container)] if isinstance(container, dict) else list(container)
            waiting += [part for part in parts if type(part) in MUTABLE or type(part) in _LOOKED_INTO]
            looked_at += len(parts)
        if looked_at > MAX_REACHABLE or len(containers) > MAX_LENT:
            return None
    return list(containers.values())


def has_shared_parts(value: Value) -> bool:
    """Return whether a container inside a value occurs twice or is referenced from elsewhere too."""
    waiting, looked_at = [value] if type(value) in _LOOKED_INTO else [], 0
    while waiting:
        container = waiting.pop()
        for part in dict.values(container) if isinstance(container, dict) else container:
            if type(part) in MUTABLE and sys.getrefcount(part) > _PART_REFERENCES:
                return True
            if type(part) in _LOOKED_INTO:
                waiting.append(part)
        looked_at += len(container)
        if looked_at > MAX_REACHABLE:
            return False
    return False


_PART_REFERENCES = 3
"""`sys.getrefcount` of a part that only its container holds. The container, a variable and an argument refer to it."""

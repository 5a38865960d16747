"""The types, exceptions and modules that both processes have, and may name instead of sending.

    int                  {"$": "builtin", "v": "int"}
    math.sqrt            {"$": "local", "v": ["math", "sqrt"]}

The solution's process chooses what it names, and so could choose an object that answers every comparison with yes.
Types and exceptions are therefore a closed list, and of the standard library it can name only what the test code asked
for under that very name, in modules where nothing of the kind exists.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Sequence
from types import BuiltinFunctionType, ModuleType
from typing import Any

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

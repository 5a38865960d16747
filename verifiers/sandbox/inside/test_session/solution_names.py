"""Finds the names that test code does not define itself: in the solution, by way of the session.

    assert add(1, 2) == 3            a remote object, for the solution's `add`
    from solution import add         the same; `main`, `your_module`, `my_solution` ... are the solution as well
    math.isclose(add(1, 2), 3)       the module `math`, whatever the solution calls so
    isclose(add(1, 2), 3)            that of `math` as well (`library_functions.py`)
    assert sum(10, 15) == 6          the built-in `sum`, unless it is what is tested

The entry point is what is tested. Where there is none, a built-in function is meant to be the solution's if every
assertion calls it and none calls anything that is not built in.
"""

from __future__ import annotations

import ast
import builtins
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ..test_code.isolation import SOLUTION_FOLDERS, is_solution_module
from ..test_code.library_functions import called_names, library_function, library_names
from .sending import TEST_MODULE
from .session import NoSuchName, Session
from .shared_names import shared_module


class SolutionNames(dict[str, Any]):
    """The built-in names of test code, and behind them the solution's, for `__builtins__` of a namespace."""

    def __init__(self, session: Session, tree: ast.Module, entry_point: str | None) -> None:
        super().__init__(vars(builtins))
        self._session = session
        self._modules = _names_of_modules(tree)
        self._library = library_names(tree, entry_point)
        for name in tested_builtins(tree, entry_point):
            self.pop(name, None)

    def __missing__(self, name: str) -> Any:
        if name.startswith("__"):
            raise KeyError(name)
        if name in self._modules:
            try:
                module = shared_module(name)
            except LookupError:
                module = None
            # `datetime.now()` asks the class of that name, which the solution imports as well.
            if module is not None and all(hasattr(module, attribute) for attribute in self._modules[name]):
                return module
        if name in self._library:
            try:
                self[name] = library_function(name)
                return self[name]
            except LookupError:
                pass
        try:
            value = self._session.look_up(name)
        except NoSuchName:
            if hasattr(builtins, name):
                return getattr(builtins, name)
            raise KeyError(name) from None
        if callable(value) or isinstance(value, ModuleType):
            self[name] = value
        return value


class SolutionModule(ModuleType):
    """The module that `import solution` gives."""

    def __init__(self, name: str, names: SolutionNames, session: Session) -> None:
        super().__init__(name)
        self.__dict__["_truegold"] = (names, session)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        names, session = self.__dict__["_truegold"]
        if name == "__all__":
            return [name for name in session.public_names() if _may_be_imported(name, names)]
        try:
            return names.__missing__(name)
        except KeyError:
            raise AttributeError(f"the program does not define {name!r}") from None


def _may_be_imported(name: str, names: SolutionNames) -> bool:
    """Return whether `from solution import *` may import it.

    It may not replace what the test code has already, nor a built-in function that is not tested.
    """
    taken = vars(builtins).keys() & names.keys() | vars(sys.modules[TEST_MODULE]).keys()
    return name.isidentifier() and name not in taken


class SolutionFinder(MetaPathFinder, Loader):
    """Finds the solution as a module. It is asked last, so that an installed module goes by its own name."""

    def __init__(self, names: SolutionNames, session: Session, entry_point: str | None) -> None:
        self._names = names
        self._session = session
        self._tested = {entry_point.partition(".")[0].removesuffix("()")} if entry_point else set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return how to load a name that means the solution; None for other names."""
        parent, _, last = name.rpartition(".")
        # `src.calculator` is the solution too, but `from solution import add` does not mean a module `solution.add`.
        if is_solution_module(last) or last in self._tested or parent in SOLUTION_FOLDERS:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the solution as a module."""
        return SolutionModule(spec.name, self._names, self._session)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the program runs in the other process."""

    def install(self) -> None:
        """Let `import` ask this finder after all others."""
        sys.meta_path.append(self)


def tested_builtins(tree: ast.Module, entry_point: str | None) -> set[str]:
    """Return the built-in names that stand for a function of the solution."""
    if entry_point is not None:
        return {entry_point} & vars(builtins).keys()
    called = [set(called_names(node)) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if not called or any(names - vars(builtins).keys() for names in called):
        return set()
    innermost = [_innermost_names(node) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return set.intersection(*called, *innermost)


def _innermost_names(tree: ast.AST) -> set[str]:
    """Return the names of functions called with arguments that call nothing."""
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and not any(isinstance(below, ast.Call) for argument in node.args for below in ast.walk(argument))
    }


def _names_of_modules(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names of which only attributes are used, as those of modules are, with these attributes."""
    attribute_of = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.setdefault(node.id, set()).add(attribute_of.get(id(node)))
    return {name: {str(each) for each in attributes} for name, attributes in used.items() if None not in attributes}

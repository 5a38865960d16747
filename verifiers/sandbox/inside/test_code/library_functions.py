"""Decides whether a name that test code does not import means the solution's function or a library's function.

    assert isclose(f(2), 4.5)         isclose of `math`: the solution's own isclose could call everything close
    assert sqrt(16) == 4              sqrt of the solution, since no other name is tested here

Only names in `library_functions.txt`, a list of well-known functions, can mean a library's function. If test code
defines or imports a name itself, the name means that definition.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ..wire.value_types import Value


def _read_library() -> dict[str, str]:
    with open(os.path.join(os.path.dirname(__file__), "library_functions.txt"), encoding="ascii") as file:
        lines = [line.partition(":") for line in file if not line.startswith("#")]
    return {name: module for module, _, names in lines for name in names.split()}


LIBRARY_OF: Mapping[str, str] = _read_library()
"""The module that has each function: `isclose` -> `math`."""

SOLUTION_MODULES = frozenset("solution main submission candidate answer program student implementation".split())
"""Names under which test code imports the module that it tests."""

SOLUTION_FOLDERS = frozenset({"src", "app", "solutions", "submissions"})
"""Names of packages from which test code imports the module under test."""

_NUMPY_NAMES = [name for name, module in LIBRARY_OF.items() if module.startswith("numpy")]
_VARIABLES = (ast.Name, ast.Attribute)
"""Nodes that may hold an object."""
_BUILTINS = frozenset(dir(builtins))
_RUNNING = frozenset({"eval", "exec", "__import__"})
"""Builtins by which test code may use names that do not stand in its source."""
_IMPORTED = sys.stdlib_module_names | {"numpy", "pandas", "pytest"}
"""Modules that are never the solution."""


def is_solution_module(name: str) -> bool:
    """Return whether test code means the solution by a module of this name."""
    root = name.partition(".")[0]
    known = root in SOLUTION_MODULES or root in SOLUTION_FOLDERS
    return known or "solution" in root or root.startswith(("your_", "my_"))


class SolutionFinder(MetaPathFinder, Loader):
    """Finds the solution under the names by which test code imports it. Installed modules are found first.

    from solution import add            a usual name
    from two_sum import two_sum         the name of the entry point
    import pkg.sums                     a name of the suite, with its package (`suite/imports.py`)
    """

    def __init__(
        self,
        make_module: Callable[[str], ModuleType],
        modules: Collection[str],
        entry_point: str | None,
        run_again: Callable[[], None],
    ) -> None:
        """make_module: takes a name and returns the solution as a module. modules: more names for the solution."""
        self._make_module = make_module
        self._run_again = run_again
        self._made: set[str] = set()
        self._modules = frozenset(modules)
        self._tested = {entry_point.partition(".")[0].removesuffix("()")} if entry_point else set()

    def find_spec(self, name: str, path: Value = None, target: Value = None) -> ModuleSpec | None:
        """Return the spec of a module whose name means the solution, or None."""
        parent, _, last = name.rpartition(".")
        # `src.calculator` is the solution. `from solution import add` does not import a module `solution.add`.
        is_usual = is_solution_module(last) or last in self._tested or parent in SOLUTION_FOLDERS
        return ModuleSpec(name, self, is_package=True) if is_usual or name in self._modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the solution as a module."""
        self._made.add(spec.name)
        return self._make_module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because the program has run already. For `importlib.reload`, run it again."""
        name = module.__spec__.name if module.__spec__ is not None else module.__name__
        if name not in self._made:
            self._run_again()
        self._made.discard(name)


def library_names(tree: ast.Module, entry_point: str | None) -> frozenset[str]:
    """Return the names of `LIBRARY_OF` that mean the library's function in this test code.

    Other names of `LIBRARY_OF` mean the solution: the entry point, and a class whose objects need attributes that the
    library's class lacks. Without an entry point, the only undefined name means the solution. If there are several
    undefined names, those that an assertion calls with constants mean the solution.
    """
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if used.isdisjoint(LIBRARY_OF):
        return frozenset(LIBRARY_OF)
    tested: set[str | None] = {entry_point}
    if entry_point is None and len(unknown := unknown_names(tree)) == 1:
        tested |= unknown
    elif entry_point is None:
        for node in filter(_is_assertion, ast.walk(tree)):
            parts = node.args if isinstance(node, ast.Call) else [node]
            names = {name for part in parts for name in loaded_names(part)} - _BUILTINS
            called = set(called_names(node)) - _BUILTINS
            is_expected_to_raise = "raises" in getattr(getattr(node, "func", None), "attr", "").lower()
            if len(names) == 1 and (called == names or is_expected_to_raise):
                tested |= names
    return frozenset(LIBRARY_OF.keys() - tested - set(_solution_classes(tree)))


def unknown_names(tree: ast.Module) -> set[str]:
    """Return names that neither test code nor Python defines. They belong to the solution or a library."""
    bound = set(defined_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if not all(module.partition(".")[0] in _IMPORTED for module in modules):
                bound -= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    unknown = loaded_names(tree) - bound - (_BUILTINS - _RUNNING)
    return {name for name in unknown if not name.startswith("__")}


def loaded_names(node: ast.AST) -> set[str]:
    """Return the names that code reads."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that test code defines or imports, in any scope."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)


def library_function(name: str) -> Value:
    """Return the library's function of a name. Raises LookupError if the library is not installed."""
    try:
        return getattr(importlib.import_module(LIBRARY_OF[name]), name)
    except (ImportError, AttributeError):
        raise LookupError(name) from None


def may_use_numpy(code: str) -> bool:
    """Return whether test code contains a name of one of numpy's functions."""
    return any(name in code for name in _NUMPY_NAMES)


def _is_assertion(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.Assert)
    return "assert" in getattr(node.func, "attr", "").lower()


def _solution_classes(tree: ast.Module) -> Iterator[str]:
    """Yield classes of the solution that share a library's name: `c = Counter()` with `c.increment()`."""
    holders: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and (name := _constructed_name(node.value)) is not None:
            holders |= {ast.unparse(target): name for target in node.targets if isinstance(target, _VARIABLES)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            held = holders.get(ast.unparse(node.value)) if isinstance(node.value, _VARIABLES) else None
            name = held or _constructed_name(node.value)
            if name is not None and not _may_have(name, node.attr):
                yield name


def _constructed_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LIBRARY_OF:
        return node.func.id
    return None


def _may_have(name: str, attribute: str) -> bool:
    try:
        function = library_function(name)
    except LookupError:
        return True
    return not isinstance(function, type) or hasattr(function, attribute)


def called_names(node: ast.AST) -> Iterator[str]:
    """Yield the names of the functions that code calls."""
    for below in ast.walk(node):
        if isinstance(below, ast.Call) and isinstance(below.func, ast.Name):
            yield below.func.id

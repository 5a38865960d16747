"""Reads the imports of test code: the module under test, missing packages, and imports that the solution relies on.

solution_modules("import math\nfrom pkg.sums import add\nassert add(1, 2) == 3")      {"pkg", "pkg.sums"}
missing_package("import numpy_typo\nassert add(1, 2) == 3")    "numpy_typo"
missing_package("import math, solution\n")        None: `solution` is the program under test
missing_package("def f(): import numpy_typo\n")   None: only a call of f imports it

imports_for("... re.findall('a', s)", "import re, os")         "try:\n    import re\nexcept Exception: pass\n"

The module under test is the imported module with a usual name (`from solution import add`). Otherwise, it is the
imported module that is neither installed nor part of Python, provided that test code defines all other names.

A solution may rely on imports of the tests, as if solution and tests were one file. In the solution's process, these
imports run before the solution, whose own definitions replace imported names.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from importlib.util import find_spec

from truegold.verifiers.code.python_source import bound_by, nodes_in_scope, parse
from truegold.verifiers.sandbox.inside.preload import PYTEST
from truegold.verifiers.sandbox.inside.test_code.library_functions import (
    LIBRARY_OF,
    defined_names,
    is_solution_module,
    loaded_names,
)
from truegold.verifiers.sandbox.inside.test_code.statements import find_check

CACHED_SUITES = 256
_ALWAYS_THERE = frozenset({"", "__main__", "__future__"})
"""Modules that are never missing. The empty name stands for a relative import."""

_WORD = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=CACHED_SUITES)
def solution_modules(code: str) -> frozenset[str]:
    """Return the names by which test code imports the module under test, and the names of its packages."""
    tree = parse(code)
    if tree is None:
        return frozenset()
    imported = {name for node in ast.walk(tree) for name in _imported_modules(node)}
    modules = {name for name in imported if is_solution_module(name)}
    if not modules and (unknown := _unknown_modules(tree)) and not _names_solution(tree):
        longest = max(unknown, key=len)
        modules = unknown if all(f".{longest}".endswith(f".{name}") for name in unknown) else set()
    return frozenset(
        ".".join(parts[: length + 1]) for name in modules for parts in [name.split(".")] for length in range(len(parts))
    )


def means_solution(module: str, code: str) -> bool:
    """Return whether a module name in test code refers to the solution."""
    return is_solution_module(module) or module in solution_modules(code)


@lru_cache(maxsize=CACHED_SUITES)
def missing_package(code: str) -> str | None:
    """Return the missing packages that test code imports at module level, as a text, or None if all are installed."""
    tree = parse(code)
    imported = [name for node in (tree.body if tree is not None else ()) for name in _imported_modules(node)]
    # A suite that imports conftest needs its original folder of tests, which is never available.
    missing = (name.partition(".")[0] for name in imported if not means_solution(name, code) and _is_unknown(name))
    return " and ".join(dict.fromkeys(missing)) or None


def imports_for(program: str, test_code: str) -> str:
    """Return the imports of test code whose names occur in a program, each in a `try` statement."""
    words = set(_WORD.findall(program))
    imports = (source for name, source in _imports_of(test_code) if name in words or name == "*")
    return "".join(f"try:\n    {source}\nexcept Exception: pass\n" for source in dict.fromkeys(imports))


@lru_cache(maxsize=CACHED_SUITES)
def _imports_of(code: str) -> tuple[tuple[str, str], ...]:
    """Return the names that test code imports at module level, each with its statement."""
    tree = parse(code)
    return tuple(_named_imports(tree, code)) if tree is not None else ()


def _named_imports(tree: ast.Module, code: str) -> Iterator[tuple[str, str]]:
    # nodes_in_scope yields the last statement first. A later import of a name has to replace an earlier one.
    for node in reversed(list(nodes_in_scope(tree.body))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                part = copy(node)
                part.names = [alias]
                modules = _imported_modules(part)
                if modules and not any(name in _ALWAYS_THERE or means_solution(name, code) for name in modules):
                    yield next(bound_by(part)), ast.unparse(part)


def _imported_modules(node: ast.AST) -> list[str]:
    """Return the full names of the modules that a statement imports, without relative ones (`from .helpers`)."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def _unknown_modules(tree: ast.Module) -> set[str]:
    """Return the imported modules that are not installed. Imports in `try` count only if there are no other ones."""
    caught = {
        id(below) for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers for below in ast.walk(node)
    }
    unknown: dict[bool, set[str]] = {False: set(), True: set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [name for name in _imported_modules(node) if _is_unknown(name) and name != "conftest"]
            unknown[id(node) in caught].update(names)
    chosen = unknown[False] or unknown[True]
    return {name for each in chosen for name in (set(_modules_within(tree, each)) or {each})}


def _modules_within(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the modules that test code imports from a package: `from pkg import sums`, used as `sums.add`.

    Yields nothing if the test code imports anything else from the package, such as functions or classes.
    """
    used = {id(node.value): node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    owners = {node.id for node in used.values() if isinstance(node, ast.Name)}
    imported = (name for node in ast.walk(tree) for name in _imported_modules(node))
    owners |= {name.removeprefix(f"{package}.") for name in imported}
    bare = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in used}
    for node in ast.walk(tree):
        if package in _imported_modules(node):
            names = node.names if isinstance(node, ast.ImportFrom) else []
            bound = {alias.asname or alias.name for alias in names}
            if not bound or not bound <= owners - bare or any(alias.name != alias.name.lower() for alias in names):
                return
            yield from (f"{package}.{alias.name}" for alias in names)


def _names_solution(tree: ast.Module) -> bool:
    """Return whether test code refers to the solution without importing an unknown module."""
    check, is_called = find_check(tree)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    is_relative = any(node.level for node in imports if isinstance(node, ast.ImportFrom))
    if is_relative or (check is not None and not is_called):
        return True
    has_star = any(node.names[0].name == "*" for node in imports)
    return not has_star and bool(_free_names(tree, tree))


def continued_names(code: str, prelude: str) -> list[str]:
    """Return the variables of the prelude that the program may change and the tests then check.

    prelude           tests                                       result
    df = load()       assert df.equals(df.sort_values("a"))       ["df"]
    df = load()       assert total(df) == 3                       []: the program defines `total`, and df is input
    """
    tree, script = parse(code), parse(prelude)
    if tree is None or script is None or solution_modules(code):
        return []
    bound = [(statement, name) for statement in script.body for name in bound_by(statement)]
    free = _free_names(tree, tree)
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom
    variables = {name for statement, name in bound if not isinstance(statement, kinds)}
    return sorted(free & variables) if free <= {name for _, name in bound} else []


def is_helper(code: str, name: str, preamble: str) -> bool:
    """Return whether a function of the test code calls the solution: `def run(): return Stack().push(1)`.

    Such a function uses, directly or through other functions, names that neither the code nor its preamble defines.
    """
    tree = parse(code)
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)} if tree is not None else {}
    if tree is None or name not in functions:
        return False
    pending, reached = [name], set[str]()
    while pending:
        reached.add(current := pending.pop())
        used = {node.id for node in ast.walk(functions[current]) if isinstance(node, ast.Name)}
        pending += (used & functions.keys()) - reached - set(pending)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    of_solution = [node for node in imports if node.level or means_solution(node.module or "", code)]
    imported = {name for node in of_solution for name in bound_by(node)}
    words = set(_WORD.findall(preamble))
    return any(
        (_free_names(tree, functions[each]) | (loaded_names(functions[each]) & imported)) - words for each in reached
    )


def with_calls_of_check(code: str, name: str) -> str:
    """Return test code with a call `check(name)` added, if the code defines a function `check` and never calls it."""
    tree = parse(code)
    check, is_called = find_check(tree) if tree is not None else (None, True)
    return f"{code}\n{check.name}({name})\n" if check is not None and not is_called else code


def _free_names(tree: ast.Module, part: ast.AST) -> set[str]:
    """Return the undefined names in a part of test code, which the solution has to define."""
    free = loaded_names(part) - set(defined_names(tree)) - vars(builtins).keys() - LIBRARY_OF.keys() - {PYTEST}
    return {name for name in free if not name.startswith("__")}


def _is_unknown(module: str) -> bool:
    """Return whether a module is neither installed nor a usual name of the solution. conftest is always unknown."""
    root = module.partition(".")[0]
    return root == "conftest" or not (root in _ALWAYS_THERE or is_solution_module(root) or is_installed(root))


def is_installed(module: str) -> bool:
    """Return whether this interpreter can import a module, or True if this cannot be determined."""
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError, AttributeError):
        return True

"""Packages that test code imports and this interpreter does not have: without them no program can be judged.

missing_package("import numpy_typo\n")            "numpy_typo"
missing_package("import math, solution\n")        None: `solution` is the program under test
missing_package("def f(): import numpy_typo\n")   None: only a call of f imports it
"""

from __future__ import annotations

import ast
from functools import lru_cache
from importlib.util import find_spec

from truegold.verifiers.code.python_source import parse
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_ALWAYS_THERE = frozenset({"", "__main__", "__future__"})
"""Modules that no package brings; the empty name is that of no module at all."""


@lru_cache(maxsize=CACHED_SUITES)
def missing_package(code: str) -> str | None:
    """Return a package that test code imports in any case and this interpreter does not have; None where it has all."""
    tree = parse(code)
    for node in tree.body if tree is not None else ():
        for name in _imported_modules(node):
            root = name.partition(".")[0]
            is_available = root in _ALWAYS_THERE or is_solution_module(root) or _is_installed(root)
            # A suite that imports conftest needs pytest's own folder of tests, whether a conftest.py is here or not.
            if root == "conftest" or not is_available:
                return root
    return None


def _imported_modules(node: ast.stmt) -> list[str]:
    """Return the modules that a statement imports by their full names, those of `from .helpers import f` left out."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def _is_installed(module: str) -> bool:
    """Return whether this interpreter can import a module; one that cannot be looked for is left to the run."""
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError, AttributeError):
        return True

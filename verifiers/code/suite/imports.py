"""Imports of test code: the packages that this interpreter lacks, and the names that a solution may use as well.

missing_package("import numpy_typo\n")            "numpy_typo"
missing_package("import math, solution\n")        None: `solution` is the program under test
missing_package("def f(): import numpy_typo\n")   None: only a call of f imports it

Where prompt, program and tests are one file, the program sees what the tests import. Apart, it is given these imports
before it is loaded, so that what it defines itself replaces them:

imports_for("def f(s): return re.findall('a', s)", "import re, os\ndef check(candidate): ...")
    "try:\n    import re\nexcept Exception: pass\n"

What stands inside functions of the tests is theirs, and so is what they import from the program. No test is seen by
way of a module: those of the suite itself are not there to be imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from importlib.util import find_spec

from truegold.verifiers.code.python_source import bound_by, nodes_in_scope, parse
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_ALWAYS_THERE = frozenset({"", "__main__", "__future__"})
"""Modules that no package brings; the empty name is that of no module at all."""

_WORD = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=CACHED_SUITES)
def missing_package(code: str) -> str | None:
    """Return a package that test code imports in any case and this interpreter does not have; None where it has all."""
    tree = parse(code)
    for node in tree.body if tree is not None else ():
        for name in _imported_modules(node):
            root = name.partition(".")[0]
            is_available = root in _ALWAYS_THERE or is_solution_module(root) or is_installed(root)
            # A suite that imports conftest needs pytest's own folder of tests, whether a conftest.py is here or not.
            if root == "conftest" or not is_available:
                return root
    return None


def imports_for(program: str, test_code: str) -> str:
    """Return the imports of test code whose names occur in a program, each of which may fail."""
    words = set(_WORD.findall(program))
    imports = (source for name, source in _imports_of(test_code) if name in words or name == "*")
    return "".join(f"try:\n    {source}\nexcept Exception: pass\n" for source in dict.fromkeys(imports))


@lru_cache(maxsize=CACHED_SUITES)
def _imports_of(code: str) -> tuple[tuple[str, str], ...]:
    """Return the names that the module of the test code imports, each with its statement."""
    tree = parse(code)
    return tuple(_named_imports(tree)) if tree is not None else ()


def _named_imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    # nodes_in_scope yields the last statement first; of two imports of a name the later one holds.
    for node in reversed(list(nodes_in_scope(tree.body))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                part = copy(node)
                part.names = [alias]
                roots = {module.partition(".")[0] for module in _imported_modules(part)}
                if roots and not any(root in _ALWAYS_THERE or is_solution_module(root) for root in roots):
                    yield next(bound_by(part)), ast.unparse(part)


def _imported_modules(node: ast.stmt) -> list[str]:
    """Return the modules that a statement imports by their full names, those of `from .helpers import f` left out."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def is_installed(module: str) -> bool:
    """Return whether this interpreter can import a module; one that cannot be looked for is left to the run."""
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError, AttributeError):
        return True

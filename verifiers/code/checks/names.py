"""What the names in test code stand for that it does not bind itself.

    names = names_for(parse("assert add(1, 2) == len([1, 2, 3])"), None, "import math")
    names.solution_function("add")    "add"
    names.solution_function("len")    None: a builtin

A builtin's name is a function of the solution where it is the entry point, or where the tests call nothing else:
`assert sum(10, 15) == 6` tests a function called `sum`.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from truegold.verifiers.code.syntax import parse, top_level
from truegold.verifiers.sandbox.inside.test_code.library_functions import called_names, library_names

HARMLESS = frozenset(
    "bisect collections copy datetime decimal fractions functools heapq itertools json math operator os random re "
    "statistics string sys time typing".split()
)
"""Modules whose import changes nothing that a check could see."""

SOLUTION_MODULES = frozenset({"solution", "main", "submission", "candidate", "your_module"})
"""What test code calls the module under test."""

CACHED_PRELUDES = 256

_SAME_AS_BUILTIN = frozenset({"abs"})
"""Builtins that a module brings under the same name."""

_BUILTINS = frozenset(dir(builtins))
_METHOD = re.compile(r"[^\W\d]\w*\(\)(?:\.[^\W\d]\w*(?:\(\))?)+")


@dataclass(frozen=True)
class Names:
    """What each name in the test code of one suite stands for."""

    entry_point: str | None
    provided: frozenset[str | None]
    """Names that prelude and stub bind, None among them where a foreign module may have brought any."""
    tested: frozenset[str]
    """Builtins' names that are functions of the solution."""
    library: frozenset[str] = frozenset()
    """Names that mean a function of a library though nothing imports it."""

    def solution_function(self, name: str) -> str | None:
        """Return the function of the solution that a name stands for."""
        if self.entry_point is not None and name in (self.entry_point, "candidate"):
            return self.entry_point
        if name in self.tested:
            return name
        known = name in _BUILTINS or name in self.library or name in self.provided
        return None if known or None in self.provided else name

    def is_shadowed(self, name: str) -> bool:
        """Whether a builtin may be another function here."""
        return name in self.provided or None in self.provided

    def is_builtin(self, name: str) -> bool:
        """Whether a name certainly means the builtin."""
        return name in _BUILTINS and name not in self.tested and not self.is_shadowed(name)

    def method(self, node: ast.expr) -> str | None:
        """Return the text of an expression such as `Solution().f`, where Solution is a class of the solution."""
        if not isinstance(node, ast.Attribute):
            return None
        text = ast.unparse(node)
        first = text.partition("(")[0].partition(".")[0]
        known = first not in self.provided and None not in self.provided and first not in _BUILTINS
        return text if _METHOD.fullmatch(text) and (known or text == self.entry_point) else None


def names_for(tree: ast.Module, entry_point: str | None, preamble: str) -> Names | None:
    """Return the names of test code. preamble: prelude and stub; where it does not parse, None comes back."""
    provided = _bound_names(preamble)
    if provided is None:
        return None
    return Names(
        entry_point, provided, frozenset(_tested_builtins(tree, entry_point)), library_names(tree, entry_point)
    )


def functions_under_test(code: str) -> list[str]:
    """Return the functions that assertions call and the code does not define, for suites without an entry point."""
    tree = parse(code)
    if tree is None:
        return []
    known = top_level(tree) | library_names(tree, None) | _BUILTINS
    called = [name for name in _called_in_assertions(tree) if name not in known]
    return list(dict.fromkeys(called)) or sorted(_tested_builtins(tree, None))


def _tested_builtins(tree: ast.Module, entry_point: str | None) -> Iterator[str]:
    if entry_point is not None or set(_called_in_assertions(tree)) - _BUILTINS:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=ast.Compare(left=ast.Call(func=ast.Name(id=name)))):
                yield name
            case ast.Assert(test=ast.Call(func=ast.Name(id=name))):
                yield name


def _called_in_assertions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield from called_names(node.test)


@lru_cache(maxsize=CACHED_PRELUDES)
def _bound_names(preamble: str) -> frozenset[str | None] | None:
    tree = parse(preamble)
    if tree is None:
        return None
    names: set[str | None] = {name for name in top_level(tree) if name != "*"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names.update(star_names(node.module) if node.module in HARMLESS else {None})
    return frozenset(names)


@lru_cache(maxsize=len(HARMLESS))
def star_names(module_name: str) -> frozenset[str]:
    """Return the names that `from module import *` brings."""
    module = importlib.import_module(module_name)
    public = [name for name in dir(module) if not name.startswith("_")]
    return frozenset(getattr(module, "__all__", public)) - _SAME_AS_BUILTIN

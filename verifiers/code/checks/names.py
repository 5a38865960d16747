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

from truegold.verifiers.code.inside.test_code.library_functions import library_names
from truegold.verifiers.code.syntax import parse, top_level

HARMLESS = frozenset(
    "bisect collections copy datetime decimal fractions functools heapq itertools json math operator os random re "
    "statistics string sys time typing".split()
)
"""Modules whose import changes nothing that a check could see."""

SOLUTION_MODULES = frozenset({"solution", "main", "submission", "candidate", "your_module"})
"""What test code calls the module under test."""

CACHED_PRELUDES = 256

_SAME = frozenset({"abs"})
"""Builtins that a module brings under the same name."""

_BUILTINS = frozenset(dir(builtins))
_METHOD = re.compile(r"[^\W\d]\w*\(\)(?:\.[^\W\d]\w*(?:\(\))?)+")


@dataclass(frozen=True)
class Names:
    """given: names that prelude and stub bind, None among them where a foreign module may have brought any. library:
    names that mean a function of a library though nothing imports it."""

    entry_point: str | None
    given: frozenset[str | None]
    tested: frozenset[str]
    library: frozenset[str] = frozenset()

    def solution_function(self, name: str) -> str | None:
        """The function of the solution that a name stands for."""
        if self.entry_point is not None and name in (self.entry_point, "candidate"):
            return self.entry_point
        if name in self.tested:
            return name
        known = name in _BUILTINS or name in self.library or name in self.given
        return None if known or None in self.given else name

    def is_shadowed(self, name: str) -> bool:
        """Whether a builtin may be another function here."""
        return name in self.given or None in self.given

    def is_builtin(self, name: str) -> bool:
        return name in _BUILTINS and name not in self.tested and not self.is_shadowed(name)

    def method(self, node: ast.expr) -> str | None:
        """`Solution().f` as it stands, where Solution is a class of the solution."""
        if not isinstance(node, ast.Attribute):
            return None
        text = ast.unparse(node)
        first = text.partition("(")[0].partition(".")[0]
        known = first not in self.given and None not in self.given and first not in _BUILTINS
        return text if _METHOD.fullmatch(text) and (known or text == self.entry_point) else None


def names_for(tree: ast.Module, entry_point: str | None, given: str) -> Names | None:
    """given: prelude and stub. None where it does not parse."""
    bound = _bound(given)
    if bound is None:
        return None
    return Names(entry_point, bound, frozenset(_tested_builtins(tree, entry_point)), library_names(tree, entry_point))


def functions_under_test(code: str) -> list[str]:
    """The functions that assertions call and the code does not define, in order: for suites without an entry point."""
    tree = parse(code)
    if tree is None:
        return []
    own = top_level(tree)
    own |= library_names(tree, None)
    called = [name for name in _called(tree) if name not in own and name not in _BUILTINS]
    return list(dict.fromkeys(called)) or sorted(_tested_builtins(tree, None))


def _tested_builtins(tree: ast.Module, entry_point: str | None) -> Iterator[str]:
    if entry_point is not None or set(_called(tree)) - _BUILTINS:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=ast.Compare(left=ast.Call(func=ast.Name(id=name)))):
                yield name
            case ast.Assert(test=ast.Call(func=ast.Name(id=name))):
                yield name


def _called(tree: ast.Module) -> Iterator[str]:
    """Names that are called within assertions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            for each in ast.walk(node.test):
                if isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
                    yield each.func.id


@lru_cache(maxsize=CACHED_PRELUDES)
def _bound(given: str) -> frozenset[str | None] | None:
    tree = parse(given)
    if tree is None:
        return None
    names: set[str | None] = {name for name in top_level(tree) if name != "*"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names.update(star(node.module) if node.module in HARMLESS else {None})
    return frozenset(names)


@lru_cache(maxsize=len(HARMLESS))
def star(module: str) -> frozenset[str]:
    """What `from module import *` brings."""
    found = importlib.import_module(module)
    public = [name for name in dir(found) if not name.startswith("_")]
    return frozenset(getattr(found, "__all__", public)) - _SAME

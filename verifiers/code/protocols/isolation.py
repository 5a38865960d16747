"""Tells whether test code does something that cannot be done from another process than the solution's.

    needs_one_process("with patch('solution.now'): ...")     "it imports unittest.mock"
    needs_one_process("class Mine(Base): ...")              "it derives a class from Base"
    needs_one_process("assert add(1, 2) == 3")               None

Only the test code is looked at, and never a solution: which way tests are run must not be the choice of what they test.
This finds what can be read off the code; passing an object that cannot travel is noticed when it happens.
"""

from __future__ import annotations

import ast
import builtins
import sys
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from truegold.verifiers.code.suite.imports import means_solution
from truegold.verifiers.sandbox.inside.program import MODULE
from truegold.verifiers.sandbox.inside.test_code.library_functions import defined_names, library_names

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_WORDS = tomllib.loads(files(__package__).joinpath("isolation.toml").read_text(encoding="utf-8"))
_CALLS: Mapping[str, str] = _WORDS.pop("calls")
_SETS = {name: frozenset(words.split()) for name, words in _WORDS.items()}


@lru_cache(maxsize=CACHED_SUITES)
def needs_one_process(code: str) -> str | None:
    """Return why the code has to share a process with the solution.

    None where it does not have to, or cannot be read.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
    for node in ast.walk(tree):
        if (reason := _node_reason(node, code)) is not None:
            return reason
    return _class_reason(tree, code)


def _node_reason(node: ast.AST, code: str) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return _import_reason(node, code)
    if isinstance(node, ast.Call):
        return _call_reason(node, code)
    if isinstance(node, ast.FunctionDef) and (used := {a.arg for a in node.args.args} & _SETS["fixtures"]):
        return f"it uses the fixture {min(used)}"
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return "it steps through asynchronous objects of the solution"
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    for target in targets:
        name = _dotted_name(target.value if isinstance(target, ast.Subscript) else target)
        if name in _SETS["state"]:
            return f"it changes {name}"
    return None


def _import_reason(node: ast.Import | ast.ImportFrom, code: str) -> str | None:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level or means_solution(node.module or "", code):
        return None
    else:
        names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    for name in names:
        root = name.partition(".")[0]
        if root in _SETS["sharing"] or name in _SETS["sharing"]:
            return f"it imports {name if name in _SETS['sharing'] else root}"
        is_known = root in sys.stdlib_module_names or root in _SETS["foreign_free"] or means_solution(name, code)
        if not is_known:
            return f"it imports {root}, whose objects cannot be passed between processes"
    return None


def _call_reason(node: ast.Call, code: str) -> str | None:
    name = _dotted_name(node.func)
    runs = name in _SETS["running"] or (name.rpartition(".")[2] in _SETS["running_by_pandas"] and "pandas" in code)
    if runs and node.args and not isinstance(node.args[0], ast.Constant | ast.Lambda):
        return f"it calls {name} with what the solution may have made"
    if any(keyword.arg == "allow_pickle" for keyword in node.keywords):
        return _CALLS["read_pickle"]
    return _CALLS.get(name.rpartition(".")[2])


def _dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as text, and `().c` where something else than a name has the attribute."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def _class_reason(tree: ast.Module, code: str) -> str | None:
    """Return why the code shares classes: it derives one from the solution's, which it calls and does not define."""
    solutions = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and means_solution(node.module or MODULE, code)
        for alias in node.names
    }
    known = (set(defined_names(tree)) - solutions) | vars(builtins).keys() | library_names(tree, None)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id not in known:
                    return f"it derives a class from {base.id}"
    return None

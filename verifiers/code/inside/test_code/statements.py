"""Cuts test code into the statements that are tests of their own, so that one that fails does not hide the rest.

    assert add(1, 2) == 3                       with __unit__(0): assert add(1, 2) == 3
    def check(candidate):                       def check(candidate):
        for x in range(9):                          with __unit__(1):
            assert candidate(x) == x                    for x in range(9): ...

A unit is a statement, of the module or of its `check(candidate)`, that asserts something: it holds an `assert`, a call
of something with "assert" in its name, or one of a function of the test code that does such a thing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

UNIT = "__unit__"
"""The name of what makes the `with` block around a unit, by its index."""

CHECK = "check"
SHOWN_CHARS = 300


@dataclass(frozen=True)
class Plan:
    """Test code in units, ready to be compiled."""

    tree: ast.Module
    units: list[str]
    """The text of each unit."""
    check: str | None
    """The function to call with the candidate afterwards."""


def plan_units(code: str) -> Plan:
    """Cut test code into units. Raises SyntaxError, and ValueError for null bytes."""
    tree = ast.parse(code)
    lines = code.splitlines()
    units: list[str] = []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    asserting = {node.name for node in functions if any(_asserts(below, set()) for below in node.body)}
    check, called = _find_check(tree)
    if check is not None:
        asserting.discard(check.name)
    tree.body = [_wrap_asserting(node, asserting, units, lines) for node in tree.body if not _runs_all_tests(node)]
    if check is not None:
        before = len(units)
        body = [_wrap_asserting(node, asserting, units, lines) for node in check.body]
        check.body = body if len(units) > before else [_make_unit(check.body, units, f"{check.name}(...)")]
    return Plan(ast.fix_missing_locations(tree), units, check.name if check is not None and not called else None)


def _find_check(tree: ast.Module) -> tuple[ast.FunctionDef | None, bool]:
    """Return `check`, or another function whose one argument is `candidate`, and whether the module calls it.

    A `check` that the module calls several times, or with a constant, is a helper of its assertions.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1]
    named = [node for node in functions if node.name == CHECK or node.args.args[0].arg == "candidate"]
    for function in reversed(named):
        outside = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        calls = [below for node in outside for below in ast.walk(node) if _is_call(below, {function.name}, only=True)]
        arguments = [argument for call in calls for argument in call.args]
        if len(calls) <= 1 and all(isinstance(argument, ast.Name | ast.Attribute) for argument in arguments):
            return function, bool(calls)
    return None, False


def _wrap_asserting(node: ast.stmt, asserting: set[str], units: list[str], lines: list[str]) -> ast.stmt:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not _asserts(node, asserting):
        return node
    text = "\n".join(lines[node.lineno - 1 : node.end_lineno]).strip()
    return _make_unit([node], units, text[:SHOWN_CHARS])


def _make_unit(body: list[ast.stmt], units: list[str], text: str) -> ast.With:
    index = ast.Constant(len(units))
    units.append(text)
    block = ast.With([ast.withitem(ast.Call(ast.Name(UNIT, ast.Load()), [index], []))], body)
    return ast.copy_location(block, body[0])


def _asserts(node: ast.stmt, asserting: set[str]) -> bool:
    return any(isinstance(below, ast.Assert) or _is_call(below, asserting) for below in _walk_same_scope(node))


def _is_call(node: ast.AST, names: set[str], only: bool = False) -> TypeGuard[ast.Call]:
    """Return whether it calls one of the names or, unless `only` they count, something with "assert" in its name."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return name in names or (not only and "assert" in name.lower())


def _walk_same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that run with it: not those of functions and classes defined in it."""
    yield node
    for below in ast.iter_child_nodes(node):
        if not isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _walk_same_scope(below)


def _runs_all_tests(node: ast.stmt) -> bool:
    """Return whether it is `unittest.main()` or `pytest.main()`, which would end the process."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "main":
        return False
    return isinstance(call.func.value, ast.Name) and call.func.value.id in {"unittest", "pytest"}

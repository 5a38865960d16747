"""Cuts test code into the statements that are tests of their own, so that one that fails does not hide the rest.

    assert add(1, 2) == 3                       with __unit__(0): assert add(1, 2) == 3
    def check(candidate):                       def check(candidate):
        for x in range(9):                          with __unit__(1):
            assert candidate(x) == x                    for x in range(9): ...

A unit is a statement, of the module or of its `check(candidate)`, that asserts something: it holds an `assert`, a
`raise`, a call of something with "assert" in its name, or one of a function of the test code that does such a thing.
What stands under `if __name__ == "__main__":` and asserts is part of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

UNIT = "__unit__"
"""The name of what makes the `with` block around a unit, by its index."""

CHECK = "check"
SHOWN_CHARS = 300
_RAISING = frozenset({"raises", "fail"})
"""Functions of pytest and unittest that assert without saying so in their names."""


@dataclass(frozen=True)
class Plan:
    """Test code in units, ready to be compiled."""

    tree: ast.Module
    units: list[str]
    """The text of each unit."""
    check: str | None
    """The function to call with the candidate afterwards."""
    called: frozenset[str]
    """The functions that the module calls itself, also by way of others."""
    has_cases: bool
    """Whether it defines test cases for a runner."""


def plan_units(code: str) -> Plan:
    """Cut test code into units. Raises SyntaxError, and ValueError for null bytes."""
    tree = ast.parse(code)
    lines = code.splitlines()
    units: list[str] = []
    asserting = asserting_functions(tree)
    check, called = find_check(tree)
    if check is not None:
        asserting.discard(check.name)
    statements = module_statements(tree, asserting)
    called_names = _reached_functions(tree, statements, check)
    tree.body = [_wrap_asserting(node, asserting, units, lines) for node in statements]
    if check is not None:
        before = len(units)
        # A `return` in the middle ends the check, so that it is one unit.
        leaves = any(isinstance(below, ast.Return) for node in check.body[:-1] for below in walk_same_scope(node))
        body = check.body if leaves else [_wrap_asserting(node, asserting, units, lines) for node in check.body]
        check.body = body if len(units) > before else [_make_unit(check.body, units, f"{check.name}(...)")]
    has_cases = any(
        bool(node.bases) if isinstance(node, ast.ClassDef) else node.name.startswith("test")
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in called_names
    )
    to_call = check.name if check is not None and not called else None
    return Plan(ast.fix_missing_locations(tree), units, to_call, called_names, has_cases)


def _reached_functions(
    tree: ast.Module, statements: Sequence[ast.stmt], check: ast.FunctionDef | None
) -> frozenset[str]:
    """Return the functions that the module calls itself, also by way of others."""
    bodies = {node.name: node.body for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    pending = list(_called_names([node for node in statements if not isinstance(node, definitions)]))
    pending += _called_names(check.body) if check is not None else ()
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in reached:
            reached.add(name)
            pending += _called_names(bodies.get(name, ()))
    return frozenset(reached)


def asserting_functions(tree: ast.Module) -> set[str]:
    """Return the names of the functions that assert something, or that call one which does."""
    asserting: set[str] = set()
    callers: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(asserts(below, set()) for below in node.body):
                asserting.add(node.name)
            for name in _called_names(node.body):
                callers.setdefault(name, set()).add(node.name)
    pending = list(asserting)
    while pending:
        more = callers.get(pending.pop(), set()) - asserting
        asserting |= more
        pending += more
    return asserting


def _called_names(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the functions that statements call, hand over, or go over in a loop."""
    names: set[str] = set()
    for node in (below for statement in statements for below in walk_same_scope(statement)):
        if isinstance(node, ast.Call):
            names.add(getattr(node.func, "id", getattr(node.func, "attr", "")))
            names |= {each.id for each in node.args if isinstance(each, ast.Name)}
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple):
            # A loop that catches what they raise has not run them as tests.
            catches = any(isinstance(below, ast.Try) for below in ast.walk(node))
            names |= set() if catches else {each.id for each in node.iter.elts if isinstance(each, ast.Name)}
    return names


def module_statements(tree: ast.Module, asserting: set[str]) -> list[ast.stmt]:
    """Return the statements of a module that is run as a script, save those that would run all tests once more."""
    statements: list[ast.stmt] = []
    for node in tree.body:
        if _is_main_guard(node) and asserts(node, asserting):
            for below in node.body:
                call = _exit_call(below)
                if call is None or asserts(below, asserting):
                    # `main()` of `sys.exit(main())`
                    inner = call.args[0] if call is not None and call.args else None
                    statements.append(below if inner is None else ast.copy_location(ast.Expr(inner), below))
        else:
            statements.append(node)
    return [node for node in statements if not _runs_all_tests(node)]


def _is_main_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    """Return whether it is `if __name__ == "__main__":`, either way round."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(node.test.left), *map(ast.unparse, node.test.comparators)}
    return sides == {"__name__", "'__main__'"} and isinstance(node.test.ops[0], ast.Eq)


def _exit_call(node: ast.stmt) -> ast.Call | None:
    call = node.value if isinstance(node, ast.Expr) else None
    is_exit = isinstance(call, ast.Call) and ast.unparse(call.func) in {"sys.exit", "exit", "quit"}
    return call if isinstance(call, ast.Call) and is_exit else None


def find_check(tree: ast.Module) -> tuple[ast.FunctionDef | None, bool]:
    """Return `check`, or another function whose one argument is `candidate`, and whether the module calls it.

    A `check` that the module calls several times, or with a constant, is a helper of its assertions.
    """
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1]
    named = [node for node in functions if node.name == CHECK or node.args.args[0].arg == "candidate"]
    for function in reversed(named):
        definitions = ast.FunctionDef | ast.ClassDef
        outside = [node for node in tree.body if not isinstance(node, definitions) and not _is_main_guard(node)]
        calls = [below for node in outside for below in ast.walk(node) if _is_call(below, {function.name}, only=True)]
        arguments = [argument for call in calls for argument in call.args]
        if len(calls) <= 1 and all(isinstance(argument, ast.Name | ast.Attribute) for argument in arguments):
            return function, bool(calls)
    return None, False


def _wrap_asserting(node: ast.stmt, asserting: set[str], units: list[str], lines: list[str]) -> ast.stmt:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not asserts(node, asserting):
        return node
    text = "\n".join(lines[node.lineno - 1 : node.end_lineno]).strip()
    return _make_unit([node], units, text[:SHOWN_CHARS])


def _make_unit(body: list[ast.stmt], units: list[str], text: str) -> ast.With:
    index = ast.Constant(len(units))
    units.append(text)
    block = ast.With([ast.withitem(ast.Call(ast.Name(UNIT, ast.Load()), [index], []))], body)
    return ast.copy_location(block, body[0])


def asserts(node: ast.stmt, asserting: set[str], *, raises: bool = True) -> bool:
    """Return whether a statement asserts something; `asserting` are the functions of the test code that do.

    raises: whether a `raise` is an assertion.
    """
    kinds = (ast.Assert, ast.Raise) if raises else (ast.Assert,)
    return any(
        isinstance(below, kinds) or _is_call(below, asserting) or _goes_over(below, asserting)
        for below in walk_same_scope(node)
    )


def _goes_over(node: ast.AST, names: set[str]) -> bool:
    """Return whether it is a loop over a list of the functions."""
    listed = node.iter.elts if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple) else []
    return any(isinstance(element, ast.Name) and element.id in names for element in listed)


def _is_call(node: ast.AST, names: set[str], only: bool = False) -> TypeGuard[ast.Call]:
    """Return whether it calls one of the names or, unless `only` they count, something that asserts by its name."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if only or name in names:
        return name in names
    handed_over = any(isinstance(argument, ast.Name) and argument.id in names for argument in node.args)
    return handed_over or name in _RAISING or "assert" in name.lower()


def walk_same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that run with it: not those of functions and classes defined in it."""
    yield node
    for below in ast.iter_child_nodes(node):
        if not isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from walk_same_scope(below)


def _runs_all_tests(node: ast.stmt) -> bool:
    """Return whether it is `unittest.main()` or `pytest.main()`, which would end the process."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "main":
        return False
    return isinstance(call.func.value, ast.Name) and call.func.value.id in {"unittest", "pytest"}

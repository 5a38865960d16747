"""Cuts test code into units. Each unit is a test, so that a failure does not hide the results of later units.

    assert add(1, 2) == 3                       with __unit__(0): assert add(1, 2) == 3
    def check(candidate):                       def check(candidate):
        for x in range(9):                          with __unit__(1):
            assert candidate(x) == x                    for x in range(9): ...

A unit is a statement of the module, or of its `check(candidate)`, that asserts something. It contains an `assert`, a
`raise`, or a call of a function that asserts. A function asserts if its name contains "assert", or if test code defines
it with such a statement. Statements under `if __name__ == "__main__":` belong to the module.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from ..preload import PYTEST
from ..program import MODULE
from ..wire.value_types import Value

UNIT = "__unit__"
"""The function that takes the index of a unit and returns the context manager around it."""

FILE = "tests.py"
"""The file name of compiled test code."""

HELD = "__held__"
"""The function that is called after each assertion that held."""

RAN = "__ran__"
"""The object that replaces the result of a test runner."""

CHECK = "check"
"""The usual name of the function that tests a candidate."""
SHOWN_CHARS = 300
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_RAISING = frozenset({"raises", "warns", "fail"})
"""Functions of pytest and unittest that assert although their names do not say so."""

_LEAVING = frozenset({"sys.exit", "exit", "quit", "os._exit"})
"""Functions that end the process."""
_RUNNERS = frozenset({"unittest.main", "pytest.main", "doctest.testmod", "doctest.run_docstring_examples"})
"""Functions that run all tests of the calling module."""

HOOKS = frozenset(
    f"{when}_{what}" for when in ("setup", "teardown") for what in ("module", "function", "class", "method")
)
"""Functions and methods that pytest calls before or after tests."""


@dataclass(frozen=True)
class Plan:
    """Test code that is cut into units and ready to be compiled."""

    tree: ast.Module
    units: list[tuple[str, int | None]]
    """The text of each unit, and the line of the unit's first assertion, or None for a unit without assertions. At
    least one assertion of a unit has to hold."""
    tests: dict[int, int]
    """The line of the first assertion of each test function, by the function's first line."""
    check: str | None
    """The function that is called with the candidate after the module has run, or None."""
    called: frozenset[str]
    """Functions that the module itself calls, directly or through others."""

    def line_of(self, function: Value) -> int | None:
        """Return the line of the first assertion of a function of the test code, or None."""
        called: Value = getattr(function, "func", function)
        code = getattr(inspect.unwrap(called), "__code__", None)
        return None if code is None or code.co_filename != FILE else self.tests.get(code.co_firstlineno)


def plan_units(code: str) -> Plan:
    """Return test code cut into units. Raises SyntaxError, and ValueError for null bytes."""
    tree = parse_tests(code)
    if any(isinstance(node, ast.Name) and node.id == PYTEST for node in ast.walk(tree)):
        # The author's environment may have imported pytest already.
        first = next((index for index, node in enumerate(tree.body) if not _comes_first(node)), 0)
        tree.body.insert(first, ast.copy_location(ast.Import([ast.alias(PYTEST)]), tree.body[0]))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            node.level, node.module = 0, MODULE  # A module next to the tests is the one that they test.
    asserting, holding = asserting_functions(tree), asserting_functions(tree, raises=False)
    check, called = find_check(tree)
    if check is not None:
        asserting.discard(check.name)
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    tests = {
        min(each.lineno for each in (node, *node.decorator_list)): line
        for node in functions
        if (line := assertion_line(node.body, holding)) is not None
    }
    statements = module_statements(tree, asserting)
    called_names = _reached_functions(tree, statements, check)
    cutter = _Cutter(code.splitlines(), asserting, holding)
    tree.body = [cutter.wrap_asserting(node) for node in statements]
    if check is not None:
        before = len(cutter.units)
        # A check with a `return` in the middle stays whole, as one unit.
        leaves = any(isinstance(below, ast.Return) for node in check.body[:-1] for below in walk_same_scope(node))
        body = check.body if leaves else [cutter.wrap_asserting(node) for node in check.body]
        check.body = body if len(cutter.units) > before else [cutter.make_unit(check.body, f"{check.name}(...)")]
    to_call = check.name if check is not None and not called else None
    _note_held(tree)
    return Plan(ast.fix_missing_locations(tree), cutter.units, tests, to_call, called_names)


def _reached_functions(
    tree: ast.Module, statements: Sequence[ast.stmt], check: ast.FunctionDef | None
) -> frozenset[str]:
    called_by = {node.name: _called_names(node.body) for node in tree.body if isinstance(node, _FUNCTIONS)}
    called = _called_names([node for node in statements if not isinstance(node, _DEFINITIONS)])
    return frozenset(_reached(called | _called_names(check.body if check is not None else ()), called_by))


def _reached(names: set[str], edges: Mapping[str, set[str]]) -> set[str]:
    """Return the names, and all names that they lead to. edges: the names to which a name leads directly."""
    reached: set[str] = set()
    pending = list(names)
    while pending:
        if (name := pending.pop()) not in reached:
            reached.add(name)
            pending += edges.get(name, ())
    return reached


def asserting_functions(tree: ast.Module, *, raises: bool = True) -> set[str]:
    """Return the names of functions that assert something or call one that does. raises: see `asserts`."""
    asserting: set[str] = set()
    callers: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            has_line = assertion_line(node.body, set()) is not None
            if any(asserts(below, set()) for below in node.body) if raises else has_line:
                asserting.add(node.name)
            for name in _called_names(node.body):
                callers.setdefault(name, set()).add(node.name)
    return _reached(asserting, callers)


def _called_names(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the functions that statements call, pass on, or iterate over."""
    names: set[str] = set()
    for node in (below for statement in statements for below in walk_same_scope(statement)):
        if isinstance(node, ast.Call):
            names.add(getattr(node.func, "id", getattr(node.func, "attr", "")))
            names |= {each.id for each in node.args if isinstance(each, ast.Name)}
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple):
            # A loop over test functions that catches their exceptions does not report failures.
            catches = any(isinstance(below, ast.Try) for below in ast.walk(node))
            names |= set() if catches else {each.id for each in node.iter.elts if isinstance(each, ast.Name)}
    return names


def module_statements(tree: ast.Module, asserting: set[str]) -> list[ast.stmt]:
    """Return the statements of a module that run when it is a script.

    A last statement that exits, such as `sys.exit(main())`, becomes an assertion that the exit status is 0.
    """
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    statements: list[ast.stmt] = []
    for node in tree.body:
        if _is_main_guard(node) and any(asserts(*_exit_or_statement(each, asserting, functions)) for each in node.body):
            statements += map(_StatusCheck().visit, node.body)
        else:
            statements.append(_StatusCheck().visit(node) if node is tree.body[-1] else node)
    called = _called_names(statements)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in called and len(node.args.args) == len(node.args.defaults):
            node.body[-1] = _StatusCheck().visit(node.body[-1])
    return statements


def _exit_or_statement(node: ast.stmt, asserting: set[str], functions: set[str]) -> tuple[ast.stmt, set[str]]:
    """Return the arguments of `asserts` for a statement. For an exit: its status, and all functions."""
    leaving = _exit_of(node)
    return (node, asserting) if leaving is None else (leaving, asserting | functions)


def _exit_of(node: ast.stmt) -> ast.Expr | None:
    """Return the exit status of a statement such as `sys.exit(0)`, or None if it does not exit."""
    match node:
        case ast.Expr(value=ast.Call(func=function, args=args)) if ast.unparse(function) in _LEAVING:
            pass
        case ast.Raise(exc=ast.Call(func=ast.Name(id="SystemExit"), args=args)):
            pass
        case ast.Raise(exc=ast.Name(id="SystemExit")):
            args = []
        case _:
            return None
    return ast.copy_location(ast.Expr(args[0] if args else ast.Constant(0)), node)


class _StatusCheck(ast.NodeTransformer):
    """Replaces exits by assertions on their status, in a last statement and in the branches of its `if`."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Return the replacement of a node, or the node itself."""
        status = _exit_of(node) if isinstance(node, ast.stmt) else None
        if status is None:
            return super().generic_visit(node) if isinstance(node, ast.If) else node
        if isinstance(status.value, ast.Constant) and status.value.value in (0, None):
            return ast.copy_location(ast.Pass(), node)
        message = ast.Constant("the tests exit with the status of a failure")
        failure = ast.Raise(ast.Call(ast.Name("AssertionError", ast.Load()), [message], []))
        return ast.fix_missing_locations(ast.copy_location(ast.If(status.value, [failure], []), node))


def parse_tests(code: str) -> ast.Module:
    """Return the tree of test code with `RAN` for each call of a runner. Raises SyntaxError and ValueError."""
    tree = ast.parse(code)
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            imported |= {alias.asname or alias.name: f"{module}{alias.name}" for alias in node.names}

    class Replacement(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            first, point, others = ast.unparse(node.func).partition(".")
            is_runner = f"{imported.get(first, first)}{point}{others}" in _RUNNERS
            return ast.copy_location(ast.Name(RAN, ast.Load()), node) if is_runner else self.generic_visit(node)

    replaced: ast.Module = Replacement().visit(tree)
    return replaced


def _is_main_guard(node: ast.stmt) -> TypeGuard[ast.If]:
    """Return whether a statement is `if __name__ == "__main__":`, with the sides in either order."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = {ast.unparse(node.test.left), *map(ast.unparse, node.test.comparators)}
    return sides == {"__name__", "'__main__'"} and isinstance(node.test.ops[0], ast.Eq)


def find_check(tree: ast.Module) -> tuple[ast.FunctionDef | None, bool]:
    """Return `check`, or another function with `candidate` as its only argument, and whether the module calls it.

    A function that the module calls several times, or with a constant, is a helper of assertions and is left out.
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


def _comes_first(node: ast.stmt) -> bool:
    """Return whether a statement has to stay first: a docstring, or an import from `__future__`."""
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


class _Cutter:
    """Cuts statements into units.

    asserting: the functions that assert something. holding: those with an assertion that can hold, unlike `raise`.
    """

    def __init__(self, lines: list[str], asserting: set[str], holding: set[str]) -> None:
        self.units: list[tuple[str, int | None]] = []
        self._lines = lines
        self._asserting = asserting
        self._holding = holding

    def wrap_asserting(self, node: ast.stmt) -> ast.stmt:
        """Return the statement, as a unit if it asserts something."""
        if isinstance(node, _DEFINITIONS) or not asserts(node, self._asserting):
            return node
        text = "\n".join(self._lines[node.lineno - 1 : node.end_lineno]).strip()
        return self.make_unit([node], text[:SHOWN_CHARS])

    def make_unit(self, body: list[ast.stmt], text: str) -> ast.With:
        """Return a unit that consists of these statements."""
        index = ast.Constant(len(self.units))
        self.units.append((text, assertion_line(body, self._holding)))
        block = ast.With([ast.withitem(ast.Call(ast.Name(UNIT, ast.Load()), [index], []))], body)
        return ast.copy_location(block, body[0])


def asserts(node: ast.stmt, asserting: set[str], *, raises: bool = True) -> bool:
    """Return whether a statement asserts something.

    asserting: the functions of the test code that assert something. raises: whether statements that can only fail, such
    as `raise`, `assert False` and `self.fail()`, count as assertions.
    """
    return any(_is_assertion(below, asserting, raises) for below in walk_same_scope(node))


def assertion_line(body: Sequence[ast.stmt], asserting: set[str]) -> int | None:
    """Return the line of the first assertion that can hold, or None."""
    nodes = (below for node in body if not isinstance(node, _DEFINITIONS) for below in walk_same_scope(node))
    return next((getattr(node, "lineno", 1) for node in nodes if _is_assertion(node, asserting, False)), None)


def _is_assertion(node: ast.AST, asserting: set[str], raises: bool) -> bool:
    if isinstance(node, ast.Assert):
        return raises or not isinstance(node.test, ast.Constant)
    name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
    if not raises and name in ("fail", "AssertionError"):
        return False
    if raises and isinstance(node, ast.Raise):
        return True
    return _is_call(node, asserting, handed_over=raises) or _goes_over(node, asserting)


def _note_held(tree: ast.Module) -> None:
    """Insert a call of `HELD` after each assertion. The call is reached only if the assertion held."""
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, [each for statement in block for each in _with_note(statement)])


def _with_note(node: ast.stmt) -> list[ast.stmt]:
    parts: list[ast.AST] = list(node.items) if isinstance(node, ast.With | ast.AsyncWith) else [node]
    if (hasattr(node, "body") and parts == [node]) or not any(
        _is_assertion(below, set(), False) for part in parts for below in walk_same_scope(part)
    ):
        return [node]
    note = ast.copy_location(ast.Expr(ast.Call(ast.Name(HELD, ast.Load()), [], [])), node)
    return [note, node] if isinstance(node, ast.Return) else [node, note]


def _goes_over(node: ast.AST, names: set[str]) -> bool:
    """Return whether a node is a loop over a list of these functions."""
    listed = node.iter.elts if isinstance(node, ast.For) and isinstance(node.iter, ast.List | ast.Tuple) else []
    return any(isinstance(element, ast.Name) and element.id in names for element in listed)


def _is_call(node: ast.AST, names: set[str], only: bool = False, handed_over: bool = True) -> TypeGuard[ast.Call]:
    """Return whether a node calls one of the names, or a function that asserts by its own name.

    only: whether functions outside `names` are ignored. handed_over: whether `map(check, cases)` counts as a call of
    `check`.
    """
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if only or name in names:
        return name in names
    has_argument = handed_over and any(isinstance(each, ast.Name) and each.id in names for each in node.args)
    return has_argument or name in _RAISING or "assert" in name.lower()


def walk_same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement, except those inside functions and classes that it defines."""
    yield node
    for below in ast.iter_child_nodes(node):
        if not isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from walk_same_scope(below)

"""Assertions of test code that no run comes to, and those that cannot fail.

    if False: assert add(1, 2) == 3                     what stands in line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")                line 1 is always true
    map(check, [1, 2])                                  line 1 does not come to its assertion
    try: assert add(1, 2) == 3
    except Exception: pass                              line 1 silences its failure
    @unittest.skip("slow")
    def test_large(self): ...                           test_large may be skipped

A handler for any exception counts where a test has no other assertion. Conditions are decided where they ask for the
version of Python or the platform, or are constants.

Not covered: branches and loops that the values of a run leave out.
"""

from __future__ import annotations

import ast
import operator
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from truegold.verifiers.sandbox.inside.test_code.statements import asserts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_Import = ast.Import | ast.ImportFrom

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Handlers that catch a failed assertion."""

_CONDITIONAL_SKIPS = frozenset({"skipif", "skipIf", "skipUnless"})
"""Marks that skip a test where their first argument holds: `@pytest.mark.skipif(sys.platform == "win32")`."""

_SKIPS = frozenset("skip skipTest SkipTest importorskip xfail expectedFailure".split())
"""Functions, marks and exceptions that skip a test in any case, or make its failure count as expected."""

_OWNERS_OF_SKIPS = frozenset({"pytest", "unittest", "self", "pytest.mark", "mark"})
"""What skips belong to: `pytest.skip("slow")` skips a test, `stack.skip(2)` skips none."""

_FACTS: Mapping[str, Any] = {
    "sys.version_info": tuple(sys.version_info[:3]),
    "sys.platform": sys.platform,
    "os.name": os.name,
    "platform.system()": platform.system(),
    "__debug__": True,
    "range(0)": (),
    "TYPE_CHECKING": False,
    "typing.TYPE_CHECKING": False,
}
"""What expressions are on this machine."""

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _Undecided(Exception):
    """Only a run can tell what an expression is."""


def find_idle_assertions(tree: ast.Module, asserting: set[str]) -> Iterator[str]:
    """Yield one phrase for each idle assertion of test code; `asserting` are its functions that assert something."""
    constants = {**_FACTS, **_constants(tree)}
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    runs_nothing_when_called = {
        node.name for node in functions if isinstance(node, ast.AsyncFunctionDef) or is_generator(node)
    }
    imported_skips = (_SKIPS | _CONDITIONAL_SKIPS) & {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _OWNERS_OF_SKIPS
        for alias in node.names
    }
    for node in ast.walk(tree):
        yield from _unreached(node, asserting, constants)
        if isinstance(node, ast.Assert) and _is_always_true(node.test):
            yield f"line {node.lineno} is always true"
        if isinstance(node, ast.Expr | ast.Call) and _never_comes(node, asserting, runs_nothing_when_called):
            yield f"line {node.lineno} does not come to its assertion"
        if isinstance(node, _Scope | ast.Module):
            yield from _replaced_tests(node)
        if isinstance(node, _Function | ast.Module) and (silenced := _silenced_line(node, asserting)):
            yield f"line {silenced} silences its failure"
        if isinstance(node, _Scope) and _may_be_skipped(node, imported_skips, constants):
            yield f"{node.name} may be skipped"
    for node in tree.body:
        if not isinstance(node, _Scope | _Import) and _has_skip([node], imported_skips, constants):
            yield f"line {node.lineno} may skip the module"


def is_generator(node: _Function) -> bool:
    """Return whether a function yields, so that calling it runs nothing of it."""
    return any(
        isinstance(below, ast.Yield | ast.YieldFrom) for part in node.body for below in walk_without_definitions(part)
    )


def walk_without_definitions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without the functions and classes that it is or defines."""
    if not isinstance(node, _Scope):
        yield node
        for below in ast.iter_child_nodes(node):
            yield from walk_without_definitions(below)


def _unreached(node: ast.AST, asserting: set[str], constants: Mapping[str, Any]) -> Iterator[str]:
    """Yield the assertions below a node that no run comes to."""
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and (line := _line_behind_end(block, asserting)):
            yield f"line {line} is never reached"
    if any(_asserts_below(each, asserting) for each in _dead_statements(node, constants)):
        yield f"what stands in line {getattr(node, 'lineno', 0)} is never reached"


def _line_behind_end(block: Sequence[ast.stmt], asserting: set[str]) -> int | None:
    """Return the first line that asserts and stands behind what ends its block."""
    end = next((index for index, node in enumerate(block) if _ends(node)), len(block))
    return next((node.lineno for node in block[end + 1 :] if _asserts_below(node, asserting)), None)


def _ends(node: ast.stmt) -> bool:
    """Return whether nothing behind a statement runs in its block."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"sys.exit", "exit", "quit", "os._exit"}
    return isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _asserts_below(node: ast.AST, asserting: set[str]) -> bool:
    """Return whether a statement asserts something, or what it defines does."""
    return any(isinstance(below, ast.stmt) and asserts(below, asserting, raises=False) for below in ast.walk(node))


def _dead_statements(node: ast.AST, constants: Mapping[str, Any]) -> list[ast.stmt]:
    """Return the statements below a node that no run comes to."""
    try:
        if isinstance(node, ast.If | ast.While):
            return node.orelse if _value(node.test, constants) else node.body
        return node.body if isinstance(node, ast.For) and not _value(node.iter, constants) else []
    except (_Undecided, TypeError, LookupError):
        return []


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """Return what an expression is on this machine. Raises _Undecided where only a run can tell."""
    if (fact := ast.unparse(node)) in constants:
        return constants[fact]
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(_value(element, constants) for element in elements)
        case ast.Subscript(value=value, slice=ast.Constant(value=int(index))):
            return _value(value, constants)[index]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, constants)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            return _COMPARISONS[type(sign)](_value(left, constants), _value(right, constants))
    raise _Undecided


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return the names that are assigned once, a number, a truth value or an empty list, and never changed."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
    changed = {
        below.id
        for node in ast.walk(tree)
        for part in _what_may_change(node)
        for below in ast.walk(part)
        if isinstance(below, ast.Name)
    }
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            is_plain = isinstance(node.value, ast.Constant | ast.List | ast.Tuple)
            if is_plain and not getattr(node.value, "elts", ()) and stored[target.id] == 1:
                constants[target.id] = getattr(node.value, "value", ())
    return {name: value for name, value in constants.items() if name not in changed}


def _what_may_change(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node whose objects it may change: owners of attributes and entries, and arguments."""
    if isinstance(node, ast.Attribute | ast.Subscript):
        return [node.value]
    return [*node.args, *node.keywords] if isinstance(node, ast.Call) else []


def _is_always_true(test: ast.expr) -> bool:
    """Return whether a condition holds by its form: `(f(1) == 2, "wrong")`, `f(1) or 2`, `(f(n) for n in cases)`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(isinstance(value, ast.Constant) and bool(value.value) for value in test.values)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)
    return isinstance(test, ast.GeneratorExp | ast.Lambda | ast.JoinedStr)


def _never_comes(node: ast.Expr | ast.Call, asserting: set[str], runs_nothing_when_called: set[str]) -> bool:
    """Return whether no failure comes out of a statement that was meant to assert something.

    map(check, [1, 2])                  nobody asks for the values
    add(1, 2) == 3                      `assert` is missing
    self.assertEqual                    it is not called
    check_async()                       a coroutine that nobody awaits
    Thread(target=check).start()        the thread fails, and the test goes on
    atexit.register(check)              it is called when the test has passed
    """
    if isinstance(node, ast.Call):
        called_elsewhere = [each.value for each in node.keywords if each.arg == "target"]
        called_elsewhere += node.args if ast.unparse(node.func) == "atexit.register" else []
        return any(isinstance(each, ast.Name) and each.id in asserting for each in called_elsewhere)
    match node.value:
        case ast.Attribute(attr=name):
            return "assert" in name.lower()
        case ast.Compare():
            return any(isinstance(below, ast.Call) for below in ast.walk(node.value))
        case ast.Call(func=ast.Name(id="map" | "filter")) | ast.GeneratorExp():
            return asserts(node, asserting, raises=False)
        case ast.Call(func=ast.Name(id=name)):
            return name in runs_nothing_when_called & asserting
    return False


def _silenced_line(scope: _Function | ast.Module, asserting: set[str]) -> int | None:
    """Return the line of the `try` or `with` that keeps failed assertions of a scope from the runner.

    One that catches AssertionError by name counts in any case, and one that catches any exception where all assertions
    of the scope stand in such blocks.
    """
    nodes = [below for each in scope.body for below in walk_without_definitions(each)]
    silencing = [node for node in nodes if isinstance(node, ast.Try | ast.With) and _silences(node, asserting)]
    if not silencing:
        return None
    for node in silencing:
        caught = node.handlers if isinstance(node, ast.Try) else node.items
        if any("AssertionError" in ast.unparse(each).partition(":")[0] for each in caught):
            return node.lineno
    silenced = {id(below) for node in silencing for each in node.body for below in ast.walk(each)}
    leaves = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    is_all = all(id(node) in silenced for node in leaves if asserts(node, asserting, raises=False))
    return silencing[0].lineno if is_all else None


def _silences(node: ast.Try | ast.With, asserting: set[str]) -> bool:
    """Return whether a failed assertion in the node's body goes unseen."""
    if not any(_may_fail(below, asserting) for below in node.body):
        return False
    if any(isinstance(below, ast.AugAssign) for each in node.body for below in ast.walk(each)):
        return False  # It counts what holds, to be looked at later.
    if isinstance(node, ast.With):
        entered = [each.context_expr for each in node.items if isinstance(each.context_expr, ast.Call)]
        return any("suppress" in ast.unparse(call.func) and _catches(call.args) for call in entered)
    returns = any(isinstance(below, ast.Return) for each in node.finalbody for below in ast.walk(each))
    return returns or any(_catches([handler.type]) and all(map(_is_silent, handler.body)) for handler in node.handlers)


def _may_fail(node: ast.stmt, asserting: set[str]) -> bool:
    """Return whether it asserts something of a value; `assert False` only says that nothing was raised before."""
    is_constant = isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)
    return not is_constant and "fail(" not in ast.unparse(node) and asserts(node, asserting, raises=False)


def _catches(kinds: Sequence[ast.expr | None]) -> bool:
    """Return whether a failed assertion is among the exceptions of a handler; None stands for a bare `except:`."""
    named = [each for kind in kinds for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    return any(kind is None or ast.unparse(kind) in _CATCHING for kind in named)


def _is_silent(node: ast.stmt) -> bool:
    """Return whether a handler's statement lets a failure pass: `pass`, `print("failed")`, `return None`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"print", "traceback.print_exc"}
    if isinstance(node, ast.Return | ast.Expr):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue)


def _replaced_tests(scope: _Scope | ast.Module) -> Iterator[str]:
    """Yield the tests of a scope that a later statement of it replaces or deletes before they have run."""
    tests: set[str] = set()
    classes: set[str] = set()
    for node in scope.body:
        if isinstance(node, _Scope):
            if node.name in tests | classes and not node.decorator_list:
                yield f"{node.name} is defined twice"
            methods = node.body if isinstance(node, ast.ClassDef) else []
            if any(isinstance(each, _Function) and each.name.startswith("test") for each in methods):
                classes.add(node.name)
            elif node.name.startswith("test"):
                tests.add(node.name)
        elif isinstance(node, ast.Delete | ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            yield from (f"{name} is replaced or deleted" for name in sorted(tests & names))
        else:
            tests -= {below.id for below in ast.walk(node) if isinstance(below, ast.Name)}


def _may_be_skipped(scope: _Scope, imported_skips: Set[str], constants: Mapping[str, Any]) -> bool:
    """Return whether a function or class is skipped by a decorator, or a function by a statement of its own."""
    body = [] if isinstance(scope, ast.ClassDef) else scope.body
    return _has_skip([*scope.decorator_list, *body], imported_skips, constants)


def _has_skip(parts: Iterable[ast.AST], imported_skips: Set[str], constants: Mapping[str, Any]) -> bool:
    return any(_is_skip(below, imported_skips, constants) for each in parts for below in ast.walk(each))


def _is_skip(node: ast.AST, imported_skips: Set[str], constants: Mapping[str, Any]) -> bool:
    """Return whether a node skips a test, unless its condition is known not to hold."""
    if isinstance(node, ast.Name):
        return node.id in imported_skips
    name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) and node.args else ""
    if isinstance(node, ast.Call) and name in _CONDITIONAL_SKIPS:
        try:
            holds = bool(_value(node.args[0], constants))
        except (_Undecided, TypeError, LookupError):
            return True
        return holds != (name == "skipUnless")
    if isinstance(node, ast.Attribute) and node.attr in _SKIPS:
        return ast.unparse(node.value) in _OWNERS_OF_SKIPS
    return False

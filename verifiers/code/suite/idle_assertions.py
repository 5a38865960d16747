"""Assertions that no run of a suite comes to, and those that cannot fail.

    if False: assert add(1, 2) == 3                     line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")                line 1 is always true
    try: assert add(1, 2) == 3
    except Exception: pass                              line 1 silences its failure
    @unittest.skip("slow")
    def test_large(self): ...                           test_large may be skipped

A handler for any exception counts where a test has no other assertion. Conditions are decided where they ask for the
version of Python or the platform, or are constants. Not covered: branches and loops that the values of a run leave out.
"""

from __future__ import annotations

import ast
import operator
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

from truegold.verifiers.sandbox.inside.test_code.statements import asserts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_Import = ast.Import | ast.ImportFrom

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Handlers that catch a failed assertion."""

_SKIPPING = frozenset("skip skipif skipIf skipUnless skipTest SkipTest importorskip xfail expectedFailure".split())
_SKIPPERS = frozenset({"pytest", "unittest", "self", "pytest.mark", "mark"})
"""What these functions and marks belong to; `stack.skip(2)` skips no test."""
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
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _Undecided(Exception):
    """Only a run can tell."""


def idle_assertions(tree: ast.Module, asserting: set[str]) -> Iterator[str]:
    """Yield what is idle in test code; `asserting` are its functions that assert something."""
    constants = {**_FACTS, **_constants(tree)}
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    idle = {node.name for node in functions if isinstance(node, ast.AsyncFunctionDef) or is_generator(node)}
    skipping = _SKIPPING & {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in _SKIPPERS
        for alias in node.names
    }
    for node in ast.walk(tree):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and (line := _line_behind_end(block, asserting)):
                yield f"line {line} is never reached"
        if any(_asserts_below(each, asserting) for each in _dead(node, constants)):
            yield f"what stands in line {getattr(node, 'lineno', 0)} is never reached"
        if isinstance(node, ast.Assert) and _is_always_true(node.test):
            yield f"line {node.lineno} is always true"
        if isinstance(node, ast.Expr | ast.Call) and _never_comes(node, asserting, idle):
            yield f"line {node.lineno} does not come to its assertion"
        if isinstance(node, _Scope | ast.Module):
            yield from _hidden(node)
        if isinstance(node, _Function | ast.Module) and (silenced := _silenced_line(node, asserting)):
            yield f"line {silenced} silences its failure"
        if isinstance(node, _Scope) and any(_skips(each, skipping, constants) for each in _own_nodes(node)):
            yield f"{node.name} may be skipped"
    skips = (node for node in tree.body if not isinstance(node, _Scope | _Import))
    lines = (node.lineno for node in skips if any(_skips(each, skipping, constants) for each in ast.walk(node)))
    yield from (f"line {line} may skip the module" for line in lines)


def is_generator(node: _Function) -> bool:
    """Return whether calling a function runs nothing of it."""
    return any(
        isinstance(below, ast.Yield | ast.YieldFrom) for part in node.body for below in walk_without_definitions(part)
    )


def walk_without_definitions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without the functions and classes that it is or defines."""
    if not isinstance(node, _Scope):
        yield node
        for below in ast.iter_child_nodes(node):
            yield from walk_without_definitions(below)


def _silenced_line(scope: _Function | ast.Module, asserting: set[str]) -> int | None:
    """Return the line that silences failed assertions of a scope: by their name, or any exception and all of them."""
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


def _never_comes(node: ast.Expr | ast.Call, asserting: set[str], idle: set[str]) -> bool:
    """Return whether a statement makes no assertion though it names one or compares, or hands it to who ends nothing.

    idle: the functions that a call runs nothing of, generators and coroutines.
    """
    if isinstance(node, ast.Call):
        handed_over = [each.value for each in node.keywords if each.arg == "target"]
        handed_over += node.args if ast.unparse(node.func) == "atexit.register" else []
        return any(isinstance(each, ast.Name) and each.id in asserting for each in handed_over)
    match node.value:
        case ast.Attribute(attr=name):
            return "assert" in name.lower()
        case ast.Compare():
            return any(isinstance(below, ast.Call) for below in ast.walk(node.value))
        case ast.Call(func=ast.Name(id="map" | "filter")) | ast.GeneratorExp():
            return asserts(node, asserting, raises=False)
        case ast.Call(func=ast.Name(id=name)):
            return name in idle & asserting
    return False


def _line_behind_end(block: Sequence[ast.stmt], asserting: set[str]) -> int | None:
    """Return the first line that asserts and stands behind what ends its block."""
    end = next((index for index, node in enumerate(block) if _ends(node)), len(block))
    return next((node.lineno for node in block[end + 1 :] if _asserts_below(node, asserting)), None)


def _ends(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"sys.exit", "exit", "quit", "os._exit"}
    return isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _asserts_below(node: ast.AST, asserting: set[str]) -> bool:
    """Return whether a statement asserts something, or what it defines does."""
    return any(isinstance(below, ast.stmt) and asserts(below, asserting, raises=False) for below in ast.walk(node))


def _dead(node: ast.AST, constants: Mapping[str, Any]) -> list[ast.stmt]:
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
    is_reached = isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)
    return not is_reached and "fail(" not in ast.unparse(node) and asserts(node, asserting, raises=False)


def _catches(kinds: Sequence[ast.expr | None]) -> bool:
    named = [each for kind in kinds for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    return any(kind is None or ast.unparse(kind) in _CATCHING for kind in named)


def _is_silent(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"print", "traceback.print_exc"}
    if isinstance(node, ast.Return | ast.Expr):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue)


def _is_always_true(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(isinstance(value, ast.Constant) and bool(value.value) for value in test.values)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)
    return isinstance(test, ast.GeneratorExp | ast.Lambda | ast.JoinedStr)


def _hidden(scope: _Scope | ast.Module) -> Iterator[str]:
    """Yield the tests of a scope that a later statement of it replaces or deletes before they have run."""
    tests: set[str] = set()
    classes: set[str] = set()
    for node in scope.body:
        if isinstance(node, _Scope):
            if node.name in tests | classes and not node.decorator_list:
                yield f"{node.name} is defined twice"
            if isinstance(node, ast.ClassDef) and _has_tests(node):
                classes.add(node.name)
            elif node.name.startswith("test"):
                tests.add(node.name)
        elif isinstance(node, ast.Delete | ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            yield from (f"{name} is replaced or deleted" for name in sorted(tests & names))
        else:
            tests -= {below.id for below in ast.walk(node) if isinstance(below, ast.Name)}


def _has_tests(node: ast.ClassDef) -> bool:
    return any(isinstance(each, _Function) and each.name.startswith("test") for each in node.body)


def _own_nodes(scope: _Scope) -> Iterator[ast.AST]:
    """Yield the decorators of a function or class and, of a function, all that is in it."""
    for decorator in scope.decorator_list:
        yield from ast.walk(decorator)
    if not isinstance(scope, ast.ClassDef):
        yield from (below for each in scope.body for below in ast.walk(each))


def _skips(node: ast.AST, imported: Set[str], constants: Mapping[str, Any]) -> bool:
    """Return whether a node skips a test, unless its condition is known not to hold."""
    if isinstance(node, ast.Name):
        return node.id in imported
    if (
        isinstance(node, ast.Call)
        and node.args
        and getattr(node.func, "attr", "") in ("skipif", "skipIf", "skipUnless")
    ):
        try:
            holds = bool(_value(node.args[0], constants))
        except (_Undecided, TypeError, LookupError):
            return True
        return holds != (getattr(node.func, "attr", "") == "skipUnless")
    if isinstance(node, ast.Attribute) and node.attr in _SKIPPING - {"skipif", "skipIf", "skipUnless"}:
        return ast.unparse(node.value) in _SKIPPERS
    return False

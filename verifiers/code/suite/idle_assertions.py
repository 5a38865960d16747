"""Assertions that no run of a suite comes to, and those that cannot fail.

    if False: assert add(1, 2) == 3                     line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")                line 1 is always true
    try: assert add(1, 2) == 3
    except Exception: pass                              line 1 silences its failure
    @unittest.skip("slow")
    def test_large(self): ...                           test_large may be skipped

Conditions are decided where they ask for the version of Python or the platform, or are constants. Not covered: branches
and loops that the values of a run leave out.
"""

from __future__ import annotations

import ast
import operator
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from truegold.verifiers.code.inside.test_code.statements import asserts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_Import = ast.Import | ast.ImportFrom

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Handlers that catch a failed assertion."""

_SKIPPING = frozenset("skip skipif skipIf skipUnless skipTest SkipTest importorskip xfail expectedFailure".split())
_FACTS: Mapping[str, Any] = {
    "sys.version_info": tuple(sys.version_info[:3]),
    "sys.platform": sys.platform,
    "os.name": os.name,
    "platform.system()": platform.system(),
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
    for node in ast.walk(tree):
        for block in _blocks(node):
            if line := _line_behind_end(block, asserting):
                yield f"line {line} is never reached"
        if any(_asserts_below(each, asserting) for each in _dead(node, constants)):
            yield f"what stands in line {getattr(node, 'lineno', 0)} is never reached"
        if isinstance(node, ast.Try | ast.With) and _silences(node, asserting):
            yield f"line {node.lineno} silences its failure"
        if isinstance(node, ast.Assert) and _is_always_true(node.test):
            yield f"line {node.lineno} is always true"
        if isinstance(node, ast.Expr | ast.Call) and _never_comes(node, asserting):
            yield f"line {node.lineno} does not come to its assertion"
        if isinstance(node, _Scope | ast.Module):
            yield from _hidden(node)
        if isinstance(node, _Scope) and any(map(_skips, _own_nodes(node))):
            yield f"{node.name} may be skipped"
    skips = (node for node in tree.body if not isinstance(node, _Scope) and any(map(_skips, ast.walk(node))))
    yield from (f"line {node.lineno} may skip the module" for node in skips if not isinstance(node, _Import))


def _never_comes(node: ast.Expr | ast.Call, asserting: set[str]) -> bool:
    """Return whether a statement names an assertion and makes none, or hands one to what its failure does not end."""
    if isinstance(node, ast.Call):
        handed_over = [each.value for each in node.keywords if each.arg == "target"]
        handed_over += node.args if ast.unparse(node.func) == "atexit.register" else []
        return any(isinstance(each, ast.Name) and each.id in asserting for each in handed_over)
    match node.value:
        case ast.Attribute(attr=name):
            return "assert" in name.lower()
        case ast.Call(func=ast.Name(id="map" | "filter")) | ast.GeneratorExp():
            return asserts(node, asserting)
    return False


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


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
    return any(isinstance(below, ast.stmt) and asserts(below, asserting) for below in ast.walk(node))


def _dead(node: ast.AST, constants: Mapping[str, Any]) -> list[ast.stmt]:
    """Return the statements below a node that no run comes to."""
    try:
        if isinstance(node, ast.If | ast.While):
            return node.orelse if _value(node.test, constants) else node.body
        return node.body if isinstance(node, ast.For) and not _value(node.iter, constants) else []
    except (_Undecided, TypeError):
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
            return _value(value, constants)[index : index + 1][0]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, constants)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
            return _COMPARISONS[type(sign)](_value(left, constants), _value(right, constants))
    raise _Undecided


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return the names that are assigned once, a number, a truth value or an empty list, and never changed."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = [node.id for node in names if isinstance(node.ctx, ast.Store)]
    owners = {ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Subscript)}
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            is_plain = isinstance(node.value, ast.Constant | ast.List | ast.Tuple)
            if is_plain and not getattr(node.value, "elts", ()) and stored.count(target.id) == 1:
                constants[target.id] = getattr(node.value, "value", ())
    return {name: value for name, value in constants.items() if name not in owners}


def _silences(node: ast.Try | ast.With, asserting: set[str]) -> bool:
    """Return whether a failed assertion in the node's body goes unseen."""
    if not any(_may_fail(below, asserting) for below in node.body):
        return False
    if isinstance(node, ast.With):
        entered = [each.context_expr for each in node.items if isinstance(each.context_expr, ast.Call)]
        return any("suppress" in ast.unparse(call.func) and _catches(call.args) for call in entered)
    returns = any(isinstance(below, ast.Return) for each in node.finalbody for below in ast.walk(each))
    return returns or any(_catches([handler.type]) and all(map(_is_silent, handler.body)) for handler in node.handlers)


def _may_fail(node: ast.stmt, asserting: set[str]) -> bool:
    """Return whether it asserts something of a value; `assert False` only says that nothing was raised before."""
    is_reached = isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)
    return not is_reached and "fail(" not in ast.unparse(node) and asserts(node, asserting)


def _catches(kinds: Sequence[ast.expr | None]) -> bool:
    named = [each for kind in kinds for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    return any(kind is None or ast.unparse(kind) in _CATCHING for kind in named)


def _is_silent(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"print", "traceback.print_exc"}
    return isinstance(node, ast.Pass | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _is_always_true(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        first = test.values[0]
        return isinstance(first, ast.Constant) and bool(first.value)
    return isinstance(test, ast.GeneratorExp | ast.Lambda) or (isinstance(test, ast.Tuple) and bool(test.elts))


def _hidden(scope: _Scope | ast.Module) -> Iterator[str]:
    """Yield the tests of a scope that a later statement of it replaces or deletes."""
    tests: set[str] = set()
    for node in scope.body:
        if isinstance(node, _Function):
            if node.name in tests and not node.decorator_list:
                yield f"{node.name} is defined twice"
            if node.name.startswith("test"):
                tests.add(node.name)
        elif isinstance(node, ast.Delete | ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            yield from (f"{name} is replaced or deleted" for name in sorted(tests & names))


def _own_nodes(scope: _Scope) -> Iterator[ast.AST]:
    """Yield the decorators of a function or class and, of a function, all that is in it."""
    for decorator in scope.decorator_list:
        yield from ast.walk(decorator)
    if not isinstance(scope, ast.ClassDef):
        yield from (below for each in scope.body for below in ast.walk(each))


def _skips(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] in _SKIPPING

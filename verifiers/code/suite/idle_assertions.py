"""Assertions of test code that no run comes to, and those that cannot fail.

    if False: assert add(1, 2) == 3                     what stands in line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")                line 1 is always true
    map(check, [1, 2])                                  line 1 does not come to its assertion
    try: assert add(1, 2) == 3
    except Exception: pass                              line 1 silences its failure

A handler for any exception counts where a test has no other assertion. Not covered: branches and loops that the values
of a run leave out; a test in which no assertion holds at all has not passed (`inside/test_code/report.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from truegold.verifiers.code.python_source import nodes_in_scope
from truegold.verifiers.sandbox.inside.test_code.statements import asserts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef

_NEVER = frozenset({"False", "0", "None", "[]", "()", "''", "{}", "range(0)"})
"""Conditions that never hold, and what has no elements."""

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Handlers that catch a failed assertion."""


def find_idle_assertions(tree: ast.Module, asserting: set[str]) -> Iterator[str]:
    """Yield one phrase for each idle assertion of test code; `asserting` are its functions that assert something."""
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, _Function)]
    runs_nothing_when_called = {
        node.name for node in functions if isinstance(node, ast.AsyncFunctionDef) or is_generator(node)
    }
    for node in nodes:
        yield from _unreached(node, asserting)
        if isinstance(node, ast.Assert) and _is_always_true(node.test):
            yield f"line {node.lineno} is always true"
        if isinstance(node, ast.Expr | ast.Call) and _never_comes(node, asserting, runs_nothing_when_called):
            yield f"line {node.lineno} does not come to its assertion"
        if isinstance(node, _Scope | ast.Module):
            yield from _replaced_tests(node)
        if isinstance(node, _Function | ast.Module) and (silenced := _silenced_line(node, asserting)):
            yield f"line {silenced} silences its failure"


def is_generator(node: _Function) -> bool:
    """Return whether a function yields, so that calling it runs nothing of it."""
    return any(isinstance(below, ast.Yield | ast.YieldFrom) for below in nodes_in_scope(node.body))


def _unreached(node: ast.AST, asserting: set[str]) -> Iterator[str]:
    """Yield the assertions below a node that no run comes to."""
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and (line := _line_behind_end(block, asserting)):
            yield f"line {line} is never reached"
    if isinstance(node, ast.If | ast.While | ast.For) and any(_asserts_below(each, asserting) for each in node.body):
        chosen = node.iter if isinstance(node, ast.For) else node.test
        if ast.unparse(chosen) in _NEVER:
            yield f"what stands in line {node.lineno} is never reached"


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
    nodes = list(nodes_in_scope(scope.body))
    silencing = [node for node in nodes if isinstance(node, ast.Try | ast.With) and _silences(node, asserting)]
    for node in silencing:
        caught = node.handlers if isinstance(node, ast.Try) else node.items
        if any("AssertionError" in ast.unparse(each).partition(":")[0] for each in caught):
            return node.lineno
    silenced = {id(below) for node in silencing for each in node.body for below in ast.walk(each)}
    leaves = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    is_all = all(id(node) in silenced for node in leaves if asserts(node, asserting, raises=False))
    return min((node.lineno for node in silencing), default=None) if is_all else None


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
        elif tests:
            tests -= {below.id for below in ast.walk(node) if isinstance(below, ast.Name)}

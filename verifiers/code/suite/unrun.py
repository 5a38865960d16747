"""Finds tests that never run and assertions that cannot fail. A suite with only such tests accepts every program.

    test code                                      phrase of `unrun_tests`
    class Sums:
        def test_one(self): ...                    Sums is a class that no runner collects
    def main(): assert add(1, 2) == 3              nothing calls main
    def check(candidate): assert candidate(1)      (nothing)
    if False: assert add(1, 2) == 3                line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")           line 1 is always true
    map(check, [1, 2])                             line 1 never runs its assertion
    try: assert add(1, 2) == 3
    except Exception: pass                         line 1 silences its failure

Only the test code is read, so the result is the same for every program. An assertion is reached if it runs on import of
the module, or if the assertion's function is called by the test runner (`inside/test_code`) or named by reached code.
Not covered: code of more than 400,000 characters or with very deep nesting, and assertions that depend on values at run
time. (A test that ran no assertion does not pass, see `inside/test_code/report.py`.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from truegold.verifiers.code.python_source import UNREADABLE, nodes_in_scope
from truegold.verifiers.sandbox.inside.test_code.statements import (
    HOOKS,
    asserting_functions,
    asserts,
    find_check,
    module_statements,
    parse_tests,
)

CACHED_SUITES = 256
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef

_CASE_METHODS = HOOKS | frozenset(
    "setUp tearDown setUpClass tearDownClass asyncSetUp asyncTearDown runTest id shortDescription".split()
)
"""Methods of a test class that the test runner calls, in addition to tests."""

_MODULE_HOOKS = HOOKS | {"setUpModule", "tearDownModule"}
"""Functions of a module that the test runner calls, in addition to tests."""

_DYNAMIC = frozenset({"globals", "locals", "vars", "dir", "getmembers", "eval", "exec"})
"""Functions by which code may call any function: `for name in dir(): globals()[name]()`. If code uses one, no function
is reported as uncalled."""

_NEVER = frozenset({"False", "0", "None", "[]", "()", "''", "{}", "range(0)"})
"""Conditions that are always false, and empty literals."""

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Exceptions whose handlers catch a failed assertion."""


@dataclass(slots=True)
class _Definition:
    """A function of the test code."""

    node: _Function
    owner: ast.ClassDef | None
    """The class of a method, else None."""
    outer: _Definition | None
    """The function around a nested function, else None."""
    is_run: bool = False
    """Whether the test runner calls the function."""
    names: set[str] = field(default_factory=set)
    """The names in the function's body, without those in nested functions."""


@lru_cache(maxsize=CACHED_SUITES)
def unrun_tests(code: str, entry_point: str | None = None) -> tuple[str, ...]:
    """Return a phrase with the reason for each part of test code that never runs or cannot fail.

    entry_point: the function or class under test; test code must not define it. Code that does not parse gives an empty
    result.
    """
    try:
        return tuple(_Reader(parse_tests(code)).read(code, entry_point))
    except UNREADABLE:
        return ()


class _Reader:
    """Reads one module of test code."""

    def __init__(self, tree: ast.Module) -> None:
        self._asserting = asserting_functions(tree)
        self._check, _ = find_check(tree)
        self._statements = module_statements(tree, self._asserting)
        self._classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._cases = self._case_names()
        self._tree = tree
        self._definitions = list(_definitions(tree.body, None, None))
        for definition in self._definitions:
            definition.is_run = self._is_run(definition)
            definition.names = _names(definition.node.body)

    def read(self, code: str, entry_point: str | None) -> Iterator[str]:
        """Yield one phrase for each part of the code that never runs or cannot fail."""
        is_run = "def test_doctest_0()" in code
        if ">>>" in code and not is_run and any(word in code for word in ("__test__", "doctest.", "testmod(")):
            yield "its doctests are never run"
        if any(isinstance(node, _Function | ast.ClassDef) and node.name == entry_point for node in self._tree.body):
            yield f"the tests define {entry_point} themselves"
        reached = self._reached_names()
        if reached.isdisjoint(_DYNAMIC):
            yield from self._uncalled(reached)
        for definition in self._definitions:
            node = definition.node
            is_test = (self._is_test(definition) or node is self._check) and node.name not in reached
            if is_test and not _asserts_in(node, self._asserting) and any(map(_returns_verdict, node.body)):
                yield f"{node.name} returns a comparison instead of asserting it"
        inner = (self._classes.keys() & self._cases) - set(_taken_classes(self._tree.body)) - reached
        yield from (f"{name} is not at module level" for name in sorted(inner))
        if not is_run and any(isinstance(node, _Function) and node.name == "load_tests" for node in self._statements):
            yield "load_tests is never called"
        yield from _idle_assertions(self._tree, self._asserting)

    def _uncalled(self, reached: set[str]) -> Iterator[str]:
        """Yield a phrase for each function with assertions that neither the runner nor reached code calls."""
        pytest_classes: dict[str, None] = {}
        for definition in self._definitions:
            node, owner = definition.node, definition.owner
            if definition.is_run or node.name in reached or not _asserts_in(node, self._asserting):
                continue
            if any("mark" not in ast.unparse(each) for each in node.decorator_list):
                continue  # A decorator may store the function for a later call.
            outer = definition.outer
            if outer is not None and not outer.is_run and outer.node.name not in reached:
                continue
            if not self._is_looked_at(owner):
                # A method of another class is a helper, unless it is named like a test.
                if owner is not None and node.name.startswith("test"):
                    pytest_classes[owner.name] = None
            elif not _has_parameters(definition) or node.name.startswith(("test", "check")):
                # An uncalled function with parameters is a mere helper, unless it is named like a test.
                yield f"nothing calls {node.name}"
        yield from (f"{name} is a class that no runner collects" for name in pytest_classes)

    def _reached_names(self) -> set[str]:
        """Return all names in code that runs."""
        statements = [node for node in self._statements if not isinstance(node, _Function | ast.ClassDef)]
        reached = _names(statements) | _names(_heads(self._definitions, self._classes.values()))
        left = self._definitions
        while newly_reached := [each for each in left if each.is_run or each.node.name in reached]:
            left = [each for each in left if each not in newly_reached]
            reached = reached.union(*(definition.names for definition in newly_reached))
        return reached

    def _is_run(self, definition: _Definition) -> bool:
        node, owner = definition.node, definition.owner
        is_hook = node.name in (_MODULE_HOOKS if owner is None else _CASE_METHODS) and self._is_looked_at(owner)
        return node is self._check or node.name.startswith("__") or is_hook or self._is_test(definition)

    def _is_looked_at(self, owner: ast.ClassDef | None) -> bool:
        """Say whether the test runner searches a class for tests. None stands for the module."""
        return owner is None or owner.name in self._cases

    def _is_test(self, definition: _Definition) -> bool:
        """Say whether the test runner runs a function as a test, by its name and place."""
        is_fixture = any("fixture" in ast.unparse(each) for each in definition.node.decorator_list)
        is_named = definition.outer is None and definition.node.name.startswith("test")
        return is_named and not is_fixture and self._is_looked_at(definition.owner)

    def _case_names(self) -> set[str]:
        """Return the classes whose tests run: those of unittest and pytest, and their bases and subclasses."""
        bases = {name: set(map(ast.unparse, node.bases)) for name, node in self._classes.items()}
        cases = {name for name in bases if any(base.endswith("TestCase") for base in bases[name])}
        cases |= {name for name, node in self._classes.items() if name.startswith("Test") and not _is_constructed(node)}
        while True:
            parents = {base for name in cases for base in bases[name] if base in bases}
            children = {name for name in bases if bases[name] & cases}
            if parents | children <= cases:
                return cases
            cases |= parents | children


def _taken_classes(body: Sequence[ast.stmt], is_module: bool = True) -> Iterator[str]:
    """Yield the classes that runners search for tests: those at module level, and inner classes `Test...`."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            by_name = node.name.startswith("Test") and not node.bases and not _is_constructed(node)
            yield from [node.name] if by_name or is_module else []
            yield from _taken_classes(node.body, is_module=False) if by_name else ()


def _is_constructed(node: ast.ClassDef) -> bool:
    """Say whether a class has its own constructor; pytest does not collect such classes."""
    return any(isinstance(each, _Function) and each.name in ("__init__", "__new__") for each in node.body)


def _has_parameters(definition: _Definition) -> bool:
    arguments = definition.node.args
    given_by_runner = definition.owner is not None
    return len(arguments.args) - len(arguments.defaults) > given_by_runner or None in arguments.kw_defaults


def _definitions(
    body: Iterable[ast.AST], owner: ast.ClassDef | None, outer: _Definition | None
) -> Iterator[_Definition]:
    """Yield the functions defined in statements, at any depth. owner, outer: the class and function around them."""
    for node in body:
        if isinstance(node, _Function):
            definition = _Definition(node, owner, outer)
            yield definition
            yield from _definitions(node.body, None, definition)
        elif isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, node, outer)
        elif not isinstance(node, ast.expr):
            yield from _definitions(ast.iter_child_nodes(node), owner, outer)


def _heads(definitions: Sequence[_Definition], classes: Iterable[ast.ClassDef]) -> Iterator[ast.AST]:
    """Yield the code that runs when functions and classes are defined, such as decorators, defaults and bases."""
    for definition in definitions:
        yield from definition.node.decorator_list
        yield definition.node.args
    for node in classes:
        yield from (*node.decorator_list, *node.bases)
        yield from (below for below in node.body if not isinstance(below, _Function | ast.ClassDef))


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names, attributes and texts in nodes, without those inside functions and classes."""
    names: set[str] = set()
    for node in nodes_in_scope(nodes):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names.add(name)
    return names


def _asserts_in(node: _Function, asserting: set[str]) -> bool:
    return any(asserts(below, asserting - {node.name}) for below in node.body if not isinstance(below, _Function))


def _returns_verdict(node: ast.stmt) -> bool:
    """Say whether a statement returns a comparison instead of asserting it: `return add(1, 2) == 3`."""
    value = node.value if isinstance(node, ast.Return) else None
    if isinstance(value, ast.BoolOp):
        return any(isinstance(each, ast.Compare) for each in value.values)
    return isinstance(value, ast.Compare) or (isinstance(value, ast.Call) and ast.unparse(value.func) in {"all", "any"})


def _idle_assertions(tree: ast.Module, asserting: set[str]) -> Iterator[str]:
    """Yield a phrase for each assertion that cannot fail. asserting: the functions that assert something."""
    nodes = list(ast.walk(tree))
    functions = [node for node in nodes if isinstance(node, _Function)]
    runs_nothing_when_called = {
        node.name for node in functions if isinstance(node, ast.AsyncFunctionDef) or _is_generator(node)
    }
    for node in nodes:
        yield from _unreached(node, asserting)
        if isinstance(node, ast.Assert) and _is_always_true(node.test):
            yield f"line {node.lineno} is always true"
        if isinstance(node, ast.Expr | ast.Call) and _never_comes(node, asserting, runs_nothing_when_called):
            yield f"line {node.lineno} never runs its assertion"
        if isinstance(node, _Scope | ast.Module):
            yield from _replaced_tests(node)
        if isinstance(node, _Function | ast.Module) and (silenced := _silenced_line(node, asserting)):
            yield f"line {silenced} silences its failure"


def _is_generator(node: _Function) -> bool:
    """Say whether a function is a generator, whose body does not run when it is called."""
    return any(isinstance(below, ast.Yield | ast.YieldFrom) for below in nodes_in_scope(node.body))


def _unreached(node: ast.AST, asserting: set[str]) -> Iterator[str]:
    """Yield a phrase for each assertion in the blocks of a node that is never reached."""
    for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and (line := _line_behind_end(block, asserting)):
            yield f"line {line} is never reached"
    if isinstance(node, ast.If | ast.While | ast.For) and any(_asserts_below(each, asserting) for each in node.body):
        chosen = node.iter if isinstance(node, ast.For) else node.test
        if ast.unparse(chosen) in _NEVER:
            yield f"the block of line {node.lineno} is never reached"


def _line_behind_end(block: Sequence[ast.stmt], asserting: set[str]) -> int | None:
    """Return the first line with an assertion after a statement that ends its block."""
    end = next((index for index, node in enumerate(block) if _ends(node)), len(block))
    return next((node.lineno for node in block[end + 1 :] if _asserts_below(node, asserting)), None)


def _ends(node: ast.stmt) -> bool:
    """Say whether a statement ends its block, so that the lines after it do not run."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"sys.exit", "exit", "quit", "os._exit"}
    return isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _asserts_below(node: ast.AST, asserting: set[str]) -> bool:
    """Say whether a statement asserts something, or defines a function that does."""
    return any(isinstance(below, ast.stmt) and asserts(below, asserting, raises=False) for below in ast.walk(node))


def _is_always_true(test: ast.expr) -> bool:
    """Say whether a condition is always true: `(f(1) == 2, "wrong")`, `f(1) or 2`, `(f(n) for n in cases)`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(isinstance(value, ast.Constant) and bool(value.value) for value in test.values)
    if isinstance(test, ast.Tuple | ast.List | ast.Set):
        return bool(test.elts)
    return isinstance(test, ast.GeneratorExp | ast.Lambda | ast.JoinedStr)


def _never_comes(node: ast.Expr | ast.Call, asserting: set[str], runs_nothing_when_called: set[str]) -> bool:
    """Say whether a statement was meant to assert something, but can never fail.

    map(check, [1, 2])                  the iterator is never consumed
    add(1, 2) == 3                      `assert` is missing
    self.assertEqual                    the method is not called
    check_async()                       the coroutine is not awaited
    Thread(target=check).start()        only the thread fails, not the test
    atexit.register(check)              it runs after the test has passed
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
    """Return the line of a `try` or `with` that hides failed assertions from the test runner, or None.

    A block that catches AssertionError by name always hides them. A block that catches all exceptions is returned only
    if every assertion of the scope is inside such a block.
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
    """Say whether a `try` or `with` hides a failed assertion in its body."""
    if not any(_may_fail(below, asserting) for below in node.body):
        return False
    if any(isinstance(below, ast.AugAssign) for each in node.body for below in ast.walk(each)):
        return False  # The handler counts failures, and a later assertion may check the count.
    if isinstance(node, ast.With):
        entered = [each.context_expr for each in node.items if isinstance(each.context_expr, ast.Call)]
        return any("suppress" in ast.unparse(call.func) and _catches(call.args) for call in entered)
    returns = any(isinstance(below, ast.Return) for each in node.finalbody for below in ast.walk(each))
    return returns or any(_catches([handler.type]) and all(map(_is_silent, handler.body)) for handler in node.handlers)


def _may_fail(node: ast.stmt, asserting: set[str]) -> bool:
    """Say whether a statement asserts something about a value. `assert False` only marks a missing exception."""
    is_constant = isinstance(node, ast.Assert) and isinstance(node.test, ast.Constant)
    return not is_constant and "fail(" not in ast.unparse(node) and asserts(node, asserting, raises=False)


def _catches(kinds: Sequence[ast.expr | None]) -> bool:
    """Say whether a handler catches a failed assertion. None stands for a bare `except:`."""
    named = [each for kind in kinds for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
    return any(kind is None or ast.unparse(kind) in _CATCHING for kind in named)


def _is_silent(node: ast.stmt) -> bool:
    """Say whether a statement of a handler hides the failure: `pass`, `print("failed")`, `return None`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return ast.unparse(node.value.func) in {"print", "traceback.print_exc"}
    if isinstance(node, ast.Return | ast.Expr):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue)


def _replaced_tests(scope: _Scope | ast.Module) -> Iterator[str]:
    """Yield a phrase for each test that a later statement of the scope replaces or deletes."""
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

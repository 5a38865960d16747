"""Tests of a suite that its runner would pass over: such a suite judges no program.

    def test_add(a, b): assert add(a, b) == 3      test_add takes a, b, as fixtures and parameters do
    class TestAdd: def test_one(self): ...         TestAdd is a class for pytest
    def main(): assert add(1, 2) == 3              nothing calls main
    def check(candidate): assert candidate(1)      (nothing)

Only the test code is read, so that the answer is the same for every program. Code that asserts is reached where it runs
with the module, where the runner calls it (`inside/test_code`), and where reached code names it.

Assertions that no run of a suite comes to, and those that cannot fail (`idle_assertions`):

    if False: assert add(1, 2) == 3                     line 1 is never reached
    assert (add(1, 2) == 3, "wrong sum")                line 1 is always true
    try: assert add(1, 2) == 3
    except Exception: pass                              line 1 silences its failure
    @unittest.skip("slow")
    def test_large(self): ...                           test_large may be skipped

A handler for any exception counts where a test has no other assertion. Conditions are decided where they ask for the
version of Python or the platform, or are constants.

Not covered: code of more than 400,000 characters, and code nested too deeply to be walked, of which nothing is said;
branches and loops that the values of a run leave out.
"""

from __future__ import annotations

import ast
import operator
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from truegold.verifiers.code.python_source import parse
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module
from truegold.verifiers.sandbox.inside.test_code.statements import (
    asserting_functions,
    asserts,
    find_check,
    module_statements,
)

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_Import = ast.Import | ast.ImportFrom

_HOOKS = frozenset("setup_module setup_function load_tests".split())
"""Functions of a module that pytest or unittest calls, and nothing calls here."""

_MARKS = frozenset("parametrize usefixtures skip skipif xfail".split())
"""Marks of pytest that change how a test runs."""

_CASE_METHODS = frozenset(
    "setUp tearDown setUpClass tearDownClass asyncSetUp asyncTearDown runTest id shortDescription".split()
)
_SELECTING = frozenset({"environ", "getenv", "argv", "__name__"})
"""A condition that names one of these may hold elsewhere only."""

_DYNAMIC = frozenset({"globals", "locals", "vars", "dir", "getmembers", "eval", "exec"})
"""Who asks for the names of a module may call anything."""

_CATCHING = frozenset({"Exception", "BaseException", "AssertionError"})
"""Handlers that catch a failed assertion."""

_SKIPPING = frozenset("skip skipif skipIf skipUnless skipTest SkipTest importorskip xfail expectedFailure".split())
_CONDITIONAL = frozenset({"skipif", "skipIf", "skipUnless"})
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


@dataclass(slots=True)
class _Definition:
    """A function of the test code."""

    node: _Function
    owner: ast.ClassDef | None
    """The class that it is a method of."""
    outer: _Definition | None
    """The function that it is defined in."""
    is_run: bool = False
    """Whether the test runner calls it."""
    names: set[str] = field(default_factory=set)
    """What its body names, without the functions defined in it."""


@lru_cache(maxsize=CACHED_SUITES)
def unrun_tests(code: str, entry_point: str | None = None) -> tuple[str, ...]:
    """Return what is not run of test code and why, in one phrase each; nothing for code that does not parse.

    entry_point: the function or class under test. Code that defines it tests itself.
    """
    tree = parse(code)
    try:
        return tuple(_Reader(tree).read(code, entry_point)) if tree is not None else ()
    except RecursionError:
        return ()


@lru_cache(maxsize=CACHED_SUITES)
def missing_package(code: str) -> str | None:
    """Return a package that test code imports in any case and this interpreter does not have; None where it has all."""
    tree = parse(code)
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        for root in (name.partition(".")[0] for name in names):
            if root == "conftest" or not (
                root in ("", "__main__", "__future__") or is_solution_module(root) or _is_installed(root)
            ):
                return root
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ValueError, ImportError, AttributeError):
        return True


class _Reader:
    """Reads one module of test code."""

    def __init__(self, tree: ast.Module) -> None:
        self._asserting = asserting_functions(tree)
        self._check, _ = find_check(tree)
        self._statements = module_statements(tree, self._asserting)
        self._classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._cases = self._case_names()
        # A name may stand for a mark of pytest: `cases = pytest.mark.parametrize`.
        self._aliases = {
            node.targets[0].id: text.partition("(")[0]
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            if "mark." in (text := ast.unparse(node.value))
        }
        self._tree = tree
        self._asserts_somewhere = bool(self._asserting) or any(asserts(node, set()) for node in self._statements)
        self._definitions = list(_definitions(tree.body, None, None))
        for definition in self._definitions:
            definition.is_run = self._is_run(definition)
            definition.names = _names(definition.node.body)

    def read(self, code: str, entry_point: str | None) -> Iterator[str]:
        """Yield what is not run of the code."""
        attributes = [node for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)]
        uses_doctest = any(ast.unparse(node.value) == "doctest" for node in attributes)
        if ">>>" in code and ("__test__" in code or uses_doctest):
            yield "its doctests are not run here"
        if any(isinstance(node, _Function | ast.ClassDef) and node.name == entry_point for node in self._tree.body):
            yield f"the tests define {entry_point} themselves"
        reached = self._reached_names()
        if reached.isdisjoint(_DYNAMIC):
            yield from self._uncalled(reached)
        for definition in self._definitions:
            yield from self._idle(definition, reached)
        inner = self._classes.keys() - {getattr(each, "name", "") for each in self._tree.body}
        yield from (f"{name} is not at the level of the module" for name in sorted(inner & self._cases - reached))
        if self._only_constants():
            yield "nothing but constants is asserted"
        for node in self._statements:
            if isinstance(node, ast.If) and asserts(node, self._asserting) and _SELECTING & _names([node.test]):
                yield f"its tests depend on the machine: if {ast.unparse(node.test)[:60]}"
            elif isinstance(node, _Function) and node.name in _HOOKS:
                yield f"{node.name} is not called here"
            elif isinstance(node, ast.Assign) and _names(node.targets) == {"pytestmark"}:
                yield from (f"the module is marked {mark}" for mark in sorted(_MARKS & _names([node.value])))
        yield from idle_assertions(self._tree, self._asserting)

    def _uncalled(self, reached: set[str]) -> Iterator[str]:
        pytest_classes: dict[str, None] = {}
        for definition in self._definitions:
            node, owner = definition.node, definition.owner
            if definition.is_run or node.name in reached or not _asserts_in(node, self._asserting):
                continue
            if any("mark" not in self._decorator(each) for each in node.decorator_list):
                continue  # Its decorator may keep it for later.
            outer = definition.outer
            if outer is not None and not outer.is_run and outer.node.name not in reached:
                continue
            parameters = self._required_parameters(definition)
            if owner is not None and owner.name not in self._cases:
                # A method of another class is a helper, unless pytest would take it for a test.
                if node.name.startswith("test"):
                    pytest_classes[owner.name] = None
            elif self._is_test(definition) and parameters:
                yield f"{node.name} takes {', '.join(parameters)}, as fixtures and parameters do"
            elif not parameters or node.name.startswith(("test", "check")):
                # A helper with parameters that nothing calls holds no case.
                yield f"nothing calls {node.name}"
        yield from (f"{name} is a class for pytest" for name in pytest_classes)

    def _idle(self, definition: _Definition, reached: set[str]) -> Iterator[str]:
        """Yield why a function that is called does not run as it is meant."""
        node = definition.node
        decorators = [self._decorator(each) for each in node.decorator_list]
        is_test = self._is_test(definition) and node.name not in reached
        if any("fixture" in each and "autouse=True" in each for each in decorators):
            yield f"the fixture {node.name} is not run here"
        if is_test and is_generator(node) and not decorators:
            yield f"{node.name} is a generator"
        is_check = node is self._check and node.name not in reached
        if not is_test and not is_check:
            return
        for decorator in decorators:
            if mark := next((name for name in decorator.partition("(")[0].split(".") if name in _MARKS), None):
                yield f"{node.name} is marked {mark}"
        if _asserts_in(node, self._asserting):
            return
        if any(map(_returns_verdict, node.body)):
            yield f"{node.name} returns what it does not assert"
        elif not self._asserts_somewhere and all(map(_does_nothing, node.body)):
            yield f"{node.name} asserts nothing"

    def _only_constants(self) -> bool:
        """Return whether each assertion is one like `assert True`."""
        asserted = [node for node in ast.walk(self._tree) if isinstance(node, ast.Assert)]
        others = any(
            asserts(node, set()) for node in ast.walk(self._tree) if isinstance(node, ast.Expr | ast.With | ast.Raise)
        )
        constants = [node for node in asserted if isinstance(node.test, ast.Constant) and node.test.value]
        return bool(asserted) and not others and len(constants) == len(asserted)

    def _reached_names(self) -> set[str]:
        """Return the names that code which runs mentions."""
        statements = [node for node in self._statements if not isinstance(node, _Function | ast.ClassDef)]
        reached = _names(statements) | _names(_heads(self._definitions, self._classes.values()))
        left = self._definitions
        while True:
            newly_reached = [each for each in left if each.is_run or each.node.name in reached]
            if not newly_reached:
                return reached
            left = [each for each in left if each not in newly_reached]
            for definition in newly_reached:
                reached |= definition.names

    def _is_run(self, definition: _Definition) -> bool:
        node, owner = definition.node, definition.owner
        if node is self._check or node.name.startswith("__"):
            return True
        if owner is not None and owner.name in self._cases and node.name in _CASE_METHODS:
            return True
        is_hook = owner is None and node.name in ("setUpModule", "tearDownModule")
        return is_hook or (self._is_test(definition) and not self._required_parameters(definition))

    def _is_test(self, definition: _Definition) -> bool:
        """Return whether a test runner would take it for a test by its name and its place."""
        node, owner = definition.node, definition.owner
        if definition.outer is not None or not node.name.startswith("test"):
            return False
        return not any("fixture" in self._decorator(each) for each in node.decorator_list) and (
            owner is None or owner.name in self._cases
        )

    def _case_names(self) -> set[str]:
        """Return the classes whose methods unittest runs: those that derive from `TestCase`, and bases of such ones."""
        bases = {name: set(map(ast.unparse, node.bases)) for name, node in self._classes.items()}
        cases = {name for name in bases if any(base.endswith("TestCase") for base in bases[name])}
        while True:
            parents = {base for name in cases for base in bases[name] if base in bases}
            children = {name for name in bases if bases[name] & cases}
            if parents | children <= cases:
                return cases
            cases |= parents | children

    def _decorator(self, node: ast.expr) -> str:
        """Return a decorator as text, with what its name was assigned in place of the name."""
        head, *rest = ast.unparse(node).partition("(")
        return "".join([self._aliases.get(head, head), *rest])

    def _required_parameters(self, definition: _Definition) -> list[str]:
        """Return the parameters that a test runner would have to give; a decorator other than a mark gives them."""
        node, owner = definition.node, definition.owner
        decorators = [*node.decorator_list, *(owner.decorator_list if owner is not None else ())]
        if any("mark" not in self._decorator(each).partition("(")[0].split(".") for each in decorators):
            return []
        positional = [*node.args.posonlyargs, *node.args.args]
        without_default = positional[: len(positional) - len(node.args.defaults)][owner is not None :]
        keywords = [
            each for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
        ]
        return [each.arg for each in (*without_default, *keywords)]


def _definitions(
    body: Iterable[ast.AST], owner: ast.ClassDef | None, outer: _Definition | None
) -> Iterator[_Definition]:
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
    """Yield what runs where functions and classes are defined: decorators, defaults, bases, statements of classes."""
    for definition in definitions:
        yield from definition.node.decorator_list
        yield definition.node.args
    for node in classes:
        yield from (*node.decorator_list, *node.bases)
        yield from (below for below in node.body if not isinstance(below, _Function | ast.ClassDef))


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names, attributes and texts in nodes, without those in functions and classes that they define."""
    names: set[str] = set()
    for node in nodes:
        for below in walk_without_definitions(node):
            match below:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                    names.add(name)
    return names


def _asserts_in(node: _Function, asserting: set[str]) -> bool:
    """Return whether a function asserts something, apart from calling itself."""
    return any(asserts(below, asserting - {node.name}) for below in node.body if not isinstance(below, _Function))


def _returns_verdict(node: ast.stmt) -> bool:
    """Return whether it returns a comparison, as a test does that should have asserted it."""
    value = node.value if isinstance(node, ast.Return) else None
    if isinstance(value, ast.BoolOp):
        return any(isinstance(each, ast.Compare) for each in value.values)
    return isinstance(value, ast.Compare) or (isinstance(value, ast.Call) and ast.unparse(value.func) in {"all", "any"})


def _does_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


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
        if isinstance(node, _Scope):
            parts = (*node.decorator_list, *(() if isinstance(node, ast.ClassDef) else node.body))
            if any(_skips(below, skipping, constants) for each in parts for below in ast.walk(each)):
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


def _skips(node: ast.AST, imported: Set[str], constants: Mapping[str, Any]) -> bool:
    """Return whether a node skips a test, unless its condition is known not to hold."""
    if isinstance(node, ast.Name):
        return node.id in imported
    name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) and node.args else ""
    if isinstance(node, ast.Call) and name in _CONDITIONAL:
        try:
            holds = bool(_value(node.args[0], constants))
        except (_Undecided, TypeError, LookupError):
            return True
        return holds != (name == "skipUnless")
    if isinstance(node, ast.Attribute) and node.attr in _SKIPPING - _CONDITIONAL:
        return ast.unparse(node.value) in _SKIPPERS
    return False

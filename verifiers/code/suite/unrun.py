"""Tests of a suite that its runner would pass over: such a suite judges no program.

    class Sums:
        def test_one(self): ...                    Sums is a class that no runner takes
    def main(): assert add(1, 2) == 3              nothing calls main
    def check(candidate): assert candidate(1)      (nothing)

Only the test code is read, so that the answer is the same for every program. Code that asserts is reached where it runs
with the module, where the runner calls it (`inside/test_code`), and where reached code names it. Assertions that are
reached and cannot fail are added to the list (`idle_assertions.py`).

Not covered: code of more than 400,000 characters, and code nested too deeply to be walked, of which nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from truegold.verifiers.code.python_source import UNREADABLE, nodes_in_scope
from truegold.verifiers.code.suite.idle_assertions import find_idle_assertions
from truegold.verifiers.sandbox.inside.test_code.statements import (
    HOOKS,
    asserting_functions,
    asserts,
    find_check,
    module_statements,
    parse_tests,
)

CACHED_SUITES = 256
"""How many suites' answers are kept."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_CASE_METHODS = HOOKS | frozenset(
    "setUp tearDown setUpClass tearDownClass asyncSetUp asyncTearDown runTest id shortDescription".split()
)
"""Methods of a class of tests that its runner calls."""

_MODULE_HOOKS = HOOKS | {"setUpModule", "tearDownModule"}
"""Functions of a module that its runner calls."""

_DYNAMIC = frozenset({"globals", "locals", "vars", "dir", "getmembers", "eval", "exec"})
"""Functions that give the names of a module. Code that uses one may call each of its functions without naming it, as in
`for name in dir(): globals()[name]()`, so that none is said to be uncalled."""


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
        """Yield one phrase for each part of the code that is not run."""
        is_run = "def test_doctest_0()" in code
        if ">>>" in code and not is_run and any(word in code for word in ("__test__", "doctest.", "testmod(")):
            yield "its doctests are not run here"
        if any(isinstance(node, _Function | ast.ClassDef) and node.name == entry_point for node in self._tree.body):
            yield f"the tests define {entry_point} themselves"
        reached = self._reached_names()
        if reached.isdisjoint(_DYNAMIC):
            yield from self._uncalled(reached)
        for definition in self._definitions:
            node = definition.node
            is_test = (self._is_test(definition) or node is self._check) and node.name not in reached
            if is_test and not _asserts_in(node, self._asserting) and any(map(_returns_verdict, node.body)):
                yield f"{node.name} returns what it does not assert"
        inner = (self._classes.keys() & self._cases) - set(_taken_classes(self._tree.body)) - reached
        yield from (f"{name} is not at the level of the module" for name in sorted(inner))
        if not is_run and any(isinstance(node, _Function) and node.name == "load_tests" for node in self._statements):
            yield "load_tests is not called here"
        yield from find_idle_assertions(self._tree, self._asserting)

    def _uncalled(self, reached: set[str]) -> Iterator[str]:
        """Yield the functions that assert and that neither the runner nor reached code calls."""
        pytest_classes: dict[str, None] = {}
        for definition in self._definitions:
            node, owner = definition.node, definition.owner
            if definition.is_run or node.name in reached or not _asserts_in(node, self._asserting):
                continue
            if any("mark" not in ast.unparse(each) for each in node.decorator_list):
                continue  # Its decorator may keep it for later.
            outer = definition.outer
            if outer is not None and not outer.is_run and outer.node.name not in reached:
                continue
            if not self._is_looked_at(owner):
                # A method of another class is a helper, unless pytest would take it for a test.
                if owner is not None and node.name.startswith("test"):
                    pytest_classes[owner.name] = None
            elif not _has_parameters(definition) or node.name.startswith(("test", "check")):
                # A helper with parameters that nothing calls holds no case.
                yield f"nothing calls {node.name}"
        yield from (f"{name} is a class that no runner takes" for name in pytest_classes)

    def _reached_names(self) -> set[str]:
        """Return the names that code which runs mentions."""
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
        """Return whether a runner looks for tests in a class, or in the module, which is None."""
        return owner is None or owner.name in self._cases

    def _is_test(self, definition: _Definition) -> bool:
        """Return whether a test runner would take it for a test by its name and its place."""
        is_fixture = any("fixture" in ast.unparse(each) for each in definition.node.decorator_list)
        is_named = definition.outer is None and definition.node.name.startswith("test")
        return is_named and not is_fixture and self._is_looked_at(definition.owner)

    def _case_names(self) -> set[str]:
        """Return the classes whose methods are run: unittest's, those that pytest takes by name, and their bases."""
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
    """Yield the classes where runners look for tests: those of a module, and within them those that pytest takes."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            by_name = node.name.startswith("Test") and not node.bases and not _is_constructed(node)
            yield from [node.name] if by_name or is_module else []
            yield from _taken_classes(node.body, is_module=False) if by_name else ()


def _is_constructed(node: ast.ClassDef) -> bool:
    """Return whether a class has a constructor of its own, which pytest would not know how to call."""
    return any(isinstance(each, _Function) and each.name in ("__init__", "__new__") for each in node.body)


def _has_parameters(definition: _Definition) -> bool:
    arguments = definition.node.args
    given_by_runner = definition.owner is not None
    return len(arguments.args) - len(arguments.defaults) > given_by_runner or None in arguments.kw_defaults


def _definitions(
    body: Iterable[ast.AST], owner: ast.ClassDef | None, outer: _Definition | None
) -> Iterator[_Definition]:
    """Yield the functions defined in statements, however deep. owner, outer: the class and the function around them."""
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
    for node in nodes_in_scope(nodes):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names.add(name)
    return names


def _asserts_in(node: _Function, asserting: set[str]) -> bool:
    """Return whether a function asserts something, apart from calling itself."""
    return any(asserts(below, asserting - {node.name}) for below in node.body if not isinstance(below, _Function))


def _returns_verdict(node: ast.stmt) -> bool:
    """Return whether it returns a comparison that it should have asserted: `return add(1, 2) == 3`."""
    value = node.value if isinstance(node, ast.Return) else None
    if isinstance(value, ast.BoolOp):
        return any(isinstance(each, ast.Compare) for each in value.values)
    return isinstance(value, ast.Compare) or (isinstance(value, ast.Call) and ast.unparse(value.func) in {"all", "any"})

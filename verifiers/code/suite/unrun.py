"""Tests of a suite that its runner would pass over: such a suite judges no program.

    def test_add(a, b): assert add(a, b) == 3      test_add takes a, b, as fixtures and parameters do
    class TestAdd:
        def test_one(self): ...                    TestAdd is a class for pytest
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

from truegold.verifiers.code.python_source import parse
from truegold.verifiers.code.suite.idle_assertions import find_idle_assertions, is_generator, walk_without_definitions
from truegold.verifiers.sandbox.inside.test_code.statements import (
    asserting_functions,
    asserts,
    find_check,
    module_statements,
)

CACHED_SUITES = 256
"""How many suites' answers are kept."""

SHOWN_CHARS = 60
"""Characters that a phrase shows of a condition."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_HOOKS = frozenset("setup_module setup_function load_tests".split())
"""Functions of a module that pytest or unittest calls, and nothing calls here."""

_MARKS = frozenset("parametrize usefixtures skip skipif xfail".split())
"""Marks of pytest that change how a test runs."""

_CASE_METHODS = frozenset(
    "setUp tearDown setUpClass tearDownClass asyncSetUp asyncTearDown runTest id shortDescription".split()
)
"""Methods of a test case that unittest calls."""

_SELECTING = frozenset({"environ", "getenv", "argv", "__name__"})
"""A condition that names one of these may hold elsewhere only: `if os.environ.get("SLOW"): test_large()`."""

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
    tree = parse(code)
    try:
        return tuple(_Reader(tree).read(code, entry_point)) if tree is not None else ()
    except RecursionError:
        return ()


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
        """Yield one phrase for each part of the code that is not run."""
        if ">>>" in code and ("__test__" in code or self._uses_doctest()):
            yield "its doctests are not run here"
        if any(isinstance(node, _Function | ast.ClassDef) and node.name == entry_point for node in self._tree.body):
            yield f"the tests define {entry_point} themselves"
        reached = self._reached_names()
        if reached.isdisjoint(_DYNAMIC):
            yield from self._uncalled(reached)
        for definition in self._definitions:
            yield from self._why_misrun(definition, reached)
        yield from self._inner_cases(reached)
        if self._asserts_only_constants():
            yield "nothing but constants is asserted"
        yield from self._skipped_statements()
        yield from find_idle_assertions(self._tree, self._asserting)

    def _uses_doctest(self) -> bool:
        attributes = [node for node in ast.walk(self._tree) if isinstance(node, ast.Attribute)]
        return any(ast.unparse(node.value) == "doctest" for node in attributes)

    def _uncalled(self, reached: set[str]) -> Iterator[str]:
        """Yield the functions that assert and that neither the runner nor reached code calls."""
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

    def _why_misrun(self, definition: _Definition, reached: set[str]) -> Iterator[str]:
        """Yield why a test, a fixture or the check does not run as it is meant, though the runner comes to it."""
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

    def _inner_cases(self, reached: set[str]) -> Iterator[str]:
        """Yield the test cases that are defined within a function or class, where unittest does not look."""
        inner = self._classes.keys() - {getattr(each, "name", "") for each in self._tree.body}
        yield from (f"{name} is not at the level of the module" for name in sorted(inner & self._cases - reached))

    def _skipped_statements(self) -> Iterator[str]:
        """Yield the statements of the module that would have run, or not, under another runner or elsewhere."""
        for node in self._statements:
            if isinstance(node, ast.If) and asserts(node, self._asserting) and _SELECTING & _names([node.test]):
                yield f"its tests depend on the machine: if {ast.unparse(node.test)[:SHOWN_CHARS]}"
            elif isinstance(node, _Function) and node.name in _HOOKS:
                yield f"{node.name} is not called here"
            elif isinstance(node, ast.Assign) and _names(node.targets) == {"pytestmark"}:
                yield from (f"the module is marked {mark}" for mark in sorted(_MARKS & _names([node.value])))

    def _asserts_only_constants(self) -> bool:
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
    """Return whether it returns a comparison that it should have asserted: `return add(1, 2) == 3`."""
    value = node.value if isinstance(node, ast.Return) else None
    if isinstance(value, ast.BoolOp):
        return any(isinstance(each, ast.Compare) for each in value.values)
    return isinstance(value, ast.Compare) or (isinstance(value, ast.Call) and ast.unparse(value.func) in {"all", "any"})


def _does_nothing(node: ast.stmt) -> bool:
    """Return whether it is `pass`, or a constant such as a docstring."""
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))

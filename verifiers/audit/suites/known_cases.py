"""Reads the inputs and expected outputs in tests, without running the tests.

    {"input": "3\\n4\\n", "output": "7\\n"}                 KnownCase("3\\n4\\n", "7\\n", "7")
    {"args": [3, 4], "expected": 7}                      KnownCase("3, 4", "7", 7)
    assert candidate([1, 2], 0.5) == True                KnownCase("[1, 2], 0.5", "True", True)
    assert not f(3);  self.assertEqual(f(3), "a")        KnownCase("3", "False", False);  KnownCase("3", "'a'", "a")
    assert abs(f(2) - 1.41) < 0.01                       KnownCase("2", "1.41", 1.41)

In test code, only assertions that compare one call of the solution with a literal are read; loops and helpers are not
followed. Assertions on a value that is computed from the result are not cases: `np.array_equal(f(2), [1])`,
`len(f(2)) == 3`, `frame.equals(x)`, `path.exists("a.txt")`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

from truegold.verifiers.code.python_source import bound_by, parse, top_level
from truegold.verifiers.code.suite.imports import is_installed
from truegold.verifiers.code.suite.reading import Asserts, Calls, Inserted, Stdio, UnitTest
from truegold.verifiers.sandbox.inside.test_code.library_functions import is_solution_module

MAX_KNOWN = 5_000
"""Maximum number of cases that are read from test code."""

MAX_NODES = 200_000
"""Maximum number of syntax nodes of test code that are visited; a table of megabytes would take minutes."""

_EQUAL_METHODS = {"assertEqual", "assertEquals", "assertAlmostEqual", "assertListEqual", "assertDictEqual", "assertIs"}
_CLOSE = {"isclose", "allclose"}
_BUILTINS = frozenset(dir(builtins))
_KEEPING = {"sorted", "list", "tuple", "set", "frozenset", "dict", "round", "float", "int", "abs"}
"""Built-in functions around a call that are ignored: `sorted(f(3)) == [1]` is read as `f(3) == [1]`."""

Tests = Stdio | Calls | Asserts | UnitTest | Inserted


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case with its input and expected output."""

    input: str
    """The input, or the written arguments."""
    output: str
    """The expected output, or the written value."""
    value: Any
    """The expected value; a text for programs that print."""


def known_cases(tests: Tests) -> list[KnownCase]:
    """Return the cases that can be read; for stdio and calls these are all cases, in order."""
    if isinstance(tests, Stdio) and tests.interactor is not None:
        return []  # Interactive tests have no expected output.
    if isinstance(tests, Stdio):
        return [KnownCase(case.input, case.output, " ".join(case.output.split())) for case in tests.cases]
    if isinstance(tests, Calls):
        return [KnownCase(_written(case.args, case.kwargs), repr(case.expected), case.expected) for case in tests.cases]
    tree = None if isinstance(tests, Inserted) else parse(tests.code)
    return [] if tree is None else list(_read_code(tree))


def count_cases(tests: Tests) -> int:
    """Return the number of cases. For test code it is the number of assertions, a lower bound because of loops."""
    if isinstance(tests, Stdio | Calls):
        return len(tests.cases)
    tree = None if isinstance(tests, Inserted) else parse(tests.code)
    return 1 if tree is None else sum(_is_assertion(node) for node in islice(ast.walk(tree), MAX_NODES))


def tested_names(tests: Tests) -> list[str]:
    """Return the entry point, or without one the undefined names in test code, which the solution has to define."""
    if isinstance(tests, Stdio | Inserted):
        return []
    if tests.entry_point or isinstance(tests, Calls):
        return [tests.entry_point or ""]
    if (tree := parse(tests.code)) is None:
        return []
    defined = top_level(tree) | _BUILTINS
    for helper in map(parse, (tests.prelude, tests.stub)):
        if helper is not None:
            defined |= top_level(helper)
    defined |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    defined |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return list(dict.fromkeys(node.id for node in names if node.id not in defined))


def _written(args: Sequence[Any], kwargs: Any) -> str:
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])


def _read_code(tree: ast.Module) -> Iterator[KnownCase]:
    calls, of_tests, objects = 0, _names_of_the_tests(tree), _objects(tree)
    for node in islice(ast.walk(tree), MAX_NODES):
        if calls == MAX_KNOWN:
            return
        for sides in _claims(node):
            called = ((_tested_call(side, of_tests, objects), sides[not index]) for index, side in enumerate(sides))
            call, expected = next((pair for pair in called if pair[0] is not None), (None, None))
            if call is not None:
                calls += 1
                value = _literal(expected) if isinstance(expected, ast.expr) else expected
                if value is not _UNKNOWN and (arguments := _arguments(call)) is not None:
                    yield KnownCase(arguments, repr(value), value)


def _is_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=ast.Constant()):
            return False
        case ast.Assert():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("assert")
    return False


def _claims(node: ast.AST) -> Iterator[tuple[ast.expr, Any]]:
    """Yield the pairs that a statement asserts to be equal: two expressions, or an expression and its value."""
    match node:
        case ast.Assert(test=test):
            yield from _claims_of_truth(test, True)
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right, *_]) if name in _EQUAL_METHODS:
            yield left, right
        case ast.Call(func=ast.Attribute(attr="assertTrue"), args=[test, *_]):
            yield from _claims_of_truth(test, True)
        case ast.Call(func=ast.Attribute(attr="assertFalse"), args=[test, *_]):
            yield from _claims_of_truth(test, False)


def _claims_of_truth(test: ast.expr, truth: bool) -> Iterator[tuple[ast.expr, Any]]:
    """Yield the pairs that have to be equal if a condition has this truth value."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]) if truth:
            yield left, right
        case ast.Compare(
            left=ast.Call(args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]), ops=[ast.Lt() | ast.LtE()]
        ):
            yield left, right
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[left, right, *_]) if name in _CLOSE:
            yield left, right
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _claims_of_truth(operand, not truth)
        case ast.Call():
            yield test, truth


def _names_of_the_tests(tree: ast.Module) -> set[str]:
    """Return the names that test code defines, or imports from installed modules other than the solution."""
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in islice(ast.walk(tree), MAX_NODES):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        roots = [module.partition(".")[0] for module in modules]
        if isinstance(node, ast.stmt) and roots and not any(is_solution_module(root) for root in roots):
            names.update(bound_by(node) if all(map(is_installed, roots)) else ())
    return names


def _objects(tree: ast.Module) -> set[str]:
    """Return the names of objects whose methods may be the solution's: `s` in `s = Solution()`, and modules."""
    names: set[str] = set()
    for node in islice(ast.walk(tree), MAX_NODES):
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name(id=name))) if name[:1].isupper():
                names.update(bound_by(node))
            case ast.Import():
                names.update(bound_by(node))
    return names


def _tested_call(expression: Any, of_tests: Set[str], objects: Set[str]) -> ast.Call | None:
    """Return the call of the solution in an expression, also inside a built-in of `_KEEPING`, or None.

    A method of a result, or a method that takes a result, is not a call of the solution: `frame.equals(f(1))`.
    of_tests: the names of the tests' functions and modules. objects: the result of `_objects`.
    """
    match expression:
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _KEEPING:
            return _tested_call(inner, of_tests, objects)
        case ast.Call(func=ast.Name(id=name)):
            return None if name in of_tests or name in _BUILTINS else expression
        case ast.Call(func=ast.Attribute(value=base), args=arguments):
            takes_result = any(_is_function_call(node, of_tests) for each in arguments for node in ast.walk(each))
            names = [node.id for node in ast.walk(base) if isinstance(node, ast.Name)]
            has_functions = all(name in objects or name[:1].isupper() for name in names[:1])
            is_result = any(_is_function_call(node, set()) for node in ast.walk(base))
            is_of_tests = takes_result or is_result or any(name in of_tests for name in names)
            return expression if has_functions and not is_of_tests else None
    return None


def _is_function_call(node: ast.AST, of_tests: Set[str]) -> bool:
    """Return whether a node calls a function that may be the solution's, not a class or a built-in function."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in of_tests and name not in _BUILTINS and not name[:1].isupper()
    return False


def _arguments(call: ast.Call) -> str | None:
    try:
        return ", ".join([*map(ast.unparse, call.args), *map(ast.unparse, call.keywords)])
    except RecursionError:  # The arguments are nested too deeply.
        return None


_UNKNOWN = object()
"""The value of an expression that is not a literal."""


def _literal(expression: ast.expr) -> Any:
    match expression:
        case ast.Call(func=ast.Name(id="set" | "list" | "tuple" | "sorted"), args=[inner]):
            return _literal(inner)
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, SystemError):
        return _UNKNOWN

"""The inputs and outputs that tests name, as far as they can be read without running anything.

    {"input": "3\\n4\\n", "output": "7\\n"}                 KnownCase("3\\n4\\n", "7\\n", "7")
    {"args": [3, 4], "expected": 7}                      KnownCase("3, 4", "7", 7)
    assert candidate([1, 2], 0.5) == True                KnownCase("[1, 2], 0.5", "True", True)
    assert not f(3);  self.assertEqual(f(3), "a")        KnownCase("3", "False", False);  KnownCase("3", "'a'", "a")
    assert abs(f(2) - 1.41) < 0.01                       KnownCase("2", "1.41", 1.41)

Of tests that are code, only assertions on one call with literal results are read; loops and helpers are not followed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from truegold.verifiers.code.suite import Asserts, Calls, Inserted, Stdio, UnitTest
from truegold.verifiers.code.syntax import parse, top_level

MAX_KNOWN = 5_000
"""Cases that are read of test code."""

MAX_NODES = 200_000
"""What is walked through of test code. Stops tables of megabytes from taking minutes."""

_EQUAL_METHODS = {"assertEqual", "assertEquals", "assertAlmostEqual", "assertListEqual", "assertDictEqual", "assertIs"}
_CLOSE = {"isclose", "allclose"}
_NAMES = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class KnownCase:
    """input, output: as they are written. value: what is expected, a text for programs that print."""

    input: str
    output: str
    value: Any


def known_cases(tests: Stdio | Calls | Asserts | UnitTest | Inserted) -> list[KnownCase]:
    """For stdio and calls one for each case, in order."""
    if isinstance(tests, Stdio):
        return [KnownCase(case.input, case.output, " ".join(case.output.split())) for case in tests.cases]
    if isinstance(tests, Calls):
        return [KnownCase(_written(case.args, case.kwargs), repr(case.expected), case.expected) for case in tests.cases]
    tree = None if isinstance(tests, Inserted) else parse(tests.code)
    return [] if tree is None else list(_of_code(tree))


def count_cases(tests: Stdio | Calls | Asserts | UnitTest | Inserted) -> int:
    """Of test code the assertions, read or not, in loops or not; a lower bound of what it tests."""
    if isinstance(tests, Stdio | Calls):
        return len(tests.cases)
    tree = None if isinstance(tests, Inserted) else parse(tests.code)
    if tree is None:
        return 1
    return sum(_asserts(node) for node in islice(ast.walk(tree), MAX_NODES))


def tested_names(tests: Stdio | Calls | Asserts | UnitTest | Inserted) -> list[str]:
    """Names that test code uses and nobody but the solution can give it; the entry point alone where there is one."""
    if isinstance(tests, Stdio | Inserted):
        return []
    if tests.entry_point or isinstance(tests, Calls):
        return [tests.entry_point or ""]
    tree = parse(tests.code)
    if tree is None:
        return []
    given = top_level(tree) | _NAMES
    for text in (tests.prelude, tests.stub):
        helper = parse(text)
        given |= top_level(helper) if helper is not None else set()
    bound = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    used = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return list(dict.fromkeys(name for name in used if name not in given and name not in bound))


def _written(args: Sequence[Any], kwargs: Any) -> str:
    return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])


def _of_code(tree: ast.Module) -> Iterator[KnownCase]:
    found = 0
    for node in islice(ast.walk(tree), MAX_NODES):
        if found == MAX_KNOWN:
            return
        for tested, expected in _claims(node):
            call = _call_in(tested)
            if call is not None:
                found += 1
                value = _literal(expected) if isinstance(expected, ast.expr) else expected
                if value is not _UNKNOWN and (arguments := _arguments(call)) is not None:
                    yield KnownCase(arguments, repr(value), value)


def _asserts(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=ast.Constant()):
            return False
        case ast.Assert():
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("assert")
    return False


def _claims(node: ast.AST) -> Iterator[tuple[ast.expr, Any]]:
    """What a statement says: an expression, and the value it has to have."""
    match node:
        case ast.Assert(test=test):
            yield from _claim(test, True)
        case ast.Call(func=ast.Attribute(attr=name), args=[one, other, *_]) if name in _EQUAL_METHODS:
            yield (one, other) if _call_in(one) is not None else (other, one)
        case ast.Call(func=ast.Attribute(attr="assertTrue"), args=[one, *_]):
            yield from _claim(one, True)
        case ast.Call(func=ast.Attribute(attr="assertFalse"), args=[one, *_]):
            yield from _claim(one, False)


def _claim(test: ast.expr, wanted: bool) -> Iterator[tuple[ast.expr, Any]]:
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]) if wanted:
            yield (left, right) if _call_in(left) is not None else (right, left)
        case ast.Compare(
            left=ast.Call(args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]), ops=[ast.Lt() | ast.LtE()]
        ):
            yield (left, right) if _call_in(left) is not None else (right, left)
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[left, right, *_]) if name in _CLOSE:
            yield (left, right) if _call_in(left) is not None else (right, left)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _claim(operand, not wanted)
        case ast.Call():
            yield test, wanted


def _call_in(expression: ast.expr) -> ast.Call | None:
    """The call of the solution: the outermost one that is not of a built-in function."""
    match expression:
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _NAMES:
            return _call_in(inner)
        case ast.Call():
            return expression
    return None


def _arguments(call: ast.Call) -> str | None:
    try:
        return ", ".join([*map(ast.unparse, call.args), *map(ast.unparse, call.keywords)])
    except RecursionError:  # nested too deeply to be written down
        return None


_UNKNOWN = object()


def _literal(expression: ast.expr) -> Any:
    match expression:
        case ast.Call(func=ast.Name(id="set" | "list" | "tuple" | "sorted"), args=[inner]):
            return _literal(inner)
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN

"""Changes the cases of tests. Each line of a reviewer's fix is a change:

    drop 1                          removes case 1
    drop all                        removes every case, so that the other lines replace the tests
    assert f(3) == 4                adds a case to test code
    {"args": [3], "expected": 4}    adds a case to calls; {"input": "3\\n", "output": "4\\n"} to programs that print

Numbers are those of the tests before the change, from 0. In test code each assertion is a case. A function, loop or
class that loses its last assertion is removed too. Verdicts number cases in the same way, except that a test function
of unittest or pytest is one case there.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from truegold.verifiers.audit.suites.vet_state import SHOWN_CHARS, add_cases, apply_repair
from truegold.verifiers.code.outcomes import BadSuite, shown
from truegold.verifiers.code.python_source import error_line, lines_of, parse
from truegold.verifiers.code.suite.reading import normal_form
from truegold.verifiers.sandbox.local import PYTHON
from truegold.verifiers.sandbox.toolchains import edition_name

_DROP = re.compile(r"\s*drop\s+(?:cases?\s+)?(all|\d{1,9}(?:[\s,]+\d{1,9})*)\s*", re.IGNORECASE)
_EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)
"""The beginning of a doctest."""
_EXAMPLES = {
    "stdio": r'{"input": "3\n", "output": "4\n"}',
    "interactive": r'{"input": "3\n"}',
    "calls": '{"args": [3], "expected": 4}',
}
"""A case of each type of tests that is not code."""


class ChangedTests(NamedTuple):
    """Tests after a change."""

    info: dict[str, Any]
    """The verifier's arguments."""
    dropped: list[str]
    """The removed cases, such as `1: assert f(2) == 5`, or `all`."""
    added: list[str]
    """The added lines."""


def change_cases(info: Mapping[str, Any], lines: Sequence[str]) -> ChangedTests:
    """Return tests with cases removed and added.

    Raises BadSuite for a line that is neither a removal nor a case of these tests, and if no case would be left.
    """
    drops_all, numbers, added = _read_lines(lines)
    tests, is_nested = normal_form(info)
    if isinstance(code := tests.get("code"), str):
        tree = parse(code)
        statements = [] if tree is None else list(case_statements(tree))
        texts = [ast.get_source_segment(code, statements[index]) or "" for index in _checked(numbers, statements)]
        count = len(statements)
        if added and not (drops_all and tests["type"] == "inserted"):
            _check_code("\n".join(added), str(tests.get("language") or info.get("language") or PYTHON))
        if drops_all or tree is None:
            tests["code"] = "" if drops_all else code
        elif numbers:
            removed = list(_outermost(tree, {id(statements[index]) for index in numbers}))
            tests["code"] = _without(code, removed)
            _require_independent(removed, parse(tests["code"]))
        changed = {**info, "tests": tests} if is_nested else {**info, **tests}
    else:
        cases = tests.get("cases") or []
        texts = [json.dumps(cases[index], ensure_ascii=False) for index in _checked(numbers, cases)]
        count = len(cases)
        changed = apply_repair(info, set(range(count)) if drops_all else numbers)
    if not added and (drops_all or len(numbers) == count):
        raise BadSuite("no case would be left: add one, or drop the row")
    result = add_cases(changed, added)
    if isinstance(code, str) and not drops_all and (tree is not None or not _EXAMPLE.search(code)):
        whole = normal_form(result)[0]["code"]
        if tests["type"] != "inserted" and parse(whole) is None:
            raise BadSuite(f"with the change the test code is not Python (line {error_line(whole)}): use drop all")
    dropped = [f"{index}: {text[:SHOWN_CHARS]}" for index, text in zip(sorted(numbers), texts, strict=True)]
    return ChangedTests(result, ["all"] if drops_all else dropped, added)


def forms_of_change(info: Mapping[str, Any]) -> str:
    """Return the lines that change these tests, for hints and errors."""
    try:
        kind = normal_form(info)[0]["type"]
    except BadSuite:
        kind = "asserts"
    case = _EXAMPLES.get(kind, "assert f(3) == 4")
    return f"{case} adds a case, drop 1 removes case 1 (the first is 0), drop all removes all; one a line"


def with_numbers(code: str) -> str:
    """Return Python test code with the number of each case in a comment; other code is unchanged."""
    if (tree := parse(code)) is None:
        return code
    lines = [line.decode() for line in code.encode().splitlines()]
    for index, statement in enumerate(case_statements(tree)):
        lines[statement.lineno - 1] += f"  # case {index}"
    return "\n".join(lines)


def case_statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the assertions of test code in the order of their lines."""
    waiting = [tree]  # A chain of `elif` is too deep for recursion.
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt) and _asserts(node):
            yield node
        elif not isinstance(node, ast.expr):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _asserts(statement: ast.stmt) -> bool:
    """Return True for an assertion: `assert x == 1`, `self.assertEqual(x, 1)`, `with pytest.raises(ValueError): ...`"""
    match statement:
        case ast.Assert(test=test):
            return not isinstance(test, ast.Constant)
        case ast.Expr(value=value):
            return _is_asserting_call(value)
        case ast.With(items=items):
            return any(_is_asserting_call(item.context_expr) for item in items)
    return False


def _is_asserting_call(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.startswith("assert") or name == "raises"
    return False


def _read_lines(lines: Sequence[str]) -> tuple[bool, set[int], list[str]]:
    """Return whether all cases are removed, the numbers of single cases to remove, and the lines to add."""
    matches = [(line, _DROP.fullmatch(line)) for line in lines if line.strip()]
    removals = [match[1].lower() for _, match in matches if match is not None]
    added = [line for line, match in matches if match is None]
    if not matches:
        raise BadSuite("there is no line")
    numbers = {int(digits) for removal in removals for digits in re.findall(r"\d+", removal)}
    return "all" in removals, numbers, added


def _checked(numbers: set[int], cases: Sequence[object]) -> list[int]:
    """Return the numbers in order. Raises BadSuite for a number that no case has."""
    if numbers and max(numbers) >= len(cases):
        there = f"the cases are 0 to {len(cases) - 1}" if cases else "test code that is not Python has none; drop all"
        raise BadSuite(f"there is no case {max(numbers)}: {there}")
    return sorted(numbers)


def _check_code(code: str, language: str) -> None:
    """Raise BadSuite if code has no assertion, or if it has an expression without effect."""
    if edition_name(language) != PYTHON:
        raise BadSuite(f"test code in {language} cannot be added to: replace it with drop all")
    if _EXAMPLE.match(code):
        return
    tree = parse(code)
    if tree is None:
        raise BadSuite(f"{shown(code)} is neither Python nor a removal (drop 1)")
    idle = (each for each in tree.body if isinstance(each, ast.Expr) and not isinstance(each.value, ast.Call))
    if next(idle, None) is not None or next(case_statements(tree), None) is None:
        raise BadSuite(f"{shown(code)} asserts nothing")


def _require_independent(removed: Sequence[ast.stmt], left: ast.Module | None) -> None:
    """Raise BadSuite if the code that is left uses a name that removed statements define, or an object they change."""
    used, bound = (
        {
            each.id
            for each in (ast.walk(left) if left else ())
            if isinstance(each, ast.Name) and isinstance(each.ctx, kind)
        }
        for kind in (ast.Load, ast.Store)
    )
    for statement in removed:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = {statement.name}
        else:
            names = {name for each in ast.walk(statement) for name in _changed_names(each, bound)}
        if lost := sorted(names & used):
            raise BadSuite(f"the change removes lines on which {lost[0]} depends: use drop all")


def _changed_names(node: ast.AST, bound: Set[str]) -> Iterator[str]:
    """Yield the names that a node defines, except those in `bound`, and the objects that the node changes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) if name not in bound:
            yield name
        case (
            ast.AugAssign(target=ast.Name(id=name))
            | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store())
            | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name))))
        ) if not (isinstance(node, ast.stmt) and _asserts(node)):
            yield name


def _without(code: str, removed: Sequence[ast.stmt]) -> str:
    """Return code without some of its statements."""
    lines = code.encode().splitlines(keepends=True)
    for statement in reversed(removed):
        first, last = lines_of(statement)
        before, after = lines[first - 1][: statement.col_offset], lines[last - 1][statement.end_col_offset :]
        shares_line = (before + after.partition(b"#")[0]).strip()
        lines[first - 1 : last] = [before + b"pass" + after] if shares_line else []
    return b"".join(lines).decode()


def _outermost(node: ast.AST, dropped: set[int]) -> Iterator[ast.stmt]:
    """Yield each dropped assertion, or the outermost statement around it that has no other assertions."""
    waiting = [node]
    while waiting:
        child = waiting.pop()
        inner = {id(each) for each in case_statements(child)}
        if isinstance(child, ast.stmt) and inner and dropped >= inner:
            yield child
        elif dropped & inner:
            waiting += reversed(list(ast.iter_child_nodes(child)))

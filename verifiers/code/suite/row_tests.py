r"""Makes the arguments of the verifier `code` out of the tests that a record holds.

    {"inputs": ["1 2\n"], "outputs": ["3\n"]}                     type stdio,
                                                                  cases [{"input": "1 2\n", "output": "3\n"}]
    {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}        type calls, entry_point add,
                                                                  cases [{"args": [1, 2], "expected": 3}]
    {"functional": "def check(candidate): ...\ncheck(add)"}       type asserts, entry_point add, code "def check(..."
    {"type": "asserts", "code": "assert add(1, 2) == 3"}          as it is

The verifier defines which shapes there are and what they mean (`suite.shapes`). Beyond that:

- The entry point is what a `check(...)` in the last line tests.
- A method of `class Solution` gets the names that LeetCode's solutions take for granted (`leetcode_prelude.txt`).
- Integers beyond 64 bits, for which a row's JSON has no room, are written as `{"$": "int", "v": "0x..."}`.
- Expected values that all are lists of one value may be wrapped ones, as in APPS: either reading is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.code.suite.shapes import FORMS, normal_form
from truegold.verifiers.strict_json import parse_json, parse_structure


class Unusable(Exception):
    """One record cannot become a row. It is caught where records become rows, and written down as a reject."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


Arguments = dict[str, Any]

LEETCODE_PRELUDE = files(__package__).joinpath("leetcode_prelude.txt").read_text(encoding="utf-8")
"""Code that LeetCode loads before a solution runs (`List`, `ListNode`), and that its data sets build arguments with."""
INT64 = 2**63
"""The first integer that does not fit into 64 bits with a sign."""
SETUP = ("test_imports", "test_setup_code")
"""Columns of code that stands before the tests of a list."""
MAX_NESTED = 50
"""Tests whose lists nest deeper are not read: values a little deeper still are cut when the row is written, which would
make other tests of them."""

_CHECK_CALL = re.compile(r"\ncheck\(\s*([\w.()]+)\s*\)\s*$")
_KEPT = ("type", "entry_point", "code", "checker", "interactor", "files", "prelude", "stub", "codecs")
"""The verifier's arguments that are taken from tests in normal form as they are; cases are rewritten."""


def read_tests(value: Any, column: str, name: str | None = None, hints: Iterable[str | None] = ()) -> Arguments:
    """Return the verifier's arguments for the tests in a column.

    `name` is that of the function, where the tests do not name it; `hints` are texts that show whether it is a method
    of `class Solution`. Raises Unusable if there are no tests, or none that can be read.
    """
    if not (tests := parse_tests(value, column)):
        raise _missing(column)
    if not isinstance(tests, Mapping | list):
        raise _unreadable(column, f"holds a {type(tests).__name__}, not tests")
    try:
        if isinstance(tests, Mapping) and tests.get("type") in FORMS:
            read_suite(tests)
            return dict(tests)
        in_class = next((text for text in hints if text and "class Solution" in text), None)
        normal_tests, _ = normal_form({"tests": tests, "fn_name": name, "starter_code": in_class})
    except BadSuite as error:
        raise _unreadable(column, str(error)) from None
    except RecursionError:
        raise _unreadable(column, "values nested too deeply") from None
    return _arguments(normal_tests, tests, column)


def _arguments(normal_tests: Mapping[str, Any], tests: Any, column: str) -> Arguments:
    arguments = {key: normal_tests[key] for key in _KEPT if normal_tests.get(key)}
    if normal_tests["type"] in ("asserts", "unittest"):
        return _code_arguments(arguments)
    if not (cases := normal_tests["cases"]):
        raise _missing(column)
    if normal_tests["type"] == "stdio":
        return arguments | {"cases": [_stdio_case(case, column, position) for position, case in enumerate(cases, 1)]}
    return _call_arguments(arguments, cases, tests, column)


def parse_tests(value: Any, column: str) -> Any:
    """Return the content of a column, read as JSON where it is a text. Raises Unusable if a text is not JSON."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return parse_json(value)
    except ValueError as error:
        raise _unreadable(column, f"no JSON: {error}") from None


def _code_arguments(arguments: Arguments) -> Arguments:
    if (call := _CHECK_CALL.search(arguments["code"])) is not None:
        arguments |= {"entry_point": call[1], "code": arguments["code"][: call.start()].rstrip()}
    return _with_prelude(arguments)


def _with_prelude(arguments: Arguments) -> Arguments:
    in_class = str(arguments.get("entry_point", "")).startswith("Solution()")
    return ({"prelude": LEETCODE_PRELUDE} if in_class else {}) | arguments


def _stdio_case(case: Mapping[str, Any], column: str, position: int) -> Arguments:
    weight = {"weight": case["weight"]} if "weight" in case else {}
    return {key: _stdio_text(case[key], f"case {position}: the {key}", column) for key in ("input", "output")} | weight


def _stdio_text(value: Any, name: str, column: str) -> str:
    """Return a text, a number or a list of lines as one text; `name` names it in errors."""
    lines = value if isinstance(value, list) else [value]
    if all(isinstance(line, str | int | float) and not isinstance(line, bool) for line in lines):
        return "\n".join(map(str, lines))
    raise _unreadable(column, f"{name} is a {type(value).__name__}, not a text")


def _call_arguments(arguments: Arguments, calls: list[Arguments], tests: Any, column: str) -> Arguments:
    if "entry_point" not in arguments:
        raise _unreadable(column, "calls of a function that is not named")
    cases = [{key: _exact(value, column) for key, value in case.items() if key != "kwargs" or value} for case in calls]
    # A list of cases holds those of APPS, written otherwise. A value that is given as text is never wrapped.
    listed_cases = tests if isinstance(tests, list) else []
    if len({case.get("fn_name") for case in listed_cases}) > 1:
        raise _unreadable(column, "calls of several functions")
    as_text = any(isinstance(case.get("input"), str) for case in listed_cases)
    if listed_cases and "checker" not in arguments and not as_text:
        expected = [case["expected"] for case in cases]
        if all(isinstance(value, list) and len(value) == 1 for value in expected):
            cases = [{**case, "expected": [case["expected"][0], case["expected"]]} for case in cases]
            arguments["checker"] = {"type": "values", "any_of": True}
    return _with_prelude(arguments) | {"cases": cases}


def _exact(value: Any, column: str, depth: int = 0) -> Any:
    """Return a value in the form that the verifier reads without loss."""
    if depth > MAX_NESTED:
        raise _unreadable(column, f"values nested more than {MAX_NESTED} deep")
    if isinstance(value, int) and not isinstance(value, bool) and not -INT64 <= value < INT64:
        return {"$": "int", "v": hex(value)}
    if isinstance(value, list):
        return [_exact(item, column, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {key: _exact(item, column, depth + 1) for key, item in value.items()}
    return value


def _missing(column: str) -> Unusable:
    return Unusable("missing_tests", f"column {column!r} holds no tests")


def _unreadable(column: str, reason: str) -> Unusable:
    return Unusable("unreadable_tests", f"column {column!r}: {reason}")


def read_tests_value(
    values: Mapping[str, Any], value: Any, column: str, name: str | None, solution: str | None = None
) -> dict[str, Any]:
    """Return the verifier's arguments for tests of a column, a text of assertions among them.

    `name` is that of the function that they call, if it is known. Raises Unusable if they cannot be read.
    """
    structure = parse_structure(value)
    if isinstance(structure, list) and len(structure) == 1:
        inner = parse_structure(structure[0])
        structure = structure if isinstance(inner, str) or isinstance(structure[0], Mapping) else inner
    tests: Any = structure
    if isinstance(structure, str):
        tests = {"test": structure, **({"entry_point": name} if name else {})}
    elif isinstance(structure, list) and all(isinstance(test, str) for test in structure):
        tests = {
            "test_list": structure,
            **{part: values[part] for part in SETUP if _text(values.get(part)) is not None},
        }
    return read_tests(tests, column, name, [_text(values.get("starter_code")), solution])


def function_name(values: Mapping[str, Any]) -> str | None:
    """Return the name of the function that tests call, which LiveCodeBench has in its metadata."""
    metadata = values.get("metadata")
    if isinstance(metadata, str):
        metadata = parse_tests(metadata, "metadata") if metadata.lstrip().startswith("{") else None
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None

r"""Makes the arguments of the verifier `code` from the tests of a record.

    tests of the record                                           arguments
    {"inputs": ["1 2\n"], "outputs": ["3\n"]}                     type stdio,
                                                                  cases [{"input": "1 2\n", "output": "3\n"}]
    {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}        type calls, entry_point add,
                                                                  cases [{"args": [1, 2], "expected": 3}]
    {"functional": "def check(candidate): ...\ncheck(add)"}       type asserts, entry_point add, code "def check(..."
    {"type": "asserts", "code": "assert add(1, 2) == 3"}          unchanged

The shapes of tests are those of `suite.reading`. In addition:

- If the last line is a call `check(f)`, f is the entry point.
- Integers beyond 64 bits are written as `{"$": "int", "v": "0x..."}`, since a row's JSON cannot hold them.
- If all expected values are lists of one entry, APPS may have wrapped them; `[3]` and `3` are then both accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import FORMS, normal_form, read_suite
from truegold.verifiers.strict_json import parse_json, parse_structure


class Unusable(Exception):
    """Raised for a record that cannot become a row. Callers report its `reason` and `detail`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


Arguments = dict[str, Any]

INT64 = 2**63
"""The smallest positive integer beyond signed 64 bits."""
SETUP = ("test_imports", "test_setup_code")
"""Columns of code that runs before a list of tests."""
MAX_NESTED = 50
"""Maximum depth of lists in tests. Deeper tests are refused, since writing a row cuts values at depth 64."""

_CHECK_CALL = re.compile(r"\ncheck\(\s*([\w.()]+)\s*\)\s*$")
_KEPT = ("type", "entry_point", "code", "checker", "interactor", "files", "prelude", "stub", "codecs")
"""Keys of `normal_form` that become the verifier's arguments unchanged. Cases are rewritten."""


def read_tests(value: Any, column: str, name: str | None = None, hints: Iterable[str | None] = ()) -> Arguments:
    """Return the verifier's arguments for the tests in a column.

    name: the function under test, if the tests do not name it. hints: programs or stubs, which show whether this
    function is a method of `class Solution`. Raises Unusable if there are no tests or they cannot be read.
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
    """Return the content of a column; a text is parsed as JSON. Raises Unusable for a text that is not JSON."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return parse_json(value)
    except ValueError as error:
        raise _unreadable(column, f"not JSON: {error}") from None


def _code_arguments(arguments: Arguments) -> Arguments:
    if (call := _CHECK_CALL.search(arguments["code"])) is not None:
        arguments |= {"entry_point": call[1], "code": arguments["code"][: call.start()].rstrip()}
    return arguments


def _stdio_case(case: Mapping[str, Any], column: str, position: int) -> Arguments:
    weight = {"weight": case["weight"]} if "weight" in case else {}
    return {key: _stdio_text(case[key], f"case {position}: the {key}", column) for key in ("input", "output")} | weight


def _stdio_text(value: Any, name: str, column: str) -> str:
    """Return a text, a number or a list of lines as one text. name: the name of the value in errors."""
    lines = value if isinstance(value, list) else [value]
    if all(isinstance(line, str | int | float) and not isinstance(line, bool) for line in lines):
        return "\n".join(map(str, lines))
    raise _unreadable(column, f"{name} is a {type(value).__name__}, not a text")


def _call_arguments(arguments: Arguments, calls: list[Arguments], tests: Any, column: str) -> Arguments:
    if "entry_point" not in arguments:
        raise _unreadable(column, "the function to call is not named")
    cases = [{key: exact(value, column) for key, value in case.items() if key != "kwargs" or value} for case in calls]
    # A list of cases may be tests of APPS in another shape, with wrapped values. Values in texts are not wrapped.
    listed_cases = tests if isinstance(tests, list) else []
    if len({case.get("fn_name") for case in listed_cases}) > 1:
        raise _unreadable(column, "calls of several functions")
    as_text = any(isinstance(case.get("input"), str) for case in listed_cases)
    if listed_cases and "checker" not in arguments and not as_text:
        expected = [case["expected"] for case in cases]
        if all(isinstance(value, list) and len(value) == 1 for value in expected):
            cases = [{**case, "expected": [case["expected"][0], case["expected"]]} for case in cases]
            arguments["checker"] = {"type": "values", "any_of": True}
    return arguments | {"cases": cases}


def exact(value: Any, column: str, depth: int = 0) -> Any:
    """Return a value with integers beyond 64 bits as tagged objects. Raises Unusable for values nested too deeply."""
    if depth > MAX_NESTED:
        raise _unreadable(column, f"values nested more than {MAX_NESTED} deep")
    if isinstance(value, int) and not isinstance(value, bool) and not -INT64 <= value < INT64:
        return {"$": "int", "v": hex(value)}
    if isinstance(value, list):
        return [exact(item, column, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {key: exact(item, column, depth + 1) for key, item in value.items()}
    return value


def _missing(column: str) -> Unusable:
    return Unusable("missing_tests", f"column {column!r} holds no tests")


def _unreadable(column: str, reason: str) -> Unusable:
    return Unusable("unreadable_tests", f"column {column!r}: {reason}")


def read_tests_value(
    values: Mapping[str, Any], value: Any, column: str, name: str | None, solution: str | None = None
) -> dict[str, Any]:
    """Return the verifier's arguments for the tests in a column, which may also be a text or list of assertions.

    name: the function that the tests call, if known. solution: a program, which shows whether the function is a method
    of `class Solution`. Raises Unusable if the tests cannot be read.
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
    """Return the name of the function under test in the column `metadata`, as in LiveCodeBench, or None."""
    metadata = values.get("metadata")
    if isinstance(metadata, str):
        metadata = parse_tests(metadata, "metadata") if metadata.lstrip().startswith("{") else None
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None

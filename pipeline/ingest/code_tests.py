r"""Makes the arguments of the verifier `code` out of the tests that a record holds.

    {"inputs": ["1 2\n"], "outputs": ["3\n"]}                     type stdio,
                                                                  cases [{"input": "1 2\n", "output": "3\n"}]
    {"fn_name": "add", "inputs": [[1, 2]], "outputs": [3]}        type calls, entry_point add,
                                                                  cases [{"args": [1, 2], "expected": 3}]
    {"functional": "def check(candidate): ...\ncheck(add)"}       type asserts, entry_point add, code "def check(..."
    {"type": "asserts", "code": "assert add(1, 2) == 3"}          as it is

Which shapes are read, and what they mean, is the verifier's word (`suite.shapes`); each may also be JSON text. What is
none of them makes a record that cannot be used, with the reason. Beyond that:

- What a `check(...)` in the last line tests is the entry point.
- A method of `class Solution` gets the names that LeetCode's solutions take for granted (`leetcode_prelude`).
- Integers beyond 64 bits, for which a row's JSON has no room, are written as `{"$": "int", "v": "0x..."}`.
- Expected values that all are lists of one may be wrapped ones, as in APPS: either reading is accepted.

Not covered: pickles, which are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from truegold.pipeline.ingest.columns import INT64
from truegold.pipeline.ingest.jsonl import parse_json
from truegold.pipeline.ingest.leetcode_prelude import LEETCODE_PRELUDE
from truegold.pipeline.ingest.records import Unusable
from truegold.verifiers.code.bad_suite import BadSuite
from truegold.verifiers.code.suite import read_suite
from truegold.verifiers.code.suite.shapes import FORMS, normal_form

Arguments = dict[str, Any]

MAX_NESTED = 50
"""Lists within lists. Somewhat deeper, values would be cut when the row is written, and the tests be other ones."""

_CHECK_CALL = re.compile(r"\ncheck\(\s*([\w.()]+)\s*\)\s*$")
_KEPT = ("type", "entry_point", "code", "checker", "prelude", "stub", "codecs")


def looks_like_tests(value: object) -> bool:
    """Whether these are tests rather than an answer or a text, as far as a glance tells."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("{", "["):
            return False
        try:
            value = parse_json(value)
        except ValueError:
            return False
    if isinstance(value, Mapping):
        return (
            _is_ready(value)
            or "functional" in value
            or any(
                isinstance(value.get(given), list) and isinstance(value.get(wanted), list)
                for given, wanted in (("inputs", "outputs"), ("input", "output"))
            )
        )
    return isinstance(value, list) and bool(value) and (_are_cases(value) or _are_asserts(value))


def read_tests(value: Any, column: str, name: str | None = None, hints: Iterable[str | None] = ()) -> Arguments:
    """The verifier's arguments. name: the function's, where the tests do not say it. hints: texts that show whether it
    is a method of `class Solution`. Unusable where there are no tests, or none that can be read."""
    tests = parsed(value, column)
    if not tests:
        raise _missing(column)
    if not isinstance(tests, Mapping | list):
        raise _unreadable(column, f"holds a {type(tests).__name__}, not tests")
    try:
        if isinstance(tests, Mapping) and _is_ready(tests):
            read_suite(tests)
            return dict(tests)
        found, _ = normal_form({"tests": tests, "fn_name": name, "starter_code": _in_class(hints)})
    except BadSuite as error:
        raise _unreadable(column, str(error)) from None
    except RecursionError:
        raise _unreadable(column, "values nested too deeply") from None
    return _arguments(found, tests, column)


def _arguments(found: Mapping[str, Any], tests: Any, column: str) -> Arguments:
    arguments = {key: found[key] for key in _KEPT if found.get(key)}
    if found["type"] in ("asserts", "unittest"):
        return _code(arguments)
    if not found["cases"]:
        raise _missing(column)
    if found["type"] == "stdio":
        return arguments | {
            "cases": [_stdio_case(case, column, number) for number, case in enumerate(found["cases"], 1)]
        }
    return _calls(arguments, found["cases"], tests, column)


def parsed(value: Any, column: str) -> Any:
    """What a column holds: itself, or what it says as JSON text. Unusable where a text is no JSON."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return parse_json(value)
    except ValueError as error:
        raise _unreadable(column, f"no JSON: {error}") from None


def _code(arguments: Arguments) -> Arguments:
    call = _CHECK_CALL.search(arguments["code"])
    if call is not None:
        arguments |= {"entry_point": call[1], "code": arguments["code"][: call.start()].rstrip()}
    return _with_prelude(arguments)


def _with_prelude(arguments: Arguments) -> Arguments:
    in_class = str(arguments.get("entry_point", "")).startswith("Solution()")
    return ({"prelude": LEETCODE_PRELUDE} if in_class else {}) | arguments


def _stdio_case(case: Mapping[str, Any], column: str, number: int) -> Arguments:
    weight = {"weight": case["weight"]} if "weight" in case else {}
    return {key: _text(case[key], f"case {number}: the {key}", column) for key in ("input", "output")} | weight


def _text(value: Any, what: str, column: str) -> str:
    """A text, a number, or a list of lines."""
    lines = value if isinstance(value, list) else [value]
    if all(isinstance(line, str | int | float) and not isinstance(line, bool) for line in lines):
        return "\n".join(map(str, lines))
    raise _unreadable(column, f"{what} is a {type(value).__name__}, not a text")


def _calls(arguments: Arguments, found: list[Arguments], tests: Any, column: str) -> Arguments:
    if "entry_point" not in arguments:
        raise _unreadable(column, "calls of a function that is not named")
    cases = [{key: _exact(value, column) for key, value in case.items() if key != "kwargs" or value} for case in found]
    # Cases in a list of their own are those of APPS in another dress; as text, a value never is wrapped.
    each = tests if isinstance(tests, list) else []
    if len({case.get("fn_name") for case in each}) > 1:
        raise _unreadable(column, "calls of several functions")
    if each and "checker" not in arguments and not any(isinstance(case.get("input"), str) for case in each):
        expected = [case["expected"] for case in cases]
        if all(isinstance(value, list) and len(value) == 1 for value in expected):
            cases = [{**case, "expected": [case["expected"][0], case["expected"]]} for case in cases]
            arguments["checker"] = {"type": "values", "any_of": True}
    return _with_prelude(arguments) | {"cases": cases}


def _exact(value: Any, column: str, depth: int = 0) -> Any:
    """A value in the form that the verifier reads without loss."""
    if depth > MAX_NESTED:
        raise _unreadable(column, f"values nested more than {MAX_NESTED} deep")
    if isinstance(value, int) and not isinstance(value, bool) and not -INT64 <= value < INT64:
        return {"$": "int", "v": hex(value)}
    if isinstance(value, list):
        return [_exact(item, column, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {key: _exact(item, column, depth + 1) for key, item in value.items()}
    return value


def _is_ready(tests: Mapping[str, Any]) -> bool:
    """Whether these are the verifier's own arguments already."""
    return tests.get("type") in FORMS


def _in_class(hints: Iterable[str | None]) -> str | None:
    return next((text for text in hints if text and "class Solution" in text), None)


def _are_cases(found: list[Any]) -> bool:
    return all(isinstance(case, Mapping) and {"input", "output"} <= case.keys() for case in found)


def _are_asserts(found: list[Any]) -> bool:
    return all(isinstance(line, str) and line.lstrip().startswith("assert") for line in found)


def _missing(column: str) -> Unusable:
    return Unusable("missing_tests", f"column {column!r} holds no tests")


def _unreadable(column: str, why: str) -> Unusable:
    return Unusable("unreadable_tests", f"column {column!r}: {why}")

"""Reads the tests that stand beside a row which names `code`: in its arguments, else in a column of a usual name.

    {"prompt": "Add.", "verifier": "code", "tests": ["assert add(1, 2) == 3"]}
    {"prompt": "Add.", "verifier": "code", "verifier_args": {"entry_point": "add"}, "test": "def check(candidate): ..."}

Both become `verifier_args.tests`. A row that names `code` and has no tests is a reject, `missing_tests`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from truegold.pipeline.sources.code_columns import function_name
from truegold.pipeline.sources.code_tests import read_tests
from truegold.pipeline.sources.columns import MISSING, text_of
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.layout import Values
from truegold.pipeline.sources.records import Unusable
from truegold.verifiers.code.bad_suite import BadSuite
from truegold.verifiers.code.suite.shapes import normal_form

TESTS_COLUMNS = ("tests", "test_list", "test_cases", "test")
"""Columns with the tests of a row that names `code`, the surest first."""

_EMPTY_TEXTS = ("", "[]", "{}", "null")
_SETUP = ("test_imports", "test_setup_code")


def tests_column(values: Values, arguments: Mapping[str, Any], taken: Set[str]) -> str | None:
    """Return the column with the tests of a row that names `code`; None where its arguments have them.

    Columns that are `taken` as something else have none. Raises Unusable where there are no tests anywhere.
    """
    if _holds_tests(arguments):
        return None
    for name in TESTS_COLUMNS:
        if name not in taken and not _is_empty(values.get(name, MISSING)):
            return name
    raise Unusable(
        "missing_tests",
        f"the verifier code needs tests: in verifier_args, or in a column {', '.join(TESTS_COLUMNS)}",
    )


def read_tests_column(values: Values, column: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tests of a column; raise Unusable where they cannot be read."""
    value = values[column]
    hints = (arguments.get("entry_point"), values.get("entry_point"), function_name(values))
    name = next((hint for hint in hints if isinstance(hint, str) and hint), None)
    structure = parse_structure(value)
    tests: Any = structure
    if isinstance(structure, str):
        tests = {"test": structure, **({"entry_point": name} if name else {})}
    elif isinstance(structure, list) and all(isinstance(test, str) for test in structure):
        tests = {"test_list": structure, **{part: values[part] for part in _SETUP if text_of(values.get(part))}}
    return read_tests(tests, column, name, [text_of(values.get("starter_code"))])


def _holds_tests(arguments: Mapping[str, Any]) -> bool:
    """Say whether arguments hold tests, or something in their place that `vet_tests` will tell about."""
    tests = arguments.get("tests")
    if tests is not None and not isinstance(tests, Mapping):
        return not _is_empty(tests)
    try:
        normal_tests, _ = normal_form(arguments)
    except BadSuite:
        return any(arguments.get(name) for name in ("tests", "type", "cases", "code"))
    return bool(normal_tests.get("cases") or normal_tests.get("code"))


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in _EMPTY_TEXTS
    return value is None or value is MISSING or value in ([], {})

"""Recognises rows with tests in place of gold, and rows that truegold has no verifier for.

are_tests("assert add(1, 2) == 3")                True    are_tests("72")        False
are_tests({"inputs": ["1"], "outputs": ["2"]})    True    are_tests("[1, 2]")    False
foreign_kind({"FAIL_TO_PASS": [...], ...})    "changes to a repository (column FAIL_TO_PASS), which truegold has ..."
foreign_gold('{"func_name": "validate"}')     "an object (func_name), which truegold has no verifier for"
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from truegold.verifiers.code.suite.reading import FORMS
from truegold.verifiers.columns import find_column, is_there
from truegold.verifiers.strict_json import parse_structure

KINDS: dict[str, tuple[str, ...]] = {
    "changes to a repository": ("FAIL_TO_PASS", "test_patch", "base_commit"),
    "instructions to follow": ("instruction_id_list", "constraint_type"),
    "formal proofs": ("formal_statement", "formal_proof", "lean4_code", "lean_code"),
    "answers to grade by rubrics": ("rubric", "rubrics", "grading_rubric"),
    "preferences": ("chosen", "rejected"),
    "tasks with a scorer of their own": ("reward_fn", "scorer", "environment_name"),
}
"""Kinds of rows that truegold has no verifier for, and the columns that identify each kind."""
KIND_COLUMNS = tuple(name for columns in KINDS.values() for name in columns)
"""All columns of `KINDS`."""


TESTS = (
    *("tests", "test_list", "test_cases", "unit_tests", "test", "official_tests", "verifier_metadata.unit_tests"),
    *("verification_info.test_cases", "verification_info", "reward_model.ground_truth", "ground_truth"),
    *("verifier_args.tests", "verifier_args", "info.tests", "info"),
)
"""Columns that may hold tests of a program, the surest first. (`inputs` together with `outputs` are tests too.)"""
_TEST_CODE = re.compile(r"^[^\S\n]*(?:assert\b|def (?:check|test)\w*\(|class \w+\(.*TestCase\))", re.MULTILINE)


def looks_like_tests(value: object) -> bool:
    """Say whether a value has the shape of tests, without parsing any code."""
    tests = parse_structure(value)
    if isinstance(tests, Mapping):
        pairs = (("inputs", "outputs"), ("input", "output"))
        has_lists = any(all(isinstance(tests.get(name), list) for name in pair) for pair in pairs)
        return tests.get("type") in FORMS or "functional" in tests or has_lists
    if not isinstance(tests, list) or not tests:
        return False
    are_cases = all(isinstance(case, Mapping) and {"input", "output"} <= case.keys() for case in tests)
    return are_cases or all(isinstance(line, str) and line.lstrip().startswith("assert") for line in tests)


def are_tests(value: Any) -> bool:
    """Say whether a value holds tests: cases of input and output, or code with assertions."""
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], Mapping):
        value = value[0]
    if isinstance(value, str) and _TEST_CODE.search(value) is not None:
        return _asserts(value)
    structure = parse_structure(value)
    if isinstance(structure, list) and structure and all(isinstance(line, str) for line in structure):
        return _asserts("\n".join(structure))
    return looks_like_tests(value)


def is_test_code(tests: Any) -> bool:
    """Say whether tests are Python code with assertions, which cannot be mistaken for another kind of column."""
    structure = parse_structure(tests)
    lines = structure if isinstance(structure, list) else [structure]
    return all(isinstance(line, str) and _TEST_CODE.search(line) is not None for line in lines)


def why_no_tests(value: Any) -> str:
    """Return why a value holds no tests, and how tests are written."""
    structure = parse_structure(value)
    lines = structure if isinstance(structure, list) else [structure]
    wrong = [line for line in lines if says_something(line) and not are_tests([line])]
    shown = repr((wrong or [value])[0])[:60]
    if not wrong:
        why = "is empty" if not any(map(says_something, lines)) else "mixes kinds of tests"
    elif isinstance(wrong[0], str):
        why = f"holds {shown}, which asserts nothing about a program"
    else:
        why = f"holds {shown}, which is no test"
    return f'{why}; a test is a text "assert add(1, 2) == 3" or an object {{"input": "1 2", "output": "3"}}'


def _asserts(code: str) -> bool:
    """Say whether a text is Python code whose assertions compare something or call a function."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "def check(" in code or ("assert " in code and "==" in code)
    checked = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return any(isinstance(part, ast.Compare | ast.Call) for test in checked for part in ast.walk(test)) or (
        not checked and "TestCase" in code
    )


def foreign_kind(values: Mapping[str, Any]) -> str | None:
    """Return a description of a record that truegold has no verifier for, or None for any other record."""
    known = ((kind, name) for kind, columns in KINDS.items() for name in columns if says_something(values.get(name)))
    for kind, column in known:
        if find_column("gold", [values]) is None and not (values.get("tests") or values.get("test_list")):
            return f"{kind} (column {column}), which truegold has no verifier for"
    truth = parse_structure(values.get("ground_truth"))
    if isinstance(truth, Mapping) and "func_name" in truth:
        return "instructions to follow (ground_truth.func_name), which truegold has no verifier for"
    return None


def says_something(value: object) -> bool:
    """Say whether a value is neither missing, null, blank nor an empty list or array."""
    if isinstance(value, str):
        return bool(value.strip())
    return is_there(value) and getattr(value, "__len__", lambda: 1)() > 0


def foreign_gold(gold: object) -> str | None:
    """Return a description of a gold that is a JSON object or a list of objects, or None for any other gold."""
    structure = parse_structure(gold)
    entries = structure if isinstance(structure, list | tuple) else [structure]
    parsed = [parse_structure(entry) for entry in entries]
    if (object_ := next((entry for entry in parsed if isinstance(entry, Mapping)), None)) is None:
        return None
    return f"an object ({', '.join(map(str, list(object_)[:4]))}), which truegold has no verifier for"

"""Tests of programs as they stand in a column: read whole, or named with the reason why they cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from tables import rows

from truegold.verifiers.code.suite.row_tests import Unusable, read_tests
from truegold.verifiers.row_kinds import are_tests, looks_like_tests, why_no_tests


@rows(
    "tests, reason, expected",
    [
        (None, "missing_tests", "holds no tests"),
        ("", "missing_tests", "holds no tests"),
        ([], "missing_tests", "holds no tests"),
        ({"inputs": [], "outputs": []}, "missing_tests", "holds no tests"),
        ('{"inputs": [', "unreadable_tests", "not JSON"),
        ("9" * 5000, "unreadable_tests", "not JSON"),
        ({"inputs": ["1"]}, "unreadable_tests", "no tests found"),
        ({"inputs": ["1"], "outputs": []}, "unreadable_tests", "inputs holds 1 entries and outputs 0"),
        ({"cases": 3}, "unreadable_tests", "no tests found"),
        ([1, 2], "unreadable_tests", "tests[0] must be an object, got 1"),
        ([{"input": "1"}], "unreadable_tests", "tests[0].output is missing"),
        ([{"input": {"a": 1}, "output": "1"}], "unreadable_tests", "case 1: the input is a dict"),
        ([{"input": "1", "output": None}], "unreadable_tests", "case 1: the output is a NoneType"),
        ([{"input": "1", "output": "1", "testtype": "functional"}], "unreadable_tests", "not named"),
        ({"fn_name": "f", "inputs": ["[1"], "outputs": ["1"]}, "unreadable_tests", "tests[0].input must be JSON"),
        (7, "unreadable_tests", "holds a int, not tests"),
        (
            [
                {"input": "1", "output": "1", "testtype": "functional", "fn_name": "f"},
                {"input": "1", "output": "1", "testtype": "stdin"},
            ],
            "unreadable_tests",
            "tests for stdin and tests for a function",
        ),
        (
            [{"input": [1], "output": 1, "fn_name": "f"}, {"input": [1], "output": 1, "fn_name": "g"}],
            "unreadable_tests",
            "several functions",
        ),
    ],
)
def test_tests_that_cannot_be_read_are_named_with_the_reason(tests, reason, expected):
    with pytest.raises(Unusable) as error:
        read_tests(tests, "tests")
    assert error.value.reason == reason
    assert "'tests'" in error.value.detail
    assert expected in error.value.detail


def test_values_nested_too_deep_to_be_kept_whole_are_not_cut():
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    with pytest.raises(Unusable, match="nested"):
        read_tests({"fn_name": "f", "inputs": [[deep]], "outputs": [1]}, "tests")


def test_tests_in_the_verifiers_own_form_are_checked_and_kept():
    ready = {"type": "stdio", "cases": [{"input": "1", "output": "2", "weight": 2}], "checker": "lines"}
    assert looks_like_tests(ready)
    assert read_tests(json.dumps(ready), "tests") == ready
    with pytest.raises(Unusable, match="output"):
        read_tests({"type": "stdio", "cases": [{"input": "1"}]}, "tests")


def test_lists_of_asserts():
    assert read_tests(["assert f(1) == 2", "assert f(2) == 3"], "tests") == {
        "type": "asserts",
        "code": "assert f(1) == 2\nassert f(2) == 3",
    }


KEYS = """type cases input output inputs outputs args kwargs expected weight fn_name entry_point testtype functional
metadata test test_list code checker prelude public_tests private_tests test_cases""".split()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS | st.sampled_from(["1\n2", "[1]", "stdio", "calls", "asserts", "functional", "assert f(1)"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(400))
@given(value=VALUES, name=st.none() | st.just("f"))
def test_whatever_stands_in_a_column_is_tests_or_unusable(value, name):
    looks_like_tests(value)
    try:
        arguments = read_tests(value, "tests", name, ["class Solution"])
    except Unusable as error:
        assert "\n" not in error.detail
    else:
        assert arguments["type"] in ("stdio", "calls", "asserts", "unittest")
        assert arguments.get("cases") or arguments.get("code")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (["assert True"], "holds 'assert True', which asserts nothing about a program; a test is a text"),
        (["f(1) == 1"], "holds 'f(1) == 1', which asserts nothing"),
        ([{"in": 1, "out": 2}], "holds {'in': 1, 'out': 2}, which is no test"),
        (["assert f(1) == 1", 3], "holds 3, which is no test"),
        ([], "is empty; a test is a text"),
    ],
)
def test_a_column_without_tests_says_what_it_holds(value: object, why: str) -> None:
    assert not are_tests(value) and why in why_no_tests(value)

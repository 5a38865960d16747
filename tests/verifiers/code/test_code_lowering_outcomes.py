"""Checks of lowered test code: whatever a solution returns, the outcome is that of running it or is left open."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered_tests import by_lowering, by_running, holds, lower_suite, lowered, outcomes_of
from property_tests import examples
from real_data import real_data
from tables import is_full_run, rows

from truegold.verifiers.code.checks.lowering import Lowered, lower
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.sandbox.inside.wire.value_types import Array, Instance, Iterated, Opaque

STANDINS = [Opaque("Thing"), Instance("P", {"x": 1}), Array("int64", (1,), [1]), Iterated([1], "dict_keys")]


@pytest.mark.parametrize("value", STANDINS)
@pytest.mark.parametrize("code", ["assert f(1)", "assert f(1) == 1", "assert not f(1)", "assert f(1) is None"])
def test_only_running_tells_what_objects_do(code, value):
    assert lowered(code).checks[0].holds(value) is None


@rows(
    "code, value, held",
    [
        ("assert f(1) == 5", 10**100_000, False),
        ("assert f(1) < 5", "x", False),
        ("assert f(1) < [5]", [[]], False),
        ("assert f(1) in {1, 2}", [], False),
        ("assert f(1) not in {1, 2}", [], False),
        ("assert f(1) in (1, 2)", True, True),
        ("assert f(1) == True", 1, True),
        ("assert f(1) is True", 1, False),
        ("assert f(1) == [1]", [Iterated([1])], False),
        ("assert f(1) == {1}", {k * (2**61 - 1) for k in range(3000)}, False),
    ],
)
def test_a_check_is_decided_by_python_equality(code, value, held):
    assert lowered(code).checks[-1].holds(value) is held


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.0, "a", "ab", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.integers(0, 2), inner, max_size=2)
    ),
    max_leaves=5,
)
SHAPES = st.sampled_from(
    [
        "assert f({0!r}) == {1!r}",
        "assert f({0!r}) != {1!r}",
        "assert {1!r} == f({0!r})",
        "assert f({0!r}) in [{1!r}, 1]",
        "assert f({0!r}) is None",
        "assert f({0!r}) < {1!r}",
        "assert {1!r} <= f({0!r})",
        "assert not f({0!r})",
        "x = {0!r}\nassert f(x) == {1!r}",
        "x = f({0!r})\nassert x == {1!r}",
        "x = {1!r}\nassert f({0!r}) == [x]",
    ]
)
BODIES = st.sampled_from(
    [
        "return x",
        "return [x]",
        "return x * 2",
        "return x[0]",
        "return sorted(x)",
        "x.clear()",
        "return x == x",
        "return -x",
    ]
)


@settings(max_examples=examples(300))
@given(SHAPES, VALUES, VALUES, BODIES)
def test_any_assertion_comes_out_as_by_running(shape, given_value, expected, body):
    code, solution = shape.format(given_value, expected), f"def f(x):\n    {body}"
    outcome = by_lowering(code, solution)
    assert outcome is None or outcome is by_running(code, solution)


@given(st.text(max_size=80))
def test_any_text_is_lowered_or_not(text):
    lower(text, "f")


def test_infinity_and_large_integers_are_values():
    lowered_tests = lowered("assert f(1e999, 10**5000) == -1e999")
    assert lowered_tests.calls[0].args == [math.inf, 10**5000]
    assert lowered_tests.checks[0].holds(-math.inf) is True


# Real test suites


def rows_of(name):
    with real_data(f"code/{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def share_lowered(suites):
    lowered_tests = [lower_suite(read_suite(suite).tests) for suite in suites]
    return sum(isinstance(each, Lowered) for each in lowered_tests) / len(lowered_tests)


def test_nearly_all_of_humaneval_mbpp_and_leetcode_is_lowered():
    humaneval = [
        {"test": row["test"], "entry_point": row["entry_point"], "prompt": row["prompt"]}
        for row in rows_of("humaneval")
    ]
    mbpp = [{"test_list": row["test_list"], "test_setup_code": row["test_setup_code"]} for row in rows_of("mbpp")]
    leetcode = [
        {"type": "asserts", "code": row["test"], "entry_point": row["entry_point"], "prelude": row["prelude"]}
        for row in rows_of("leetcode")[:: 1 if is_full_run() else 5]
    ]
    assert share_lowered(humaneval) >= 0.93
    assert share_lowered(mbpp) >= 0.99
    assert share_lowered(leetcode) >= 0.93


def test_reference_solutions_of_humaneval_pass_as_lowered():
    for row in rows_of("humaneval"):
        tests = read_suite({"test": row["test"], "entry_point": row["entry_point"], "prompt": row["prompt"]}).tests
        lowered_tests = lower_suite(tests)
        if isinstance(lowered_tests, Lowered):
            outcomes = outcomes_of(lowered_tests, row["prompt"] + row["canonical_solution"])
            assert all(holds(check, outcomes) is True for check in lowered_tests.checks), row["task_id"]

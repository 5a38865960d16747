"""Plain data is read, sent and compared without a look at each value: the outcome is that of the careful way."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.sandbox.inside.wire.encoding import are_plain, encode, from_json, to_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS | st.just(10**4_000) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2) | st.just("$") | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_plain_data_crosses_as_it_stands(value: Any) -> None:
    if are_plain([value]):
        assert encode(value) == value
        assert repr(from_json(to_json(value))) == repr(value)


@rows("value", [(1, 2), {1: 2}, {"$": 1}, [math.nan], [[math.inf]], b"x", 10**4_000, {1}, True.__class__, [1, [(2,)]]])
def test_what_needs_a_tag_is_not_plain(value: Any) -> None:
    assert not are_plain([value])


def test_nesting_without_end_is_not_plain() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    assert not are_plain([deep])
    assert not are_plain([deep], tuples=True)


def test_tuples_are_plain_where_they_will_do() -> None:
    assert are_plain([(1, (2.5, "x")), [()]], tuples=True)
    assert not are_plain([(1, {2})], tuples=True)


TAGGED = {"args": [{"$": "tuple", "v": [1, 2]}], "expected": {"$": "tuple", "v": [1, 2]}}


@pytest.mark.parametrize(
    ("cases", "plain"),
    [
        ([{"args": [[1, 2]], "expected": [1, 2]}], (True, True)),
        ([{"args": [[1, 2]], "expected": {"$": "tuple", "v": [1, 2]}}], (True, True)),
        ([{"args": [[1, 2]], "expected": {"$": "set", "v": [1, 2]}}], (True, False)),
        ([{"args": [1], "kwargs": {"k": 1}, "expected": 1}], (False, True)),
        ([{"args": [1], "weight": 2, "expected": 1}], (False, True)),
        ([TAGGED], (False, True)),
        ([{"args": [(1, 2)], "expected": 1}], (False, True)),
    ],
)
def test_what_is_plain_in_a_suite(cases: list[Any], plain: tuple[bool, bool]) -> None:
    tests = read_suite({"type": "calls", "entry_point": "f", "cases": cases}).tests
    assert (tests.plain_args, tests.plain_expected) == plain  # type: ignore[union-attr]


def verdict(program: str, cases: list[Any], checker: Any = "values") -> tuple[float | None, str]:
    tests = {"type": "calls", "entry_point": "f", "cases": cases, "checker": checker}
    got = CodeVerifier()(f"```python\n{program}\n```", info={"tests": tests})
    return got.score, str((got.evidence.get("failed") or {}).get("error", ""))


MANY = [{"args": [n], "expected": [n]} for n in range(50)]


def test_a_wrong_result_among_many_is_found_where_it_is() -> None:
    score, error = verdict("def f(n): return [n if n != 33 else 0]", MANY)
    assert (score, error) == (0.0, "[0]: expected 33, got 0")


def test_a_call_that_raises_among_many_does_not_shift_the_others() -> None:
    tests = {"type": "calls", "entry_point": "f", "cases": MANY}
    program = "```python\ndef f(n):\n    if n == 7: raise ValueError('seven')\n    return [n]\n```"
    got = CodeVerifier(stop="never")(program, info={"tests": tests})
    assert (got.score, got.evidence["passed"], got.evidence["failed"]["case"]) == (0.0, 49, 7)


def test_expected_lists_of_answers_are_not_taken_for_one_answer() -> None:
    cases = [{"args": [1], "expected": [1, 2]}]
    assert verdict("def f(n): return [1, 2]", cases, {"type": "values", "any_of": True})[0] == 0.0
    assert verdict("def f(n): return 2", cases, {"type": "values", "any_of": True})[0] == 1.0


def test_a_strict_checker_tells_one_from_true_in_plain_data() -> None:
    assert verdict("def f(n): return [True]", MANY[1:2], "strict")[0] == 0.0
    assert verdict("def f(n): return [True]", MANY[1:2])[0] == 1.0


@pytest.mark.parametrize("forged", ['{"r":[0]},{"r":[1]}', '{"r":[0', '{"x":[0]}', '[["r",[0]]]', ""])
def test_forged_lines_are_no_results(forged: str) -> None:
    program = f"import os\nos.write(3, {forged!r}.encode() + bytes([10]))\ndef f(n): return [n]"
    assert verdict(program, MANY)[0] is not None
    wrong = program.replace("return [n]", "return [n + 1]")
    assert verdict(wrong, MANY)[0] == 0.0


def test_there_is_room_for_results_as_large_as_they_are_expected() -> None:
    cases = [{"args": [letter], "expected": letter * 7_000_000} for letter in "abcdefghijkl"]
    program = "def f(letter): return letter * 7_000_000"
    assert verdict(program, cases)[0] == 1.0
    assert verdict(program.replace("letter *", "letter + letter *"), cases)[0] == 0.0
    few = [{**case, "expected": case["args"][0]} for case in cases]
    score, error = verdict(program, few)
    assert score == 0.0 and "expected" in error

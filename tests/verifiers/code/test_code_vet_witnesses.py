"""Faults that survive: those that do what the solution does are told from those that the tests should have caught."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers.audit.suites import VetOptions, VetReason, vet
from truegold.verifiers.audit.suites.made_inputs import make_inputs
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.code.suite.reading import read_suite

CLIP = """
def clip(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value
"""
THIN = {"type": "asserts", "code": "assert clip(1, 3, 9) == 3\nassert clip(12, 5, 8) == 8\nassert clip(2, 4, 7) == 4"}
STRICT = VetOptions(min_kill_rate=1.0)
LARGEST = """
def largest(values):
    best = values[0]
    for value in values[0:]:
        if value > best:
            best = value
    return best
"""


def weak_finding(info: dict[str, Any], reference: str) -> Any:
    vetting = vet({"tests": info}, references=[reference], options=STRICT)
    return next((finding for finding in vetting.findings if finding.reason is VetReason.WEAK), None)


def test_a_survivor_comes_with_an_input_and_a_case_that_catches_it() -> None:
    finding = weak_finding(THIN, CLIP)
    assert finding is not None
    survivor = finding.evidence["survivors"][0]
    assert survivor["fault"].startswith("line ")
    assert survivor["expected"] != survivor["got"]
    assert survivor["case"].startswith(f"assert clip({survivor['input']}) == ")
    with_case = read_suite({"tests": {**THIN, "code": f"{THIN['code']}\n{survivor['case']}"}})
    assert Bench(with_case).run(CLIP).passed
    cases = [each["case"] for each in finding.evidence["survivors"]]
    better = vet({"tests": {**THIN, "code": "\n".join([THIN["code"], *cases])}}, references=[CLIP])
    assert (better.kill_rate or 0.0) > finding.evidence["rate"]


def test_faults_that_change_nothing_do_not_count() -> None:
    tests = {"type": "calls", "entry_point": "largest", "cases": [
        {"args": [values], "expected": max(values)} for values in ([3, 1, 2], [1, 5], [2, 9, 4, 9], [-3, -1], [7])
    ]}  # fmt: skip
    vetting = vet({"tests": tests}, references=[LARGEST])
    assert vetting.kills.equivalent > 0
    assert set(vetting.kills.witnesses) == set(vetting.kills.survivors)
    assert vetting.kills.tried == vetting.kills.mutants + vetting.kills.equivalent + vetting.kills.undecided


@pytest.mark.parametrize(
    "body",
    [
        "    return next((value for value in values if value % 2 == 0), -1)",
        "    even = [value for value in values if value % 2 == 0]\n    return even[0] if even else -1",
        "    place = -1\n    for value in values[::-1]:\n        if value % 2 == 0:\n            place = value\n"
        "    return place",
    ],
)
def test_what_stands_for_no_answer_is_left_open(body: str) -> None:
    program = f"def first_even(values):\n{body}\n"
    known = (([1, 2], 2), ([4, 3, 6], 4), ([5, 7, 8], 8), ([2], 2))
    cases = [{"args": [values], "expected": expected} for values, expected in known]
    tests = {"type": "calls", "entry_point": "first_even", "cases": cases}
    vetting = vet({"tests": tests}, references=[program])
    assert vetting.kills.undecided > 0
    assert VetReason.WEAK not in vetting.reasons


def test_cases_whose_inputs_cannot_be_read_are_no_ground_for_a_finding() -> None:
    tests = {"type": "asserts", "code": "for n in range(1, 9):\n    assert double(n) == n + n"}
    vetting = vet({"tests": tests}, references=["def double(n):\n    return n * 2 if n > -5 else n + n + 1\n"])
    assert VetReason.WEAK not in vetting.reasons
    assert vetting.kills.undecided > 0


def is_rotated(values: list[int]) -> bool:
    return any(values[start:] + values[:start] == sorted(values) for start in range(len(values)))


@rows("seen, holds", [
        ([([1, 2], 2), ([7], 1), ([4, 4, 4], 3)], lambda values, n: len(values) == n),
        ([([1, 2], [3, 4]), ([7], [8])], lambda left, right: len(left) == len(right)),
        ([([1, 5, 9], 2), ([2, 3], 1)], lambda values, k: values == sorted(values) and k < len(values)),
        ([("01-02-2003",), ("24-12-1999",)], lambda text: [len(part) for part in text.split("-")] == [2, 2, 4]),
        ([("(())",), ("()()()",)], lambda text: text.count("(") == text.count(")") and set(text) <= {"(", ")"}),
        ([(5, 8), (2, 9), (1, 3)], lambda low, high: 0 < low < high),
        ([([[1, 2], [3, 4]],), ([[5, 6, 7], [8, 9, 1]],)], lambda rows: len({len(row) for row in rows}) == 1),
        ([(1.5,), (2.25,)], lambda number: isinstance(number, float) and number > 0),
        ([({"a": 1, "b": 2},), ({"c": 5},)], lambda table: set(map(type, table.values())) == {int}),
        ([([6, 8, 9, 1, 3],), ([4, 7, 2, 3],), ([1, 2, 5, 9],)], is_rotated),
    ])  # fmt: skip
def test_inputs_keep_what_all_seen_ones_share(seen: list[tuple[Any, ...]], holds: Any) -> None:
    inputs = make_inputs(seen, 60, seed=1)
    assert len(inputs) >= 5
    assert all(holds(*arguments) for arguments in inputs), [each for each in inputs if not holds(*each)][:5]
    assert not {repr(each) for each in inputs} & {repr(each) for each in seen}
    assert inputs == make_inputs(seen, 60, seed=1)


KEY = st.text("xy", max_size=2)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.floats(-9, 9) | st.text("ab (1)-", max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=4))
def test_inputs_can_be_made_of_anything(seen: list[tuple[Any, ...]]) -> None:
    for arguments in make_inputs(seen, 10, seed=0):
        assert len(arguments) == 2


def test_the_number_of_faults_is_a_setting() -> None:
    assert vet({"tests": THIN}, references=[CLIP], options=VetOptions(mutants=0)).kill_rate is None


def test_suites_of_changed_arguments_are_vetted_by_what_the_argument_becomes() -> None:
    cases = [{"args": [values], "expected": sorted(values)} for values in ([3, 1, 2], [2, 2, 1], [9, 4])]
    tests = {"type": "calls", "entry_point": "sort", "in_place": True, "cases": cases}
    vetting = vet({"tests": tests}, references=["def sort(values):\n    values.sort()\n"])
    assert VetReason.REFERENCE_FAILS not in vetting.reasons, vetting.findings

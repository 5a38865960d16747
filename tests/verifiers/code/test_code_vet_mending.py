"""Weak tests get cases that catch what passed, made with the worked solution; where that is in doubt, none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truegold.verifiers.audit.suites import PROPOSED, Severity, SuiteOutcome, VetOptions, Vetting, add_cases, vet
from truegold.verifiers.audit.suites.made_inputs import read_inputs
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.code.outcomes import BadSuite
from truegold.verifiers.code.suite.reading import read_suite

LARGER = "def value(a, b, c): return max(b, c) * a\n"
DISTANCE = "def value(a, b, c): return min(abs(a - b), c)\n"
SPREAD = "n = int(input())\nvalues = list(map(int, input().split()))\nprint(max(values) - min(values))\n"
FLAT = [("3\n1 1 1\n", "0\n"), ("2\n5 5\n", "0\n"), ("4\n2 2 2 2\n", "0\n")]


def noughts_and_ones(program: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(program, scope)
    cases = [{"args": [n, n, n], "expected": scope["value"](n, n, n)} for n in (0, 1)]
    return {"tests": {"type": "calls", "entry_point": "value", "cases": cases}}


def proposed(vetting: Vetting) -> list[str]:
    return next((list(each.evidence[PROPOSED]) for each in vetting.findings if PROPOSED in each.evidence), [])


@pytest.mark.parametrize(
    ("program", "mistake"),
    [(LARGER, LARGER.replace("max", "min")), (DISTANCE, DISTANCE.replace("abs", ""))],
    ids=["min for max", "abs left out"],
)
def test_the_usual_mistake_fails_a_proposed_case(program: str, mistake: str) -> None:
    info = noughts_and_ones(program)
    vetting = vet(info, references=[program])
    cases = proposed(vetting)
    assert 1 <= len(cases) <= 8
    mended = Bench(read_suite(add_cases(info, cases)))
    assert Bench(read_suite(info)).run(mistake).passed
    assert mended.run(program).passed and not mended.run(mistake).passed
    # Programs that solve nothing pass too, and a person may add the cases.
    assert vetting.outcome is SuiteOutcome.KEEP and vetting.paid
    assert {finding.severity for finding in vetting.findings} == {Severity.FLAG}


def test_cases_are_added_where_that_is_asked_for() -> None:
    vetting = vet(noughts_and_ones(LARGER), references=[LARGER], options=VetOptions(mend=True))
    assert vetting.outcome is SuiteOutcome.REPAIR and vetting.repaired is not None
    assert vetting.reasons == ["cases_added"]
    assert "paid_null" in vetting.findings[0].evidence["for"]
    assert len(vetting.repaired["tests"]["cases"]) == 2 + len(proposed(vetting)) == vetting.kept
    assert not vetting.paid and vetting.kill_rate == 1.0


def test_a_program_that_reads_stdin_gets_whole_inputs() -> None:
    cases = [{"input": text, "output": output} for text, output in FLAT]
    vetting = vet({"tests": {"type": "stdio", "cases": cases}}, references=[SPREAD])
    made = [json.loads(case) for case in proposed(vetting)]
    assert made
    for case in made:
        count, values = case["input"].splitlines()
        numbers = list(map(int, values.split()))
        assert int(count) == len(numbers) and case["output"].split() == [str(max(numbers) - min(numbers))]


@pytest.mark.parametrize(
    ("prompt", "references"),
    [
        ("Return any of them. If there are several answers, any will do.", [LARGER]),
        ("Return the values in any order.", [LARGER]),
        (None, [LARGER, LARGER.replace("* a", "* a + 1")]),
        (None, [LARGER.replace("* a", "* a + 1")]),
        (None, []),
    ],
    ids=["several answers", "any order", "solutions disagree", "solution fails", "no solution"],
)
def test_nothing_is_proposed_in_doubt(prompt: str | None, references: list[str]) -> None:
    assert proposed(vet(noughts_and_ones(LARGER), prompt=prompt, references=references)) == []


def test_where_solutions_differ_no_case_is_made() -> None:
    other = "def value(a, b, c): return max(b, c) * a if b != c + 1 else -1\n"
    cases = proposed(vet(noughts_and_ones(LARGER), references=[LARGER, other]))
    assert cases
    assert all(b != c + 1 for _, b, c in (json.loads(case)["args"] for case in cases))


def test_what_stands_for_no_answer_is_not_asked_for() -> None:
    loop = "    for value in values:\n        if value >= least:\n            return value\n    return 99\n"
    program = f"def first(values, least):\n{loop}"
    seen = [([3, 1, 2], 2, 3), ([5, 9], 4, 5), ([2, 8, 8], 3, 8)]
    cases = [{"args": [values, least], "expected": expected} for values, least, expected in seen]
    info = {"tests": {"type": "calls", "entry_point": "first", "cases": cases}}
    made = proposed(vet(info, references=[program], options=VetOptions(min_kill_rate=1.0)))
    assert made and all(json.loads(case)["expected"] != 99 for case in made)


def test_cases_have_the_form_of_their_tests() -> None:
    added = add_cases({"tests": ["assert f(1) == 1"]}, ["assert f(2) == 3"])
    assert added["tests"]["code"].splitlines() == ["assert f(1) == 1", "assert f(2) == 3"]
    stdio = {"type": "stdio", "cases": [{"input": "1", "output": "2"}]}
    assert len(add_cases(stdio, ['{"input": "3", "output": "4"}', ""])["cases"]) == 2
    for wrong in ("3 -> 4", '{"input": "3"}'):
        with pytest.raises(BadSuite):
            add_cases(stdio, [wrong])


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["3\n1 5 2\n", "2\n7 7\n"], [(3, [1, 5, 2]), (2, [7, 7])]),
        (["2 abc\n", "5 x\n"], [(2, "abc"), (5, "x")]),
        (["2\n1 2\n3 4\n", "1\n5 6\n"], [(2, [(1, 2), (3, 4)]), (1, [(5, 6)])]),
        (["2\n7\n8\n", "1\n007\n"], [(2, [7, 8]), (1, ["007"])]),
        (["1\n2 3\n4\n", "1\n"], None),
        (["", "1\n"], None),
    ],
)
def test_inputs_are_read_and_written(texts: list[str], values: list[tuple[Any, ...]] | None) -> None:
    read = read_inputs(texts)
    if values is None:
        assert read is None
    else:
        assert read is not None and read[0] == values
        assert [read[1](each) for each in read[0]] == texts

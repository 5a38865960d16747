"""Tests of vetting whole suites: which are kept, dropped and flagged, and why. Programs run in the sandbox."""

import json
from typing import Any

import pytest
from tables import rows
from vet_suites import FEW, SUM, SUMS, calls, finding, stdio

from truegold.verifiers.audit.suites import Severity, SuiteOutcome, VetOptions, VetReason, vet
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.sandbox import Sandbox
from truegold.verifiers.sandbox.execution import SandboxError

pytestmark = pytest.mark.usefixtures("full_tier")


def test_a_sound_suite_is_kept_with_its_numbers() -> None:
    vetting = vet(stdio(*SUMS), prompt="Add two numbers.", references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons, vetting.repaired, vetting.paid) == (SuiteOutcome.KEEP, [], None, [])
    assert (vetting.cases, vetting.kept, vetting.references, vetting.leaked) == (4, 4, 1, 0.0)
    assert vetting.kill_rate == 1.0
    assert vetting.headroom is not None
    assert 0 < vetting.headroom < 0.1


def test_it_judges_as_the_verifier_does() -> None:
    suites = [
        stdio(*SUMS),
        calls("add", ([1, 2], 3), ([2, 2], 4)),
        {
            "type": "asserts",
            "entry_point": "add",
            "code": "def check(c):\n    assert c(1, 2) == 3\n    assert c(2, 2) == 4",
        },
        {
            "type": "asserts",
            "entry_point": "add",
            "code": "for i in [1]:\n    try:\n        assert add(i, 2) == 3\n    finally:\n        pass",
        },
        {
            "type": "unittest",
            "code": "import unittest\nclass T(unittest.TestCase):\n"
            "    def test(self):\n        self.assertEqual(add(1, 2), 3)\n",
        },
    ]
    functions = [
        "def add(a, b):\n    return a + b\n",
        "def add(a, b):\n    return 0\n",
        "def add(a, b):\n    1/0\n",
        "x = (\n",
    ]
    for info in suites:
        programs = [SUM, "print(3)\n", "1/0\n", "x = (\n"] if "tests" in info else functions
        for program in programs:
            trial = Bench(read_suite(info)).run(program)
            verdict = CodeVerifier()(f"```python\n{program}```", info=info)
            assert trial.passed is verdict.passed, (info, program)


def test_a_solution_that_is_wrong_drops_the_suite_with_the_case() -> None:
    vetting = vet(stdio(*SUMS), references=["print(3)\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["reference_fails"])
    evidence = finding(vetting, VetReason.REFERENCE_FAILS).evidence
    assert evidence["count"] == 3
    assert (evidence["cases"][0]["expected"], evidence["cases"][0]["got"]) == ("7\n", "3\n")


@rows(
    "info, program",
    [
        (stdio(("5", "5"), ("7", "7")), "prints its input"),
        (stdio(("5", ""), ("7", "")), "empty program"),
        (stdio(("5\n6", "5"), ("7\n8", "7")), "prints the first line of its input"),
        (stdio(("5", "yes indeed"), ("7", "yes indeed")), "prints yes indeed"),
        (calls("f", ([5], 5), ([7], 7)), "returns its first argument"),
        (calls("f", ([5], True), ([7], True)), "returns True"),
        ({"type": "asserts", "code": "assert f(3) != 4\nassert f(5) != 6"}, "returns None"),
        ({"type": "asserts", "code": "f(3)\nassert True\nassert f(2) is f(2)"}, "returns 0"),
    ],
)
def test_tests_that_pay_for_nothing_are_dropped(info: dict[str, Any], program: str) -> None:
    vetting = vet(info, options=FEW)
    assert vetting.outcome is SuiteOutcome.DROP
    assert program in vetting.paid
    assert vetting.reasons[0] == "paid_null"


def test_faults_that_go_unnoticed_are_listed_and_flagged() -> None:
    info = calls("f", ([1], 1), ([2], 2), ([5], 5), ([30], 10))
    reference = "def f(n):\n    if n > 20:\n        return 10\n    if n == 9:\n        return n * 3 + 1\n    return n\n"
    vetting = vet(info, references=[reference], options=VetOptions(runs=1, mutants=100))
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.KEEP, ["low_kill_rate"])
    assert vetting.kill_rate is not None
    assert 0 < vetting.kill_rate < 0.8
    low, high = vetting.kills.interval or (0, 0)
    assert low < vetting.kill_rate < high
    assert "line 5: return n * 3 + 1  ->  return n * 3 + 2" in [m.description for m in vetting.kills.survivors]


def test_a_fault_that_never_ends_is_caught() -> None:
    info = calls("f", ([3], 0), ([4], 0), ([5], 0), ([6], 1))
    reference = "def f(n):\n    m = n\n    while m > 0:\n        m -= 1\n    return m + n // 6\n"
    vetting = vet(info, references=[reference], options=VetOptions(runs=1, mutants=100))
    assert not [mutant for mutant in vetting.kills.survivors if "m += 1" in mutant.after or mutant.after == "pass"]


def test_a_solution_that_never_ends_is_not_waited_for_for_long() -> None:
    info = calls("f", ([1], 1), ([2], 2), limits={"cpu_s": 0.1})
    vetting = vet(info, references=["def f(n):\n    while True: pass\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["reference_fails"])


def test_state_that_calls_leave_behind_is_found() -> None:
    reference = "seen = []\ndef f(n):\n    seen.append(n)\n    return len(seen)\n"
    vetting = vet(calls("f", *(([n], n) for n in (1, 2, 3, 4))), references=[reference], options=FEW)
    assert "order_dependent" in vetting.reasons
    code = "\n".join(f"assert f({n}) == {n}" for n in (1, 2, 3, 4))
    assert "order_dependent" in vet({"type": "asserts", "code": code}, references=[reference], options=FEW).reasons


def test_programs_of_known_worth_are_counted() -> None:
    wrong = ["print(3)\n", "print(input())\n", SUM]
    right = [SUM, "a, b = input().split()\nprint(int(a) + int(b))\n", "print(7)\n"]
    vetting = vet(stdio(*SUMS), references=[SUM], wrong=wrong, right=right, options=FEW)
    assert vetting.caught == pytest.approx(2 / 3)
    assert vetting.accepted == pytest.approx(2 / 3)
    assert finding(vetting, VetReason.WRONG_ACCEPTED).evidence == {"programs": [2]}
    assert finding(vetting, VetReason.RIGHT_REJECTED).evidence == {"programs": [2]}


def test_what_stands_in_the_text_is_told() -> None:
    prompt = "Add. Input 1 2 Output 3. Input 10 -3 Output 7"
    pairs = [("1 2", "3"), ("10 -3", "7")]
    vetting = vet(stdio(*pairs), prompt=prompt, references=[SUM], options=FEW)
    assert (vetting.leaked, "memorizable" in vetting.reasons) == (1.0, True)
    vetting = vet(calls("add", ([1], 2), ([5], 6)), prompt="Write a function.", options=FEW)
    assert "entry_point_not_in_prompt" in vetting.reasons


def test_without_a_solution_what_can_be_said_is_said() -> None:
    vetting = vet(stdio(("1", "YES"), ("2", "NO"), ("3", "YES")), prompt="Is it?", options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.KEEP, ["guessable", "no_reference"])
    assert vetting.kill_rate is None
    assert vetting.guess_chance == pytest.approx(4 / 27)


def test_a_solution_may_continue_the_stub() -> None:
    info = {
        "type": "asserts",
        "entry_point": "area",
        "stub": "import math\n\ndef area(r):\n    '''The area.'''\n",
        "code": "def check(candidate):\n    assert round(candidate(1), 2) == 3.14\n    assert candidate(0) == 0\n",
    }
    assert vet(info, references=["    return math.pi * r ** 2\n"], options=FEW).outcome is SuiteOutcome.KEEP


def test_interactive_problems_are_dropped_without_running_anything() -> None:
    vetting = vet(stdio(*SUMS), prompt="This is an interactive problem.", references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["interactive"])


def test_a_package_that_is_not_there_is_named() -> None:
    vetting = vet(stdio(*SUMS), references=["import nowhere_to_be_found\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["missing_package"])
    assert finding(vetting, VetReason.MISSING_PACKAGE).evidence == {"module": "nowhere_to_be_found"}


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"tests": 5},
        {"type": "stdio", "cases": []},
        {"type": "asserts", "code": "x = 1"},
        {"type": "asserts", "code": "assert f(1) == ", "entry_point": "f"},
        {"type": "calls", "entry_point": "f", "cases": [{"args": [1], "expected": 1}], "language": "cpp"},
    ],
)
def test_tests_that_cannot_be_used_are_data_and_no_crash(info: dict[str, Any]) -> None:
    vetting = vet(info, references=["def f(n):\n    return n\n"], options=FEW)
    assert vetting.outcome is SuiteOutcome.DROP
    assert vetting.reasons[0] in ("unreadable_tests", "reference_fails")


def test_two_vettings_say_the_same() -> None:
    info = calls("f", ([1], 1), ([2], 4), ([5], 25), ([30], 900))
    reference = "def f(n):\n    total = 0\n    for i in range(n):\n        total += 2 * i + 1\n    return total\n"

    def once() -> tuple[object, ...]:
        vetting = vet(info, references=[reference], options=VetOptions(runs=2, mutants=10))
        return vetting.outcome, vetting.findings, vetting.kills, vetting.paid

    assert once() == once()


def test_trouble_of_the_sandbox_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Sandbox, jobs: object, piped: bool) -> None:
        raise SandboxError("gone")

    monkeypatch.setattr(Sandbox, "_run", fail)
    with pytest.raises(SandboxError):
        vet(stdio(*SUMS), references=[SUM], options=FEW)


def test_every_finding_carries_evidence_that_json_can_hold() -> None:
    vetting = vet(stdio(*SUMS), references=["print('\\ud800' if 0 else 3)\n", SUM], wrong=[SUM], options=FEW)
    json.dumps([dict(each.evidence) for each in vetting.findings])
    assert {each.severity for each in vetting.findings} == {Severity.FLAG}


def test_weak_judging_is_no_fault_of_a_suite() -> None:
    tests = (
        "import pandas as pd\ndef check(candidate):\n    made = candidate(pd.DataFrame({'a': [1, 2]}))\n"
        "    assert made.shape == (2, 1)\n    assert made.a[0] == 2\n"
    )
    info = {"type": "asserts", "entry_point": "f", "code": tests}
    vetting = vet(info, references=["def f(df):\n    return df + 1\n"], options=FEW)
    assert vetting.outcome is SuiteOutcome.KEEP, vetting.findings
    assert "paid_null" not in vetting.reasons


def test_imports_of_the_tests_are_there_in_any_order() -> None:
    info = {
        "type": "asserts",
        "entry_point": "f",
        "code": "import re\ndef check(c):\n    assert c('a1') == ['1']\n    assert c('b') == []\n",
    }
    vetting = vet(info, references=["def f(s):\n    return re.findall('[0-9]', s)\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.KEEP, [])


def test_a_checker_is_proposed_where_several_answers_are_right() -> None:
    prompt = "Print two numbers with this sum. If there are several answers, print any of them."
    vetting = vet(stdio(*SUMS), prompt=prompt, references=[SUM], options=FEW)
    evidence = finding(vetting, VetReason.NEEDS_CHECKER).evidence
    for program, score in ((SUM, 1.0), ("print(5)\n", 0.0)):
        info = stdio(*SUMS, checker=evidence["proposal"])
        assert CodeVerifier()(f"```python\n{program}```", info=info).score == score

"""Vetting suites: what is kept, repaired and dropped, and why. Programs run in the sandbox."""

import json
from typing import Any

import pytest
from sandboxes import box_of

from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.execution import SandboxError
from truegold.verifiers.code.sandbox import Sandbox, Tier
from truegold.verifiers.code.suite import read_suite
from truegold.verifiers.code.vet import Finding, Outcome, Severity, VetOptions, VetReason, Vetting, vet
from truegold.verifiers.code.vet.trials import Bench

FEW = VetOptions(runs=2, mutants=4)
SUM = "print(sum(map(int, input().split())))\n"
SUMS = [("1 2", "3"), ("10 -3", "7"), ("100 200", "300"), ("0 0", "0")]


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    box_of(Tier.FULL)


def stdio(*pairs: tuple[str, str], **more: Any) -> dict[str, Any]:
    cases = [{"input": f"{given}\n", "output": f"{output}\n"} for given, output in pairs]
    return {"tests": {"type": "stdio", "cases": cases, **more}}


def calls(function: str, *cases: tuple[list[Any], Any], **more: Any) -> dict[str, Any]:
    found = [{"args": args, "expected": expected} for args, expected in cases]
    return {"type": "calls", "entry_point": function, "cases": found, **more}


def finding(vetting: Vetting, reason: VetReason) -> Finding:
    return next(each for each in vetting.findings if each.reason is reason)


def test_a_sound_suite_is_kept_with_its_numbers() -> None:
    vetting = vet(stdio(*SUMS), prompt="Add two numbers.", references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons, vetting.repaired, vetting.paid) == (Outcome.KEEP, [], None, [])
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
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["reference_fails"])
    evidence = finding(vetting, VetReason.REFERENCE_FAILS).evidence
    assert evidence["count"] == 3
    assert (evidence["cases"][0]["expected"], evidence["cases"][0]["got"]) == ("7\n", "3\n")


@pytest.mark.parametrize(
    ("info", "program"),
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
    assert vetting.outcome is Outcome.DROP
    assert program in vetting.paid
    assert vetting.reasons[0] == "paid_null"


def test_faults_that_go_unnoticed_are_listed_and_flagged() -> None:
    info = calls("f", ([1], 1), ([2], 2), ([5], 5), ([30], 10))
    reference = "def f(n):\n    if n > 20:\n        return 10\n    if n == 9:\n        return n * 3 + 1\n    return n\n"
    vetting = vet(info, references=[reference], options=VetOptions(runs=1, mutants=100))
    assert (vetting.outcome, vetting.reasons) == (Outcome.KEEP, ["low_kill_rate"])
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


def test_a_case_that_passes_sometimes_is_taken_out() -> None:
    # The hash of a text differs from run to run.
    reference = "n = input()\nprint(hash('a') % 1000003 if n == '5' else 2 * int(n))\n"
    cases = [(str(n), str(2 * n)) for n in range(4)]
    first = Bench(read_suite(stdio(("5", "")))).run(reference).attempts[0].output
    vetting = vet(stdio(*cases, ("5", first.strip())), references=[reference], options=VetOptions(runs=3, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (Outcome.REPAIR, ["flaky_cases"])
    assert (vetting.cases, vetting.kept) == (5, 4)
    assert vetting.repaired is not None
    assert [case["input"] for case in vetting.repaired["tests"]["cases"]] == ["0\n", "1\n", "2\n", "3\n"]


def test_flaky_test_code_is_dropped() -> None:
    # The hash of a text differs from run to run, by the seed that the run is given.
    reference = "def f(n):\n    return n + hash('a') % 2\n"
    info = {"type": "asserts", "code": "assert f(20) == 20"}
    vetting = vet(info, references=[reference], options=VetOptions(runs=8, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["flaky_cases"])


def test_order_that_changes_from_run_to_run_is_left_free() -> None:
    reference = "def f(words):\n    return list(set(words))\n"
    info = calls("f", *(([list(text)], sorted(set(text))) for text in ("banana", "mississippi", "abcdefgh", "hello")))
    vetting = vet(info, references=[reference], options=VetOptions(runs=3, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (Outcome.REPAIR, ["any_order"])
    assert vetting.repaired is not None
    assert vetting.repaired["checker"] == {"type": "values", "unordered": True}
    assert CodeVerifier()(f"```python\n{reference}```", info=vetting.repaired).passed


def test_cut_off_inputs_are_taken_out() -> None:
    reference = "n = int(input())\nprint(sum(int(input()) for _ in range(n)))\n"
    whole = [("2\n1\n2", "3"), ("1\n5", "5"), ("3\n1\n1\n2", "4")]
    vetting = vet(stdio(*whole, ("4\n1\n2", "10")), references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.REPAIR, ["truncated_cases"])
    assert vetting.kept == 3


def test_a_crash_that_has_nothing_to_do_with_the_input_is_no_cut_off_input() -> None:
    reference = "n = int(input())\nprint([1, 2, 3][n])\n"
    vetting = vet(stdio(("0", "1"), ("1", "2"), ("2", "3"), ("7", "8")), references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["reference_fails"])


def test_too_few_whole_cases_are_not_enough() -> None:
    reference = "n = int(input())\nprint(sum(int(input()) for _ in range(n)))\n"
    vetting = vet(stdio(("2\n1\n2", "3"), ("4\n1\n2", "10")), references=[reference], options=FEW)
    assert vetting.outcome is Outcome.DROP
    assert {"truncated_cases", "too_few_cases"} <= set(vetting.reasons)


def test_contradictions_are_taken_out_unless_a_checker_program_judges() -> None:
    pairs = [*SUMS, ("1 1", "2"), ("1 1", "3")]
    vetting = vet(stdio(*pairs), references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons, vetting.kept) == (Outcome.REPAIR, ["contradictory_cases"], 4)
    checker = {"type": "program", "code": "def check(input, output, answer):\n    return bool(output.strip())"}
    assert "contradictory_cases" not in vet(stdio(*pairs, checker=checker), references=[SUM], options=FEW).reasons


@pytest.mark.parametrize(
    ("reference", "prompt", "pairs", "reason", "checker"),
    [
        ("print(int(input()) / 3)\n", None, [("1", "0.33333"), ("2", "0.66667")], "float_tolerance", {"abs_tol": 1e-4}),
        (
            "print('EVEN' if int(input()) % 2 == 0 else 'ODD')\n",
            None,
            [("2", "Even"), ("3", "Odd")],
            "case_insensitive",
            {"case_sensitive": False},
        ),
        (
            "n = int(input())\nprint(n + 1, n - 1)\n",
            "Print its neighbours in any order.",
            [("5", "4 6"), ("9", "8 10")],
            "any_order",
            {"unordered": "tokens_in_line"},
        ),
    ],
)
def test_the_checker_is_set_where_that_makes_the_solution_pass(
    reference: str, prompt: str | None, pairs: list[tuple[str, str]], reason: str, checker: dict[str, Any]
) -> None:
    vetting = vet(stdio(*pairs), prompt=prompt, references=[reference], options=VetOptions(runs=2, mutants=0))
    assert reason in vetting.reasons
    assert vetting.outcome is Outcome.REPAIR, vetting.findings
    assert vetting.repaired is not None
    assert checker.items() <= vetting.repaired["tests"]["checker"].items()
    assert CodeVerifier()(f"```python\n{reference}```", info=vetting.repaired).passed


def test_an_order_that_nothing_leaves_free_is_not_freed() -> None:
    pairs = [("1 2 3", "1 2 3"), ("4 5 6", "4 5 6")]
    reference = "print(*input().split()[::-1])\n"
    vetting = vet(stdio(*pairs), prompt="Print the numbers.", references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["needs_checker"])


def test_several_right_answers_need_a_checker_program() -> None:
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    reference = "n = int(input())\nprint(1, n - 1)\n"
    prompt = "Print two numbers whose sum is n. If there are several answers, print any of them."
    vetting = vet(stdio(*pairs), prompt=prompt, references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["needs_checker"])
    assert "print any of them" in finding(vetting, VetReason.NEEDS_CHECKER).evidence["said"]
    silent = vet(stdio(*pairs), prompt="Print two numbers whose sum is n.", references=[reference], options=FEW)
    assert silent.reasons == ["needs_checker"]
    assert [finding(each, VetReason.NEEDS_CHECKER).evidence["sign"] for each in (vetting, silent)] == [
        "text",
        "outputs",
    ]
    code = "def check(input, output, answer):\n    numbers = list(map(int, output.split()))\n"
    code += "    return len(numbers) == 2 and sum(numbers) == int(input)\n"
    judged = stdio(*pairs, checker={"type": "program", "code": code})
    assert vet(judged, prompt=prompt, references=[reference], options=FEW).outcome is Outcome.KEEP


def test_of_test_code_it_is_said_and_left_to_a_person() -> None:
    info = {"type": "asserts", "entry_point": "pair", "code": "assert pair(7) == (3, 4)\nassert pair(9) == (4, 5)"}
    reference = "def pair(n):\n    return n // 2, n - n // 2\n"
    for text, reason in (
        ("Return any pair with the sum n.", "needs_checker"),
        ("Return it in any order.", "any_order"),
    ):
        vetting = vet(info, prompt=f"pair: {text}", references=[reference], options=FEW)
        assert (vetting.outcome, vetting.reasons) == (Outcome.KEEP, [reason])


def test_one_input_with_two_answers_of_one_shape_needs_a_checker_program() -> None:
    pairs = [("7", "3 4"), ("7", "2 5"), ("5", "2 3")]
    vetting = vet(stdio(*pairs), references=["n = int(input())\nprint(n // 2, n - n // 2)\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["needs_checker"])
    assert finding(vetting, VetReason.NEEDS_CHECKER).evidence["sign"] == "same_input"


def test_an_answer_that_comes_too_late_once_hides_no_others() -> None:
    reference = "n = int(input())\nwhile n == 9: pass\nprint(1, n - 1)\n"
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    vetting = vet(stdio(*pairs, limits={"cpu_s": 0.1}), references=[reference], options=VetOptions(runs=1, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["needs_checker"])


def test_solutions_that_disagree_on_shape_or_value() -> None:
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    first = "n = int(input())\nprint(n // 2, n - n // 2)\n"
    other = "n = int(input())\nprint(1, n - 1)\n"
    assert vet(stdio(*pairs), references=[first, other], options=FEW).reasons == ["needs_checker"]
    vetting = vet(stdio(*SUMS), references=["print(3)\n", SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.KEEP, ["references_disagree"])


def test_a_slow_solution_gets_a_higher_limit() -> None:
    spin = "end = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"
    slow = f"import time\nn = int(input())\n{spin}print(n * 2)\n"
    pairs = [("1", "2"), ("2", "4"), ("3", "6")]
    vetting = vet(
        stdio(*pairs, limits={"cpu_s": 0.2, "memory_mb": 300}), references=[slow], options=VetOptions(runs=1, mutants=0)
    )
    assert (vetting.outcome, vetting.reasons) == (Outcome.REPAIR, ["tight_limit"])
    assert vetting.repaired is not None
    assert vetting.repaired["tests"]["limits"] == {"cpu_s": 2.0, "memory_mb": 300}


def test_what_a_slow_solution_may_take_in_all_is_bounded() -> None:
    spin = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    slow = f"import time\nn = int(input())\n{spin}print(n)\n"
    pairs = [(str(n), str(n)) for n in range(1, 9)]
    options = VetOptions(runs=2, mutants=0, max_repeat_s=0.5)
    vetting = vet(stdio(*pairs, limits={"cpu_s": 0.1}), references=[slow], options=options)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["reference_fails"])


def test_a_solution_that_never_ends_is_not_waited_for_for_long() -> None:
    info = calls("f", ([1], 1), ([2], 2), limits={"cpu_s": 0.1})
    vetting = vet(info, references=["def f(n):\n    while True: pass\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["reference_fails"])


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
    assert (vetting.outcome, vetting.reasons) == (Outcome.KEEP, ["guessable", "no_reference"])
    assert vetting.kill_rate is None
    assert vetting.guess_chance == pytest.approx(4 / 27)


def test_a_solution_may_continue_the_stub() -> None:
    info = {
        "type": "asserts",
        "entry_point": "area",
        "stub": "import math\n\ndef area(r):\n    '''The area.'''\n",
        "code": "def check(candidate):\n    assert round(candidate(1), 2) == 3.14\n    assert candidate(0) == 0\n",
    }
    assert vet(info, references=["    return math.pi * r ** 2\n"], options=FEW).outcome is Outcome.KEEP


def test_interactive_problems_are_dropped_without_running_anything() -> None:
    vetting = vet(stdio(*SUMS), prompt="This is an interactive problem.", references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["interactive"])


def test_a_package_that_is_not_there_is_named() -> None:
    vetting = vet(stdio(*SUMS), references=["import nowhere_to_be_found\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (Outcome.DROP, ["missing_package"])
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
    assert vetting.outcome is Outcome.DROP
    assert vetting.reasons[0] in ("unreadable_tests", "reference_fails")


def test_two_vettings_say_the_same() -> None:
    info = calls("f", ([1], 1), ([2], 4), ([5], 25), ([30], 900))
    reference = "def f(n):\n    total = 0\n    for i in range(n):\n        total += 2 * i + 1\n    return total\n"

    def once() -> tuple[object, ...]:
        vetting = vet(info, references=[reference], options=VetOptions(runs=2, mutants=10))
        return vetting.outcome, vetting.findings, vetting.kills, vetting.paid

    assert once() == once()


def test_trouble_of_the_sandbox_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Sandbox, jobs: object) -> None:
        raise SandboxError("gone")

    monkeypatch.setattr(Sandbox, "_run", fail)
    with pytest.raises(SandboxError):
        vet(stdio(*SUMS), references=[SUM], options=FEW)


def test_every_finding_carries_evidence_that_json_can_hold() -> None:
    vetting = vet(stdio(*SUMS), references=["print('\\ud800' if 0 else 3)\n", SUM], wrong=[SUM], options=FEW)
    json.dumps([dict(each.evidence) for each in vetting.findings])
    assert {each.severity for each in vetting.findings} == {Severity.FLAG}

"""Tests of repairs: cases that vetting takes out, checkers and limits it sets, and suites it drops instead."""

from typing import Any

import pytest
from vet_suites import FEW, SUM, SUMS, calls, finding, stdio

from truegold.verifiers.audit.suites import SuiteOutcome, VetOptions, VetReason, vet
from truegold.verifiers.audit.suites.trials import Bench
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.code.suite.reading import read_suite

pytestmark = pytest.mark.usefixtures("full_tier")


def test_a_case_that_passes_sometimes_is_taken_out() -> None:
    # The hash of a text differs from run to run.
    reference = "n = input()\nprint(hash('a') % 1000003 if n == '5' else 2 * int(n))\n"
    cases = [(str(n), str(2 * n)) for n in range(4)]
    first = Bench(read_suite(stdio(("5", "")))).run(reference).attempts[0].output
    vetting = vet(stdio(*cases, ("5", first.strip())), references=[reference], options=VetOptions(runs=3, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.REPAIR, ["flaky_cases"])
    assert (vetting.cases, vetting.kept) == (5, 4)
    assert vetting.repaired is not None
    assert [case["input"] for case in vetting.repaired["tests"]["cases"]] == ["0\n", "1\n", "2\n", "3\n"]


def test_flaky_test_code_is_dropped() -> None:
    # The hash of a text differs from run to run, by the seed that the run is given.
    reference = "def f(n):\n    return n + hash('a') % 2\n"
    info = {"type": "asserts", "code": "assert f(20) == 20"}
    vetting = vet(info, references=[reference], options=VetOptions(runs=8, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["flaky_cases"])


def test_order_that_changes_from_run_to_run_is_left_free() -> None:
    reference = "def f(words):\n    return list(set(words))\n"
    info = calls("f", *(([list(text)], sorted(set(text))) for text in ("banana", "mississippi", "abcdefgh", "hello")))
    vetting = vet(info, references=[reference], options=VetOptions(runs=3, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.REPAIR, ["any_order"])
    assert vetting.repaired is not None
    assert vetting.repaired["checker"] == {"type": "values", "unordered": True}
    assert CodeVerifier()(f"```python\n{reference}```", info=vetting.repaired).passed


def test_cut_off_inputs_are_taken_out() -> None:
    reference = "n = int(input())\nprint(sum(int(input()) for _ in range(n)))\n"
    whole = [("2\n1\n2", "3"), ("1\n5", "5"), ("3\n1\n1\n2", "4")]
    vetting = vet(stdio(*whole, ("4\n1\n2", "10")), references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.REPAIR, ["truncated_cases"])
    assert vetting.kept == 3


def test_a_crash_that_has_nothing_to_do_with_the_input_is_no_cut_off_input() -> None:
    reference = "n = int(input())\nprint([1, 2, 3][n])\n"
    vetting = vet(stdio(("0", "1"), ("1", "2"), ("2", "3"), ("7", "8")), references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["reference_fails"])


def test_too_few_whole_cases_are_not_enough() -> None:
    reference = "n = int(input())\nprint(sum(int(input()) for _ in range(n)))\n"
    vetting = vet(stdio(("2\n1\n2", "3"), ("4\n1\n2", "10")), references=[reference], options=FEW)
    assert vetting.outcome is SuiteOutcome.DROP
    assert {"truncated_cases", "too_few_cases"} <= set(vetting.reasons)


def test_contradictions_are_taken_out_unless_a_checker_program_judges() -> None:
    pairs = [*SUMS, ("1 1", "2"), ("1 1", "3")]
    vetting = vet(stdio(*pairs), references=[SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons, vetting.kept) == (SuiteOutcome.REPAIR, ["contradictory_cases"], 4)
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
    assert vetting.outcome is SuiteOutcome.REPAIR, vetting.findings
    assert vetting.repaired is not None
    assert checker.items() <= vetting.repaired["tests"]["checker"].items()
    assert CodeVerifier()(f"```python\n{reference}```", info=vetting.repaired).passed


def test_an_order_that_nothing_leaves_free_is_not_freed() -> None:
    pairs = [("1 2 3", "1 2 3"), ("4 5 6", "4 5 6")]
    reference = "print(*input().split()[::-1])\n"
    vetting = vet(stdio(*pairs), prompt="Print the numbers.", references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["needs_checker"])


def test_several_right_answers_need_a_checker_program() -> None:
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    reference = "n = int(input())\nprint(1, n - 1)\n"
    prompt = "Print two numbers whose sum is n. If there are several answers, print any of them."
    vetting = vet(stdio(*pairs), prompt=prompt, references=[reference], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["needs_checker"])
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
    assert vet(judged, prompt=prompt, references=[reference], options=FEW).outcome is SuiteOutcome.KEEP


def test_of_test_code_it_is_said_and_left_to_a_person() -> None:
    info = {"type": "asserts", "entry_point": "pair", "code": "assert pair(7) == (3, 4)\nassert pair(9) == (4, 5)"}
    reference = "def pair(n):\n    return n // 2, n - n // 2\n"
    for text, reason in (
        ("Return any pair with the sum n.", "needs_checker"),
        ("Return it in any order.", "any_order"),
    ):
        vetting = vet(info, prompt=f"pair: {text}", references=[reference], options=FEW)
        assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.KEEP, [reason])


def test_one_input_with_two_answers_of_one_shape_needs_a_checker_program() -> None:
    pairs = [("7", "3 4"), ("7", "2 5"), ("5", "2 3")]
    vetting = vet(stdio(*pairs), references=["n = int(input())\nprint(n // 2, n - n // 2)\n"], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["needs_checker"])
    assert finding(vetting, VetReason.NEEDS_CHECKER).evidence["sign"] == "same_input"


def test_an_answer_that_comes_too_late_once_hides_no_others() -> None:
    reference = "n = int(input())\nwhile n == 9: pass\nprint(1, n - 1)\n"
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    vetting = vet(stdio(*pairs, limits={"cpu_s": 0.1}), references=[reference], options=VetOptions(runs=1, mutants=0))
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["needs_checker"])


def test_solutions_that_disagree_on_shape_or_value() -> None:
    pairs = [("7", "3 4"), ("9", "4 5"), ("5", "2 3")]
    first = "n = int(input())\nprint(n // 2, n - n // 2)\n"
    other = "n = int(input())\nprint(1, n - 1)\n"
    assert vet(stdio(*pairs), references=[first, other], options=FEW).reasons == ["needs_checker"]
    vetting = vet(stdio(*SUMS), references=["print(3)\n", SUM], options=FEW)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.KEEP, ["references_disagree"])


def test_a_slow_solution_gets_a_higher_limit() -> None:
    spin = "end = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"
    slow = f"import time\nn = int(input())\n{spin}print(n * 2)\n"
    pairs = [("1", "2"), ("2", "4"), ("3", "6")]
    vetting = vet(
        stdio(*pairs, limits={"cpu_s": 0.2, "memory_mb": 300}), references=[slow], options=VetOptions(runs=1, mutants=0)
    )
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.REPAIR, ["tight_limit"])
    assert vetting.repaired is not None
    assert vetting.repaired["tests"]["limits"] == {"cpu_s": 2.0, "memory_mb": 300}


def test_what_a_slow_solution_may_take_in_all_is_bounded() -> None:
    spin = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    slow = f"import time\nn = int(input())\n{spin}print(n)\n"
    pairs = [(str(n), str(n)) for n in range(1, 9)]
    options = VetOptions(runs=2, mutants=0, max_repeat_s=0.5)
    vetting = vet(stdio(*pairs, limits={"cpu_s": 0.1}), references=[slow], options=options)
    assert (vetting.outcome, vetting.reasons) == (SuiteOutcome.DROP, ["reference_fails"])

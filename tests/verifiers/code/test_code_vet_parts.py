"""Tests of the parts of vetting that run nothing: known cases, leaks, guesses, likeness of outputs, repairs."""

import json

import pytest
from tables import rows

from truegold.verifiers.audit.suites.known_cases import KnownCase, count_cases, known_cases
from truegold.verifiers.audit.suites.known_cases import tested_names as names_of  # Pytest would take it for a test.
from truegold.verifiers.audit.suites.mutants import null_programs
from truegold.verifiers.audit.suites.solutions import are_alike, are_all_alike, requested_checker
from truegold.verifiers.audit.suites.text_checks import (
    find_contradictions,
    find_cut_off,
    find_duplicates,
    find_empty_inputs,
    guess_chance,
    leaked_cases,
    mentions,
    rival_outputs,
)
from truegold.verifiers.audit.suites.vet_state import (
    Severity,
    SuiteFinding,
    SuiteOutcome,
    VetOptions,
    VetReason,
    apply_repair,
    outcome_of,
)
from truegold.verifiers.audit.suites.vetting import vet
from truegold.verifiers.code.suite.reading import Suite, read_suite
from truegold.verifiers.code.suite.statement import read_statement


def stdio(*pairs: tuple[str, str], **more: object) -> Suite:
    """Return a suite of pairs of input and output."""
    cases = [{"input": case_input, "output": output} for case_input, output in pairs]
    return read_suite({"tests": {"type": "stdio", "cases": cases, **more}})


def code(text: str, **more: object) -> Suite:
    """Return a suite of test code."""
    return read_suite({"type": "asserts", "code": text, **more})


ASSERTS = """
def check(candidate):
    assert candidate([1, 2], 0.5) == True
    assert not candidate([3], 1)
    assert abs(candidate([4], 2) - 1.5) < 0.01
    assert candidate([5], 3) is None, "message"
    assert math.isclose(candidate([6], k=4), 2.5)
    assert set(candidate([7], 5)) == {1, 2}
    assert candidate([8], 6) == other(8)
    for i in range(3):
        assert candidate([i], 7) == i
    assert True
"""


def test_what_assertions_say_is_read_without_running_them() -> None:
    cases = known_cases(code(ASSERTS, entry_point="f").tests)
    assert [(case.input, case.value) for case in cases] == [
        ("[1, 2], 0.5", True),
        ("[3], 1", False),
        ("[4], 2", 1.5),
        ("[5], 3", None),
        ("[6], k=4", 2.5),
        ("[7], 5", {1, 2}),
    ]
    assert count_cases(code(ASSERTS, entry_point="f").tests) == 8


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("result = f(2)\nassert np.array_equal(result, X)", []),
        ("expected = pd.DataFrame()\nassert expected.equals(df)", []),
        ("for frame in frames:\n    assert frame.equals(f(1))", []),
        ("s = Solution()\nassert s.f(3)\nassert s.g(2) == 4", [True, 4]),
        ("g = f\nassert g(3) == 4", [4]),
    ],
)
def test_what_a_value_of_the_tests_says_of_another_is_no_case(text: str, values: list[object]) -> None:
    assert [case.value for case in known_cases(code(text, prelude="import numpy as np").tests)] == values


@rows(
    "assertion, read",
    [
        ("np.array_equal(candidate(1), [1, 2])", []),
        ("candidate(1).equals(df)", []),
        ("df.equals(candidate(1))", []),
        ("pd.DataFrame.equals(candidate(1), df)", []),
        ("path.exists('a.txt')", []),
        ("len(candidate(1)) == 3", []),
        ("type(candidate(1)) == int", []),
        ("isinstance(candidate(1), list)", []),
        ("np.sum(candidate(1)) == 3", []),
        ("close(candidate(1), 3)", []),
        ("candidate(1).shape == (3, 2)", []),
        ("candidate(np.array([1])) == 2", [2]),
        ("sorted(candidate(1)) == [1, 2]", [[1, 2]]),
        ("[1, 2] == list(candidate(1))", [[1, 2]]),
        ("math.isclose(candidate(1), 0.5)", [0.5]),
        ("Solution().f(1) == 2", [2]),
        ("candidate(1)", [True]),
        ("not candidate(1)", [False]),
    ],
)
def test_what_a_test_makes_of_a_result_is_not_the_result(assertion: str, read: list[object]) -> None:
    imports = "import math\nimport numpy as np\nimport pandas as pd\nfrom os import path\n"
    helper = "def close(a, b):\n    return abs(a - b) < 1\n"
    suite = code(f"{imports}{helper}def check(candidate):\n    assert {assertion}\n", entry_point="f")
    assert [case.value for case in known_cases(suite.tests)] == read


def test_unittest_cases_are_read() -> None:
    text = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(1), 'a')\n"
        "        self.assertTrue(f(2))\n        self.assertFalse(f(3))\n"
    )
    suite = read_suite({"type": "unittest", "code": text})
    assert [(case.input, case.value) for case in known_cases(suite.tests)] == [("1", "a"), ("2", True), ("3", False)]


def test_cases_of_calls_and_stdio_are_read_in_order() -> None:
    calls = read_suite(
        {"type": "calls", "entry_point": "f", "cases": [{"args": [1, "a"], "kwargs": {"k": [2]}, "expected": None}]}
    )
    assert known_cases(calls.tests) == [KnownCase("1, 'a', k=[2]", "None", None)]
    assert known_cases(stdio(("3\n", "a  b\n")).tests) == [KnownCase("3\n", "a  b\n", "a b")]


def test_deeply_nested_test_code_is_left_out_and_breaks_nothing() -> None:
    deep = "assert f(" + "[" * 80 + "]" * 80 + ") == 1\nassert f(2) == " + "+".join(["1"] * 3000)
    assert count_cases(code(deep).tests) >= 1
    assert isinstance(known_cases(code(deep).tests), list)


def test_the_names_that_only_a_solution_can_give() -> None:
    check = "import math\nhelper = 3\ndef check(candidate):\n    assert candidate(1) == len(x)\n"
    text = f"{check}assert add(1, helper) == math.pi + given()"
    assert names_of(code(text, prelude="def given(): pass").tests) == ["add", "x"]
    assert names_of(code("assert candidate(1) == 2", entry_point="Solution().f").tests) == ["Solution().f"]


@rows(
    "values, chance",
    [
        (["YES", "NO"], 0.25),
        ([True, False], 0.25),
        (["7", "7", "7"], 1.0),
        ([17], 0.0),
        (["NO"], 1.0),
        (["17", "42"], 0.0),
        ([True, True, False], pytest.approx(4 / 27)),
        (["YES"] * 10 + ["NO"] * 10, pytest.approx(0.5**20)),
        ([], None),
    ],
)
def test_the_chance_of_a_guess(values: list[object], chance: float | None) -> None:
    assert guess_chance(values) == chance


PROMPT = """Add the numbers.

Input
3
1 2 3
Output
6

>>> total([4, 5], 'x')
9
Example: nums = [7], k = 8
Output: 15. The value 21 is at most 100, and 30 is too.
"""


@rows(
    "case_input, output, printed, is_leaked",
    [
        ("3\n1 2 3\n", "6\n", True, True),
        ("3\n1 2 3\n", "7\n", True, False),
        ("1 2\n", "6\n", True, False),
        ("21", "30", True, True),
        ("[4, 5], 'x'", "9", False, True),
        ('[4,5], "x"', "9", False, True),
        ("[4, 5]", "10", False, False),
        ("[7], k=8", "15", False, True),
        ("21", "30", False, False),
        ("1 2 3", "6", True, True),
        ("2 3", "6", True, False),
        ("", "6", True, False),
    ],
)
def test_cases_that_stand_in_the_text(case_input: str, output: str, printed: bool, is_leaked: bool) -> None:
    assert leaked_cases([KnownCase(case_input, output, None)], PROMPT, printed) == ([0] if is_leaked else [])


def test_a_name_is_mentioned_as_a_word() -> None:
    assert mentions("Write add(a, b).", "add")
    assert not mentions("Write address.", "add")


def test_what_case_texts_say() -> None:
    suite = stdio(("3\n", "6\n"), ("3", "6"), ("4", "1"), ("4 ", "2"), ("", "0"), ("5\n" + "1 2 3 " * 20 + "...", "9"))
    cases = known_cases(suite.tests)
    assert find_duplicates(cases) == [1]
    assert find_contradictions(cases) == [2, 3]
    assert rival_outputs(cases) == [("1", "2")]
    assert find_empty_inputs(suite.tests) == [4]  # type: ignore[arg-type]
    assert find_cut_off(suite.tests) == [5]  # type: ignore[arg-type]


def test_short_texts_may_end_in_dots_and_suites_without_input_may_have_none() -> None:
    assert find_cut_off(stdio(("a...", "b..."), ("", "")).tests) == []  # type: ignore[arg-type]
    assert find_empty_inputs(stdio(("", "1"), ("", "2")).tests) == []  # type: ignore[arg-type]


@rows(
    "left, right, same",
    [
        ("YES\n0 0\n3 4", "YES\n0 0\n4 3", True),
        ("PATH\n2 5 1", "PATH\n2 5 1 7", True),
        ("3 1 2", "1 2 3", True),
        ("abba", "baab", True),
        ("17", "18", False),
        ("1/2", "5/6", False),
        ("1\n2\n3", "1\n2\n4", False),
        ("YES\n1 2", "NO", False),
        ("YES", "NO", False),
        ("PATH\n1 2", "PAIRS\n3 4 5", False),
        ("", "1 2", False),
        ("0\n4\n1\n2", "4\n0\n1\n2", True),
        ("YES\nNO", "NO\nYES", False),
        ([1, 2], [2, 1], True),
        ([1], [2], False),
        (3, 4, False),
        ({1, 2}, {3, 4}, True),
    ],
)
def test_outputs_that_look_like_two_right_answers(left: object, right: object, same: bool) -> None:
    assert are_alike(left, right) is same


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("2\n1 5\n3 4", "1\n2 6", True),
        ("0110", "1001", True),
        ("1 2 3", "1 2", True),
        ("17", "18", False),
        ("YES\n1 2", "NO", False),
        ("3\n1\n2", "2\n5", False),
    ],
)
def test_a_construction_may_have_another_shape(left: str, right: str, same: bool) -> None:
    assert are_alike(left, right, constructs=True) is same
    assert not are_alike(left, right)


def test_all_of_several_outputs_have_to_be_alike() -> None:
    assert are_all_alike([("1 2", "2 1"), ("3 4", "4 3")])
    assert not are_all_alike([("1 2", "2 1"), ("3", "4")])
    assert not are_all_alike([])


def test_null_programs_are_programs_without_repetitions() -> None:
    for suite in (
        stdio(("1", "a\n"), ("2", "b'\n")),
        code("assert add(1) == 2\nassert add(2) == [3]"),
        read_suite({"type": "calls", "entry_point": "Solution().f.g", "cases": [{"args": [], "expected": "x"}] * 2}),
    ):
        programs = null_programs(suite)
        assert len(programs) > 10
        assert len({program.source for program in programs}) == len(programs)
        for program in programs:
            compile(program.source, program.name, "exec")


def test_constants_are_those_that_the_tests_expect() -> None:
    names = [program.name for program in null_programs(code("assert add(1) == 2\nassert add(2) == [3]"))]
    values = {"2", "[3]", "None", "its first argument", "float('nan')", "float('inf')"}
    assert {f"returns {value}" for value in values} <= set(names)
    arrays = null_programs(code("import numpy as np\nassert np.allclose(add(1), [2])"))
    assert any("empty((0, 1))" in program.source for program in arrays)


@pytest.mark.parametrize(
    ("suite", "constant"),
    [
        (stdio(("21", "42")), "prints 42"),
        (code("assert double(21) == 42"), "returns 42"),
        (code("def check(candidate):\n    assert candidate(21) == 42\n\ncheck(double)"), "returns 42"),
        (code("assert double(21) == 'forty'"), "returns 'forty'"),
    ],
)
def test_the_output_of_an_only_case_is_tried_and_known_for_what_it_is(suite: Suite, constant: str) -> None:
    (program,) = [program for program in null_programs(suite, "Double the number.") if program.name == constant]
    assert program.answers_single_case and not program.attacks_tests


def test_the_output_of_an_only_case_without_input_is_no_null_program_unless_the_text_shows_it() -> None:
    for suite, constant in ((stdio(("", "4613732")), "prints 4613732"), (code("assert f() == 17"), "returns 17")):
        assert constant not in [program.name for program in null_programs(suite, "Add the even ones.")]
    shown = null_programs(stdio(("21", "42")), "Input 21 Output 42")
    (program,) = [program for program in shown if program.name == "prints 42"]
    assert not program.answers_single_case


def test_tests_that_only_the_answer_to_their_single_case_passes_are_flagged_and_stay() -> None:
    tests = {"type": "asserts", "code": "assert double(21) == 42"}
    vetting = vet({"tests": tests}, prompt="double(n): twice n.", references=["def double(n):\n    return 2 * n\n"])
    (finding,) = [finding for finding in vetting.findings if finding.reason is VetReason.PAID_NULL]
    assert (finding.severity, list(finding.evidence["programs"])) == (Severity.FLAG, ["returns 42"])


def test_attacks_are_told_from_programs_that_solve_nothing() -> None:
    attacks = [program.name for program in null_programs(stdio(("1", "a"), ("2", "b"))) if program.attacks_tests]
    assert attacks == ["prints success messages", "exits with sys.exit(0)", "exits with os._exit(0)"]
    returned = [program.name for program in null_programs(code("assert add(1) == 2")) if program.attacks_tests]
    assert len(returned) == 6 and "returns an object that equals everything" in returned


def test_test_code_that_names_nothing_has_no_null_programs() -> None:
    assert null_programs(code("assert 1 == 1")) == []


@pytest.mark.parametrize("nested", [True, False])
def test_a_repair_changes_the_tests_and_nothing_else(nested: bool) -> None:
    cases = [{"input": str(n), "output": str(n), "weight": n + 1} for n in range(4)]
    tests = {"type": "stdio", "cases": cases}
    info = {"tests": tests, "limits": {"memory_mb": 100}, "mine": 1} if nested else {**tests, "mine": 1}
    repaired = apply_repair(info, {1, 2}, {"type": "floats"}, 20.0)
    assert repaired["mine"] == 1
    inside = repaired["tests"] if nested else repaired
    assert [case["input"] for case in inside["cases"]] == ["0", "3"]
    assert (inside["checker"], inside["limits"]["cpu_s"]) == ({"type": "floats"}, 20.0)
    assert read_suite(repaired).limits.cpu_s == 20.0
    assert info == ({"tests": tests, "limits": {"memory_mb": 100}, "mine": 1} if nested else {**tests, "mine": 1})


def test_a_repair_reads_the_shapes_of_data_sets() -> None:
    info = {"tests": json.dumps({"inputs": ["1\n", "2\n"], "outputs": ["1\n", "4\n"]})}
    assert read_suite(apply_repair(info, {0})) == stdio(("2\n", "4\n"))


@rows(
    "text, outputs, checker",
    [
        ("You can print each letter in any case.", ["YES", "no"], {"case_sensitive": False}),
        ("You can print each letter in any case.", ["1", "2"], None),
        ("The error must not exceed 10^{-4}.", ["0.5", "2"], {"type": "floats", "abs_tol": 1e-4}),
        ("The relative error must not exceed 10^{-4}.", ["0.5"], {"abs_tol": 1e-4, "rel_tol": 1e-4}),
        ("The relative error must not exceed 10^{-6}.", ["0.5"], {"abs_tol": 1e-6, "rel_tol": 1e-6}),
        ("The error must not exceed 10^{-9}.", ["0.5", "2.5"], None),
        ("Print the numbers in any order.", ["2\n1 5", "1\n7"], {"unordered": "tokens_in_line"}),
        ("Print the numbers in any order.", ["2\n1\n5", "7"], {"unordered": "lines"}),
        ("Print any of them. Print the numbers in any order.", ["1 5", "7 2"], None),
    ],
)
def test_the_checker_that_a_text_asks_for(text: str, outputs: list[str], checker: dict[str, object] | None) -> None:
    suite = stdio(*((str(index), output) for index, output in enumerate(outputs)))
    requested, _ = requested_checker(suite.tests, read_statement(text))  # type: ignore[arg-type]
    assert requested == (None if checker is None else {"type": "tokens", **checker})


def test_a_free_order_that_no_option_fits_is_a_flag() -> None:
    suite = stdio(("1", "1 2\n3 4\n5 6"))
    statement = read_statement("Print the edges in any order.")
    requested, findings = requested_checker(suite.tests, statement)  # type: ignore[arg-type]
    assert requested is None
    assert [(finding.reason, finding.severity) for finding in findings] == [(VetReason.ANY_ORDER, Severity.FLAG)]


def test_the_gravest_finding_decides() -> None:
    def decide(*severities: Severity) -> SuiteOutcome:
        return outcome_of([SuiteFinding(VetReason.FLAKY, severity) for severity in severities])

    assert decide() is decide(Severity.NOTE, Severity.FLAG) is SuiteOutcome.KEEP
    assert decide(Severity.REPAIR, Severity.FLAG) is SuiteOutcome.REPAIR
    assert decide(Severity.REPAIR, Severity.DROP) is SuiteOutcome.DROP


@pytest.mark.parametrize("field", ["runs", "mutants", "min_kill_rate", "max_repeat_s"])
def test_options_out_of_bounds_are_one_line(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        VetOptions(**{field: -1})  # type: ignore[arg-type]

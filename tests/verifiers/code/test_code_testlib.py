"""Problems with several answers, judged by checkers that are written against testlib.h."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testlib_programs import BOTH_TIERS, NEEDS_CPP, SUM_CHECKER, SUMS, judge

from truegold.verifiers import Reason
from truegold.verifiers.audit.suites import VetOptions, VetReason, vet
from truegold.verifiers.code.outcomes import BadSuite, Opinion
from truegold.verifiers.code.protocols.stdio import (
    HeaderMissing,
    JuryFailed,
    header,
    read_exit,
    uses_testlib,
    with_header,
)
from truegold.verifiers.code.suite.reading import read_suite
from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Tier, local


def program(share_of_sum: str) -> str:
    return f"n = int(input())\nprint({share_of_sum})"


@NEEDS_CPP
@BOTH_TIERS
@pytest.mark.parametrize(
    ("answer", "score", "error"),
    [
        ("1, n - 1", 1.0, None),
        ("n - 2, 2", 1.0, None),
        ("1, n - 2", 0.0, "wrong answer 1 + 3 is not 5"),
        ("'one', n - 1", 0.0, "wrong output format Expected integer"),
        ("1", 0.0, "wrong output format Unexpected end of file"),
        ("1, n - 1, 7", 0.0, "wrong output format Extra information"),
        ("5000, n - 5000", 0.0, "wrong answer Integer 5000 violates the range [1, 1000]"),
        ("666, 1", 0.0, "the checker cannot read it: the checker failed (signalled, 11)"),
    ],
)
def test_a_checker_of_testlib_takes_every_right_answer_and_no_wrong_one(
    tier: Tier, answer: str, score: float, error: str | None
) -> None:
    verdict = judge(tier, program(answer), SUMS)
    assert verdict.score == score, verdict
    if error is not None:
        assert error in verdict.evidence["failed"]["error"]


@NEEDS_CPP
@BOTH_TIERS
def test_points_count_as_a_share_of_the_case(tier: Tier) -> None:
    for answer, share in (("1, n", 0.5), ("2, n", 0.25)):
        shared = judge(tier, program(answer), SUMS, reward="pass_rate")
        assert (shared.score, shared.reason) == (pytest.approx(share), Reason.PARTIAL), shared
        whole = judge(tier, program(answer), SUMS)
        assert (whole.score, whole.reason) == (0.0, Reason.MISMATCH)


@NEEDS_CPP
@BOTH_TIERS
def test_a_fault_of_the_jury_is_no_verdict_on_the_program(tier: Tier) -> None:
    tests: dict[str, Any] = copy.deepcopy(SUMS)
    tests["cases"][1]["output"] = "-1\n"
    verdict = judge(tier, program("1, n - 1"), tests)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert "a fault of the jury: FAIL the jury has no answer" in verdict.evidence["error"]


@NEEDS_CPP
def test_a_checker_that_does_not_compile_is_no_verdict_on_the_program() -> None:
    tests = {**SUMS, "files": {}}
    verdict = judge(Tier.FULL, program("1, n - 1"), tests)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert "the checker does not compile" in verdict.evidence["error"]
    assert "params.h" in verdict.evidence["error"]


@NEEDS_CPP
def test_a_checker_is_compiled_once_for_all_cases_and_verdicts() -> None:
    judge(Tier.FULL, program("1, n - 1"), SUMS)
    before = local._compile_once.cache_info()
    for _ in range(3):
        judge(Tier.FULL, program("1, n - 1"), SUMS)
    after = local._compile_once.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 3)


@NEEDS_CPP
def test_vetting_takes_a_checker_of_testlib_for_one() -> None:
    prompt = "Print two positive numbers with the sum n. If there are several answers, print any of them."
    options = VetOptions(mutants=4, runs=2, tier=Tier.FULL)
    several = vet(SUMS, prompt=prompt, references=[program("2, n - 2")], options=options)
    assert VetReason.NEEDS_CHECKER not in several.reasons, several.findings
    assert several.outcome == "keep"
    assert several.kill_rate is not None


def test_the_header_is_whole_and_carries_its_notice() -> None:
    text = header().decode()
    assert "Mike Mirzayanov" in text
    assert "Permission to use or copy this software for any purpose is hereby granted" in text
    assert "void registerInteraction(" in text


@pytest.mark.parametrize(
    "line",
    ['#include "testlib.h"', "#include <testlib.h>", '  # include "../../common/testlib.h"', "#include<testlib.h>"],
)
def test_the_header_is_there_from_whatever_folder_it_is_included(line: str) -> None:
    source, files = with_header(f"{line}\nint main() {{}}", {"params.h": b""})
    assert source == '#include "testlib.h"\nint main() {}'
    assert set(files) == {"testlib.h", "params.h"}


@pytest.fixture
def fresh_header() -> Iterator[None]:
    header.cache_clear()
    yield
    header.cache_clear()


@pytest.mark.usefixtures("fresh_header")
def test_the_header_may_be_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.h").write_bytes(b"// mine")
    monkeypatch.setenv("TRUEGOLD_TESTLIB", str(tmp_path / "mine.h"))
    assert with_header("#include <testlib.h>", {})[1] == {"testlib.h": b"// mine"}


@NEEDS_CPP
@pytest.mark.usefixtures("fresh_header")
def test_without_the_header_the_score_is_none_and_the_evidence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEGOLD_TESTLIB", str(tmp_path / "not_there.h"))
    verdict = judge(Tier.FULL, program("1, n - 1"), {**SUMS, "checker": "// header gone\n" + SUM_CHECKER})
    assert verdict.score is None and verdict.reason == Reason.SANDBOX_ERROR
    assert "not_there.h" in verdict.evidence["error"]
    assert "pip install 'truegold[contest]'" in verdict.evidence["error"]
    monkeypatch.delenv("TRUEGOLD_TESTLIB")
    monkeypatch.setattr("truegold.verifiers.code.protocols.stdio._PACKAGE", "no-such-package")
    with pytest.raises(HeaderMissing, match=r"testlib\.h is not installed: pip install"):
        header()


def test_a_suite_may_bring_a_header_of_its_own() -> None:
    assert with_header('#include "testlib.h"', {"testlib.h": b"//"})[1] == {"testlib.h": b"//"}
    assert not uses_testlib('// #include "testlib.h"\n#include "mytestlib.h"')


@pytest.mark.parametrize(
    ("status", "message", "full_points", "opinion"),
    [
        (0, "ok 3 numbers", 1, Opinion(1.0)),
        (1, "seen: 3\nwrong answer 2nd numbers differ", 1, Opinion(0.0, "wrong answer 2nd numbers differ")),
        (2, "wrong output format", 1, Opinion(0.0, "wrong output format")),
        (8, "unexpected eof", 1, Opinion(0.0, "unexpected eof")),
        (7, "points 40 two of five", 100, Opinion(0.4, "points 40 two of five")),
        (7, "points 100 all", 100, Opinion(1.0)),
        (7, "points 0 none", 1, Opinion(0.0, "points 0 none")),
        (7, "nothing is said", 1, None),
        (50, "partially correct (50) half", 1, Opinion(0.5, "partially correct (50) half")),
        (0, "partially correct (0) nothing", 1, Opinion(0.0, "partially correct (0) nothing")),
        (100, "partially correct (100) all", 1, Opinion(1.0)),
        (134, "terminate called", 1, None),
        (5, "", 1, None),
    ],
)
def test_exit_codes_of_testlib(status: int, message: str, full_points: float, opinion: Opinion | None) -> None:
    assert read_exit(status, message, full_points) == opinion


def test_a_fault_of_the_jury_is_told_apart() -> None:
    with pytest.raises(JuryFailed):
        read_exit(3, "FAIL the participant has a better answer")


@pytest.mark.parametrize(
    ("checker", "language"),
    [
        (SUM_CHECKER, "cpp"),
        ({"type": "program", "code": SUM_CHECKER}, "cpp"),
        ({"type": "program", "code": SUM_CHECKER, "language": "GNU C++20"}, "cpp20"),
        ("def check(input, output, answer):\n    return True\n", "python"),
        ({"type": "program", "code": "import sys\nsys.exit(1)"}, "python"),
    ],
)
def test_the_language_of_a_checker_is_read_off_its_source_where_it_is_not_stated(
    checker: object, language: str
) -> None:
    tests: Any = read_suite({"tests": {**SUMS, "checker": checker}}).tests
    assert tests.checker["language"] == language
    assert tests.checker["files"] == SUMS["files"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": ["params.h"]}, "tests.files must be an object of at most 32 files"),
        ({"files": {"../params.h": ""}}, "tests.files must be an object whose keys are names of files"),
        ({"files": {"params.h": 5}}, "tests.files.params.h must be text"),
        ({"checker": {"type": "program", "code": "x", "files": {"/etc/x": ""}}}, "tests.checker.files must be"),
        ({"checker": {"type": "program", "code": "x", "full_points": 0}}, "tests.checker.full_points must be"),
        ({"interactor": 5}, "tests.interactor must be a program"),
        ({"interactor": {"language": "cpp"}}, "tests.interactor.code is missing"),
        ({"type": "interactive"}, "tests.interactor is missing"),
    ],
)
def test_a_program_that_cannot_be_read_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSuite) as caught:
        read_suite({"tests": {**SUMS, **change}})
    assert message in str(caught.value)


HEADER = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
const int EXITCODE_AC = 42;
const int EXITCODE_WA = 43;
inline void wrong(const char* text, const char* folder) {
    std::ofstream((std::string(folder) + "judgemessage.txt").c_str()) << text;
    std::exit(EXITCODE_WA);
}
"""
BODY = """int main(int argc, char** argv) {
    std::ifstream in(argv[1]), answer(argv[2]);
    long n, a, b, best;
    in >> n;
    answer >> best;
    if (argc < 4 || !in || !answer) std::exit(44);
    if (!(std::cin >> a >> b)) wrong("two numbers", argv[3]);
    if (a * b != n) wrong("the product", argv[3]);
    std::exit(EXITCODE_AC);
}
"""
PYTHON_VALIDATOR = """import sys
def check(text, n):
    a, b = map(int, text.split())
    return a * b == n
n = int(open(sys.argv[1]).read())
open(sys.argv[3] + "note.txt", "w").write("seen")
sys.exit(42 if check(sys.stdin.read(), n) else 43)
"""
VALIDATORS = {
    "one file": HEADER + BODY,
    "a header": {"type": "program", "code": f'#include "validate.h"\n{BODY}', "files": {"validate.h": HEADER}},
    "in Python": {"type": "program", "code": PYTHON_VALIDATOR, "language": "python"},
}


@NEEDS_CPP
@pytest.mark.parametrize("name", VALIDATORS)
def test_validators_of_problem_packages(name: str) -> None:
    tests = {"type": "stdio", "cases": [{"input": "12\n", "output": "3 4\n"}], "checker": VALIDATORS[name]}
    outputs = {"3 4": 1, "4 3": 1, "2 6\n": 1, "12 1": 1, "-3 -4": 1, "3 5": 0, "0 0": 0, "": 0, "x y": 0, "3": 0}
    for output, score in outputs.items():
        verdict = CodeVerifier()(f"```python\nprint({output!r})\n```", info={"tests": tests})
        assert verdict.score == score, (output, verdict)


PLAIN_CHECKER = """import sys
CASES = [41, 42, 43]
LIMIT, right = 43, 42
output, answer = (open(name).read().split() for name in sys.argv[2:4])
if len(output) in (42, 43):
    sys.exit(1)
sys.exit(output != answer)
"""
CALLED_CHECKER = "SPECIAL = 42, 43\ndef check(input, output, answer):\n    return output.split() == answer.split()\n"


@pytest.mark.parametrize("code", [PLAIN_CHECKER, CALLED_CHECKER])
def test_a_checker_with_the_numbers_42_and_43_is_no_validator(code: str) -> None:
    tests = {"type": "stdio", "cases": [{"input": "", "output": "7"}], "checker": {"type": "program", "code": code}}
    for output, score in (("7", 1), ("8", 0)):
        assert CodeVerifier()(f"```python\nprint({output})\n```", info={"tests": tests}).score == score


@pytest.mark.parametrize(
    "end",
    [
        "AC, WA = 42, 43\nsys.exit(AC if right else WA)",
        "if right:\n    os._exit(42)\nquit(43)",
        "kAccepted = 42\nkWrongAnswer = 43\nsys.exit(kAccepted if right else kWrongAnswer)",
        "sys.exit([43, 42][right])",
    ],
)
def test_the_exit_codes_of_validators_are_written_in_many_ways(end: str) -> None:
    code = f"import os, sys\nright = sys.stdin.read().split() == open(sys.argv[2]).read().split()\n{end}\n"
    tests = {"type": "stdio", "cases": [{"input": "", "output": "7"}], "checker": {"type": "program", "code": code}}
    for program, score in (("print(7)", 1), ("print(42)", 0), ("import os; os._exit(42)", 0)):
        assert CodeVerifier()(f"```python\n{program}\n```", info={"tests": tests}).score == score


@NEEDS_CPP
def test_a_validator_that_finds_the_jury_at_fault_gives_no_score() -> None:
    tests = {"type": "stdio", "cases": [{"input": "", "output": "3 4\n"}], "checker": HEADER + BODY}
    assert CodeVerifier()("```python\nprint(3, 4)\n```", info={"tests": tests}).score is None


def test_interactive_validators_of_problem_packages() -> None:
    validator = """import sys
n = int(open(sys.argv[1]).read())
for _ in range(9):
    guess = int(sys.stdin.readline())
    print("correct" if guess == n else "higher" if guess < n else "lower", flush=True)
    if guess == n:
        sys.exit(42)
sys.exit(43)
"""
    interactor = {"type": "program", "code": validator, "language": "python"}
    tests = {"type": "interactive", "cases": [{"input": "77\n"}], "interactor": interactor}
    search = """low, high = 1, STEP
while True:
    middle = (low + high) // 2
    print(middle, flush=True)
    said = input()
    if said == "correct":
        break
    low, high = (middle + 1, high) if said == "higher" else (low, middle - 1)
"""
    for step, score in (("100", 1), ("10**6", 0)):
        verdict = CodeVerifier()(f"```python\n{search.replace('STEP', step)}```", info={"tests": tests})
        assert verdict.score == score, verdict

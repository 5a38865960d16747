"""Tests in other languages that state values: right programs are paid, whatever they hide from the tests is not."""

import tomllib
from pathlib import Path

import pytest
from sandboxes import box_of

from truegold.verifiers.code.verifier import CodeVerifier
from truegold.verifiers.sandbox import Tier
from truegold.verifiers.sandbox.local import installed_languages
from truegold.verifiers.verdict import Verdict

PROGRAMS = tomllib.loads(Path(__file__).with_name("stated_programs.toml").read_text())
TESTS, RIGHT, HOSTILE = PROGRAMS["tests"], PROGRAMS["right"], PROGRAMS["hostile"]


def judge(name: str, program: str) -> Verdict:
    box_of(Tier.FULL)
    language, code = TESTS[name]["language"], TESTS[name]["code"]
    if language not in installed_languages():
        pytest.skip(f"there is no toolchain for {language} on this machine")
    info = {"tests": {"type": "inserted", "code": code}, "language": language}
    return CodeVerifier()(f"~~~~{language}\n{program}\n~~~~", info=info)


@pytest.mark.parametrize("name", TESTS)
def test_a_right_program_is_judged_by_the_values_that_it_states(name: str) -> None:
    verdict = judge(name, RIGHT[TESTS[name]["language"]])
    assert verdict.score == 1.0, verdict
    assert (verdict.evidence["method"], verdict.evidence["isolation"]) == ("lowered", "apart")


@pytest.mark.parametrize(
    ("name", "program"), [(name, program) for name in TESTS for program in HOSTILE[TESTS[name]["language"]]]
)
def test_a_program_that_deceives_its_tests_is_not_paid(name: str, program: str) -> None:
    verdict = judge(name, program)
    assert verdict.score == 0.0, verdict

"""Feedback says how a verdict came about, in the row's language, and never what the gold is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import truegold.verifiers as tv
from truegold.synth.config import Language
from truegold.synth.synthesis import PHRASES, describe_verdict, kind_of


def feedback_on(response: str, gold: str | None, language: Language = "en", **options: Any) -> str:
    """Judge a response, and return what it is told."""
    verdict = tv.verify(response, gold=gold, **options)
    is_program = options.get("verifier") == "code"
    return describe_verdict(
        str(verdict.reason), verdict.extracted, verdict.evidence, language, is_program=is_program, is_cut=False
    )


@pytest.mark.parametrize(
    ("response", "gold", "expected"),
    [
        ("so \\boxed{12}", "15", "Its final answer was read as 12, which is not right."),
        ("I think so.", "15", "It commits to no final answer."),
        ("the answer is 5 or 6", "6", "It offers several answers (5 or 6) where one is asked for."),
        (
            "so \\boxed{(1,2]}",
            "3",
            "read as (1, 2], which is not right. It is a tuple or an interval, where a whole number",
        ),
        ("so \\boxed{1/3}", "3", "Its final answer was read as 1/3, which is not right."),
    ],
)
def test_a_verdict_is_told_in_a_sentence(response: str, gold: str, expected: str) -> None:
    assert expected in feedback_on(response, gold)


def test_the_same_in_chinese() -> None:
    assert feedback_on("so \\boxed{12}", "15", "zh") == "它的最终答案被读作 12，这不正确。"
    assert feedback_on("I think so.", "15", "zh") == "它没有给出最终答案。"


def test_a_completion_that_was_cut_is_told_to_be_shorter() -> None:
    assert "shorter" in describe_verdict("no_answer", None, {}, "en", is_program=False, is_cut=True)
    # One that has an answer all the same is told about that.
    assert "read as 12" in describe_verdict("mismatch", "12", {"answer": "12"}, "en", is_program=False, is_cut=True)


def test_a_program_is_told_the_test_that_fails_with_expectation_and_result() -> None:
    cases = {"type": "stdio", "cases": [{"input": "1\n", "output": "2\n"}]}
    told = feedback_on("```python\nprint(int(input())+2)\n```", None, verifier="code", tests=cases)
    assert told.splitlines()[:2] == ["It passes 0 of 1 tests.", "This one fails:"]
    assert "input: 1" in told and "expected: 2" in told and "got: 3" in told


def test_a_verifier_of_ones_own_that_hands_out_the_gold_is_not_repeated() -> None:
    evidence = {
        "gold": "4711",
        "expected": "4711",
        "error": "the gold is 4711",
        "answer": "12",
        "failed": {"got": "4711"},
    }
    for reason in ("mismatch", "partial", "no_answer", "hedged", "unread", "declined"):
        told = describe_verdict(reason, "12", evidence, "en", is_program=False, is_cut=False)
        assert "4711" not in told, told


@given(st.integers(100, 10**6), st.integers(0, 99))
def test_the_gold_is_never_told(gold: int, answer: int) -> None:
    for language in PHRASES:
        assert str(gold) not in feedback_on(f"so \\boxed{{{answer}}}", str(gold), language)


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        ("whole", ["12", "-1,000"]),
        ("number", ["1/2", "3.5%", "\\frac{1}{2}"]),
        ("tuple", ["(1, 2]"]),
        ("set", ["\\{1, 2\\}"]),
        ("choice", ["B"]),
        ("expression", ["x^2+1", "\\sin x", "2\\sqrt{3}"]),
        ("text", ["the blue one, since", "星期二"]),
    ],
)
def test_kinds_of_answers_are_told_by_their_look(kind: str, answers: list[str]) -> None:
    assert {kind_of(answer) for answer in answers} == {kind}

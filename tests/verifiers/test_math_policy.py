"""Each policy of the math verifier: its default, and what its switch does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tables import rows

from truegold.verifiers import ConfigError, MathVerifier, Reason, Verdict, equivalent
from truegold.verifiers.math import Policy
from truegold.verifiers.math.choice_letters import choice_letter

CASES = [
    ("21.93", "21\\frac{13}{14}", {}, True),
    ("21.93", "21\\frac{13}{14}", {"rounding": False}, False),
    ("6.01", "6\\frac{1}{64}", {}, True),
    ("0.5", "0.48", {}, False),
    ("326.5", "326.53", {}, False),
    ("\\frac{1}{3}", "0.333", {}, False),
    ("\\frac{1}{3}", "0.333", {"decimals": 3}, True),
    ("\\frac{1}{3}", "0.333333", {"answer_digits": 6}, True),
    ("\\frac{1}{3}", "0.333333", {"answer_digits": 7}, False),
    ("\\sqrt{2}", "1.4142", {"answer_digits": 5}, True),
    ("1.234", "1,234", {}, False),
    ("1.234", "1,234", {"comma": "answers"}, True),
    ("1,234", "1.234", {"comma": "decimal"}, True),
    ("1,234", "1234", {"comma": "decimal"}, False),
    ("100", "100.5", {}, False),
    ("100", "100.5", {"tolerance": 0.01}, True),
    ("5 cm", "5", {}, True),
    ("5 cm", "5", {"units": "strict"}, False),
    ("5 cm", "50 mm", {}, True),
    ("5 cm", "5 m", {}, False),
    ("5 cm", "5 m", {"units": "ignore"}, True),
    ("50", "50%", {}, False),
    ("50", "50%", {"percent": "either"}, True),
    ("0.5", "50", {"percent": "either"}, False),
    ("50%", "50", {}, True),
    ("0.5", "50%", {}, True),
    ("\\frac{\\pi}{6}", "30^\\circ", {}, True),
    ("\\frac{\\pi}{6}", "30^\\circ", {"degrees": "strict"}, False),
    ("1, 2", "2, 1", {}, True),
    ("1, 2", "2, 1", {"order": "ordered"}, False),
    ("(1, 2)", "(2, 1)", {}, False),
    ("5:50", "1:10", {"colon": "ratio"}, True),
    ("5:50", "1:10", {"colon": "time"}, False),
    ("5:50", "17:50", {}, False),
    ("5:50", "5:50 p.m.", {}, True),
    ("AB", "BA", {}, True),
    ("AB", "BA", {"factors": "ordered"}, False),
    ("AB^{-1}", "B^{-1}A", {}, False),
    ("AB^{-1}", "B^{-1}A", {"factors": "commute"}, True),
    ("5T", "5", {}, False),
    ("5T", "5", {"letters": "units"}, True),
    ("5 T", "5", {"letters": "variables"}, False),
    ("(1, 2)", "(2, 1)", {"order": "unordered"}, True),
    ("x^2+C", "x^2+K", {}, True),
    ("x^2+C", "x^2", {}, False),
    ("x^2+C", "x^2", {"constant": "optional"}, True),
    ("k\\pi, k\\in\\mathbb{Z}", "n\\pi, n\\in\\mathbb{Z}", {}, True),
    ("k\\pi, k\\in\\mathbb{Z}", "n\\pi, n\\in\\mathbb{Z}", {"parameters": "strict"}, False),
    ("2516_8", "2516", {}, True),
    ("2516_8", "2516", {"base": "required"}, False),
    ("2516_8", "1358", {}, False),
    ("2516_8", "1358", {"base": "value"}, True),
    ("\\log 2", "\\log_{10} 2", {}, True),
    ("\\log 2", "\\log_{10} 2", {"log": "natural"}, False),
    ("\\log 2", "\\ln 2", {"log": "ten"}, False),
    ("\\frac{7}{3}", "2\\frac{1}{3}", {}, True),
    ("\\frac{7}{3}", "2\\frac{1}{3}", {"mixed": "product"}, False),
    ("\\frac{2}{3}", "2\\frac{1}{3}", {"mixed": "product"}, True),
    ("\\sqrt{m^2+p^2}", "m\\sqrt{1+\\frac{p^2}{m^2}}", {}, False),
    ("\\sqrt{m^2+p^2}", "m\\sqrt{1+\\frac{p^2}{m^2}}", {"signs": "positive"}, True),
    ("\\sqrt{x^2}", "x", {"signs": "positive"}, False),
    ("B", "\\frac{1}{2}", {"options": ["$1$", "$0.5$", "$2$"]}, True),
    ("B", "2", {"options": ["$1$", "$0.5$", "$2$"]}, False),
]  # fmt: skip


@rows("gold, answer, policy, same", CASES)
def test_policy(gold: str, answer: str, policy: dict[str, Any], same: bool) -> None:
    assert (equivalent(answer, gold=gold, **policy).score == 1.0) == same
    verdict = MathVerifier()(f"\\boxed{{{answer}}}", gold, info={"percent": "value", **policy})
    assert (verdict.score == 1.0) == same


MEASURED = [
    (*line[2:].split(" | "), line[0] == "=")
    for line in (Path(__file__).parent / "measured_golds.txt").read_text(encoding="utf8").splitlines()[1:]
]


@rows("gold, answer, same", MEASURED)
def test_measured_numbers_agree_in_their_figures(gold: str, answer: str, same: bool) -> None:
    assert (equivalent(answer, gold=gold, rounding="measured").score == 1.0) == same


def test_by_default_no_measured_number_is_paid_more_loosely() -> None:
    paid = [answer for gold, answer, _ in MEASURED if equivalent(answer, gold=gold).score == 1.0]
    assert paid == ["0.0015 mol", "2570", "12/25"]


def test_every_policy_has_a_case_for_its_switch() -> None:
    assert {name for _, _, policy, _ in CASES for name in policy} == set(Policy.__dataclass_fields__)


def test_a_percent_sign_in_a_response_is_a_unit_unless_the_problem_speaks_of_no_percentage() -> None:
    verifier = MathVerifier()
    assert verifier("So it is \\boxed{25\\%}.", "25").score == 1.0
    assert verifier("So it is \\boxed{25\\%}.", "25", problem="What percent of them are red?").score == 1.0
    assert verifier("So it is \\boxed{25\\%}.", "25", problem="How many of them are red?").score == 0.0


def test_a_wrong_option_is_named_with_what_it_may_be() -> None:
    with pytest.raises(ConfigError, match=r"no option 'unit' \(did you mean 'units'\?\)"):
        equivalent("5", gold="5", unit="cm")
    with pytest.raises(ConfigError, match="units is 'lenient', expected one of convert, strict, ignore"):
        equivalent("5", gold="5", units="lenient")
    verdict = MathVerifier()("\\boxed{5}", "5", info={"decimals": -1})
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)


@pytest.mark.parametrize("call", [lambda: equivalent("1/2", "0.5"), lambda: equivalent("0.5")])
def test_gold_is_taken_by_keyword_only(call: Callable[[], Verdict]) -> None:
    with pytest.raises(ConfigError, match=r"Type equivalent\(answer, gold=gold\)\.$"):
        call()


def test_an_empty_gold_names_no_choice():
    assert choice_letter("") is None

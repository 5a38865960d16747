"""One number against one number."""

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.verifiers import NumericVerifier, Reason, gold_response, resolve
from truegold.verifiers.answers.numeric import MAX_NUMBER_CHARS, read_number

judge = NumericVerifier()


@rows(
    "text, value",
    [
        ("0.5", "1/2"),
        (".5", "1/2"),
        ("5.", "5"),
        ("-3", "-3"),
        ("− 3", "-3"),
        ("２５", "25"),
        ("1/2", "1/2"),
        ("1/-2", "-1/2"),
        (r"\frac{1}{2}", "1/2"),
        (r"\dfrac{-1}{2}", "-1/2"),
        (r"\frac12", "1/2"),
        ("2 1/2", "5/2"),
        (r"-2\frac{1}{2}", "-5/2"),
        ("50%", "1/2"),
        (r"50\%", "1/2"),
        ("50 percent", "1/2"),
        ("1,234.5", "2469/2"),
        ("1{,}234", "1234"),
        (r"12\,345\,678", "12345678"),
        ("$1,234.50", "2469/2"),
        (r"$\$5$", "5"),
        (r"\(5\)", "5"),
        ("5e-1", "1/2"),
        ("1.2e5", "120000"),
        (r"1.2\times 10^{5}", "120000"),
        ("1.2×10^5", "120000"),
        ("x = 5", "5"),
        ("≈ 3.1", "31/10"),
        (r"\text{7}", "7"),
        ("**7**", "7"),
    ],
)
def test_numbers_are_read_exactly(text, value):
    assert read_number(text, []) == Fraction(value)


@rows(
    "text",
    [
        *[
            "",
            "-",
            "five",
            "x+1",
            "5 km",
            "5²",
            "²",
            "2^3",
            r"\sqrt{4}",
            "10-3",
            "3,5",
            "1,2345",
            "1 234",
            "--5",
            "5/0",
        ],
        *[r"2\frac{5}{3}", "5 or 6", "5, 6", "5 ± 1", "{5, 6}", "[4, 6]", "1e999999999", "10^999999999", "nan", "inf"],
        "9" * (MAX_NUMBER_CHARS + 1),
    ],
)
def test_what_is_not_one_number_is_not_read(text):
    assert read_number(text, []) is None


@given(st.fractions())
def test_every_fraction_and_its_respellings_are_read_back(value):
    above, below = value.numerator, value.denominator
    assert read_number(f"{above}/{below}", []) == value
    assert read_number(f"\\frac{{{above}}}{{{below}}}", []) == value
    assert read_number(f"{above:,}", []) == above
    assert read_number(f"{above}%", []) == Fraction(above, 100)


@given(st.text(max_size=60))
def test_any_text_gets_a_verdict_without_an_error(text):
    assert judge(f"\\boxed{{{text}}}", "5").score in (0.0, 1.0)
    assert judge("5", text).score in (0.0, 1.0, None)


@rows(
    "answer, gold, info, score",
    [
        ("3.14", "3.14159", {}, 0.0),
        ("3.14", "3.14159", {"decimals": 2}, 1.0),
        ("3.15", "3.14159", {"decimals": 2}, 0.0),
        ("9.8", "9.81", {"rel_tol": 0.01}, 1.0),
        ("-9.8", "-9.81", {"rel_tol": 0.01}, 1.0),
        ("9.7", "9.81", {"rel_tol": 0.01}, 0.0),
        ("0.001", "0", {"rel_tol": 0.5}, 0.0),
        ("5.1", "5", {"abs_tol": 0.1}, 1.0),
        ("5.1000000001", "5", {"abs_tol": 0.1}, 0.0),
        ("5.3", "5", {"abs_tol": 0.1, "rel_tol": 0.1}, 1.0),
        ("1e-30", "2e-30", {}, 0.0),
    ],
)
def test_tolerances_are_exact_and_the_widest_counts(answer, gold, info, score):
    assert judge(f"\\boxed{{{answer}}}", gold, info=info).score == score


def test_a_unit_is_left_out_of_account_only_where_info_names_it():
    assert judge("\\boxed{5 km}", "5").reason is Reason.UNREAD
    for answer in ("5 km", "5\\text{ km}", "5\\ \\mathrm{km}", "5km", "5"):
        assert judge(f"\\boxed{{{answer}}}", "5", info={"unit": ["km", "kilometres"]}).passed, answer
    assert judge("\\boxed{5 m}", "5", info={"unit": "km"}).score == 0.0
    assert judge("\\boxed{50\\%}", "50", info={"unit": "%"}).passed
    assert judge("\\boxed{€5}", "5 €", info={"unit": "€"}).passed


@pytest.mark.parametrize("answer", ["5 or 6", "5, 6", "5 ± 1", "5 \\pm 1", "5 and 6", "5-6", "5或6"])
def test_several_numbers_are_hedging(answer):
    verdict = judge(f"\\boxed{{{answer}}}", "5")
    assert (verdict.score, verdict.reason) == (0.0, Reason.HEDGED)


@rows(
    "gold, info, reason",
    [
        (None, {}, Reason.GOLD_MISSING),
        ("  ", {}, Reason.GOLD_MISSING),
        ("five", {}, Reason.GOLD_UNPARSED),
        ("5 or 6", {}, Reason.GOLD_UNPARSED),
        ("5", {"abs_tol": -1}, Reason.VERIFIER_ERROR),
        ("5", {"abs_tol": float("nan")}, Reason.VERIFIER_ERROR),
        ("5", {"rel_tol": "1%"}, Reason.VERIFIER_ERROR),
        ("5", {"rel_tol": True}, Reason.VERIFIER_ERROR),
        ("5", {"rel_tol": 10**400}, Reason.VERIFIER_ERROR),
        ("5", {"decimals": 1.5}, Reason.VERIFIER_ERROR),
        ("5", {"unit": 3}, Reason.VERIFIER_ERROR),
    ],
)
def test_what_cannot_be_judged_has_no_score(gold, info, reason):
    verdict = judge("\\boxed{5}", gold, info=info)
    assert (verdict.score, verdict.reason) == (None, reason)


def test_no_answer_earns_nothing():
    assert judge("I am not sure about any of this.", "5").reason is Reason.NO_ANSWER


def test_it_is_a_built_in_that_travels_and_accepts_its_gold():
    copy = pickle.loads(pickle.dumps(resolve("numeric")))
    assert copy == judge
    for gold in ("1/2", "1,234", "50%"):
        assert judge(gold_response(judge, gold), gold).passed

"""Golds with decimal commas: how they are told from lists and thousands, and which answers they accept."""

from __future__ import annotations

import pytest

import truegold.verifiers as tv
from truegold.verifiers.decimal_commas import comma_use, with_points


@pytest.mark.parametrize(
    ("written", "pointed"),
    [
        ("2,25", "2.25"),
        ("1.234,50 €", "1234.50 €"),
        ("1 234,5", "1234.5"),
        ("1.234.567", "1234567"),
        ("2,125", "2.125"),
        ("0,333", "0.333"),
        ("-3,5", "-3.5"),
        ("2{,}25", "2.25"),
        ("x=12,5\\%", "x=12.5\\%"),
        ("\\frac{2,5}{3}", "\\frac{2.5}{3}"),
        ("2,5; 3,75", "2.5; 3.75"),
        ("(2,5; 3,5)", "(2.5; 3.5)"),
        *((text, text) for text in ("(2,5)", "1,2,3", "1, 2 und 3", "12.05.2024", "3.14", "0.333", "7", "f(x)")),
    ],
)
def test_a_decimal_comma_becomes_a_point_and_a_list_stays(written: str, pointed: str) -> None:
    assert with_points(written) == pointed


@pytest.mark.parametrize(
    ("golds", "language", "use"),
    [
        (["3,5", "12,25", "7", "0,5"], "de", "decimal"),
        (["1.234,50", "12,25", "1.000", "0,125"], "fr", "decimal"),
        (["2,5 kg", "-3,5 m", "0,75 l"], "pl", "decimal"),
        (["1,234", "2,500", "7,125"], "de", "unclear"),
        (["1,234", "2,500", "7,125"], "en", None),
        (["2,3", "-1,4", "0,7"], "en", "unclear"),
        (["2,3", "-1,4", "0,7", "1,2,3"], "de", None),
        (["2,3", "-1,4", "0,7", "2, 5"], "de", None),
        (["2,3", "-1,4", "0,7", "2.5"], "de", None),
        (["(2,3)", "(1,4)", "(0,7)"], "de", None),
        (["3,5", "12", "7"], "de", None),
        (["1.250", "5.200", "870", "2.170"], "de", "unclear"),
        (["1.250", "5.200", "870", "2,5"], "de", "unclear"),
        (["1.250", "5.200", "870", "2.170"], "en", None),
        (["1.250", "5.200", "0.5", "2.170"], "de", None),
    ],
)
def test_decimals_are_told_by_golds_and_language_together(golds: list[str], language: str, use: str | None) -> None:
    assert comma_use(golds, language) == use


@pytest.mark.parametrize(
    ("problem", "use"),
    [
        ("Wie viele Schrauben sind das in 1.250 Kisten?", "decimal"),
        ("Was kosten sie zu je 0,75 Euro?", "decimal"),
        ("Was kosten sie zu je 0.75 Euro?", "unclear"),
        ("Was kosten sie am 12.05. und am 13.05.2024?", "unclear"),
    ],
)
def test_points_before_thousands_are_told_by_the_problems(problem: str, use: str) -> None:
    assert comma_use(["1.250", "5.200", "870", "2.170"], "de", [problem] * 4) == use


@pytest.mark.parametrize("option", ["decimal", "answers"])
@pytest.mark.parametrize("answer", ["2,125", "2.125", "2{,}125", "x = 2,125", "\\frac{17}{8}"])
def test_both_spellings_answer(answer: str, option: str) -> None:
    gold = "2,125" if option == "decimal" else "2.125"
    assert tv.verify(f"Also \\boxed{{{answer}}}", gold=gold, comma=option).passed


def test_another_number_does_not_answer() -> None:
    for answer in ("2125", "2,15", "2; 125", "21,25"):
        assert not tv.verify(f"\\boxed{{{answer}}}", gold="2,125", comma="decimal").passed
    assert tv.verify("Das macht 1.234 Euro.", gold="1234", comma="answers").passed
    assert not tv.verify("Das macht 1.234 Euro.", gold="1234").passed

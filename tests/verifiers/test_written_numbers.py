"""Numbers in digits, English words and Chinese numerals, by hand."""

from fractions import Fraction

import pytest
from tables import rows

import truegold.verifiers as tv
from truegold.verifiers.written_numbers import chinese_decimal, chinese_integer, number_in_words, plain_number, read_run


@rows(
    "text, value",
    [
        ("1,234.5", Fraction(2469, 2)),
        ("-3/4", Fraction(-3, 4)),
        (r"2\frac{1}{3}", Fraction(7, 3)),
        (r"2\frac{5}{3}", None),
        ("2 1/2", Fraction(5, 2)),
        ("5e-3", Fraction(1, 200)),
        (r"3 \times 10^8", Fraction(300_000_000)),
        ("1e999999999", None),
        ("3/0", None),
        ("12,34", None),
        ("three", None),
    ],
)
def test_digits_have_their_exact_value(text: str, value: Fraction | None) -> None:
    assert plain_number(text) == value


@rows(
    "text, value",
    [
        ("three thousand, two hundred and five", 3205),
        ("two thousand twenty six", 2026),
        ("twenty-one", 21),
        ("two and a half", Fraction(5, 2)),
        ("seven thirteenths", Fraction(7, 13)),
        ("three fortieths", Fraction(3, 40)),
        ("half a dozen", 6),
        ("twenty-five percent", Fraction(1, 4)),
        ("two point two five", Fraction(9, 4)),
        ("four five", None),
        ("four five hundred", None),
        ("nineteen eighty-four", None),
    ],
)
def test_words_are_one_number_or_none(text: str, value: Fraction | None) -> None:
    assert number_in_words(text) == value


def test_a_run_of_words_may_have_several_numbers_and_ordinals() -> None:
    assert read_run("four five") == [(4, False), (5, False)]
    assert read_run("third") == [(3, True)]


def test_chinese_numerals_with_and_without_scales() -> None:
    assert chinese_integer("一万二千零三十四") == 12034
    assert chinese_integer("二〇二一") == 2021
    assert chinese_integer("七八", positional=False) == 8
    assert chinese_integer("十五人") is None
    assert chinese_decimal("三点五") == Fraction(7, 2)
    assert chinese_decimal("三点") is None


@pytest.mark.parametrize(("answer", "gold"), [("four five", "9"), ("nineteen eighty-four", "103")])
def test_words_of_several_numbers_are_not_paid_for_their_sum(answer: str, gold: str) -> None:
    assert tv.verify(rf"\boxed{{\text{{{answer}}}}}", gold=gold).score == 0.0

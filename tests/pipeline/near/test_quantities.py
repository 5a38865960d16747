"""Quantities: the same value however it is written, and how sure it is that a problem depends on it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from tables import rows

from truegold.pipeline.text.quantities import chinese_quantities, digits_quantity, words_quantities


@rows(
    "text, value",
    [
        ("1,250.50", "2501/2"),
        ("2 1/2", "5/2"),
        ("3/4", "3/4"),
        ("40%", "40"),
        ("40 percent", "40"),
        ("50%", "1/2"),
        ("25 percent", "1/4"),
        ("2 dozen", "24"),
        ("2 million", "2000000"),
        ("3万", "30000"),
        ("007", "7"),
    ],
)
def test_digits_are_read_by_value(text, value):
    assert [value_text for value_text, _ in digits_quantity(text)] == [value]


@rows(
    "text, values",
    [
        ("twenty-five", ["25"]),
        ("two hundred and five", ["205"]),
        ("one hundred twenty thousand and six", ["120006"]),
        ("four five", ["4", "5"]),
        ("two thirds", ["2/3"]),
        ("three and a half", ["7/2"]),
        ("half a dozen", ["6"]),
        ("two dozen", ["24"]),
        ("half", ["1/2"]),
        ("one fourth", ["1/4"]),
        ("fourth", ["4"]),
        ("twice", ["2"]),
    ],
)
def test_number_words_are_read_by_value(text, values):
    assert [value_text for value_text, _ in words_quantities(text)] == values


@rows(
    "text, values",
    [
        ("二十五", ["25"]),
        ("一万二千", ["12000"]),
        ("三分之二", ["2/3"]),
        ("3分之2", ["2/3"]),
        ("百分之二十", ["20"]),
        ("两", ["2"]),
        ("分之", []),
        ("零分之三", []),
    ],
)
def test_chinese_numerals_are_read_by_value(text, values):
    assert [value_text for value_text, _ in chinese_quantities(text)] == values


def test_a_number_weighs_the_same_however_it_is_written():
    for words, digits in [("two", "2"), ("one", "1"), ("twice", "2"), ("a half", "1/2"), ("a quarter", "25%")]:
        assert words_quantities(words) == digits_quantity(digits)
    assert words_quantities("the fifth"[4:]) == digits_quantity("5th")


def test_what_may_be_a_pronoun_or_a_place_in_a_row_weighs_little():
    weight = {text: words_quantities(text)[0][1] for text in ("one", "two", "fourth", "seven")}
    assert weight["one"] <= weight["fourth"] < weight["two"] < weight["seven"]
    assert digits_quantity("5th")[0][1] < digits_quantity("5")[0][1]


def test_a_string_of_digits_too_long_for_a_quantity_is_compared_as_text():
    digits = "123456789" * 100
    assert digits_quantity(digits) == [(digits[:40], 1.0)]
    assert digits_quantity("1/0") == [("1/0", 1.0)]


ONES = "one two three four five six seven eight nine".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


@given(st.integers(0, 7), st.integers(1, 9), st.booleans())
def test_words_and_digits_of_one_number_agree(tens_index, ones_digit, hyphen):
    words = f"{TENS[tens_index]}{'-' if hyphen else ' '}{ONES[ones_digit - 1]}"
    assert words_quantities(words)[0][0] == digits_quantity(str(10 * (tens_index + 2) + ones_digit))[0][0]


@given(st.text(alphabet="零〇一二两三四五六七八九十百千万亿分之", max_size=12))
def test_no_run_of_numerals_is_an_error(text):
    for value, weight in chinese_quantities(text):
        assert value
        assert 0 < weight <= 1


def in_words(value: int) -> str:
    """The number as a person writes it: 1,205 is "one thousand, two hundred and five"."""
    names = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    names += " seventeen eighteen nineteen"
    if value < 20:
        return names.split()[value]
    if value < 100:
        return TENS[value // 10 - 2] + (f"-{in_words(value % 10)}" if value % 10 else "")
    scale, name = next(pair for pair in ((10**6, "million"), (1000, "thousand"), (100, "hundred")) if value >= pair[0])
    rest = value % scale
    joint = " and " if rest < 100 else ", "
    return f"{in_words(value // scale)} {name}" + (f"{joint}{in_words(rest)}" if rest else "")


@settings(max_examples=examples(300))
@given(st.integers(0, 10**8))
def test_whole_numbers_in_words_are_read_by_value(value):
    assert words_quantities(in_words(value)) == digits_quantity(str(value))


@rows(
    "text, values",
    [
        ("two point five", ["5/2"]),
        ("two and one half", ["5/2"]),
        ("one and three quarters", ["7/4"]),
        ("a third", ["1/3"]),
        ("third of", ["1/3"]),
        ("third", ["3"]),
        ("twenty-first", ["21"]),
        ("seventy percent", ["70"]),
        ("fifty percent", ["1/2"]),
        ("two decades", ["20"]),
        ("two, three and four", ["2", "3", "4"]),
    ],
)
def test_decimals_fractions_ordinals_and_percentages_in_words(text, values):
    assert [value_text for value_text, _ in words_quantities(text)] == values


def test_chinese_decimals_and_percentages_are_read_by_value():
    assert chinese_quantities("三点五") == digits_quantity("3.5")
    assert chinese_quantities("百分之五十") == digits_quantity("50%")

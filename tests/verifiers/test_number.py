"""Reading of numbers: what holds for all of them."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.verifiers.math import equivalent
from truegold.verifiers.math.clean import clean
from truegold.verifiers.math.number import MAX_EXPONENT, NumberTooLarge, read_quantity
from truegold.verifiers.math.units import read_unit

INTEGERS = st.integers(-(10**15), 10**15)
FRACTIONS = st.fractions(max_denominator=10**6)
NUMBER_TEXT = st.one_of(
    INTEGERS.map(str),
    INTEGERS.map(lambda n: f"{n:,}"),
    FRACTIONS.map(str),
    FRACTIONS.map(lambda q: f"\\frac{{{q.numerator}}}{{{q.denominator}}}"),
    st.decimals(-(10**6), 10**6, places=4).map(lambda d: f"{d:f}"),
    st.integers(0, 500).map(lambda n: f"{n}\\%"),
)


def value(text: str) -> Fraction | None:
    quantity = read_quantity(clean(text).text)
    return quantity.value if quantity else None


@given(INTEGERS)
def test_an_integer_is_read_back(n):
    assert value(str(n)) == n


@given(FRACTIONS)
def test_a_fraction_is_read_back_in_both_spellings(q):
    assert value(f"{q.numerator}/{q.denominator}") == q
    assert value(f"$\\dfrac{{{q.numerator}}}{{{q.denominator}}}$") == q


@given(st.decimals(-(10**9), 10**9, places=6))
def test_a_decimal_is_read_exactly(d):
    assert value(f"{d:f}") == Fraction(d)


@given(INTEGERS, st.sampled_from([",", "{,}", "\\,", "\u202f", "\uff0c", ",\\!"]))
def test_group_separators_change_nothing(n, separator):
    assert value(f"{n:,}".replace(",", separator)) == n


@given(st.integers(1, 999), st.integers(1, 998), st.integers(2, 999))
def test_a_mixed_number_is_its_sum(whole, above, below):
    expected = whole + Fraction(above, below) if above < below else None
    assert value(f"{whole}\\frac{{{above}}}{{{below}}}") == expected
    assert value(f"{whole} {above}/{below}") == expected


@given(st.integers(1, 10**6), st.integers(-30, 30))
def test_scientific_notation_is_its_product(n, exponent):
    assert value(f"{n}e{exponent}") == n * Fraction(10) ** exponent
    assert value(f"{n} \\times 10^{{{exponent}}}") == n * Fraction(10) ** exponent


@given(st.decimals(0, 1000, places=2))
def test_a_percentage_is_its_value(d):
    assert value(f"{d:f}\\%") == Fraction(d) / 100


@settings(max_examples=200)
@given(NUMBER_TEXT, NUMBER_TEXT)
def test_comparison_of_numbers_is_symmetric(a, b):
    assert equivalent(a, b).score == equivalent(b, a).score


@given(NUMBER_TEXT)
def test_every_number_equals_itself_in_a_box(text):
    assert equivalent(text, f"\\boxed{{{text}}}").score == 1.0


@given(st.text(max_size=80))
def test_reading_never_raises_but_for_size(text):
    try:
        read_quantity(clean(text).text)
    except NumberTooLarge:
        assert any(c.isdigit() for c in text)


@pytest.mark.parametrize("text", ["2^3", "1 234", "3,5", "10-3", "5x", "1/0", "2\\frac53", "1.2.3", "", "-", "5 dozen"])
def test_what_is_not_one_number_is_not_read(text):
    assert value(text) is None


@pytest.mark.parametrize("text", [f"10^{{{MAX_EXPONENT + 1}}}", "1e-99999", "3\\times10^{123456789}"])
def test_a_power_of_ten_beyond_the_limit_is_refused(text):
    with pytest.raises(NumberTooLarge):
        value(text)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (" cm", "cm"),
        (" square centimeters", "cm^2"),
        (" cm^{2}", "cm^2"),
        (" meters per second", "m/s"),
        (" Dollars", "dollar"),
        ("°", "degree"),
        ("m", None),
        (" cm cm", None),
        (" squared cubes", None),
    ],
)
def test_units_have_one_name_each(text, unit):
    assert read_unit(text, loose=False) == unit


def test_one_letter_is_a_unit_only_when_it_looks_like_one():
    assert read_quantity(clean("5\\text{ m}").text).unit == "m"
    assert read_quantity(clean("5 m").text) is None
    assert read_quantity(clean("5 m").text, loose=True).unit == "m"

"""Close reading of two texts: single letters, order, capitals, ordinals and what is asked for tell problems apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_tests import examples
from tables import rows

from truegold.pipeline.near.differences import Differences, compare_texts, count_changed_words
from truegold.pipeline.near.problem_text import read_text

OTHER_PROBLEMS = [
    ("If $p - q = 8$ and $p + q = 20$, what is $p$?", "If $p - q = 8$ and $p + q = 20$, what is $q$?"),
    ("What is the 12th even integer?", "What is the 305th even integer?"),
    ("Arrange the letters of the word LEVEL. How many ways?", "Arrange the letters of the word QUEEN. How many ways?"),
    ("Put 6 identical coins in 2 distinguishable jars.", "Put 6 distinguishable coins in 2 identical jars."),
    ("Evaluate $96/(6/2)$.", "Evaluate $96/6/2$."),
    ("The red cups are not full but the blue cups are.", "The red cups are full but the blue cups are not."),
    (
        "Find the least $n$ with $3n$ a square and $5n$ a cube.",
        "Find the least $n$ with $5n$ a square and $3n$ a cube.",
    ),
    ("How many sheep are more than 5 years old?", "How many sheep are less than 5 years old?"),
]
SAME_PROBLEMS = [
    ("Find the largest $x$ with $x^2 < 7$.", "Determine the greatest $x$ with $x^2<7$."),
    ("Compute $\\dfrac12 + \\frac{1}{3}$.", "What is $\\frac{1}{2}+\\frac13$?"),
    ("If $a = 3$, what is $2a$?", "What is $2a$, if $a = 3$?"),
    ("Tom has 12 pens. He buys 25 more.", "Tom has twelve pens. He buys twenty-five more."),
    ("What is $x+1$? Express your answer as a decimal.", "What is $x + 1$?"),
    ("Tom pays $5 and gets 3 pens for $2 each.", "Tom pays 5 dollars and gets 3 pens for two dollars each."),
    ("小明有12个苹果，重3千克。", "小明有十二个苹果，重三千克。"),
]


def differences(left: str, right: str) -> Differences:
    return compare_texts(read_text(left), read_text(right))


def are_copies(left: str, right: str) -> bool:
    return count_changed_words(read_text(left), read_text(right)) == 0


@rows("left, right", OTHER_PROBLEMS)
def test_copies_that_say_something_else_are_no_copies(left, right):
    assert not are_copies(left, right)
    assert not are_copies(right, left)


@pytest.mark.parametrize(("left", "right"), SAME_PROBLEMS)
def test_copies_in_another_layout_order_or_with_synonyms_are_copies(left, right):
    assert are_copies(left, right)
    assert are_copies(right, left)


def test_what_is_asked_for_is_told_from_what_is_given():
    area = differences(
        "A triangle has base 6 and height 4. What is its area?",
        "A triangle has base 6 and area 12. What is its height?",
    )
    assert area["asked_terms_exchanged"] and area["asked_given"]
    letters = differences("Find $u$ if $u+v=3$ and $u-v=1$.", "Find $v$ if $u+v=3$ and $u-v=1$.")
    assert letters["asked_symbols_exchanged"] == 1
    chinese = differences("三角形的高是6厘米，求它的面积。", "三角形的面积是6平方厘米，它的高是多少厘米？")
    assert chinese["asked_terms_exchanged"]


def test_terms_of_one_family_contrast_and_units_of_length_do_not():
    assert differences("The sum of two even numbers", "The sum of two odd numbers")["terms_contrasted"] == 1
    assert not are_copies("A rope of 5 meters is cut", "A rope of 5 feet is cut")
    assert not differences("A rope of 5 meters is cut", "A rope of 5 feet is cut")["units_differ"]
    assert differences("长5米，边长是多少米", "长5米，边长是多少分米")["units_differ"]


@settings(max_examples=examples(150))
@given(st.text(alphabet="aA xX12+-=$\\{}()[]., ?的多少米三分之fraclet", max_size=60))
def test_any_text_is_read_and_is_a_copy_of_itself(text):
    same = differences(text, text)
    assert are_copies(text, text)
    assert same["terms_exchanged"] == same["numbers_exchanged"] == same["formulas_exchanged"] == 0

"""What an exact copy is: prompts, tests and golds that count as the same, and those that do not."""

from __future__ import annotations

import polars as pl
import pytest
from tables import rows

from truegold.pipeline.near.exact_copies import tidy_prompts
from truegold.pipeline.near.gold_keys import NO_GOLD, gold_form, gold_keys

SAME_GOLDS = [
    ("42", "42.0"),
    ("1,000", "1000"),
    ("1,234,567.50", "1234567.5"),
    ("+7", "7"),
    ("007", "7"),
    ("-0", "0"),
    ("5.", "5"),
    ("Yes", "yes"),
    ("a  b", "a b"),
    ("(1, 2)", "(1,2)"),
    ("3 x", "3x"),
    ("$1000$", "1,000"),
    ("\\boxed{42}", "42"),
    ("\\frac{1}{2}", "0.5"),
    ("1/2", "0.5"),
    ("15 minutes", "15 Minutes"),
    ("20\\%", "20"),
    ("123456789012345678901234567890", "123456789012345678901234567890.0"),
    ("", None),
    (" \n", None),
]
OTHER_GOLDS = [
    ("42", "-42"),
    ("1,0", "10"),
    ("1.5", "15"),
    ("12,34", "1234"),
    ("1 2", "12"),
    ("5 Million", "5"),
    ("5 km", "5 cm"),
    ("5 \\text{ km}", "5 \\text{ cm}"),
    ("£5", "€5"),
    ("123456789012345678901234567890", "123456789012345678901234567891"),
    ("0.1", "0.10000000000000000000000000001"),
    ("0", None),
]


@rows("left, right", SAME_GOLDS)
def test_golds_that_differ_in_writing_only_are_the_same(left: str, right: str | None) -> None:
    assert gold_form(left) == gold_form(right)


@rows("left, right", OTHER_GOLDS)
def test_golds_that_differ_in_value_are_not_the_same(left: str, right: str | None) -> None:
    assert gold_form(left) != gold_form(right)


def test_golds_of_one_form_have_one_key_and_none_has_a_key_of_its_own() -> None:
    first, second, other, missing = gold_keys(["42", "42.0", "43", None]).tolist()
    assert first == second != other
    assert missing == NO_GOLD < min(first, other)


def keys(*prompts: str, tests: list[str | None] | None = None, case_sensitive: bool = False) -> list[int]:
    series = None if tests is None else pl.Series(tests, dtype=pl.String)
    tidied = tidy_prompts(pl.Series(list(prompts), dtype=pl.String))
    return [int(key) for key in tidied.keys(series, case_sensitive=case_sensitive)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("What is 6*7?", " what\nis  6*7? "),
        ("STRASSE", "straße"),
        ("ΟΔΟΣ", "οδοσ"),
        ("the ﬁrst", "The first"),
        ("a\x1cb", "a b"),
        ("e\u0301", "é"),
    ],
)
def test_prompts_that_differ_in_case_and_spaces_only_have_one_key(left: str, right: str) -> None:
    first, second = keys(left, right)
    assert first == second


def test_prompts_that_differ_have_other_keys() -> None:
    assert len(set(keys("What is 6*7?", "What is 6*7!", "What is 6 *7?"))) == 3
    assert len(set(keys("a", "A", case_sensitive=True))) == 2


def test_tests_are_part_of_the_problem_and_case_counts_beside_them() -> None:
    tests = ["assert f(1)", "assert f(2)", "assert f(1)", None, None]
    codes = keys("Write f.", "Write f.", "Write F.", "Write f.", "WRITE F.", tests=tests)
    assert len(set(codes)) == 4
    assert codes[3] == codes[4]


def test_empty_prompts_are_told() -> None:
    assert tidy_prompts(pl.Series(["", " \n", "a"])).filled.tolist() == [False, False, True]

"""Pairs that went wrong once because a rule reached further than what it was written for."""

from __future__ import annotations

import pytest

from truegold.verifiers import equivalent
from truegold.verifiers.extract.statements import retraction


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("always", "almost always"),
        ("converges", "conditionally converges"),
        ("wins", "nobody wins"),
        ("circles", "concentric circles"),
        ("decreases", "eventually decreases"),
    ],
)
def test_a_word_in_front_is_no_subject(gold: str, answer: str) -> None:
    assert equivalent(answer, gold=gold).score != 1.0


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("\\text{diverges}", "The series diverges."),
        ("y = et", "y = e \\cdot t"),
        ("2et", "2te"),
        ("1, 2", "1 et 2"),
        ("100 and 200", "one hundred and two hundred"),
        ("105", "one hundred and five"),
    ],
)
def test_both_sides_say_the_same(gold: str, answer: str) -> None:
    assert equivalent(answer, gold=gold).score == 1.0


def test_units_that_are_ignored_are_ignored_beside_per_cent_too() -> None:
    assert equivalent("20 m", gold="20\\%", units="ignore").score == 1.0


@pytest.mark.parametrize(
    ("tail", "answer", "value"),
    [
        ("? No: 6. No, 5 is excluded.", "5", "6"),
        ("? No: 12. Rather 12 than 11.", "10", "12"),
        ("? No: 15? No: 16", "14", "16"),
        ("? No: 15. Scratch that.", "14", None),
    ],
)
def test_what_explains_a_correction_takes_nothing_back(tail: str, answer: str, value: str | None) -> None:
    taken_back = retraction(tail, answer)
    assert taken_back is not None
    assert (taken_back or None) == value

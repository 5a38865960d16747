"""Names of persons are placeholders: exchanged alone, they leave the same problem."""

from __future__ import annotations

import pytest

from tests.pipeline.near.test_relation import relation
from truegold.pipeline.near.measures import Relation
from truegold.pipeline.text.person_names import exchange_names

TOM = "Tom has 37 red cars and Peter buys 45 more than Tom. How many cars does Peter buy for his mother?"


def test_exchanged_names_are_exchanged_back_wherever_they_stand():
    ann = TOM.replace("Tom", "Ann").replace("Peter", "Ruth")
    assert exchange_names(TOM, ann) == ann
    possessive = "Tom's car is red. How old is it, if Tom bought it 3 years ago?"
    assert exchange_names(possessive, possessive.replace("Tom", "Ann")) == possessive.replace("Tom", "Ann")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (TOM, TOM),
        (TOM, TOM.replace("Tom", "x").replace("Peter", "Tom").replace("x", "Peter")),
        (TOM, TOM.replace("Tom", "Peter")),
        ("The first terms of the Lucas sequence", "The first terms of the Fibonacci sequence"),
        ("On Monday it has 5 degrees.", "On Friday it has 5 degrees."),
        ("March has 31 days.", "April has 31 days."),
        ("In Celsius it is 20.", "In Fahrenheit it is 20."),
    ],
)
def test_what_is_no_exchange_of_persons_is_left_alone(left: str, right: str):
    assert exchange_names(left, right) is None


def test_a_copy_with_other_names_is_the_same_problem_and_one_with_other_facts_is_not():
    ann = TOM.replace("Tom", "Ann").replace("Peter", "Ruth").replace("his", "her")
    assert relation(TOM, ann) == Relation.SAME_PROBLEM
    assert relation(TOM, ann.replace("more", "fewer")) != Relation.SAME_PROBLEM
    assert relation(TOM, ann.replace("does Ruth buy", "does Ann buy")) != Relation.SAME_PROBLEM

"""Which way amounts go in two stories."""

import pytest
from tables import rows

from truegold.pipeline.near.directions import directions_differ, read_directions


@rows(
    "text, expected",
    [
        ("A shop has 16 coins. It sells 10 and loses 4.", {"16": 0, "10": -1, "4": -1}),
        ("She starts with 1,200 stamps, then buys 30 more and gives away 5.", {"1200": 0, "30": 1, "5": -1}),
        ("He gets rid of 5 and takes out 3.", {"5": -1, "3": -1}),
        ("They won 8 more games than they lost.", {"8": 1}),
        ("He buys apples for $4.", {}),
        ("She gives her sister 4.", {}),
        ("He bought 3 pens and sold 3 pens.", {}),
        ("小明又买了3个，吃了2个", {"3": 1, "2": -1}),
        ("Find x.", {}),
    ],
)
def test_amounts_have_the_direction_of_their_verb(text, expected):
    assert read_directions(text) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("He has 9. He sells 4.", "He has 9. He buys 4.", True),
        ("He has 9. He buys 4.", "She has 9. She finds 4.", False),
        ("He has 9. He buys 4.", "He has 4. He buys 9.", True),
        ("He collects 9. He buys 4.", "He has 9. He buys 4.", False),
        ("He has 9.", "x + 9", False),
    ],
)
def test_stories_differ_where_an_amount_goes_the_other_way(left, right, expected):
    assert directions_differ(read_directions(left), read_directions(right)) is expected
    assert directions_differ(read_directions(right), read_directions(left)) is expected

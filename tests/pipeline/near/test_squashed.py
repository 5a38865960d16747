"""Texts that hold an item letter for letter, and slips that are mended; what tells two problems apart stays."""

from __future__ import annotations

import polars as pl
from tables import rows

from truegold.pipeline.near.slips import SlipMender
from truegold.pipeline.near.squashed import SquashedItems, SquashedKeys, squash

ITEM = "A triangle has sides of 3 cm, 4 cm and 2.5 cm. What is the value of x, its two-digit area?"


def squashed(text: str) -> str:
    return squash(pl.Series([text], dtype=pl.String)).decode().removesuffix("\0")


def held(items: list[str], texts: list[str]) -> list[tuple[int, int]]:
    """The pairs of a text and an item, both from 0."""
    index = SquashedItems()
    index.learn(pl.Series(items, dtype=pl.String))
    for text in texts:
        index.look_up(pl.Series([text], dtype=pl.String))
    found_texts, found_items = index.pairs()
    return [(text - len(items), item) for text, item in zip(found_texts.tolist(), found_items.tolist(), strict=True)]


@rows(
    "text",
    [
        ITEM.upper(),
        ITEM.replace(" ", "\n"),
        ITEM.replace("triangle", "tri-\nangle"),
        ITEM.replace("triangle", "tri\nangle").replace("value", "val ue"),
        ITEM.replace("value", "val\u00adu\u200be"),
        ITEM.replace("a", "а").replace("o", "о"),
        ITEM.replace("T", "Τ").replace("a", "α"),
        ITEM.replace("sides", "<mark>sides</mark>").replace(" ", "&nbsp;"),
        ITEM.replace("What", "&#87;hat"),
        ITEM.replace("sides", "**sides**").replace("two-digit", "two digit"),
        ITEM.replace("two-digit", "two\u2010digit").replace(",", " ;").replace("cm.", "cm!"),
        "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else "\u3000" for char in ITEM),
        ITEM.replace("value", "válùe"),
        "".join(chr(0x1D41A + ord(char) - 97) if char.islower() else char for char in ITEM),
        f"Solve this. {ITEM} Think well.",
    ],
)
def test_layout_and_look_alike_letters_make_no_difference(text):
    assert held([ITEM], [text]) == [(0, 0)]


@rows(
    "left, right",
    [
        ("1 2", "12"),
        ("2.5", "25"),
        ("2.5", "2 5"),
        ("x + 1", "x - 1"),
        ("x = 1", "x ≠ 1"),
        ("x ≤ 1", "x ≥ 1"),
        ("|x|", "x"),
        ("5%", "5"),
        ("x^2", "x_2"),
        ("√2", "2"),
        ("3/4", "34"),
        ("-5", "5"),
        ("$1,0$", "10"),
        ("β", "b"),
        ("ж", "x"),
    ],
)
def test_numbers_and_signs_are_kept_apart(left, right):
    assert squashed(left) != squashed(right)


@rows(
    "left, right",
    [
        ("1,000", "1000"),
        ("A two-digit number", "a two digit number"),
        ("10-year-old", "10 year old"),
        ("$f(x)$", "f(x)"),
        ("Привет, мир", "привет мир"),
        ("小明 有3个", "小明有 3 个"),
        ("x – 1", "x-1"),
        ("ﬁnd", "find"),
    ],
)
def test_layout_is_none_of_a_text(left, right):
    assert squashed(left) == squashed(right)


def test_a_word_or_number_that_goes_on_is_another_one():
    item = "There are many things in this world. Find the sum of all of x"
    assert held([item], [f"{item}y.", f"{item} y.", f"{item}."]) == [(1, 0), (2, 0)]
    counted = "There are many things in this world. Find the sum of the numbers to 12"
    assert held([counted], [f"{counted}0.", f"{counted}.5", f"{counted}."]) == [(2, 0)]


def test_short_items_no_items_and_several_items():
    assert held(["What is 6*7?"], ["What is 6*7?"]) == []
    assert held([], [ITEM]) == []
    other = "Another problem of a square with a side of 3 cm. How large is its whole perimeter?"
    assert held([ITEM, other, ITEM], [f"{other} {ITEM}", "", "\0" + other]) == [(0, 0), (0, 1), (0, 2), (2, 1)]


def mended(known: str, text: str) -> str:
    mender = SlipMender()
    mender.learn([known])
    return mender.mend([text])[0]


@rows(
    "text, expected",
    [
        ("A trinagle", "A triangle"),
        ("Rtiangle and triagnle", "Triangle and triangle"),
        ("mabrles, 3 marblse", "marbles, 3 marbles"),
        ("trriangle", "triangle"),
        ("marbles", "marbles"),
        ("trial", "trial"),
        ("integral", "integral"),
        ("triangles", "triangles"),
        ("ont", "ont"),
    ],
)
def test_slips_become_known_words_and_other_words_stay(text, expected):
    assert mended("A triangle, 3 marbles: trail, trial, not angle", text) == expected


@rows(
    "left, right",
    [
        (r"Find $\dfrac{1}{2} x$", r"Find \(\frac12x\)"),
        (r"If $x^{2}+1=3$", "If x² + 1 = 3"),
        (r"an angle of $30^\circ$", "an angle of 30 degrees"),
        (r"$a \cdot b \leq \left(3\right)$", "a × b ≤ (3)"),
        (r"$\sqrt{14}\pi$", "√14π"),
        (r"$3\frac{1}{2}$", "3 1/2"),
        (r"$p_{}$ is $10\%$", "p is 10 percent"),
        ("5 centimeters and 3 inches", "5 cm and 3 in."),
        (r"$5\text{ cm}$", "5 cm"),
        (r"$\{1,2\}$", "{1, 2}"),
    ],
)
def test_formulas_and_units_that_are_written_otherwise_are_the_same(left, right):
    assert squashed(left) == squashed(right)


@rows(
    "left, right",
    [
        ("8-(3+2)", "8-3+2"),
        ("2(x+1)", "2x+1"),
        ("(0,1]", "[0,1)"),
        ("2^{x+1}", "2^{x}+1"),
        (r"\frac{x+1}{2y}", r"\frac{x+1}{2}y"),
        ("f(x,y)", "f(xy)"),
        ("f'(x)", "f(x)"),
        ("5!+1", "5+1"),
        (r"3\frac{1}{2}", r"\frac{31}{2}"),
        (r"\sqrt{2}", "2"),
        ("5 cm", "5 mm"),
        (r"x \ne 1", "x = 1"),
    ],
)
def test_formulas_that_say_something_else_stay_apart(left, right):
    assert squashed(left) != squashed(right)


def copies(*texts: str) -> list[tuple[int, int, bool]]:
    keys = SquashedKeys()
    keys.add(pl.Series(texts[:1], dtype=pl.String))
    keys.add(pl.Series(texts[1:], dtype=pl.String))
    pairs = keys.copies(lambda numbers: [texts[number] for number in numbers])
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), pairs.whole.tolist(), strict=True))


def test_copies_are_paired_with_and_without_requests_for_a_form():
    request = "Express your answer as a common fraction."
    assert copies("Find $x$.", f"Find x. {request}", "Find y.", "FIND x") == [
        (0, 1, False),
        (0, 3, True),
        (1, 3, False),
    ]
    assert copies("Find x.") == []
    assert len(copies(*["Find x."] * 40)) == 39

"""What questions ask for and what amounts measure: opposed questions and other dimensions tell problems apart."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.pipeline.near.asked import are_opposed, ask_otherwise, asked_quantities
from truegold.pipeline.near.dimensions import dimensions_differ, read_dimensions, units_differ


@rows(
    "left, right",
    [
        ("A square has side 4. Find its area.", "A square has side 4. Find its perimeter."),
        ("A cube has edge 3. What is its volume?", "A cube has edge 3. What is its surface area?"),
        ("Tom had 9 pens and sold 4. How many are left?", "Tom had 9 pens and sold 4. How many did he sell?"),
        ("She ate 3 of 8 cakes. How many did she eat?", "She ate 3 of 8 cakes. How many cakes remain?"),
        ("In how many ways can 2 marbles be drawn?", "What is the probability that 2 marbles are drawn?"),
        ("What is the radius of the circle?", "What is the diameter of the circle?"),
        ("Find the sum of the roots.", "Find the product of the roots."),
        ("What is the units digit of $7^9$?", "How many digits does $7^9$ have?"),
        ("What fraction of the cars is red?", "What is the difference between red and blue cars?"),
        ("一个正方形边长4厘米，面积是多少？", "一个正方形边长4厘米，周长是多少？"),
    ],
)
def test_questions_for_opposed_quantities(left, right):
    assert are_opposed(left, right)
    assert are_opposed(right, left)


@rows(
    "left, right",
    [
        ("How long did it take him?", "What is the total time that he needed?"),
        ("How many more pens has Ann than Tom?", "What is the number of pens that Ann has in excess of Tom?"),
        ("What is the area of the square?", "How many square units does the square cover?"),
        ("How many are left?", "What is the difference between both?"),
        ("How much does he spend?", "What is the total cost?"),
        ("What is the probability in percent?", "What is the percentage chance?"),
        ("Find $x$.", "What is the value of $x$?"),
        ("A square has area 4. Find its side.", "The perimeter of a square is 8. Find its side."),
    ],
)
def test_questions_that_may_ask_for_the_same(left, right):
    assert not are_opposed(left, right)


def test_only_the_last_question_counts():
    text = "What is the area of the square? No, what is its perimeter?"
    assert asked_quantities(text, "decisive") == {"perimeter"}


@rows(
    "left, right, expected",
    [
        ("A force of 20 lb over 200 ft.", "A force of 200 N over 20 m.", True),
        ("He runs 5 miles in 30 minutes.", "In 30 minutes he runs 5 miles.", False),
        ("He runs 5 miles in 30 minutes.", "He runs 30 miles in 5 minutes.", True),
        ("It weighs 3 kg.", "It weighs 3 pounds.", False),
        ("It is 3 cm long.", "It is 3 inches long.", False),
        ("It is 3 cm long.", "It has 3 legs.", False),
        ("It costs 3 dollars.", "It takes 3 hours.", True),
        ("重3千克", "长3米", True),
        ("3 hours and 3 miles", "3 hours", False),
    ],
)
def test_amounts_that_measure_other_things(left, right, expected):
    assert dimensions_differ(read_dimensions(left), read_dimensions(right)) is expected
    assert dimensions_differ(read_dimensions(right), read_dimensions(left)) is expected


def test_one_amount_in_other_units_of_length():
    assert units_differ("It has a volume of 512 cubic cm.", "It has a volume of 512 cubic feet.")
    assert not units_differ("It has a volume of 512 cubic cm.", "The volume is 512 cubic centimeters.")
    assert not units_differ("It is 5 m long and 3 feet wide.", "It is 5 meters long and 4 inches wide.")


PASSAGE = "The dock was built in 1911 by the harbour board. " + " ".join(
    f"In year {year} the crane of berth {year - 1900} lifted {year * 3} tons of grain and coal."
    for year in range(1912, 1920)
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("How many berths are named?", "Which berths are named?"),
        ("What was paid to the board?", "What was paid by the board?"),
        ("هل رفعت الرافعة حبوبا؟", "هل رفعت الرافعة فحما؟"),
        ("哪一年吊起的货物最多？", "哪一年吊起的货物最少？"),
        ("किस वर्ष सबसे अधिक भार उठाया गया?", "किस वर्ष सबसे कम भार उठाया गया?"),
        ("Compute the tons of 1912.", "Compute the tons of coal."),
    ],
)
def test_other_questions_of_one_passage_ask_otherwise(left, right):
    for before, after in ((PASSAGE + "\n", ""), ("", "\n" + PASSAGE)):
        assert ask_otherwise(before + left + after, before + right + after)


def test_one_question_of_one_passage_asks_the_same():
    assert not ask_otherwise(PASSAGE + "\nWhat is the sum?", PASSAGE + "\nFind the sum.")
    assert not ask_otherwise(PASSAGE + "\nWhat is the sum?", PASSAGE + "\n\nwhat is the sum")
    assert not ask_otherwise(PASSAGE + " How many berths?", PASSAGE.replace("harbour", "harbor") + " How many berths?")
    assert not ask_otherwise("How many pens has Tom?", "Which pens has Tom?")


def test_a_choice_among_other_options_asks_otherwise():
    stem = "下列关于合同的说法正确的是:"
    oral = "口头合同在任何情形下都没有法律效力"
    first = stem + f"A:合同自双方签字之日起成立并且生效;B:{oral};C:一方违约时另一方应当赔偿全部损失"
    assert not ask_otherwise(first, first.replace("签字之日", "签字当日"))
    assert ask_otherwise(first, first.replace(oral, "租赁房屋的合同应当采用书面的形式订立"))


def test_options_that_exchange_a_word_or_share_none_ask_otherwise():
    heart = "Which is true?\n\nA. The {} ventricle pumps blood to the lungs\n"
    heart += "B. Its rhythm begins in the {}\nC. It has four chambers"
    right = heart.format("right", "node")
    assert ask_otherwise(right, heart.format("left", "node"))
    assert not ask_otherwise(right, right.replace("begins", "began"))
    assert not ask_otherwise(right, heart.format("right", "sinus node"))
    colors = "Which color marks steam?\n\nA. Red\nB. Blue\nC. White"
    assert ask_otherwise(colors, "What does the blue band mark?\n\nA. Steam line\nB. Gas line\nC. Water line")
    assert not ask_otherwise(colors, "Steam is marked by which color?\n\nA. White\nB. Red\nC. Blue")


def test_problems_that_point_elsewhere_are_compared_word_for_word():
    pointer = "See question 12 for the passage.\n\n"
    assert ask_otherwise(pointer + "Which flat is surely let?", pointer + "Which flat of Tower K has a balcony?")
    assert ask_otherwise(pointer + "Which is the title?", pointer.replace("12", "21") + "Which is the title?")
    assert not ask_otherwise(pointer + "Which is the title?", pointer + "What is the title ?".replace("What", "Which"))


TABLE = "Nation | Gold | Silver\nAruba | 2 | 1\nBelize | 0 | 3\nCuba | 7 | 4\n"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("the nation before cuba", "the nation with the most golds"),
        ("how many golds has aruba?", "which nation has two golds?"),
        ("number of nations", "silvers of aruba and belize"),
    ],
)
def test_other_last_lines_below_the_same_lines_ask_otherwise(left, right):
    assert ask_otherwise(TABLE + left, TABLE + right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (TABLE + "What is the sum of golds?", TABLE + "Find the sum of golds."),
        (TABLE + "What is the sum of golds?", TABLE + "what is the sum of golds"),
        (TABLE + "What is the sum of golds?", TABLE + "What is the sum of golds?\n"),
        ("Ann has 3 pens.\nHow many has she?", "Ann has 3 pens.\nWhat number of pens does she own?"),
    ],
)
def test_the_same_question_in_other_words_or_below_few_lines_is_not_other(left, right):
    assert not ask_otherwise(left, right)

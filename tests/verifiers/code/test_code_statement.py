"""Tests of what problems say about how answers are judged: read where they say it, not where it only sounds so."""

import pytest
from tables import rows

from truegold.verifiers.code.suite.statement import Statement, read_statement

SEVERAL = [
    "If there are several answers, print any of them.",
    "If there are multiple possible answers, you may print any of them.",
    "If there are many such operation sequences possible, print any.",
    "If there exist multiple such permutations, you can pick any of them.",
    "If there are several such sequences, any of them is acceptable.",
    "If there are several partitions, Petya will be satisfied by any of them.",
    "If more than one solution exists, output one of them.",
    "In the second line print any permutation of integers from 0 to n with the beauty equal to m.",
    "In case of multiple optimal sets\nreturn any.",
    "Output any such string, or say that it is impossible.",
    "Any valid answer will be accepted.",
    "All correct answers are accepted.",
    "You may return an arbitrary solution.",
    "In sample case 2 there may be multiple accepted outputs.",
    "The answer is not necessarily unique.",
    "The output is checked by a special judge.",
    "如果有多组解，输出任意一组即可。",
    "若存在多个答案，输出其中任意一个。",
    "如果答案不唯一，请输出任意一种方案。",
    "请输出任意一个满足条件的序列。",
    "You don't have to minimize the number of operations.",
    "Note that it is not necessary to maximize the length.",
    "Construct any matrix b that meets the requirements, or say that there is none.",
    "For each test case, output one line containing any permutation that does so.",
    "Output n integers: any suitable matrix, or -1 if there is none.",
    "Your task is to find any spanning tree whose first vertex has the largest degree.",
    "Note that there may be multiple correct answers.",
    "If multiple solutions exist, any will be accepted.",
    "Any of the possible answers will be accepted.",
    "The answer may not be unique.",
    "Your output may differ from that of the example.",
    "Otherwise print a valid sequence of moves.",
]

SINGLE = [
    "If there are several answers, print the lexicographically smallest one.",
    "Each test contains multiple test cases. Print the answer for any of them on its own line only if asked.",
    "Note that there can be multiple edges between two vertices.",
    "In one operation you can choose any vertex and paint it.",
    "Do not print any extra text.",
    "You must not output any of them twice.",
    "Of course, there are multiple possible assignments for each minimum and maximum.",
    "Print the indices in any order.",
    "A permutation is an array of distinct integers in arbitrary order.",
    "每个城市可以到达任意一个城市。",
    "Print YES if any valid permutation is good.",
    "Print the length of any path from 1 to n that is shortest.",
    "Print the number of pairs such that any solution contains them.",
    "There may be multiple solutions; print the smallest one.",
    "You need to minimize the number of operations.",
    "Print a valid sequence, the lexicographically smallest one.",
    "Print a possible number of pairs.",
    "Sherlock hasn't found any direct link.",
    "",
]


@rows("text", SEVERAL)
def test_several_right_answers_are_recognised(text: str) -> None:
    assert read_statement(f"You are given n. {text} Good luck.").several_answers


@rows("text", SINGLE)
def test_one_right_answer_is_not_taken_for_several(text: str) -> None:
    assert read_statement(f"You are given n. {text} Good luck.").several_answers is None


@pytest.mark.parametrize(
    ("text", "about_output"),
    [
        ("You can print the edges in any order.", True),
        ("Return the result in arbitrary order.", True),
        ("请以任意顺序输出这些数。", True),
        ("The order of the points does not matter.", False),
        ("There is no requirement for the points to be arranged in any special order.", False),
        ("A permutation is an array of n distinct integers in arbitrary order.", False),
    ],
)
def test_order_that_is_free_and_whether_it_is_that_of_the_output(text: str, about_output: bool) -> None:
    statement = read_statement(text)
    assert statement.any_order
    assert (statement.order_of_output is not None) is about_output


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ('You can output "YES" and "NO" in any case (for example, "yEs" is a positive answer).', True),
        ("You may print every letter in any case you want.", True),
        ("You can print each letter in upper or lower case, it is case-insensitive.", True),
        ("输出 Yes 或 No，不区分大小写。", True),
        ("Print NO if it will not be removed in any case.", False),
        ("The string consists of upper or lower case letters.", False),
    ],
)
def test_case_that_is_free(text: str, free: bool) -> None:
    assert (read_statement(text).any_case is not None) is free


@rows(
    "text, tolerance",
    [
        ("Your answer is correct if its absolute or relative error does not exceed 10^{-6}.", 1e-6),
        ("The absolute or relative error must not exceed 10 - 4.", 1e-4),
        ("Answers within 10^-5 of the actual answer are accepted.", 1e-5),
        ("The error should be at most 1e-9.", 1e-9),
        ("with a precision of 0.01", 0.01),
        ("误差不超过 $10^{-3}$。", 1e-3),
        ("It is guaranteed that n is at most 10^5.", None),
        ("The difference 10 - 6 is 4.", None),
    ],
)
def test_tolerance(text: str, tolerance: float | None) -> None:
    statement = read_statement(text)
    assert statement.tolerance == (None if tolerance is None else pytest.approx(tolerance))
    assert statement.tolerance_is_relative == ("relative" in text)


@pytest.mark.parametrize(
    ("text", "constructs"),
    [
        ("Tags: constructive algorithms, math", True),
        ("Find a simple path of at least n / 2 vertices.", True),
        ("Restore some such array.", True),
        ("One of the possible answers is shown.", True),
        ("请构造一个数列。", True),
        ("Find the number of permutations.", False),
        ("Print the sum.", False),
    ],
)
def test_problems_that_ask_for_a_construction(text: str, constructs: bool) -> None:
    assert (read_statement(text).constructs is not None) is constructs


def test_interactive_problems_are_named() -> None:
    assert read_statement("This is an interactive problem.").interactive
    assert read_statement("Friends like interactive games.").interactive is None


def test_a_phrase_that_a_line_break_cuts_is_found_and_no_text_says_nothing() -> None:
    assert read_statement("If there are several\nanswers, print\nany of them").several_answers
    assert read_statement(None) == read_statement("") == Statement()


def test_megabytes_without_a_full_stop_are_read_as_far_as_the_bounds_go() -> None:
    for text in ("if there are several " * 100_000, "many " * 200_000, "10 - " * 200_000, "任意" * 200_000):
        assert read_statement(text).tolerance is None

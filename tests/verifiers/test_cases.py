"""An answer that holds in one case only is not paid, and neither is a difference that the problem gives."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.verifiers import verify

HEDGES = [
    "If A, the answer is {}. If B, the answer is {}.",
    "If n is even, the answer is {}; if n is odd, the answer is {}.",
    "If n is even, the answer is {}. Otherwise, the answer is {}.",
    "When x > 0, the answer is {}.\nWhen x < 0, the answer is {}.",
    "The answer is {} if n is even. The answer is {} if n is odd.",
    "It is {} if n is even. It is {} if n is odd.",
    "For even n the answer is {}. For odd n the answer is {}.",
    "Case 1: n is even. Then the answer is {}.\nCase 2: n is odd. Then the answer is {}.",
    "If n is even, x = {}. If n is odd, x = {}.",
    "If n is even, \\boxed{{{}}}. If n is odd, \\boxed{{{}}}.",
    "**If n is even:** the answer is {}.\n**If n is odd:** the answer is {}.",
    "So if you count the first day, the answer is {}. If not, the answer is {}.",
    "Suppose n is even. Then the answer is {}. Suppose n is odd. Then the answer is {}.",
    "Wenn n gerade ist, ist die Antwort {}. Wenn n ungerade ist, ist die Antwort {}.",
    "Si n est pair, la réponse est {}. Sinon, la réponse est {}.",
    "如果n是偶数，答案是{}。如果n是奇数，答案是{}。",
    "若n是偶数，则答案为{}；若n是奇数，则答案为{}。",
    "当n为偶数时，答案是{}。当n为奇数时，答案是{}。",
    "如果n是偶数，答案是{}。否则，答案是{}。",
    "假设n是偶数，那么答案是{}。假设n是奇数，那么答案是{}。",
    "若x>0，则y={}。若x<0，则y={}。",
    "n是偶数时，答案是{}。n是奇数时，答案是{}。",
    "第一种情况，答案是{}。第二种情况，答案是{}。",
    "要是第一天也算，答案是{}。要是不算，答案是{}。",
    "只要n是偶数，答案就是{}。只要n是奇数，答案就是{}。",
]


@pytest.mark.parametrize("values", [("5", "6"), ("6", "5")])
@rows("response", HEDGES)
def test_two_answers_on_two_conditions_are_not_paid(response: str, values: tuple[str, str]) -> None:
    assert verify(response.format(*values), gold="5").score == 0.0


@pytest.mark.parametrize("gold", ["A", "B"])
@rows(
    "response",
    [
        "If n is even, the answer is (A). If n is odd, the answer is (B).",
        "If n is even, then A is correct. If n is odd, then B is correct.",
        "如果n是偶数，选A。如果n是奇数，选B。",
    ],
)
def test_two_options_on_two_conditions_are_not_paid(response: str, gold: str) -> None:
    assert verify(response, gold=gold).score == 0.0
    assert verify(response, gold=gold, verifier="choice", options=["5", "6", "7"]).score == 0.0


@pytest.mark.parametrize("gold", ["正确", "错误"])
def test_a_statement_called_right_and_wrong_is_not_paid(gold: str) -> None:
    assert verify("如果n是偶数，则正确。如果n是奇数，则错误。", gold=gold).score == 0.0


APPLES = "Tom has 3 apples and buys 2 more. How many apples has he?"


@rows(
    "response, problem",
    [
        ("Since x = 3, the answer is 5.", None),
        ("So if he has 3 apples and buys 2, the answer is 5.", None),
        ("If all sides are equal, then the answer is 5.", None),
        ("If n is even, the answer is 5. If n is odd, the answer is also 5.", None),
        ("If n is even, the answer is 4. If n is odd, the answer is 5. Since n = 3, the answer is 5.", None),
        ("If there are 5 rows of 3, there are 15 chairs. If 10 are broken, there are 5 chairs.", None),
        ("If x = 2, y = 4. If x = 3, y = 1. So the sum is 5.", None),
        ("If x = 3, the answer is 5.", "If x = 3, what is x + 2?"),
        ("When $n$ is even, the answer is $5$.", "Let n be even. Find f(n)."),
        ("We solve and find x = 3. If x = 3, the answer is 5.", APPLES),
        ("So if x = 3, the answer is 5.", APPLES),
        ("无论n是奇数还是偶数，答案都是5。", None),
        ("If Tom buys two apples more, he has 5.", APPLES),
        ("If we add them, we get 5.", APPLES),
        ("If you count all apples, there are 5.", APPLES),
        ("Assuming that none is lost, the answer is 5.", APPLES),
        ("The answer is 5, if he eats none of them.", APPLES),
        ("如果汤姆有3个苹果，又买了2个，那么答案是5。", APPLES),
        ("当n=1时，和为2。当n=2时，和为3。所以总和是5。", None),
    ],
)
def test_a_condition_before_a_decided_answer_does_not_harm(response: str, problem: str | None) -> None:
    assert verify(response, gold="5", problem=problem).score == 1.0


@rows(
    "response",
    [
        "If x = 4, the answer is 5.", "When n is even, the answer is 5.", "若n是偶数，则答案为5。",
        "当x=4时，答案是5。",
    ],
)  # fmt: skip
def test_a_condition_that_the_problem_does_not_know_is_not_paid(response: str) -> None:
    assert verify(response, gold="5", problem=APPLES).score == 0.0


SHOP = "A shop had 30 apples and got 24 more. How many {} are there now?"


@rows(
    "response, asked, score",
    [
        ("There are 24 more than before.", SHOP.format("apples"), 0),
        ("So there are 24 apples more than yesterday.", SHOP.format("apples"), 0),
        ("比原来多24个。", "商店原有30个苹果，又进了24个，现在一共有多少个？", 0),
        ("There are 24 more than before.", SHOP.format("more than before"), 1),
        ("There are 24 more than before.", None, 1),
        ("比原来多24个。", "商店原有30个苹果，现在有24个梨和30个苹果，比原来多多少个？", 1),
    ],
)
def test_a_difference_that_the_problem_gives_answers_no_other_question(
    response: str, asked: str | None, score: int
) -> None:
    assert verify(response, gold="24", problem=asked).score == score


@pytest.mark.parametrize(
    ("response", "gold", "score"),
    [
        ("If x < 0 there is no solution. If x > 0, the answer is 5.", "5", 1.0),
        ("If n is odd, the answer is 6. If n is even, the answer is 5. Here n = 4, so 5.", "5", 1.0),
        ("If n is odd, the answer is 6. If n is even, the answer is 5. Here n may be 4 or 3.", "5", 0.0),
        ("If x < 0, the answer is 6, which is not impossible. If x > 0, the answer is 5.", "5", 0.0),
        ("If x < 0, the answer is 5. If x > 0, the answer is 6, which is not impossible.", "5", 0.0),
        ("若x<0，则无解。若x>0，则答案为5。", "5", 1.0),
    ],
)
def test_a_case_without_a_solution_or_a_conclusion_opens_no_case(response: str, gold: str, score: float) -> None:
    assert verify(response, gold=gold, problem="Let n and x be numbers. Find f.").score == score

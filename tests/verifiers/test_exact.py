"""The same text."""

import pytest
from tables import rows

from truegold.verifiers import ExactVerifier, Reason, verify

judge = ExactVerifier()


@rows(
    "response, gold, score",
    [
        ("Paris", "Paris", 1.0),
        ("  paris \n", "Paris", 1.0),
        ("New   York", "new york", 1.0),
        ("The answer is Paris.", "Paris", 1.0),
        ("\\boxed{Paris}", "Paris", 1.0),
        ("<think>London</think>Paris", "Paris", 1.0),
        ("caf\u00e9", "cafe\u0301", 1.0),
        ("Answer: 5", "Answer: 5", 1.0),
        ("London", "Paris", 0.0),
        ("It may be Paris, it may be London", "Paris", 0.0),
        ("5.0", "5", 0.0),
    ],
)
def test_comparison(response, gold, score):
    assert judge(response, gold).score == score


def test_case_counts_when_asked():
    assert judge("paris", "Paris", info={"case_sensitive": True}).score == 0.0
    assert judge("Paris", "Paris", info={"case_sensitive": True}).score == 1.0


def test_what_is_missing():
    assert judge("", "Paris").reason is Reason.NO_ANSWER
    assert judge("Paris", None).reason is Reason.GOLD_MISSING


@pytest.mark.parametrize("verifier", ["exact", "math"])
@pytest.mark.parametrize("answers", [("5", "6"), ("Paris", "London"), ("Yes", "No"), ("12 cm", "13 cm")])
@pytest.mark.parametrize(
    "response",
    [
        "The answer is {}.\n\n**{}**", "The answer is {}. Backup: **{}**", "**{}** So we get {}.",
        "\\boxed{{{}}} or **{}**",
        "Answer: {}\n\nBob says: **{}**", "#### {}\n**{}**", "**{}** Alternatively, it is {}.",
    ],
)  # fmt: skip
def test_no_response_is_paid_for_two_golds(response: str, answers: tuple[str, str], verifier: str) -> None:
    scores = [verify(response.format(*answers), gold=gold, verifier=verifier).score for gold in answers]
    assert scores.count(1.0) < 2


def test_a_name_in_bold_after_an_announcement_is_the_answer() -> None:
    assert ExactVerifier()("The answer is **Paris**, home to 2 million people.", "Paris").score == 1.0
    assert ExactVerifier()("The answer is 7. But **Paris**.", "Paris").score == 0.0


LISTED = "Pick the sum.\nA. 3\nB. 5\nC. 7\nD. 9"


@pytest.mark.parametrize("golds", [("3", "5"), ("A", "B")])
@pytest.mark.parametrize(
    "response",
    [
        "**(B)**\nIt is 3.", "**A** $x = 5$", "Answer: A) 3 So we get 5.", "**5** Option A is correct.",
        "It is 5.\n\nNote: **A**", "The answer is A. **B**", "Answer: (B) Therefore **3**",
    ],
)  # fmt: skip
def test_the_letter_of_one_option_beside_the_value_of_another_is_not_paid_for_both(
    response: str, golds: tuple[str, str]
) -> None:
    assert [verify(response, gold=gold, problem=LISTED).score for gold in golds].count(1.0) < 2


@pytest.mark.parametrize("gold", ["5", "B"])
@pytest.mark.parametrize(
    "response",
    ["**(B)**\nIt is 5.", "Option B is correct, since 2 + 3 = 5.", "Answer: B) 5", "It is 5.", "Not 3, but 5."],
)
def test_a_letter_beside_its_own_value_is_paid(response: str, gold: str) -> None:
    assert verify(response, gold=gold, problem=LISTED).score == 1.0

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
        "The answer is {}.\n\n**{}**", "The answer is {}. Backup: **{}**", "**{}** So we get {}.", "\\boxed{{{}}} or **{}**",
        "Answer: {}\n\nBob says: **{}**", "#### {}\n**{}**", "**{}** Alternatively, it is {}.",
    ],
)  # fmt: skip
def test_no_response_is_paid_for_two_golds(response: str, answers: tuple[str, str], verifier: str) -> None:
    scores = [verify(response.format(*answers), gold=gold, verifier=verifier).score for gold in answers]
    assert scores.count(1.0) < 2

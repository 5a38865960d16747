"""The same text."""

from tables import rows

from truegold.verifiers import ExactVerifier, Reason

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

"""A gold that stands in place of an answer gives no score: not 0 to right answers, not 1 to who writes "N/A"."""

from __future__ import annotations

import pytest
from tables import rows

from truegold.verifiers import Reason, verify

PLACEHOLDERS = [
    *(
        "see solution",
        "See the solution below.",
        "Answers may vary",
        "null",
        "None",
        "-",
    ),
    *(
        "not available",
        "refer to the figure",
        "The proof is left to the reader",
        "\\boxed{}",
        "略",
    ),
]
ANSWERS = ["0", "no solution", "\\emptyset", "none", "undefined", "x", "-1", "\\{\\}", "yes"]


@pytest.mark.parametrize("gold", PLACEHOLDERS)
@pytest.mark.parametrize("response", ["The answer is \\boxed{42}.", "\\boxed{N/A}", "I do not know"])
def test_no_response_has_a_score_against_a_placeholder(gold: str, response: str) -> None:
    verdict = verify(response, gold)
    assert (verdict.score, verdict.reason) == (None, Reason.GOLD_MISSING)


@rows("gold", ANSWERS)
def test_golds_that_only_look_like_none_are_answers(gold: str) -> None:
    assert verify(f"\\boxed{{{gold}}}", gold).score == 1.0


def test_labels_are_answers_to_exact_and_references_are_not() -> None:
    assert verify("unknown", "unknown", verifier="exact").score == 1.0
    assert verify("Paris", "see solution", verifier="exact").score is None

"""Multiple choice."""

import pytest

from truegold.verifiers import ChoiceVerifier, Reason

judge = ChoiceVerifier()
COLOURS = {"options": ["red", "dark blue", "green"]}


@pytest.mark.parametrize(
    "response",
    [
        "\\boxed{C}",
        "\\boxed{\\text{C}}",
        "\\boxed{\\textbf{(C)}}",
        "It cannot be A or B. The answer is (C).",
        "Answer: C",
        "**Answer: C**",
        "Answer: C) the third one",
        "Answer: **C. the third one**",
        "The answer is option C",
        "The correct option is C.",
        "So it is choice (C)",
        "We rule the others out.\n\nC",
        "We rule the others out.\n(C)",
        "We rule the others out.\n**C.**",
        "The answer is C because A and B are too small.",
        "答案是C。",
        "所以选C",
        "C",
        "c",
        "<think>\\boxed{A}</think>\\boxed{C}",
    ],
)
def test_the_committed_letter_is_found(response):
    verdict = judge(response, "C")
    assert verdict.score == 1.0, verdict
    assert judge(response, "D").score == 0.0


@pytest.mark.parametrize("gold", ["B", "(B)", "B.", "B) dark blue", "(B) dark blue", "b", "\\text{B}"])
def test_gold_may_be_written_in_several_ways(gold):
    assert judge("Answer: B", gold).score == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "\\boxed{A or B}",
        "\\boxed{A, B}",
        "The answer is A and B.",
        "Answer: (A), (B)",
        "A or B",
        "Answer: A) red or B) blue",
    ],
)
def test_naming_two_letters_is_hedging(response):
    verdict = judge(response, "B")
    assert (verdict.score, verdict.reason) == (0.0, Reason.HEDGED)


def test_the_text_of_an_option_counts_as_its_letter():
    assert judge("\\boxed{Dark  blue}", "B", info=COLOURS).score == 1.0
    assert judge("The answer is green.", "B", info=COLOURS).score == 0.0
    assert judge("Answer: B", "dark blue", info=COLOURS).score == 1.0


@pytest.mark.parametrize("response", ["", "I cannot decide between these four options today.", "\\boxed{"])
def test_no_commitment_earns_nothing(response):
    verdict = judge(response, "B")
    assert (verdict.score, verdict.reason) == (0.0, Reason.NO_ANSWER)


@pytest.mark.parametrize(
    ("gold", "info", "reason"),
    [
        (None, {}, Reason.GOLD_MISSING),
        (" ", {}, Reason.GOLD_MISSING),
        ("42", {}, Reason.GOLD_UNPARSED),
        ("A, B", {}, Reason.GOLD_UNPARSED),
        ("A", {"options": "red"}, Reason.VERIFIER_ERROR),
    ],
)
def test_what_cannot_be_judged_has_no_score(gold, info, reason):
    verdict = judge("Answer: A", gold, info=info)
    assert (verdict.score, verdict.reason) == (None, reason)

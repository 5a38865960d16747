"""The table of pairs in math_cases.json: gold, answer, and the verdict that `equivalent` has to give."""

import json
from pathlib import Path

from tables import rows

from truegold.verifiers import MathVerifier, Reason, equivalent

CASES = json.loads((Path(__file__).parent / "math_cases.json").read_text())
SCORES = {True: 1.0, False: 0.0, None: None}


def test_ids_are_unique_and_the_table_is_broad():
    assert len({case["id"] for case in CASES}) == len(CASES) >= 80


@rows("case", CASES)
def test_pair(case):
    verdict = equivalent(case["answer"], gold=case["gold"])
    assert verdict.score == SCORES[case["expected"]], (verdict, case["note"])
    json.dumps(dict(verdict.evidence))


@rows(
    "gold, answer, reason",
    [
        (None, "5", Reason.GOLD_MISSING),
        ("5", "", Reason.NO_ANSWER),
        ("5", "5 or 6", Reason.HEDGED),
        ("5", "6=5", Reason.HEDGED),
        ("circle", "4", Reason.MISMATCH),
        ("the area of the circle is larger", "the circle wins", Reason.GOLD_UNPARSED),
        ("5", "1" * 2_000, Reason.LIMIT),
        ("5", "10^{10^9}", Reason.MISMATCH),
        ("5", "1e99999999", Reason.LIMIT),
        ("5", "\\frac{5}{", Reason.UNREAD),
    ],
)
def test_reason_says_why(gold, answer, reason):
    assert equivalent(answer, gold=gold).reason is reason


def test_evidence_names_the_rung_and_both_readings():
    assert equivalent("50%", gold="1/2").evidence == {"rung": "exact", "gold": "1/2", "answer": "50 percent"}


def test_decimals_let_the_last_digits_differ():
    assert equivalent("0.333", gold="1/3").score == 0.0
    assert equivalent("0.333", gold="1/3", decimals=3).score == 1.0
    assert equivalent("0.334", gold="1/3", decimals=3).score == 0.0


def test_verifier_reads_the_answer_the_response_commits_to():
    verifier = MathVerifier()
    verdict = verifier("I first thought \\boxed{4}, but it is \\boxed{\\frac{10}{2}}.", "5")
    assert (verdict.score, verdict.extracted, verdict.evidence["form"]) == (1.0, "\\frac{10}{2}", "boxed")
    assert verifier("There were 3 people and 5 apples. Nothing was decided", "5").reason is Reason.UNREAD
    assert verifier("I do not know how many there were.", "5").reason is Reason.NO_ANSWER
    assert verifier("", None).reason is Reason.GOLD_MISSING


def test_verifier_reads_decimals_from_info():
    verifier = MathVerifier()
    assert verifier("\\boxed{0.333}", "1/3", info={"decimals": 3}).score == 1.0
    wrong = verifier("\\boxed{0.333}", "1/3", info={"decimals": "three"})
    assert (wrong.score, wrong.reason) == (None, Reason.VERIFIER_ERROR)
    assert "decimals is 'three', expected a whole number" in wrong.evidence["error"]

"""One budget a verdict: what multiplies is counted before it is worked out, whichever side it stands on."""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest
from tables import rows

from truegold.verifiers import MathVerifier, Reason, equivalent
from truegold.verifiers.math import policy
from truegold.verifiers.math.policy import MAX_STEPS, Spent, StepBudget, charge, remembered
from truegold.verifiers.math.reading.answers import read


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


SUM = "\\sum_{k=1}^{150} "
DEAR = {
    "sums": SUM * 3 + "\\sin(k)",
    "sums and products": "\\sum_{a=1}^{100} \\prod_{b=1}^{100} \\sum_{c=1}^{100} \\frac{a}{b+c}",
    "sums in bounds": nested("\\sum_{n=1}^{y} ", "3^{\\sum_{n=1}^{y} y}", "", 12),
    "sums in sets": "\\{" + ", ".join([SUM + SUM + f"\\sqrt{{k+{n}}}" for n in range(20)]) + "\\}",
    "sums in matrices": "\\begin{pmatrix}" + " & ".join([SUM + SUM + "\\ln k"] * 9) + "\\end{pmatrix}",
    "factorials": "+".join(["20000!"] * 300) + "+x",
    "binomials": "+".join(["\\binom{90000.5}{0.5}"] * 150),
    "powers": "+".join([f"(x+{n})^{{2^{{19000}}}}" for n in range(80)]),
    "fractions": "+".join([f"3^{{-{n}000}}" for n in range(2, 12)] * 12),
    "environments": nested("\\begin{aligned}", " x 5 5 \\foo ", "\\end{aligned}", 14),
    "unions": "\\cap".join(["(" + "\\cup".join(["(0,1)"] * 40) + ")"] * 6),
    "lists": ", ".join(f"\\sin({n}\\sqrt{{2}})" for n in range(100)),
    "signs": "\\pm\\pm\\pm\\pm " + nested("\\sin(", "+".join(["\\arctan x"] * 80), ")", 20),
}


@rows("name", DEAR)
def test_nested_work_draws_on_one_budget(name: str) -> None:
    for gold, answer in (("x+2", DEAR[name]), (DEAR[name], "x+2"), (DEAR[name], DEAR[name] + "+0")):
        gc.disable()  # A collection of all that the other tests have left takes a second by itself.
        try:
            start = time.process_time()
            verdict = equivalent(answer, gold=gold)
            cpu_s = time.process_time() - start
        finally:
            gc.enable()
        # Each is some 20 ms; without a budget, most of these are many seconds.
        assert cpu_s < 1.0
        assert verdict.score in (None, 0.0) or verdict.reason is Reason.MATCH
        assert verdict.reason is not Reason.VERIFIER_ERROR


def test_an_answer_that_spends_the_budget_on_the_options_scores_nothing() -> None:
    response = "\\boxed{" + "\\text{a} = " * 300 + "}"
    verdict = MathVerifier()(response, "5", problem="Pick. (A) one (B) two (C) three")
    assert (verdict.score, verdict.reason) == (0.0, Reason.LIMIT)


def test_who_spends_the_budget_decides_the_score() -> None:
    by_answer, by_gold = equivalent(DEAR["sums"], gold="5"), equivalent("5", gold=DEAR["sums"])
    assert (by_answer.score, by_answer.reason, by_answer.evidence["side"]) == (0.0, Reason.LIMIT, "answer")
    assert (by_gold.score, by_gold.reason, by_gold.evidence["side"]) == (None, Reason.LIMIT, "gold")
    assert str(MAX_STEPS) in by_gold.evidence["error"]
    assert by_gold.evidence["rung"] == "budget"


def test_a_verdict_does_not_depend_on_those_before_it() -> None:
    rows = [(answer, gold) for answer in DEAR.values() for gold in ("5", "1, 2", answer + "+0")]
    verdicts = [equivalent(answer, gold=gold) for answer, gold in rows]
    assert [equivalent(answer, gold=gold) for answer, gold in reversed(rows)][::-1] == verdicts


def test_a_double_sum_of_ordinary_size_is_worked_out() -> None:
    assert equivalent("\\sum_{a=1}^{10}\\sum_{b=1}^{10} ab", gold="3025").score == 1.0
    assert equivalent("\\sum_{a=1}^{10}\\sum_{b=1}^{10} ab", gold="3026").score == 0.0


def test_remembered_work_costs_the_same_again() -> None:
    calls = []

    @remembered(10)
    def work(steps: int) -> int:
        calls.append(steps)
        charge(steps)
        return steps

    for _ in range(3):
        with StepBudget(100):
            work(60)
            with pytest.raises(Spent):
                work(60)
    assert calls == [60]


def test_a_budget_inside_of_another_one_is_the_same() -> None:
    with StepBudget(100), pytest.raises(Spent):
        for _ in range(3):
            with StepBudget(100):
                charge(40)


def test_outside_of_a_verdict_nothing_is_limited() -> None:
    charge(10 * MAX_STEPS)
    read(nested("\\begin{aligned}", "5", "\\end{aligned}", 8))
    assert policy.seconds_left() > 0


def test_a_response_is_judged_within_one_budget() -> None:
    gold = "\\{" + ", ".join([SUM + SUM + "\\sqrt{k}"] * 5) + "\\}"
    assert MathVerifier()(f"\\boxed{{{DEAR['sums']}}}", "5").reason is Reason.LIMIT
    assert MathVerifier()("\\boxed{1, 2, 3, 4, 5}", gold).score is None


def test_long_answers_are_not_kept_in_memory() -> None:
    texts = [f"{n}+" + "+".join(["\\sqrt{x}"] * 300) for n in range(250)]
    equivalent(texts[0], gold="x")
    tracemalloc.start()
    for text in texts:
        equivalent(text, gold="x")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 60e6

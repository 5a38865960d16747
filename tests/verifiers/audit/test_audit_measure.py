"""Rates: what is counted as an error, what is not counted, and which golds are drawn."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.verifiers import ConfigError
from truegold.verifiers.audit import audit
from truegold.verifiers.audit.audit_report import speed_of
from truegold.verifiers.rates import Rate

SIMPLE = ["5", "-12", "3.5", "\\frac{3}{4}", "2\\sqrt{3}", "x^2+1", "(1,2)", "1, 2", "[0,1)", "B", "\\text{even}"]

VERIFIERS = """
import time
from truegold.verifiers import verifier, committed_answer

def answer(response):
    found = committed_answer(response)
    return found.text if found else ""

@verifier
def gullible(response, gold):
    return gold in response

@verifier
def strict(response, gold):
    return answer(response) == gold

@verifier
def undecided(response, gold):
    return True if answer(response) == gold else None

@verifier
def half(response, gold):
    return 1.0 if answer(response) == gold else 0.5

@verifier
def moody(response, gold):
    if gold == "7":
        raise ValueError("not seven")
    return gold != "8" and answer(response) == gold

@verifier
def bare(response, gold):
    return response == gold
"""


@pytest.fixture(scope="module")
def verifiers(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "measured.py"
    path.write_text(VERIFIERS)
    return path


@pytest.mark.parametrize("name", ["math", "exact"])
def test_simple_golds_pass_themselves(name: str) -> None:
    report = audit(name, SIMPLE)
    assert report.identity.rate == Rate(0, len(SIMPLE), 0)
    assert report.false_negatives.judged > 100 and report.false_positives.judged > 100 and report.gamed.judged > 100


def test_a_verifier_that_compares_texts_refuses_every_respelling_and_accepts_nothing_wrong(verifiers: Path) -> None:
    report = audit(f"{verifiers}:strict", ["5", "\\frac{1}{2}"])
    assert report.rewrites["int.0"].rate == Rate(2, 2, 0)  # These are 5.0 and 5.00.
    assert report.rewrites["int.0"].examples[0].answer == "5.0"
    assert report.false_positives.errors == 0 and report.gamed.errors == 0


def test_a_verifier_that_looks_for_gold_anywhere_is_found_out(verifiers: Path) -> None:
    report = audit(f"{verifiers}:gullible", ["5", "6"])
    assert report.edits["hedge or"].rate == Rate(6, 6, 0)
    assert report.edits["+1"].rate.errors == 0
    assert report.gaming["many boxes"].rate == Rate(2, 2, 0)
    assert report.gaming["mentioned, another committed"].rate.errors == 2
    assert report.gaming["empty response"].rate == Rate(0, 2, 0)


def test_verdicts_without_a_score_are_counted_apart(verifiers: Path) -> None:
    report = audit(f"{verifiers}:undecided", ["5"])
    assert report.false_negatives.judged + report.false_positives.judged <= 1
    assert report.false_negatives.undecided > 10
    assert report.undecided["declined"] == sum(
        r.undecided for r in (report.false_negatives, report.false_positives, report.gamed)
    ) + sum(count.rate.undecided for part in (report.rewrites, report.edits) for count in part.values() if count.policy)


def test_half_a_score_is_a_refusal_of_the_right_and_no_acceptance_of_the_wrong(verifiers: Path) -> None:
    report = audit(f"{verifiers}:half", ["5"])
    assert report.rewrites["int.0"].rate == Rate(2, 2, 0)
    assert report.false_positives.errors == 0


def test_golds_that_do_not_pass_themselves_are_counted_and_not_tried_further(verifiers: Path) -> None:
    report = audit(f"{verifiers}:moody", ["5", "7", "8"])
    assert report.identity.rate == Rate(1, 2, 1)
    assert [example.gold for example in report.identity.examples] == ["8"]
    assert report.passing == ["5"]
    assert report.edits["+1"].rate.judged == 1
    assert report.undecided["verifier_error"] == 1


def test_answers_are_shown_in_the_form_the_verifier_reads(verifiers: Path) -> None:
    assert audit("math", ["5"]).response_form == "boxed"
    assert audit(f"{verifiers}:bare", ["5"]).response_form == "bare"


def test_policy_is_in_no_rate(verifiers: Path) -> None:
    report = audit(f"{verifiers}:strict", ["50\\%"])
    dropped = report.rewrites["percent sign dropped"]
    assert dropped.policy and dropped.rate == Rate(1, 1, 0)
    counted = sum(count.rate.judged for count in report.rewrites.values())
    assert report.false_negatives.judged == counted - 1


def test_the_same_golds_are_drawn_for_the_same_seed() -> None:
    golds = [str(n) for n in range(60)] * 2
    first, again, other = (audit("exact", golds, limit=10, seed=seed) for seed in (1, 1, 2))
    assert (first.gold_count, first.distinct_count, first.audited, first.seed) == (120, 60, 10, 1)
    assert first.passing == again.passing != other.passing
    assert first.passing == sorted(first.passing, key=int)
    assert first.edits == again.edits and first.rewrites == again.rewrites and first.gaming == again.gaming


def test_each_gold_is_reported_as_it_is_done() -> None:
    done: list[None] = []
    audit("exact", ["1", "2", "2", "3"], on_gold=lambda: done.append(None))
    assert len(done) == 3


def test_an_audit_of_nothing_is_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="at least one gold"):
        audit("math", ["", "  "])
    with pytest.raises(ConfigError, match="no verifier"):
        audit("nope", ["5"])


@given(st.integers(1, 400), st.data())
def test_the_interval_holds_the_rate_and_stays_within_bounds(n: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, n))
    low, high = Rate(errors, n).interval
    assert 0.0 <= low <= errors / n <= high <= 1.0
    assert high - low < 1.0


def test_the_interval_is_wilsons() -> None:
    low, high = Rate(1, 10).interval
    assert (low, high) == pytest.approx((0.017876, 0.404150), abs=1e-5)
    assert Rate(0, 0).interval == (0.0, 1.0) and Rate(0, 0).share is None


def test_the_interval_covers_the_true_rate_about_as_often_as_it_says() -> None:
    n, true = 60, Fraction(1, 10)
    covered = sum(
        comb(n, k) * true**k * (1 - true) ** (n - k)
        for k in range(n + 1)
        if Rate(k, n).interval[0] <= true <= Rate(k, n).interval[1]
    )
    assert 0.92 < covered < 0.99


def test_speed_is_told_in_milliseconds() -> None:
    speed = speed_of([0.001] * 98 + [0.010, 0.5])
    assert (speed.verdicts, speed.median_ms, speed.p99_ms, speed.max_ms) == (100, 1.0, 10.0, 500.0)
    assert speed_of([]).verdicts == 0

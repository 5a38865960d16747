"""Rates: what is counted as an error, what is not counted, and which golds are drawn."""

from __future__ import annotations

import time
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.verifiers import ConfigError
from truegold.verifiers.audit import audit, check
from truegold.verifiers.audit.audit_report import speed_of, summary_lines
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
    counted = sum(count.rate.judged for count in report.rewrites.values() if not count.policy)
    assert report.false_negatives.judged == counted > 0


def test_the_same_golds_are_drawn_for_the_same_seed() -> None:
    golds = [str(n) for n in range(60)] * 2
    first, again, other = (audit("exact", golds, limit=10, seed=seed) for seed in (1, 1, 2))
    assert (first.gold_count, first.distinct_count, first.audited, first.seed) == (120, 60, 10, 1)
    assert first.passing == again.passing != other.passing
    assert first.passing == sorted(first.passing, key=int)
    assert first.edits == again.edits and first.rewrites == again.rewrites and first.gaming == again.gaming


def test_verdicts_are_reported_as_they_come_and_the_last_is_about_the_last() -> None:
    done: list[tuple[int, int]] = []
    report = audit("exact", ["1", "2", "2", "3"], on_verdicts=lambda so_far, total: done.append((so_far, total)))
    counts = [so_far for so_far, _ in done]
    assert counts == sorted(counts) and counts[-1] >= report.speed.verdicts
    assert abs(done[-1][1] - counts[-1]) <= 0.1 * counts[-1]


FORMS = r"""
import re, time
from truegold.verifiers import verifier

def last(pattern, response, gold):
    found = re.findall(pattern, response, re.DOTALL)
    return bool(found) and found[-1].strip() == gold

def boxed(response, gold):
    return last(r"\\boxed\{([^{}]*)\}", response, gold)

def hashes(response, gold):
    return last(r"#### (.+)$", response, gold)

def phrase(response, gold):
    return last(r"The answer is (.+?)\.?$", response, gold)

def tags(response, gold):
    return last(r"<answer>(.+)</answer>", response, gold)

def label(response, gold):
    return last(r"^Answer: (.+)$", response, gold)

def json_field(response, gold):
    return last(r'^\{"answer": "(.+)"\}$', response, gold)

def after_thoughts(response, gold):
    return last(r"^<think>.*</think>\s*\\boxed\{(.*)\}$", response, gold)

def bare(response, gold):
    return response == gold

def anywhere(response, gold):
    return gold in response

def odd(response, gold):
    return last(r"^RESULT=(.+);$", response, gold)

@verifier(gold_response="RESULT={gold};")
def odd_said(response, gold):
    return odd(response, gold)

@verifier(gold_response=lambda gold: f"RESULT={gold};")
def odd_made(response, gold):
    return odd(response, gold)

def slow(response, gold):
    time.sleep(0.4)
    return boxed(response, gold)
"""


@pytest.mark.parametrize(
    ("name", "form", "is_said"),
    [
        ("boxed", "boxed", False),
        ("hashes", "hashes", False),
        pytest.param("phrase", "phrase", False, marks=pytest.mark.long_run),
        pytest.param("tags", "tags", False, marks=pytest.mark.long_run),
        pytest.param("label", "label", False, marks=pytest.mark.long_run),
        pytest.param("json_field", "json", False, marks=pytest.mark.long_run),
        pytest.param("after_thoughts", "box after thoughts", False, marks=pytest.mark.long_run),
        pytest.param("bare", "bare", True, marks=pytest.mark.long_run),
        ("anywhere", "boxed", True),
        ("odd_said", "gold_response", True),
        pytest.param("odd_made", "gold_response", True, marks=pytest.mark.long_run),
    ],
)
def test_the_form_that_a_verifier_reads_is_found_and_the_remedy_named(
    tmp_path: Path, name: str, form: str, is_said: bool
) -> None:
    (tmp_path / "forms.py").write_text(FORMS)
    report = audit(f"{tmp_path / 'forms.py'}:{name}", ["12", "Paris", "7"])
    assert (report.response_form, report.identity.rate.errors) == (form, 0)
    assert report.false_positives.judged > 0
    shown = "\n".join(summary_lines(report))
    assert ("@verifier(gold_response=" in shown) is not is_said


@pytest.mark.long_run  # test_verifiers_cli.py shows the same of the command.
def test_a_form_that_is_not_found_is_asked_for_and_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "forms.py").write_text(FORMS)
    name = f"{tmp_path / 'forms.py'}:odd"
    report = audit(name, ["12", "7"])
    assert report.identity.rate.errors == 2
    assert "--gold-response" in "\n".join(summary_lines(report))
    assert "--gold-response" in next(line.detail for line in check(name, golds=["12", "7"]) if line.ok is False)
    given = audit(name, ["12", "7"], gold_response="RESULT={gold};")
    assert given.identity.rate.errors == 0 and given.false_positives.judged > 0
    kept = check(name, golds=["12", "7"], gold_response="RESULT={gold};")
    assert next(line for line in kept if line.name == "gold passes itself").ok


def test_an_audit_of_a_slow_verifier_keeps_to_its_time(tmp_path: Path) -> None:
    (tmp_path / "forms.py").write_text(FORMS)
    name = f"{tmp_path / 'forms.py'}:slow"
    began = time.monotonic()
    report = audit(name, list(map(str, range(10, 30))), seconds=12)
    assert time.monotonic() - began < 30
    assert report.most_trials == 12 and 0 < report.audited < 20
    assert report.false_negatives.judged + report.false_positives.judged + report.gamed.judged > 0
    again = audit("exact", list(map(str, range(10, 30))), seconds=600)
    assert again.most_trials is None and again.audited == 20
    assert "In the available time" in "\n".join(summary_lines(report))


def test_a_check_of_a_slow_verifier_keeps_to_its_time(tmp_path: Path) -> None:
    (tmp_path / "forms.py").write_text(FORMS)
    began = time.monotonic()
    checked = check(f"{tmp_path / 'forms.py'}:slow", golds=list(map(str, range(10, 30))), seconds=8)
    assert time.monotonic() - began < 40
    lines = {line.name: line for line in checked}
    assert lines["deterministic"].ok and lines["stands hostile golds"].ok is None
    assert "no time was left" in lines["stands hostile golds"].detail


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

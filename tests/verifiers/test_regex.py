"""Patterns in linear time."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from truegold.verifiers import Reason, RegexVerifier, gold_response, resolve
from truegold.verifiers.answers.text_match import MAX_PATTERN_CHARS, MAX_STEPS, MAX_TEXT_CHARS

judge = RegexVerifier()
DATE = {"pattern": r"\d{4}-\d{2}-\d{2}"}


def test_the_committed_answer_has_to_fit_as_a_whole():
    assert judge("It was on a Monday: \\boxed{2024-02-29}", None, info=DATE).passed
    assert judge("\\boxed{on 2024-02-29}", None, info=DATE).reason is Reason.MISMATCH
    assert judge("\\boxed{on 2024-02-29}", None, info={**DATE, "full": False}).passed
    assert judge("I do not know on which of these days it was.", None, info=DATE).reason is Reason.NO_ANSWER


def test_where_names_the_text_that_is_looked_at():
    response = "<think>secret</think> The word is open."
    for where, secret, open_ in (("response", 1.0, 1.0), ("final", 0.0, 1.0)):
        assert judge(response, None, info={"pattern": "secret", "where": where}).score == secret
        assert judge(response, None, info={"pattern": "open", "where": where}).score == open_
    assert judge(response, None, info={"pattern": "open", "where": "final", "full": True}).score == 0.0


def test_gold_is_the_pattern_where_info_has_none():
    assert judge("\\boxed{color}", "colou?r").passed
    assert judge("\\boxed{colr}", "colou?r").score == 0.0
    assert judge("\\boxed{5}", "not looked at", info={"pattern": "5"}).passed


def test_flags():
    info = {"pattern": "^paris.$", "where": "response"}
    assert judge("PARIS\n", None, info={**info, "flags": "is"}).passed
    assert judge("PARIS\n", None, info={**info, "flags": "i"}).score == 0.0
    assert judge("in\nparis!\nnow", None, info={**info, "flags": "m"}).passed


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(x+x+)+y", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_that_explode_elsewhere_come_to_an_end(pattern):
    text = "a" * 100_000 + "!"
    assert judge(text, None, info={"pattern": pattern, "where": "response", "full": True}).score == 0.0


def test_a_large_pattern_on_a_long_text_is_refused_before_it_runs():
    info = {"pattern": "(?:.{0,1000}a)+x", "where": "response"}
    verdict = judge("a" * MAX_TEXT_CHARS, None, info=info)
    assert (verdict.score, verdict.reason) == (0.0, Reason.UNREAD)
    assert verdict.evidence["limit"] < MAX_TEXT_CHARS < MAX_STEPS
    assert judge("aax", None, info=info).passed
    too_long = judge("a" * (MAX_TEXT_CHARS + 1), None, info={"pattern": "a", "where": "response"})
    assert too_long.reason is Reason.UNREAD


@pytest.mark.parametrize("pattern", ["[", "(", "a{1001}", r"(a)\1", "(?=a)b", "a" * (MAX_PATTERN_CHARS + 1), "\ud800"])
def test_a_pattern_that_cannot_be_read_is_no_verdict_and_no_exception(pattern):
    as_option = judge("\\boxed{5}", None, info={"pattern": pattern})
    assert (as_option.score, as_option.reason) == (None, Reason.VERIFIER_ERROR)
    as_gold = judge("\\boxed{5}", pattern)
    assert (as_gold.score, as_gold.reason) == (None, Reason.GOLD_UNPARSED)
    assert "pattern" in as_option.evidence["error"] + as_gold.evidence["error"]


@pytest.mark.parametrize(
    "info", [{"pattern": 5}, {"pattern": "a", "where": "title"}, {"pattern": "a", "full": 1}, {"flags": "x"}]
)
def test_bad_options_are_no_verdict(info):
    verdict = judge("\\boxed{a}", "a", info=info)
    assert (verdict.score, verdict.reason) == (None, Reason.VERIFIER_ERROR)
    assert next(reversed(info)) in verdict.evidence["error"]


@pytest.mark.parametrize("response", ["\\boxed{a\ud800b}", "\\boxed{a\x00b}", "\\boxed{a\u202eb}"])
def test_hostile_characters_are_matched_as_they_are(response):
    assert judge(response, None, info={"pattern": "a.b"}).passed


def test_missing_gold_and_no_response_made_of_a_pattern():
    assert judge("\\boxed{5}", None).reason is Reason.GOLD_MISSING
    assert gold_response(judge, "colou?r") is None


def test_threads_share_the_compiled_patterns_and_it_travels():
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda n: judge(f"\\boxed{{{n}}}", None, info={"pattern": f"[{n % 7}]"}), range(200)))
    assert [v.passed for v in verdicts] == [n < 7 for n in range(200)]
    assert pickle.loads(pickle.dumps(resolve("regex"))) == judge

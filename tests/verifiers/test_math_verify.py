"""Math-Verify by its name: its verdicts in truegold's contract, in a process that is killed when it takes too long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import truegold.verifiers as tv
from truegold.verifiers import math_verify as module
from truegold.verifiers.registry import find_option_mistakes

pytest.importorskip("math_verify", reason="needs the package math-verify")


@pytest.mark.parametrize(
    ("response", "gold", "score", "reason"),
    [
        ("so \\boxed{0.5}", "\\frac{1}{2}", 1.0, "match"),
        ("so \\boxed{0.5}", "$\\frac{1}{2}$", 1.0, "match"),
        ("so \\boxed{5}", "1/2", 0.0, "mismatch"),
        ("I do not know", "12", 0.0, "no_answer"),
        ("\\boxed{12}", "", None, "gold_missing"),
        ("\\boxed{12}", None, None, "gold_missing"),
    ],
)
def test_its_verdicts_keep_the_contract(response: str, gold: str | None, score: float | None, reason: str) -> None:
    verdict = tv.verify(response, gold, verifier="math_verify")
    assert (verdict.score, verdict.reason) == (score, reason), verdict


def test_it_says_what_math_verify_read() -> None:
    verdict = tv.verify("so \\boxed{0.5}", "1/2", verifier="math_verify")
    assert verdict.extracted == "\\frac{1}{2}" and "1/2" in verdict.evidence["gold"]


def test_it_agrees_with_math_verify_itself() -> None:
    from math_verify import parse, verify

    pairs = (("x^2+2x+1", "\\boxed{(x+1)^2}"), ("50\\%", "\\boxed{0.5}"), ("(1,2)", "$(1,3)$"), ("7", "7 or 8"))
    for gold, response in pairs:
        theirs = bool(verify(parse(f"\\boxed{{{gold}}}"), parse(response)))
        assert tv.verify(response, gold, verifier="math_verify").score == float(theirs)


def test_threads_get_verdicts_where_math_verifys_own_timeouts_do_not_work() -> None:
    with ThreadPoolExecutor(4) as threads:
        scores = threads.map(lambda n: tv.verify(f"\\boxed{{{n}}}", "3", verifier="math_verify").score, range(8))
        assert list(scores) == [float(n == 3) for n in range(8)]


def test_what_takes_too_long_is_killed_and_the_next_verdict_comes_from_a_fresh_process() -> None:
    tv.verify("\\boxed{1}", "1", verifier="math_verify")
    began = time.monotonic()
    verdict = tv.verify("\\boxed{9^{9^{9^{9}}}}", "9^{9^{9^{9}}}+1", verifier="math_verify", deadline_s=1.0)
    assert verdict.score is None and verdict.reason in ("timeout", "limit") and time.monotonic() - began < 30
    assert tv.verify("\\boxed{1}", "1", verifier="math_verify").score == 1.0


def test_a_child_that_dies_is_replaced() -> None:
    tv.verify("\\boxed{1}", "1", verifier="math_verify")
    child = module._worker.child
    assert child is not None
    child.interrupt()
    assert tv.verify("\\boxed{2}", "2", verifier="math_verify").score == 1.0


def test_its_option_is_checked() -> None:
    assert find_option_mistakes("math_verify", {"deadline_s": 5}) == []
    assert "deadline_s must be" in find_option_mistakes("math_verify", {"deadline_s": "soon"})[0]


def test_without_the_package_it_says_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._worker, "child", None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(tv.SetupError, match=r"truegold\[math-verify\]"):
        tv.verify("\\boxed{1}", "1", verifier="math_verify")

"""A response that could not be judged scores 0 where a plain wrong response to the same row has a score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from truegold.verifiers import Item, Reason, Verdict, verify_batch
from truegold.verifiers.running.blame import score_avoidable


def settle(item: Item) -> Verdict:
    (verdict,) = score_avoidable([item], list(verify_batch([item], workers=1)), judge)
    return verdict


def judge(items: Sequence[Item]) -> Iterator[Verdict]:
    return verify_batch(items, workers=1)


@pytest.fixture
def picky(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A verifier that raises on what holds no number."""
    path = tmp_path_factory.mktemp("picky") / "picky.py"
    path.write_text(
        "import re\n\n\ndef judge(response, gold):\n"
        "    if 'None' in response:\n        return None\n"
        "    return float(re.findall(r'-?[0-9.]+', response.rstrip('.'))[-1].rstrip('.')) == float(gold)\n"
    )
    return f"{path}:judge"


def test_a_verifier_that_raises_on_a_response_alone_is_the_response_s_fault(picky: str) -> None:
    verdict = settle(Item("no number here", "5", picky))
    assert (verdict.score, verdict.reason) == (0.0, Reason.VERIFIER_ERROR)
    assert verdict.evidence["avoidable"] is True
    assert "IndexError" in verdict.evidence["error"]


def test_a_verifier_that_declines_a_response_alone_is_the_response_s_fault(picky: str) -> None:
    assert settle(Item("None of it, 5", "5", picky)).score == 0.0


def test_a_verifier_that_raises_on_every_response_to_a_row_is_not_the_response_s_fault(picky: str) -> None:
    verdict = settle(Item("it is 7", "five", picky))
    assert (verdict.score, "avoidable" in verdict.evidence) == (None, False)


def test_a_gold_that_cannot_be_read_is_not_the_response_s_fault() -> None:
    assert settle(Item("\\boxed{7}", "\\frac{1}{")).score is None
    assert settle(Item("The answer is blue.", "\\frac{1}{")).score is None


def test_words_beside_a_gold_that_numbers_are_compared_with_are_the_response_s_fault() -> None:
    before = next(iter(verify_batch([Item("\\boxed{5 frobs}", "5 glorps")])))
    assert (before.score, before.reason) == (None, Reason.DECLINED)
    assert settle(Item("\\boxed{5 frobs}", "5 glorps")).score == 0.0


def test_a_suite_that_cannot_run_is_not_the_program_s_fault() -> None:
    tests = {"tests": {"type": "asserts", "code": "import nowhere_to_be_found\nassert nowhere_to_be_found.f(f(1))"}}
    assert settle(Item("```python\ndef f(x): return x\n```", None, "code", tests)).score is None


def test_what_has_a_score_stays_and_nothing_is_judged_again() -> None:
    items = [Item("\\boxed{5}", "5"), Item("\\boxed{6}", "5")]
    verdicts = list(verify_batch(items))

    def refuse(items: Sequence[Item]) -> Iterator[Verdict]:
        raise AssertionError(items)

    assert score_avoidable(items, verdicts, refuse) == verdicts


def test_a_machine_that_failed_once_is_asked_again() -> None:
    item = Item("\\boxed{5}", "5")
    (verdict,) = score_avoidable([item], [Verdict(None, Reason.SANDBOX_ERROR)], judge)
    assert (verdict.score, verdict.reason) == (1.0, Reason.MATCH)

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


VERIFIERS = {
    "as_float": "float(response.split()[-1]) == float(gold)",
    "as_json": "json.loads(response)['answer'] == gold",
    "as_tag": "re.search('<answer>(.*?)</answer>', response).group(1) == gold",
    "as_box": "re.findall(r'\\\\boxed\\{(\\d+)\\}', response)[-1] == gold",
    "as_letter": "re.findall(r'\\\\boxed\\{([A-D])\\}', response)[-1] == gold",
    "with_a_mark": "re.search('=> (.*)', response).group(1) == gold",
}


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Verifiers that raise on a response in another form than their own."""
    path = tmp_path_factory.mktemp("users") / "users.py"
    functions = [f"def {name}(response, gold):\n    return {body}\n" for name, body in VERIFIERS.items()]
    path.write_text("import json, re\n\n\n" + "\n\n".join(functions))
    return str(path)


@pytest.mark.parametrize("name", [name for name in VERIFIERS if name != "with_a_mark"])
def test_a_response_without_the_form_that_a_user_s_verifier_reads_is_at_fault(users: str, name: str) -> None:
    gold = "C" if name == "as_letter" else "5"
    assert settle(Item("something without any form", gold, f"{users}:{name}")).score == 0.0


def test_another_response_to_the_row_with_a_score_shows_that_it_can_be_judged(users: str) -> None:
    formless, wrong = (Item(text, "5", f"{users}:with_a_mark") for text in ("no form", "=> 6"))
    assert settle(formless).score is None
    asked = [formless, wrong, Item("no form", "7", f"{users}:with_a_mark")]
    settled = score_avoidable(asked, list(verify_batch(asked, workers=1)), judge)
    assert [verdict.score for verdict in settled] == [0.0, 0.0, None]


def test_a_row_whose_own_gold_cannot_be_judged_is_at_fault() -> None:
    def slow(asked: Sequence[Item]) -> Iterator[Verdict]:
        for item in asked:
            is_gold = "12345" in item.response
            yield Verdict(None, Reason.TIMEOUT) if is_gold else Verdict(0.0, Reason.MISMATCH)

    item = Item("\\boxed{12345}", "12345", "math_verify")
    (verdict,) = score_avoidable([item], [Verdict(None, Reason.TIMEOUT)], slow)
    assert verdict.score is None


def test_a_sandbox_that_fails_twice_is_asked_a_third_time() -> None:
    calls: list[int] = []

    def busy(asked: Sequence[Item]) -> Iterator[Verdict]:
        calls.append(len(asked))
        for item in asked:
            failed = "right" in item.response and len(calls) < 3
            yield Verdict(None, Reason.SANDBOX_ERROR) if failed else Verdict(1.0, Reason.MATCH)

    item = Item("right", None, "code")
    (verdict,) = score_avoidable([item], [Verdict(None, Reason.SANDBOX_ERROR)], busy)
    assert (verdict.score, calls) == (1.0, [2, 1, 1])

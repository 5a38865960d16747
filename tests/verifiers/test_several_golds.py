"""Several accepted golds of a row: any of them is right, and one that cannot be judged leaves it open."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import truegold.verifiers as tv
from truegold.verifiers.gold import MAX_GOLDS, all_golds
from truegold.verifiers.registry import find_option_mistakes


@pytest.mark.parametrize(
    ("answer", "score", "gold"),
    [("\\boxed{0.5}", 1.0, "1/2"), ("\\boxed{7}", 1.0, "7"), ("\\boxed{seven}", 1.0, "7"), ("\\boxed{3}", 0.0, None)],
)
def test_a_response_is_right_by_any_accepted_gold(answer: str, score: float, gold: str | None) -> None:
    verdict = tv.verify(answer, "1/2", other_golds=["7", "9"])
    assert verdict.score == score
    if gold is not None:
        assert verdict.evidence["gold"] == gold
    assert verdict.evidence["golds"] == 3


def test_a_list_of_golds_is_no_list_of_answers() -> None:
    """Both golds together are hedging, not the answer."""
    assert tv.verify("\\boxed{5 or 6}", "5", other_golds=["6"]).score == 0.0


def test_a_gold_that_cannot_be_read_leaves_a_response_open_that_no_other_gold_accepts() -> None:
    unreadable = "\\frac{1"
    assert tv.verify("\\boxed{5}", "5", other_golds=[unreadable]).score == 1.0
    assert tv.verify("\\boxed{5}", unreadable, other_golds=["5"]).score == 1.0
    assert tv.verify("\\boxed{6}", "5", other_golds=[unreadable]).score is None


@pytest.mark.parametrize("name", ["math", "exact", "numeric", "choice"])
def test_every_verifier_has_the_argument_and_keeps_its_own(name: str) -> None:
    response = "\\boxed{B}" if name == "choice" else "\\boxed{4}"
    golds = ("A", "B") if name == "choice" else ("3", "4")
    info = {"abs_tol": 0.1} if name == "numeric" else {}
    (verdict,) = tv.verify_batch([tv.Item(response, golds[0], name, json.dumps({"other_golds": [golds[1]], **info}))])
    assert verdict.passed, verdict


def test_a_verifier_of_the_users_sees_one_gold_at_a_time() -> None:
    seen = []

    @tv.verifier
    def shouting(response: str, gold: str, *, info: dict[str, object]) -> bool:
        seen.append((gold, dict(info)))
        return response == gold.upper()

    assert tv.verify("B", "a", verifier=shouting, other_golds=["b"], strict=True).passed
    assert seen == [("a", {"strict": True}), ("b", {"strict": True})]


@pytest.mark.parametrize("value", ["7", [7], ["a"] * MAX_GOLDS, {"a": 1}])
def test_what_is_no_list_of_texts_is_a_verdict_without_a_score_and_a_mistake_of_a_call_or_configuration(
    value: object,
) -> None:
    (verdict,) = tv.verify_batch([tv.Item("\\boxed{7}", "6", "math", json.dumps({"other_golds": value}))])
    assert verdict.score is None and "other_golds" in verdict.evidence["error"]
    with pytest.raises(tv.ConfigError, match="other_golds"):
        tv.verify("\\boxed{7}", "6", other_golds=value)
    assert "other_golds" in find_option_mistakes("math", {"other_golds": value})[0]


def test_the_configuration_may_set_it_for_every_verifier() -> None:
    assert find_option_mistakes("exact", {"other_golds": ["a"], "case_sensitive": True}) == []


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=6, unique=True), st.integers(-99, 99))
def test_the_order_of_the_golds_decides_nothing(golds: list[int], answer: int) -> None:
    scores = {
        tv.verify(f"\\boxed{{{answer}}}", str(order[0]), other_golds=list(map(str, order[1:]))).score
        for order in (golds, golds[::-1])
    }
    assert scores == {float(answer in golds)}


def test_all_golds_has_the_first_one_first() -> None:
    assert all_golds("a", {"other_golds": ["b", "c"]}) == ("a", "b", "c")
    assert all_golds(None, {}) == ()

"""Completions of the first step that are judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from truegold.train.guards.canaries import Canaries, Judgement

TEXTS = ["4", "5", "4", "6", "4", "4", "7", "8"]


def judge(texts: Sequence[str]) -> list[Judgement]:
    return [(float(text == "4"), float(text == "4")) for text in texts]


def changed_share(judge_now: Callable[[Sequence[str]], list[Judgement]]) -> float | None:
    canaries = Canaries(judge)
    assert canaries.changed_share() is None
    canaries.choose(TEXTS, judge(TEXTS))
    canaries.judge = judge_now
    return canaries.changed_share()


@pytest.mark.parametrize(
    ("judge_now", "share"),
    [
        (judge, 0.0),
        (lambda texts: [(1.0 - reward, score) for reward, score in judge(texts)], 1.0),
        (lambda texts: [(None, None) for _ in texts], 1.0),
        (lambda texts: [(float("nan"), 1.0) for _ in texts], 1.0),
        (lambda texts: [(1.0, 1.0) for _ in texts], 0.5),
    ],
    ids=["the same", "turned around", "failing", "NaN", "constant"],
)
def test_a_verifier_that_changes_is_noticed(
    judge_now: Callable[[Sequence[str]], list[Judgement]], share: float
) -> None:
    assert changed_share(judge_now) == share

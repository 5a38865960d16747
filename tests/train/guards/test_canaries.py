"""Completions of the first step that are judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from truegold.train.grpo import groups
from truegold.train.grpo.groups import Canaries, CompletionScore, Judgement, StepCompletion
from truegold.train.model.segment import Segment
from truegold.verifiers import Reason, Reward, Verdict

TEXTS = ["4", "5", "4", "6", "4", "4", "7", "8"]


def judge(texts: Sequence[str]) -> list[Judgement]:
    return [(float(text == "4"), float(text == "4")) for text in texts]


def as_scores(judgements: Sequence[Judgement]) -> list[CompletionScore]:
    verdicts = [Verdict(score, Reason.MATCH) for _, score in judgements]
    rewards = [Reward(reward, {}) for reward, _ in judgements]
    return [CompletionScore(reward, (verdict,), verdict) for reward, verdict in zip(rewards, verdicts, strict=True)]


def changed_share(judge_now: Callable[[Sequence[str]], list[Judgement]]) -> float | None:
    scorer: Any = SimpleNamespace(score=lambda rows, answers, is_new: as_scores(judge_now(rows)))
    canaries = Canaries(scorer)
    rows: Any = TEXTS
    pairs = zip(rows, as_scores(judge(TEXTS)), strict=True)
    assert canaries.check([StepCompletion(text, Segment((1,), (2,)), score) for text, score in pairs]) is None
    return canaries.check([])


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
    monkeypatch: pytest.MonkeyPatch, judge_now: Callable[[Sequence[str]], list[Judgement]], share: float
) -> None:
    monkeypatch.setattr(groups, "rank", lambda: 0)
    monkeypatch.setattr(groups, "from_first_rank", lambda value: value)
    assert changed_share(judge_now) == share

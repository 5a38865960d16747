"""What a step trains on belongs together: rows to ranks, verdicts to completions."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo import belonging
from truegold.train.grpo.belonging import COLUMNS, KINDS, StoredVerdicts, count_apart, make_stored_verdicts
from truegold.train.grpo.groups import completions_path
from truegold.verifiers import Item, Reason, Verdict, verify

Rank = tuple[list[str], list[tuple[int, str]]]


@pytest.mark.parametrize(
    ("ranks", "apart"),
    [
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("abcd"), [(1, "b"), (3, "d")])], 0),
        ([(list("abab"), [(0, "a"), (2, "a")]), (list("abab"), [(1, "b"), (3, "b")])], 0),  # Few rows, drawn twice.
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("bacd"), [(1, "a"), (3, "d")])], 2),  # Another seed.
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("acbd"), [(1, "c"), (3, "d")])], 2),
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("abxd"), [(1, "b"), (3, "d")])], 1),  # Not sampled there.
        ([(list("abcd"), [(0, "a"), (1, "b")]), (list("abcd"), [(1, "b"), (3, "d")])], 1),  # One group twice.
        ([(list("abc"), [(0, "a"), (2, "c")]), (list("abcd"), [(1, "b"), (3, "d")])], 1),
        ([(list("ab"), [(0, "a"), (1, "c")])], 1),  # A row in the place of another, on one rank.
    ],
)
def test_groups_that_are_apart_are_counted(monkeypatch: pytest.MonkeyPatch, ranks: list[Rank], apart: int) -> None:
    monkeypatch.setattr(belonging, "gathered", lambda value: ranks)
    assert count_apart(*ranks[-1]) == apart


Line = dict[str, Any]
Step = list[Line]
GROUPS, SIZE = 6, 4


def sound_step(step: int) -> Step:
    """Return the stored lines of a step, about a quarter of which are right."""
    draw = random.Random(step)
    lines = []
    for group in range(GROUPS):
        rewards = [float(draw.random() < 0.25) for _ in range(SIZE)]
        for reward in rewards:
            answer = 10 + group if reward else draw.randrange(100, 900)
            score = {"score": reward, "reason": "match" if reward else "mismatch", "added": reward}
            lines.append(
                {
                    **{"id": f"p{group}", "group": group, "prompt": f"What is {group}+10?", "gold": str(10 + group)},
                    **{"completion": f"So it is {answer}.", "score": reward, "reason": score["reason"]},
                    **{"extracted": str(answer), "reward": reward, "reward_terms": json.dumps({"correct": score})},
                    **{"advantage": reward - sum(rewards) / SIZE, "trained": len(set(rewards)) > 1},
                }
            )
    return lines


def rows(verifier: str) -> list[Row]:
    return [
        cast(
            "Row",
            {
                **{"id": f"p{group}", "prompt": f"What is {group}+10?", "gold": str(10 + group)},
                **{"verifier": verifier, "verifier_args": "{}", "context": None},
            },
        )
        for group in range(GROUPS)
    ]


def judge(questions: Sequence[Item]) -> list[Verdict]:
    return [verify(question.response, question.gold, verifier="math") for question in questions]


def flipping(share: float, seed: int = 0) -> Callable[[Sequence[Item]], list[Verdict]]:
    draw = random.Random(seed)

    def flip(questions: Sequence[Item]) -> list[Verdict]:
        return [
            Verdict(1.0 - (each.score or 0.0), each.reason, each.extracted) if draw.random() < share else each
            for each in judge(questions)
        ]

    return flip


def checks(
    folder: Path,
    spoil: Callable[[Step], Step],
    judges: Callable[[Sequence[Item]], list[Verdict]] = judge,
    *,
    verifier: str = "math",
    steps: int = 3,
    **settings: Any,
) -> list[dict[str, float | None]]:
    """Return what is measured of the steps, all but the first of which are spoilt."""
    config = GrpoConfig.model_validate({"group_size": SIZE, "prompts_per_step": GROUPS, **settings})
    scorer: Any = SimpleNamespace(judge_apart=judges)
    stored: StoredVerdicts = make_stored_verdicts(scorer, config, folder, rows(verifier))
    measured = []
    for step in range(steps):
        path = completions_path(folder, step, 0)
        path.parent.mkdir(exist_ok=True)
        lines = sound_step(step) if step == 0 else spoil(sound_step(step))
        pl.DataFrame(lines, schema_overrides={"reward": pl.Float64}).select(COLUMNS).write_parquet(path)
        measured.append(stored.check(step))
    return measured


def moved(names: Sequence[str], by: int) -> Callable[[Step], Step]:
    """Return what gives lines the fields of those so many places before them."""
    return lambda lines: [
        {**line, **{name: lines[(index - by) % len(lines)][name] for name in names}} for index, line in enumerate(lines)
    ]


VERDICT = ("score", "reason", "extracted", "reward", "reward_terms", "advantage", "trained")


def judged_by_gold_of(offset: int) -> Callable[[Step], Step]:
    """Verdicts are those of another group's gold, while the gold that is stored is the row's."""

    def spoil(lines: Step) -> Step:
        spoilt = []
        for line in lines:
            gold = str(10 + (line["group"] + offset) % GROUPS)
            # Half of the completions happen to say that gold.
            answer = gold if len(spoilt) % 2 else line["extracted"]
            (verdict,) = judge([Item(f"So it is {answer}.", gold)])
            score = {"score": verdict.score, "reason": str(verdict.reason), "added": verdict.score}
            changes = {"score": verdict.score, "reason": str(verdict.reason), "extracted": verdict.extracted}
            changes |= {"completion": f"So it is {answer}.", "reward": verdict.score, "advantage": 0.0}
            spoilt.append({**line, **changes, "reward_terms": json.dumps({"correct": score}), "trained": False})
        return spoilt

    return spoil


@pytest.fixture(autouse=True)
def one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belonging, "rank", lambda: 0)
    monkeypatch.setattr(belonging, "world_size", lambda: 1)
    monkeypatch.setattr(belonging, "gathered", lambda value: [value])
    monkeypatch.setattr(belonging, "from_first_rank", lambda value: value)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda lines: lines, None),
        (moved(VERDICT, 1), "verdicts_moved"),
        (moved(VERDICT, -1), "verdicts_moved"),
        (moved(VERDICT, SIZE), "verdicts_moved"),
        (moved(("reward",), 1), "rewards_moved"),
        (moved(("advantage",), 1), "advantages_moved"),
        (lambda lines: [{**line, "advantage": -line["advantage"]} for line in lines], "advantages_moved"),
        (lambda lines: [{**line, "reward": len(line["completion"]) / 20} for line in lines], "rewards_moved"),
        (moved(("gold",), SIZE), "golds_moved"),
        (moved(("prompt",), SIZE), "golds_moved"),
        (judged_by_gold_of(1), "golds_moved"),
        (judged_by_gold_of(-1), "golds_moved"),
        (lambda lines: [{**line, "score": 1.0 - line["score"]} for line in lines], "verdicts_wrong"),
        (lambda lines: [{**line, "score": None, "reason": "timeout", "reward": None, "reward_terms": json.dumps(
            {"correct": {"score": None, "reason": "timeout", "added": None}})} for line in lines], None),
        (lambda lines: [{**line, "reward": float("nan")} for line in lines], None),  # Another guard's.
    ],
)  # fmt: skip
def test_what_belongs_to_another_completion_is_noticed_at_once_by_its_kind(
    tmp_path: Path, spoil: Callable[[Step], Step], kind: str | None
) -> None:
    first, second, _ = checks(tmp_path, spoil)
    assert not any(first.values())
    assert {name for name in KINDS if second[name]} == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("judges", "changed", "kind"),
    [
        (judge, 0.0, None),
        (flipping(0.2), None, "verifier_random"),
        (flipping(1.0), 1.0, "verdicts_wrong"),
        (lambda questions: [Verdict(None, Reason.VERIFIER_ERROR) for _ in questions], 1.0, "verdicts_wrong"),
        (lambda questions: [Verdict(None, Reason.TIMEOUT) for _ in questions], None, None),  # A busy machine.
        (lambda questions: [Verdict(1.0, Reason.MATCH, each.extracted) for each in judge(questions)], 0.5, None),
    ],
    ids=["the same", "draws lots", "turned around", "failing", "too slow", "constant"],
)
def test_a_verifier_that_judges_otherwise_is_noticed(
    tmp_path: Path,
    judges: Callable[[Sequence[Item]], list[Verdict]],
    changed: float | None,
    kind: str | None,
) -> None:
    measured = checks(tmp_path, lambda lines: lines, judges, steps=6)
    if changed is not None:
        assert measured[-1]["canaries_changed"] == pytest.approx(changed, abs=0.13)
    if kind is not None:
        assert any(each[kind] for each in measured[:4])


def test_programs_that_draw_numbers_are_compared_by_their_share(tmp_path: Path) -> None:
    def apart(share: float) -> list[float | None]:
        measured = checks(tmp_path, lambda lines: lines, flipping(share), verifier="code", steps=12)
        assert not any(each[kind] for each in measured for kind in KINDS)
        return [each["verdicts_apart"] for each in measured]

    assert max(low or 0.0 for low in apart(0.05)) < 0.2
    assert next(step for step, low in enumerate(apart(0.9)) if (low or 0.0) > 0.2) <= 2


@pytest.mark.parametrize("settings", [{"guards": {"rejudged": 0}}, {"turns": {"environment": "x.py:E"}}])
def test_nothing_is_judged_again_where_that_is_off_or_rewards_are_an_environment_s(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    assert checks(tmp_path, lambda lines: lines, **settings) == [{}, {}, {}]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda verdict: verdict, 0.0),
        (lambda verdict: replace(verdict, score=0.0), 2.0),
        (lambda verdict: replace(verdict, score=1.0), 2.0),
        (lambda verdict: Verdict(None, Reason.VERIFIER_ERROR), 4.0),
        (lambda verdict: Verdict(None, Reason.TIMEOUT), 0.0),  # The machine's, not the verifier's.
    ],
)
def test_verdicts_of_an_evaluation_are_judged_again(
    tmp_path: Path, change: Callable[[Verdict], Verdict], wrong: float
) -> None:
    scorer: Any = SimpleNamespace(judge_apart=judge)
    stored = make_stored_verdicts(scorer, GrpoConfig.model_validate({}), tmp_path, rows("math"))
    questions = [
        Item(f"So it is {answer}.", gold, "math") for answer, gold in (("1", "1"), ("2", "2"), ("3", "4"), ("5", "6"))
    ]
    evaluated = [(question, change(verdict)) for question, verdict in zip(questions, judge(questions), strict=True)]
    assert stored.check_evaluation(evaluated) == {"evaluation_wrong": wrong}

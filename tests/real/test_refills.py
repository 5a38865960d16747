"""Refills: groups that teach nothing make room, and the share of right answers is moved by what comes in."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from numbered_rows import plain_row

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ByteEncoder
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig, GrpoConfig, Order
from truegold.train.grpo.evaluation import EvaluationRows
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.groups import SampledGroups, StepCompletion, choose_groups
from truegold.train.grpo.step import Trainer
from truegold.train.model.distributed import init_distributed
from truegold.train.model.segment import Segment

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("default")]

SIZE = 8


@pytest.fixture(scope="module", autouse=True)
def group_of_one() -> None:
    init_distributed()


class Judged(SampledGroups):
    """Groups whose completions are as right as their rows say."""

    def sample(self, rows: Sequence[Row], step: int, first_group: int) -> list[StepCompletion]:
        return [
            StepCompletion(row, Segment((1,), (2,), reward=float(right), right=right, group=group), UNUSED)
            for group, row in enumerate(rows, first_group)
            for right in [index < right_count(row) for index in range(SIZE)]
        ]


UNUSED = cast("Any", SimpleNamespace(encoder=ByteEncoder(ChatConfig()), all_rows=list))


def make_trainer(feed: Feed, config: GrpoConfig) -> Trainer:
    groups = Judged(feed, config, UNUSED, UNUSED, 8, None)
    return Trainer(feed, EvaluationRows(), config, UNUSED, UNUSED, groups, UNUSED, UNUSED)


def entered(rows: Sequence[int], reserve: Sequence[int], **settings: Any) -> tuple[list[int], Feed]:
    """How many are right in each group that enters, and the feed as the step left it."""
    config = GrpoConfig.model_validate({"prompts_per_step": len(rows), "group_size": SIZE, "sampling": settings})
    feed = Feed(
        [row(right) for right in rows],
        [row(right) for right in reserve],
        FeedConfig(order=Order.UNIFORM),
        group_size=SIZE,
        steps=1,
        seed=0,
    )
    trainer = make_trainer(feed, config)
    completions = trainer.groups.collect(0, 0, trainer._count_missing)
    scores = list(trainer._score_groups(completions).values())
    chosen = choose_groups(scores, config.prompts_per_step, config.sampling.right_share)
    return sorted(scores[index].right for index in chosen), feed


def row(right: int) -> Row:
    return plain_row("How many?", str(right), right=right, pass_rate=None)


def right_count(row: Row) -> int:
    return int(cast("dict[str, int]", row)["right"])


def test_groups_without_signal_are_replaced_from_the_reserve() -> None:
    assert entered([0, 3, 8, 5], [0, 4, 2], refills=2)[0] == [2, 3, 4, 5]


def test_a_share_of_right_answers_below_its_bounds_is_moved_by_the_refills() -> None:
    plain, _ = entered([1, 1, 1, 1], [7, 7, 7, 7], refills=2)
    bound, feed = entered([1, 1, 1, 1], [7, 7, 7, 7], refills=2, right_share=[0.3, 0.7])
    assert plain == [1, 1, 1, 1]
    assert bound == [1, 1, 1, 7]
    assert feed.refilled == 2


def test_a_share_within_its_bounds_asks_for_no_more() -> None:
    assert entered([3, 5, 4, 4], [7], refills=2, right_share=[0.3, 0.7])[1].refilled == 0


def test_what_a_step_is_relative_to_follows_the_setting() -> None:
    completions = [
        StepCompletion(row(0), Segment((1,), (2,), group=group), UNUSED) for group in range(32) for _ in range(SIZE)
    ]
    shares = []
    for relative_to in ("sampled", "teaching"):
        config = GrpoConfig.model_validate({"prompts_per_step": 32, "objective": {"relative_to": relative_to}})
        trainer = make_trainer(UNUSED, config)
        shares.append([trainer._share_entered(completions, range(entered)) for entered in (32, 8, 1)])
    assert shares == [[1.0, 0.25, 1 / 32], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize(("refills", "problems", "expected"), [(None, 16, 1), (None, 15, 0), (0, 100, 0), (3, 4, 3)])
def test_a_step_is_refilled_once_where_there_are_problems_for_two(
    refills: int | None, problems: int, expected: int
) -> None:
    sampling = GrpoConfig.model_validate({"sampling": {"refills": refills}}).sampling
    assert sampling.resolve_refills(problems, prompts_per_step=SIZE).refills == expected


def test_of_a_batch_that_is_left_out_nothing_counts_as_trained() -> None:
    config = GrpoConfig.model_validate({"prompts_per_step": 2})
    trainer = make_trainer(UNUSED, config)
    entered: list[list[int]] = []
    trainer.groups = cast(
        "Any", SimpleNamespace(finish=lambda groups, version, step: entered.append(list(groups)) or {"staleness": 0.0})
    )
    completions = [StepCompletion(row(1), Segment((1,), (2,)), UNUSED, trained=True)]
    assert trainer._note_outcome(completions, {0}, 4, 4) == {"staleness": 0.0}
    assert completions[0].trained
    assert trainer._note_outcome(completions, None, 5, 5) == {"trained_completions": 0.0, "staleness": 0.0}
    assert not completions[0].trained
    assert entered == [[0], []]

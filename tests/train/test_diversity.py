"""What right completions earn for differing: values by hand, and nothing for what is wrong, alone or all alike."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pydantic import ValidationError

from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import GrpoConfig
from truegold.train.config.reward import RewardConfig
from truegold.train.grpo.diversity import diversity_reward, mean_distances, pay_diversity
from truegold.train.grpo.rewards import CompletionScore, StepCompletion
from truegold.train.model.segment import Segment
from truegold.verifiers import Reason, Reward, Verdict


def completion(
    ids: tuple[int, ...], reward: float | None, *, extracted: str | None = None, group: int = 0
) -> StepCompletion:
    is_right = reward == 1.0
    verdict = Verdict(reward, Reason.MATCH if is_right else Reason.MISMATCH, extracted)
    score = CompletionScore(Reward(reward, {}), (verdict,), verdict)
    return StepCompletion(cast("Row", {}), Segment((9,), ids, reward=reward, right=is_right, group=group), score)


def paid(*completions: StepCompletion, clip: Any = None, **diversity: Any) -> list[float | None]:
    pay_diversity(completions, RewardConfig.model_validate({"diversity": {"weight": 0.2, **diversity}, "clip": clip}))
    return [each.segment.reward for each in completions]


def test_the_distance_of_a_set_is_its_mean_from_the_others() -> None:
    # {a, b} and {b, c} share one of three; {d} shares none with either.
    sets = [frozenset("ab"), frozenset("bc"), frozenset("d")]
    assert mean_distances(sets) == pytest.approx([(2 / 3 + 1) / 2, (2 / 3 + 1) / 2, 1.0])
    assert mean_distances(sets[:1]) == [0.0]
    assert mean_distances([frozenset(), frozenset()]) == [0.0, 0.0]


def test_right_completions_are_paid_by_the_ngrams_that_they_do_not_share() -> None:
    # 4-grams: 1234 2345; 2345 3456; of the third none is shared.
    rewards = paid(
        completion((1, 2, 3, 4, 5), 1.0),
        completion((2, 3, 4, 5, 6), 1.0),
        completion((7, 8, 9, 10), 1.0),
        completion((11, 12, 13, 14, 15), 0.0),
    )
    assert rewards == pytest.approx([1 + 0.2 * 5 / 6, 1 + 0.2 * 5 / 6, 1.2, 0.0])


def test_a_wrong_completion_earns_nothing_however_odd_it_is() -> None:
    alike = completion((1, 2, 3, 4), 1.0)
    odd = completion((91, 92, 93, 94), 0.0)
    assert paid(alike, completion((1, 2, 3, 4), 1.0), odd) == [1.0, 1.0, 0.0]


def test_what_could_not_be_judged_neither_earns_nor_counts() -> None:
    assert paid(completion((1, 2, 3, 4), 1.0), completion((5, 6, 7, 8), None), completion((9,) * 4, 0.0)) == [
        1.0,
        None,
        0.0,
    ]


def test_a_group_that_is_all_right_pays_nothing_and_so_still_teaches_nothing() -> None:
    assert paid(completion((1, 2, 3, 4), 1.0), completion((5, 6, 7, 8), 1.0)) == [1.0, 1.0]


def test_groups_are_compared_within_themselves() -> None:
    rewards = paid(
        completion((1, 2, 3, 4), 1.0),
        completion((5, 6, 7, 8), 1.0, group=1),
        completion((9,), 0.0),
        completion((9,), 0.0, group=1),
    )
    assert rewards == [1.0, 1.0, 0.0, 0.0]


def test_answers_are_compared_as_they_were_written() -> None:
    rewards = paid(
        completion((1,), 1.0, extracted="1/2"),
        completion((2,), 1.0, extracted="0.5"),
        completion((3,), 1.0, extracted="1/2"),
        completion((4,), 0.0, extracted="7"),
        by="answers",
    )
    assert rewards == pytest.approx([1.1, 1.2, 1.1, 0.0])


def test_short_completions_are_compared_whole() -> None:
    assert paid(completion((1, 2), 1.0), completion((1, 3), 1.0), completion((), 0.0)) == pytest.approx([1.2, 1.2, 0])


def test_what_is_paid_is_kept_within_the_bounds_of_the_reward_and_apart_from_the_score() -> None:
    first, second, wrong = completion((1,), 1.0), completion((2,), 1.0), completion((3,), 0.0)
    assert paid(first, second, wrong, clip=[0, 1.05]) == pytest.approx([1.05, 1.05, 0.0])
    assert first.diversity == pytest.approx(0.05)
    # The guard that judges completions again compares with this.
    assert first.score.reward.value == 1.0
    config = RewardConfig.model_validate({"diversity": {"weight": 0.2}})
    assert diversity_reward([first, second, wrong], config) == {"reward/diversity": pytest.approx(0.1 / 3)}
    assert diversity_reward([first], RewardConfig()) == {}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"turns": {"environment": "x.py:X", "credit": "turn"}}, "does not go with turns.credit: turn"),
        ({"objective": {"advantage": "pass_at_k_walder"}}, "no effect on pass_at_k_walder"),
    ],
)
def test_settings_that_diversity_does_not_go_with_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError, match=error):
        GrpoConfig.model_validate({"reward": {"diversity": {"weight": 0.1}}, **settings})

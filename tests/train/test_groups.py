"""Groups that enter a batch: those that teach, within the bounds of the share of right answers where they can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.train.grpo.groups import GroupScore, choose_groups, count_missing_groups, right_share, score_group
from truegold.train.model.segment import Segment

SIZE = 8


def segments(rewards: list[float], right: list[bool]) -> list[Segment]:
    pairs = zip(rewards, right, strict=True)
    return [Segment((1,), (2,), reward=reward, right=is_right) for reward, is_right in pairs]


def scores(*right: int) -> list[GroupScore]:
    return [GroupScore(count, SIZE, 0 < count < SIZE) for count in right]


def test_groups_that_are_all_right_or_all_wrong_stay_out() -> None:
    assert choose_groups(scores(0, 3, 8, 5), 4, None) == [1, 3]


def test_the_first_that_teach_enter_and_no_more_than_a_batch_takes() -> None:
    assert choose_groups(scores(1, 2, 3, 4), 2, None) == [0, 1]


@pytest.mark.parametrize(
    ("right", "entered"),
    [
        ((1, 2, 6, 1), [1, 2]),  # 3 of 16 is too low: the 1 makes room for the 6.
        ((7, 6, 2, 7), [1, 2]),  # 13 of 16 is too high: the 7 makes room for the 2.
        ((4, 4, 1, 7), [0, 1]),  # Half of them is within the bounds.
        ((1, 1, 1), [0, 1]),  # Nothing better is there.
    ],
)
def test_the_share_of_right_answers_is_moved_into_its_bounds(right: tuple[int, ...], entered: list[int]) -> None:
    assert choose_groups(scores(*right), 2, (0.25, 0.75)) == entered


def test_no_group_makes_room_for_one_that_overshoots() -> None:
    assert choose_groups(scores(5, 1), 1, (0.4, 0.6)) == [0]
    assert choose_groups(scores(7, 1, 5), 1, (0.4, 0.6)) == [2]


def score(kind: str, right: int, k: int = 4) -> GroupScore:
    passed = [index < right for index in range(SIZE)]
    return score_group(segments([float(is_right) for is_right in passed], passed), kind, k)


@pytest.mark.parametrize("kind", ["grpo", "dr_grpo", "rloo", "batch_std", "reinforce_pp_baseline", "maxrl"])
def test_a_group_teaches_where_its_rewards_differ(kind: str) -> None:
    assert [score(kind, right).teaches for right in (0, 3, 8)] == [False, True, False]


@pytest.mark.parametrize("reward", [0.1, 0.7, 1.1, -0.2])
def test_a_group_of_equal_rewards_teaches_nothing_whatever_they_are(reward: float) -> None:
    # The mean of eight times 0.1 is not 0.1 to the last bit.
    assert not score_group(segments([reward] * SIZE, [False] * SIZE), "grpo", 1).teaches


def test_reinforce_pp_learns_from_groups_that_are_all_right_too() -> None:
    assert [score("reinforce_pp", right).teaches for right in (0, 3, 8)] == [True, True, True]
    assert not score_group([], "reinforce_pp", 1).teaches


def test_under_pass_at_k_easy_groups_teach_nothing() -> None:
    # From 5 of 8 on, any 4 hold a right one.
    assert [score("pass_at_k_chen", right).teaches for right in (0, 1, 4, 5, 8)] == [False, True, True, False, False]
    assert [score("pass_at_k_walder", right).teaches for right in (0, 5, 6, 8)] == [False, True, False, False]


def test_groups_are_missing_where_a_batch_is_short_of_them_and_where_the_share_is_out_of_bounds() -> None:
    assert count_missing_groups(scores(0, 3, 8, 5), 4, None) == 2
    assert count_missing_groups(scores(4, 3, 5, 4), 4, (0.25, 0.75)) == 0
    assert (
        count_missing_groups(scores(1, 1, 1, 1), 4, (0.25, 0.75)) == 1
    )  # The share is .125 too low: twice that, of 4 groups.
    assert count_missing_groups(scores(1, 1, 0, 0), 4, (0.25, 0.75)) == 3
    assert count_missing_groups(scores(0, 0), 2, (0.25, 0.75)) == 2


@given(st.lists(st.integers(0, SIZE), max_size=12), st.integers(1, 6))
def test_bounds_never_cost_a_group_nor_move_the_share_away(right: list[int], size: int) -> None:
    groups = scores(*right)
    unbounded, bounded = choose_groups(groups, size, None), choose_groups(groups, size, (0.4, 0.6))
    assert len(unbounded) == len(bounded)
    assert all(groups[index].teaches for index in bounded)

    def distance(indices: list[int]) -> float:
        share = right_share([groups[index] for index in indices])
        return max(0.4 - share, share - 0.6, 0.0)

    assert distance(bounded) <= distance(unbounded) or not unbounded


def test_the_share_counts_judged_completions() -> None:
    assert right_share([GroupScore(1, 2, True), GroupScore(1, 6, True)]) == 0.25
    assert right_share([]) == 0.0

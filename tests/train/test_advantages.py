"""Advantages against hand-computed values, identities and enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tables import rows

from truegold.train.objective import ADVANTAGES, PASS_AT_K, advantages, chen, rho, walder, walder_rewards

NAN = float("nan")
KINDS = [*ADVANTAGES, *PASS_AT_K]


def compute_advantages(kind: str, rewards: list[float], groups: list[int] | None = None, k: int = 2) -> list[float]:
    tensor = torch.tensor(rewards, dtype=torch.float64)
    index = torch.tensor(groups) if groups else torch.zeros(len(rewards), dtype=torch.int64)
    computed: list[float] = advantages(kind, tensor, index, k).tolist()
    return computed


def test_grpo_is_the_group_z_score_with_the_unbiased_std() -> None:
    computed = compute_advantages("grpo", [1, 0, 0, 0, 1, 1, 0, 1], [7, 7, 7, 7, 3, 3, 3, 3])
    expected = [1.4997, -0.4999, -0.4999, -0.4999, 0.4999, 0.4999, -1.4997, 0.4999]
    assert computed == pytest.approx(expected, abs=5e-5)


def test_groups_may_be_interleaved() -> None:
    rewards, groups = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0], [5, 9, 5, 9, 5, 9]
    apart = compute_advantages("rloo", [1, 0, 0]) + compute_advantages("rloo", [0, 1, 1])
    mixed = compute_advantages("rloo", rewards, groups)
    assert [mixed[0], mixed[2], mixed[4], mixed[1], mixed[3], mixed[5]] == pytest.approx(apart)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("dr_grpo", [0.75, -0.25, -0.25, -0.25]),
        ("rloo", [1.0, -1 / 3, -1 / 3, -1 / 3]),
        ("maxrl", [3.0, -1.0, -1.0, -1.0]),
        ("batch_std", [0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001]),
        ("reinforce_pp", [math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3)]),
        ("reinforce_pp_baseline", [math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3)]),
    ],
)
def test_one_right_of_four_by_hand(kind: str, expected: list[float]) -> None:
    assert compute_advantages(kind, [1.0, 0.0, 0.0, 0.0]) == pytest.approx(expected, abs=1e-6)


def test_right_answers_are_counted_by_their_verdicts_where_those_are_given() -> None:
    # A format term gives wrong answers 1 as well, a length term takes from right ones.
    rewards = torch.tensor([2.0, 1.0, 1.0, 1.0], dtype=torch.float64)
    group, right = torch.zeros(4, dtype=torch.int64), torch.tensor([True, False, False, False])
    for kind in PASS_AT_K:
        assert advantages(kind, rewards, group, 2, right).tolist() == compute_advantages(kind, [1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("penalty", [-0.1, -1 / 7, -0.2])
def test_maxrl_divides_by_the_pass_rate_whatever_else_is_in_the_reward(penalty: float) -> None:
    rewards = torch.tensor([1.0] + [penalty] * 7, dtype=torch.float64)
    group, right = torch.zeros(8, dtype=torch.int64), torch.tensor([True] + [False] * 7)
    mean = (1.0 + 7 * penalty) / 8
    computed = advantages("maxrl", rewards, group, right=right).tolist()
    assert computed == pytest.approx([8 * (1.0 - mean)] + [8 * (penalty - mean)] * 7)


def test_chen_with_one_right_of_four_by_hand() -> None:
    # By hand, R = 1 - C(3, 2) / C(4, 2) = 1/2, s = 1/2; wrong: 1 - 1/2 - C(2, 1) / C(3, 1) = -1/6.
    assert chen(4, 1, 2) == pytest.approx((1.0, -1 / 3), abs=1e-5)
    assert chen(4, 3, 2)[1] == pytest.approx(0.0)
    assert chen(4, 0, 2)[1] == 0.0
    assert chen(4, 4, 2)[0] == 0.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "reinforce_pp"])
@pytest.mark.parametrize("rewards", [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, NAN, NAN], [NAN, NAN, NAN]])
def test_groups_without_signal_get_zero(kind: str, rewards: list[float]) -> None:
    computed = compute_advantages(kind, rewards)
    assert computed == pytest.approx([0.0, 0.0, 0.0]) or (kind == "pass_at_k_walder" and sum(rewards) == 3)


@rows("kind", KINDS)
def test_an_unjudged_completion_gets_nothing_and_leaves_its_group(kind: str) -> None:
    with_unjudged, without = compute_advantages(kind, [1.0, NAN, 0.0, 0.0]), compute_advantages(kind, [1.0, 0.0, 0.0])
    assert with_unjudged == pytest.approx([without[0], 0.0, *without[1:]])


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 0.5, NAN]), min_size=1, max_size=6), min_size=1, max_size=4))
def test_every_kind_gives_finite_values(rewards: list[list[float]]) -> None:
    flat = [reward for group in rewards for reward in group]
    groups = [index for index, group in enumerate(rewards) for _ in group]
    for kind in KINDS:
        assert all(math.isfinite(value) for value in compute_advantages(kind, flat, groups)), kind


@given(st.integers(2, 7), st.data())
def test_rloo_is_the_reward_less_the_mean_of_the_others(n: int, data: st.DataObject) -> None:
    rewards = data.draw(st.lists(st.floats(-2, 2), min_size=n, max_size=n))
    expected = [reward - (sum(rewards) - reward) / (n - 1) for reward in rewards]
    assert compute_advantages("rloo", rewards) == pytest.approx(expected, abs=1e-9)


def expected_gradient(p: float, n: int, k: int, weights) -> float:  # type: ignore[no-untyped-def]
    """d/dtheta of the estimator sum_i w_i dlog p_i in expectation over n draws, p = sigmoid(theta): exact."""
    total = 0.0
    for c in range(n + 1):
        right, wrong = weights(n, c, k)
        probability = math.comb(n, c) * p**c * (1 - p) ** (n - c)
        total += probability * (c * right * (1 - p) - (n - c) * wrong * p)
    return total


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (5, 3), (6, 6), (8, 4)])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.8])
def test_both_forms_of_walder_are_unbiased_gradients_of_pass_at_k(n: int, k: int, p: float) -> None:
    # The exact one: pass@k = 1 - (1 - p)^k, and dp/dtheta = p (1 - p).
    exact = k * (1 - p) ** (k - 1) * p * (1 - p)
    assert expected_gradient(p, n, k, walder_rewards) == pytest.approx(exact, rel=1e-9)
    assert expected_gradient(p, n, k, walder) / n == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 2), (6, 2, 3), (8, 7, 2), (5, 0, 3), (5, 5, 2)])
def test_chen_is_the_mean_over_subsets_of_their_z_scores(n: int, c: int, k: int) -> None:
    subsets = list(itertools.combinations(range(n), k))
    rewards = [float(any(member < c for member in subset)) for subset in subsets]
    mean = sum(rewards) / len(rewards)
    spread = math.sqrt(mean * (1 - mean)) + 1e-6

    def score(member: int) -> float:
        member_rewards = [reward for subset, reward in zip(subsets, rewards, strict=True) if member in subset]
        return (sum(member_rewards) / len(member_rewards) - mean) / spread

    right, wrong = chen(n, c, k)
    assert mean == pytest.approx(rho(n, c, k))
    if c:
        assert right == pytest.approx(score(0))
    if c < n:
        assert wrong == pytest.approx(score(n - 1))


def test_a_group_with_fewer_judged_than_k_is_compared_by_those_there_are() -> None:
    assert compute_advantages("pass_at_k_chen", [1.0, 0.0, NAN, NAN], k=4) == compute_advantages(
        "pass_at_k_chen", [1.0, 0.0, NAN, NAN], k=2
    )

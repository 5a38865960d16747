"""What is known of pass rates while the policy moves, against simulated policies whose pass rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from truegold.pipeline.rates import Mixture
from truegold.train.grpo.feed import Posteriors

GROUP = 8


def betas(a: list[float], b: list[float]) -> list[Mixture]:
    """Return what is known of problems by one Beta distribution each."""
    return [Mixture(np.ones(1), np.array([x]), np.array([y])) for x, y in zip(a, b, strict=True)]


def simulate(speed: float, wander: float, seed: int, steps: int = 60) -> tuple[list[float], list[float], Posteriors]:
    """Train on 32 problems a step of 600, whose log-odds all rise by `speed` a step and wander by `wander`; return the
    foretold and the observed share of teaching groups of each step."""
    random = np.random.default_rng(seed)
    log_odds = random.normal(-1, 1.2, 600)
    passes = random.binomial(GROUP, expit(log_odds))
    posteriors = Posteriors(betas((0.8 + passes).tolist(), (1.6 + GROUP - passes).tolist()), GROUP)
    foretold, observed = [], []
    for _ in range(steps):
        rows = random.choice(600, 32, replace=False)
        right = random.binomial(GROUP, expit(log_odds[rows]))
        foretold.append(float(posteriors.teaching_shares()[rows].mean()))
        observed.append(float(((right > 0) & (right < GROUP)).mean()))
        posteriors.observe(rows.tolist(), right.tolist(), [GROUP] * 32, [1.0] * 32)
        log_odds += speed + random.normal(0, wander, 600)
    return foretold, observed, posteriors


@pytest.mark.parametrize(("speed", "wander"), [(0.0, 0.0), (0.05, 0.1), (-0.05, 0.1), (0.02, 0.3)])
def test_the_share_of_teaching_groups_is_foretold_within_three_points(speed: float, wander: float) -> None:
    errors = []
    for seed in range(5):
        foretold, observed, _ = simulate(speed, wander, seed)
        errors.append(np.mean(foretold) - np.mean(observed))
    assert abs(np.mean(errors)) < 0.03


def test_a_policy_that_stands_still_is_remembered_and_one_that_wanders_is_forgotten() -> None:
    assert np.mean([simulate(0.0, 0.0, seed)[2]._best.forget for seed in range(5)]) > 0.97
    assert np.mean([simulate(0.0, 0.8, seed)[2]._best.forget for seed in range(5)]) < 0.95


def test_the_drift_of_all_problems_is_followed() -> None:
    drifts = [simulate(0.05, 0.0, seed)[2].drift for seed in range(5)]
    assert np.mean(drifts) == pytest.approx(60 * 0.05, rel=0.25)


def test_unseen_problems_move_with_those_that_are_seen() -> None:
    posteriors = Posteriors(betas([2.0] * 40, [6.0] * 40), GROUP)
    for _ in range(30):
        posteriors.observe(list(range(20)), [7] * 20, [8] * 20, [1.0] * 20)
    assert posteriors.means()[20:].min() > 0.6


def test_a_group_without_verdicts_teaches_nothing() -> None:
    posteriors, untouched = (
        Posteriors(betas([2.0, 3.0], [6.0, 3.0]), GROUP),
        Posteriors(betas([2.0, 3.0], [6.0, 3.0]), GROUP),
    )
    posteriors.observe([0, 1], [0, 0], [0, 0], [1.0, 1.0])
    assert [array.tolist() for array in posteriors.parameters()] == [array.tolist() for array in untouched.parameters()]


def test_moments_are_those_of_all_problems_although_the_hard_ones_are_hardly_ever_chosen() -> None:
    random = np.random.default_rng(0)
    rates = np.concatenate([np.full(300, 0.02), np.full(300, 0.5)])
    chances = np.concatenate([np.full(300, 0.1), np.full(300, 1.0)])
    posteriors = Posteriors(betas([0.2] * 300 + [5.0] * 300, [9.8] * 300 + [5.0] * 300), GROUP)
    for _ in range(60):
        rows = [index for index in random.permutation(600)[:64] if random.random() < chances[index]]
        right = random.binomial(GROUP, rates[rows])
        posteriors.observe(rows, right.tolist(), [GROUP] * len(rows), chances[rows].tolist())
    assert posteriors.means().mean() == pytest.approx(0.26, abs=0.04)


def test_a_problem_that_is_always_all_wrong_among_improving_ones_is_given_up_for_a_while() -> None:
    problems, dead, hard = 40, 0, 1
    posteriors = Posteriors(betas([2.0] * problems, [4.0] * problems), GROUP)
    random = np.random.default_rng(0)
    for step in range(8):
        rates = np.full(problems, expit(-0.7 + 0.4 * step))
        rates[dead], rates[hard] = 0.0, 0.1
        right = random.binomial(GROUP, rates)
        right[hard] = max(right[hard], 1)
        posteriors.observe(list(range(problems)), right.tolist(), [GROUP] * problems, [1.0] * problems)
    teaching = posteriors.teaching_shares()
    assert teaching[dead] < 0.2 * teaching[hard]


@pytest.mark.parametrize("order", [(8, 0), (0, 8)])
def test_a_problem_that_comes_twice_in_a_step_is_judged_by_both_groups(order: tuple[int, int]) -> None:
    twice, merged = (Posteriors(betas([2.0] * 4, [2.0] * 4), GROUP) for _ in range(2))
    twice.observe([0, 0, 1, 2, 3], [*order, 4, 4, 4], [GROUP] * 5, [1.0] * 5)
    merged.observe([1, 2, 3], [4, 4, 4], [GROUP] * 3, [1.0] * 3)
    # It has passed: nothing speaks for a problem that never does.
    assert twice.state()["hopeless"][0] == 0.0
    wrong = Posteriors(betas([2.0] * 4, [2.0] * 4), GROUP)
    wrong.observe([0, 0, 1, 2, 3], [0, 0, 4, 4, 4], [GROUP] * 5, [1.0] * 5)
    once = Posteriors(betas([2.0] * 4, [2.0] * 4), GROUP)
    once.observe([0, 1, 2, 3], [0, 4, 4, 4], [GROUP] * 4, [1.0] * 4)
    assert wrong.state()["hopeless"][0] > once.state()["hopeless"][0] > merged.state()["hopeless"][0]


def test_a_problem_that_is_easy_or_out_of_reach_is_not_taken_for_one_between() -> None:
    either = Mixture(np.array([0.5, 0.5]), np.array([1.0, 95.0]), np.array([99.0, 5.0]))
    between = Mixture(np.ones(1), np.array([1.6]), np.array([1.6]))
    posteriors = Posteriors([either, between], GROUP)
    assert posteriors.means() == pytest.approx([0.48, 0.5], abs=0.01)
    # 8 % and 33 % of the groups of the two kinds teach, a Beta distribution of the same mean foretells more.
    assert posteriors.teaching_shares()[0] == pytest.approx((1 - 0.05) * (0.074 + 0.324) / 2, abs=0.01)
    posteriors.observe([0, 1], [8, 8], [GROUP, GROUP], [1.0, 1.0])
    weights, a, b = posteriors.parameters()
    known = weights[0] @ (a[0] / (a[0] + b[0]))
    # One group tells which of the two it is.
    assert known > 0.9
    assert weights[0].max() > 0.999


def test_a_problem_that_comes_twice_in_a_step_is_known_as_by_one_group_of_both() -> None:
    twice, once = (Posteriors(betas([2.0] * 4, [2.0] * 4), GROUP) for _ in range(2))
    twice.observe([0, 0, 1, 2, 3], [3, 1, 4, 4, 4], [GROUP] * 5, [1.0] * 5)
    once.observe([0, 1, 2, 3], [4, 4, 4, 4], [2 * GROUP, GROUP, GROUP, GROUP], [1.0] * 4)
    assert twice.means() == pytest.approx(once.means())

"""What the profile says of the first steps, and golds that are not the profile's."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import expit, logit

from truegold.pipeline.rates import Mixture
from truegold.train.grpo.forecast import STEPS, Floats, Forecast

ROWS, SAMPLES, GROUP = 200, 8, 8
EVIDENT = np.log(1000.0)
Policy = Callable[[Floats, int], Floats]
"""The pass rates of all problems at a step, by those of the profile."""


def beta(a: float, b: float) -> Mixture:
    return Mixture(np.ones(1), np.array([a]), np.array([b]))


def shifted(log_odds: float) -> Policy:
    return lambda rates, step: expit(logit(rates) + log_odds)


def run(policy: Policy, prompts: int, seed: int, steps: int = STEPS) -> tuple[int | None, list[dict[str, float]]]:
    """Return the step at which the evidence is there, and the metrics of all steps, of a training whose problems have
    pass rates of Beta(1, 3), profiled with 8 samples; those that never or always passed are not selected."""
    draw = np.random.default_rng(seed)
    rates = np.clip(draw.beta(1, 3, 10 * ROWS), 1e-6, 1 - 1e-6)
    passed = draw.binomial(SAMPLES, rates)
    rates, passed = (values[(passed > 0) & (passed < SAMPLES)][:ROWS] for values in (rates, passed))
    forecast = Forecast([beta(1.0 + count, 3.0 + SAMPLES - count) for count in passed])
    seen = []
    for step in range(steps):
        rows = [int(row) for row in (np.arange(prompts) + step * prompts) % len(rates)]
        right = draw.binomial(GROUP, policy(rates, step)[rows])
        seen.append(forecast.observe(rows, right.tolist(), [GROUP] * prompts))
    return next((step for step, values in enumerate(seen) if values["profile_evidence"] > EVIDENT), None), seen


@pytest.mark.parametrize("prompts", [4, 16, 64])
@pytest.mark.parametrize(
    "policy",
    [
        shifted(0.0),
        shifted(-0.4),
        lambda rates, step: expit(logit(rates) + 0.15 * step),
        lambda rates, step: expit(logit(rates) - 0.04 * step),
        # A policy that dies in training fitted the profile before.
        lambda rates, step: rates if step < 5 else rates * 0.02,
    ],
    ids=["as it was", "a little below", "learns quickly", "fades", "dies"],
)
def test_a_policy_that_is_the_profile_s_or_learns_is_no_evidence(policy: Policy, prompts: int) -> None:
    assert [run(policy, prompts, seed)[0] for seed in range(8)] == [None] * 8


@pytest.mark.parametrize(("prompts", "step"), [(4, 14), (16, 5), (64, 1)])
@pytest.mark.parametrize(
    "policy",
    [lambda rates, step: 0.36 * np.roll(rates, 1), shifted(-1.8), lambda rates, step: 0.0 * rates],
    ids=["golds of other rows", "a tenth passes", "nothing passes"],
)
def test_golds_of_other_rows_are_evident_from_the_first_step_on(policy: Policy, prompts: int, step: int) -> None:
    first_steps = [run(policy, prompts, seed)[0] for seed in range(5)]
    assert sum(each is not None and each <= step for each in first_steps) >= 4, first_steps


def test_the_interval_of_each_step_holds_what_a_sound_policy_passes() -> None:
    rates = [0.25, 0.5]
    forecast = Forecast([beta(3.0, 9.0), beta(5.0, 5.0)])
    measured = forecast.observe([0, 1], [2, 4], [8, 8])
    assert 0 <= measured["forecast_low"] < np.mean(rates) < measured["forecast_high"] <= 1
    assert measured["profile_evidence"] == 0.0


def test_problems_without_a_profile_say_nothing() -> None:
    forecast = Forecast([None, beta(2.0, 2.0)])
    assert forecast.observe([0], [0], [8]) == {}
    assert forecast.observe([1], [0], [0]) == {}
    assert forecast.observe([0, 1], [0, 4], [8, 8])["forecast_high"] <= 1.0


def test_a_restored_forecast_goes_on_where_it_was() -> None:
    first, second = (Forecast([beta(2.0, 6.0), beta(3.0, 3.0)]) for _ in range(2))
    first.observe([0, 1, 1], [0, 1, 0], [8, 8, 8])
    second.restore(json.loads(json.dumps(first.state())))
    assert first.observe([0, 1], [0, 0], [8, 8]) == second.observe([0, 1], [0, 0], [8, 8])

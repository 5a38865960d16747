"""The stopping rule: it keeps its word on simulated problems, and beats a fixed count of samples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from truegold.pipeline.profile.stopping_rule import FURTHER_SAMPLES, PassRateBand, allocate, decide
from truegold.pipeline.rates.posterior import Beta, fit_prior

PROBLEMS = 20_000
MOST = 16


def drawn_passes(prior: Beta, seed: int) -> np.ndarray:
    """Return the passes of each problem after 0 to MOST samples. Shape [PROBLEMS, MOST + 1]."""
    generator = np.random.default_rng(seed)
    rates = generator.beta(prior.a, prior.b, PROBLEMS)
    draws = generator.random((PROBLEMS, MOST)) < rates[:, None]
    return np.concatenate([np.zeros((PROBLEMS, 1), int), draws.cumsum(axis=1)], axis=1)


def test_an_obvious_pass_rate_is_decided() -> None:
    assert decide(Beta(50, 50))[0] is PassRateBand.USEFUL
    assert decide(Beta(0.01, 100)) == (PassRateBand.DEAD, pytest.approx(1, abs=1e-3))
    assert decide(Beta(100, 0.01))[0] is PassRateBand.SATURATED
    assert decide(Beta(15, 85))[0] is PassRateBand.HARD
    assert decide(Beta(85, 15))[0] is PassRateBand.EASY


@pytest.mark.parametrize("prior", [Beta(1, 1), Beta(0.3, 1.5), Beta(3.2, 0.7), Beta(4, 4)], ids=str)
def test_the_rule_samples_and_agrees_as_often_as_it_says(prior: Beta) -> None:
    passes = drawn_passes(prior, seed=3)
    rule = allocate(prior, 4, MOST, 100_000)
    samples = np.full(PROBLEMS, MOST)
    for judged in range(MOST, 3, -FURTHER_SAMPLES):
        samples[rule.stops[judged][passes[:, judged]]] = judged
    assert samples.mean() == pytest.approx(rule.expected_samples, abs=0.1)
    decisions = {
        (judged, count): decide(prior.after(judged, count))
        for judged in range(4, MOST + 1)
        for count in range(judged + 1)
    }
    last = [decisions[MOST, int(count)] for count in passes[:, MOST]]
    sure = np.array([((probability - 0.75) / 0.1) for _, probability in last]).clip(0, 1)
    agrees = np.array(
        [
            decisions[int(judged), int(row[judged])][0] is decision
            for judged, row, (decision, _) in zip(samples, passes, last, strict=True)
        ]
    )
    agreement = (sure * agrees).sum() / sure.sum()
    assert agreement == pytest.approx(rule.expected_agreement, abs=0.01)
    assert agreement >= 0.95


def test_a_rule_that_may_not_go_on_stops_everywhere() -> None:
    rule = allocate(Beta(1, 1), 4, 4, 100_000)
    assert rule.expected_samples == 4
    assert all(rule.is_enough(4, passes) for passes in range(5))
    assert not rule.is_enough(3, 0)


def test_where_all_problems_are_alike_the_first_samples_are_enough() -> None:
    prior = fit_prior(Counter({(4, 2): 300, (4, 1): 100, (4, 3): 100}))
    assert prior is not None
    assert allocate(prior, 4, MOST, 100_000).expected_samples == pytest.approx(4, abs=0.2)


def test_few_rows_that_pass_now_and_then_do_not_take_the_samples_of_all_hopeless_ones() -> None:
    nearly_hopeless = Beta(0.03, 2.0)
    small, large = (allocate(nearly_hopeless, 4, MOST, problems) for problems in (400, 100_000))
    assert small.expected_samples < 6 < large.expected_samples
    assert small.expected_agreement > 0.95

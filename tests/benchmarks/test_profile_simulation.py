"""The simulated rules of how often to sample: by hand on a few outcomes, and what posteriors promise on many."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from feed import tokens_to
from profile_simulation import SAMPLES, Known, compare, fixed, reinforce_ada, sprt


def outcomes(*passes: set[int]) -> np.ndarray:
    """Return rows of which the samples of these numbers pass."""
    return np.array([[sample in row for sample in range(SAMPLES)] for row in passes])


def test_reinforce_ada_goes_on_until_a_round_has_shown_what_it_waits_for() -> None:
    rows = outcomes(set(), {0}, {5}, set(range(16)), {0, 1, 2, 3, 4, 5, 6, 7})
    assert reinforce_ada(balanced=False)(rows).tolist() == [16, 4, 8, 4, 4]
    assert reinforce_ada(balanced=True)(rows).tolist() == [16, 4, 8, 16, 12]


def test_walds_test_ends_where_every_boundary_is_settled() -> None:
    lengths = sprt(outcomes(set(), set(range(16)), set(range(0, 16, 2))))
    # At a boundary of 1/32 even sixteen failures say little against three times its odds.
    assert lengths.tolist()[:2] == [16, 16]
    assert 4 < lengths[2] < 16


def test_intervals_of_posteriors_hold_nine_of_ten_rates() -> None:
    generator = np.random.default_rng(3)
    rates = generator.beta(2, 3, 5000)
    drawn = generator.random((5000, SAMPLES)) < rates[:, None]
    assert Known(drawn, fixed(8)(drawn)).covers(rates) == pytest.approx(0.9, abs=0.02)


def test_the_profiles_rule_decides_as_all_samples_do_with_fewer() -> None:
    rates = np.random.default_rng(1).beta(1, 1, 6000)
    figures = {figure["rule"]: figure for figure in compare(rates, seed=1)}
    assert figures["truegold"]["tokens"] < 0.5
    assert figures["truegold"]["alike"] > 0.94
    assert figures["truegold"]["alike"] > figures["fixed, 8"]["alike"]


def test_the_tokens_to_an_accuracy_lie_between_the_evaluations_around() -> None:
    points = [(0, 0, 0.5), (10, 100, 0.6), (20, 200, 0.8)]
    assert tokens_to(points, 0.7) == 150
    assert tokens_to(points, 0.4) == 0
    assert tokens_to(points, 0.9) is None

"""The simulated rules of how often to sample: by hand on a few outcomes, and what posteriors promise on many."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from feed import tokens_to
from feed_simulation import break_even
from profile_replay import replay, teaching_of
from profile_simulation import (
    POPULATIONS,
    SAMPLES,
    Known,
    Population,
    Problems,
    beta,
    draw_problems,
    fixed,
    measure,
    reinforce_ada,
    truegold,
)


def problems(*passes: set[int]) -> Problems:
    """Return rows of which the samples of these numbers pass."""
    outcomes = np.array([[sample in row for sample in range(SAMPLES)] for row in passes])
    return Problems(outcomes.mean(axis=1), np.zeros(len(passes), dtype=int), outcomes)


def test_reinforce_ada_goes_on_until_a_round_has_shown_what_it_waits_for() -> None:
    rows = problems(set(), {0}, {5}, set(range(16)), {0, 1, 2, 3, 4, 5, 6, 7})
    assert reinforce_ada(balanced=False)(rows).tolist() == [16, 4, 8, 4, 4]
    assert reinforce_ada(balanced=True)(rows).tolist() == [16, 4, 8, 16, 12]


def test_a_selection_shares_the_rows_that_are_alike() -> None:
    rows = problems(set(), set(), {0, 1, 2, 3, 4, 5, 6, 7}, {1, 3, 5, 7, 9, 11, 13, 15})
    known = Known(rows, fixed(16)(rows))
    # Of the two in the middle one half teaches, which is nearly always; of the others none.
    assert known.selected(0.25) == pytest.approx(1 - 2 / 256)
    assert known.selected(0.75) == pytest.approx((1 - 2 / 256) * 2 / 3)


def test_intervals_of_posteriors_hold_nine_of_ten_rates() -> None:
    drawn = draw_problems(POPULATIONS["A"], 3000, 3)
    held = Known(drawn, fixed(8)(drawn)).intervals()
    assert held["covers"] > 0.88
    assert held["covers_between"] > 0.85


def test_the_profiles_rule_selects_better_than_as_many_samples_of_each() -> None:
    figures = measure(POPULATIONS["F"], 3000, seed=1)
    for name, cut in (("truegold, half", 0.5), ("truegold, quarter", 0.25)):
        assert figures[name][f"gain {cut}"] > 0.4 * figures[name][f"gap {cut}"] > 0
    assert figures["quotas"]["met"] == 1.0


def test_other_draws_of_a_population_take_as_many_samples() -> None:
    tokens = [
        Known(drawn, truegold(0.5)(drawn)).tokens
        for drawn in (draw_problems(POPULATIONS["C"], 4000, seed) for seed in range(3))
    ]
    assert max(tokens) / min(tokens) < 1.1


def test_a_training_is_ahead_from_where_it_stays_ahead() -> None:
    without = [(0, 0), (100, 50), (200, 100), (300, 150)]
    assert break_even([(40, 0), (100, 60), (200, 90), (300, 160)], without) == 300
    assert break_even([(40, 0), (100, 20), (200, 110), (300, 170)], without) == 200
    assert break_even([(40, 0), (300, 140)], without) is None


def test_the_tokens_to_an_accuracy_lie_between_the_evaluations_around() -> None:
    points = [(0, 0, 0.5), (10, 100, 0.6), (20, 200, 0.8)]
    assert tokens_to(points, 0.7) == 150
    assert tokens_to(points, 0.4) == 0
    assert tokens_to(points, 0.9) is None


def test_a_small_hard_source_gets_the_samples_that_its_quota_takes() -> None:
    population = Population("", [(0.95, beta(2, 2)), (0.05, beta(0.3, 6))])
    drawn = draw_problems(population, 6000, 0)

    def select_of_hard(lengths: np.ndarray) -> tuple[float, float]:
        """Return what the source's half of 5 % teaches, and the share of it that is foretold to teach enough."""
        known = Known(drawn, lengths)
        scores = np.where(drawn.sources == 1, known.foretold[known.cell_of.ravel()], -1.0)
        best = np.argsort(-scores, kind="stable")[:150]
        return float(drawn.teaching[best].mean()), float((scores[best] >= 0.2).mean())

    quotas = {"source:0": 0.95, "source:1": 0.05}
    taught, met = select_of_hard(truegold(0.5, quotas)(drawn))
    taught_by_first, _ = select_of_hard(fixed(4)(drawn))
    taught_by_all, met_by_all = select_of_hard(fixed(SAMPLES)(drawn))
    assert taught - taught_by_first > 0.5 * (taught_by_all - taught_by_first) > 0.02
    assert met > 0.5 * met_by_all
    # Without the quota none of it would be selected, and it would get no further samples.
    assert (
        truegold(0.5)(drawn)[drawn.sources == 1].mean() < 0.5 * truegold(0.5, quotas)(drawn)[drawn.sources == 1].mean()
    )


def test_a_selection_that_may_have_few_rows_without_a_pass_is_smaller_where_others_are_lacking() -> None:
    rows = problems(set(), set(), set(range(8)), set(range(1, 16, 2)))
    known = Known(rows, fixed(1)(rows))
    # By one sample of each a single row has passed, and half of the selection stays empty.
    assert known.selected(0.5, 0.0) == pytest.approx((1 - 2 / 256) / 2)
    assert known.selected(0.5, 1.0) > known.selected(0.5, 0.0)


def test_what_groups_teach_is_counted_without_bias() -> None:
    passes, judged = np.array([0, 9, 8, 1]), np.array([9, 9, 16, 8])
    assert teaching_of(passes, judged) == pytest.approx([0, 0, 1 - 2 / 12870, 1])


def test_a_replay_shows_rules_a_part_of_the_samples_and_counts_in_the_others() -> None:
    row = {"source": "a", "passes": 10, "judged": 24, "tokens": 5.0, "answers": [14]}
    drawn = replay({"rows": [row] * 50}, seed=0)
    assert drawn.outcomes.shape == (50, SAMPLES)
    seen = drawn.outcomes.sum(axis=1)
    assert 2 <= seen.min() < seen.max() <= 10
    assert drawn.teaching == pytest.approx(teaching_of(10 - seen, np.full(50, 8)))
    assert all((drawn.answer(0, sample) is None) == drawn.outcomes[0, sample] for sample in range(SAMPLES))
    # Samples that agree on a wrong answer are looked at further: nothing passes, and all say the same.
    agreed = replay({"rows": [{**row, "passes": 0, "answers": [24]}] * 50}, seed=0)
    assert truegold(0.5)(agreed).tolist() == [SAMPLES] * 50

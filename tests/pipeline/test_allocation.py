"""The stopping rule: it keeps its word on simulated problems, goes on around the cut, and beats a fixed count."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from truegold.pipeline.profile.stopping_rule import (
    Allocation,
    PassRateBand,
    Stratum,
    allocate,
    decide,
    find_cuts,
    find_levels,
)
from truegold.pipeline.rates import Mixture, fit_prior, fit_priors

FIRST, MOST, GROUP = 4, 16, 8


def mixture(*components: tuple[float, float, float]) -> Mixture:
    return Mixture(*np.array(components, dtype=float).T)


UNIFORM = mixture((1.0, 1.0, 1.0))
HALF_HOPELESS = mixture((0.5, 0.002, 200.0), (0.5, 1.0, 8.0))


def fresh(prior: Mixture, cuts: tuple[tuple[float, ...], ...] = ((0.5,),), first: int = FIRST) -> Allocation:
    """Return the rule for problems of which nothing is known yet."""
    stratum = Stratum(prior, {(first, 0): 1})
    return allocate({"all": stratum}, first, MOST, group_size=GROUP, cuts=cuts, is_fresh=True)


def play(rule: Allocation, outcomes: np.ndarray, stratum: str = "all") -> np.ndarray:
    """Return how many samples each problem gets. Shape [problems]."""
    lengths = []
    for index, row in enumerate(outcomes):
        judged = rule.levels[0]
        while judged < rule.levels[-1]:
            if rule.is_enough(stratum, judged, int(row[:judged].sum()), random.Random(f"{index}-{judged}")):
                break
            judged = rule.next_level(judged)
        lengths.append(judged)
    return np.array(lengths)


def test_an_obvious_pass_rate_is_decided() -> None:
    assert decide(mixture((1.0, 50, 50)))[0] is PassRateBand.USEFUL
    assert decide(mixture((1.0, 0.002, 200))) == (PassRateBand.DEAD, pytest.approx(1, abs=1e-3))
    assert decide(mixture((1.0, 200, 0.002)))[0] is PassRateBand.SATURATED
    assert decide(mixture((1.0, 15, 85)))[0] is PassRateBand.HARD
    assert decide(mixture((1.0, 85, 15)))[0] is PassRateBand.EASY
    # Either of the ends is more probable than what lies between, where one Beta distribution would be.
    band, probability = decide(mixture((0.6, 0.002, 200), (0.4, 200, 0.002)))
    assert (band, probability) == (PassRateBand.DEAD, pytest.approx(0.6, abs=1e-3))


def test_steps_are_two_samples_or_a_sixth_of_what_may_follow() -> None:
    assert find_levels(4, 16) == (4, 6, 8, 10, 12, 14, 16)
    assert find_levels(4, 7) == (4, 6, 7)
    assert find_levels(4, 4) == (4,)
    assert find_levels(4, 64) == (4, 14, 24, 34, 44, 54, 64)


def test_the_rule_serves_the_selection_that_is_known_and_its_neighbours() -> None:
    assert find_cuts(0.5) == (pytest.approx((0.4, 0.5, 0.625)),)
    assert find_cuts(1.0) == (pytest.approx((0.8, 1.0, 1.0)),)
    assert [0.5] in [list(cuts) for cuts in find_cuts(None)]


@pytest.mark.parametrize("prior", [UNIFORM, HALF_HOPELESS, mixture((1.0, 0.3, 1.5))], ids=["uniform", "half", "hard"])
def test_the_rule_samples_and_selects_as_it_says(prior: Mixture) -> None:
    generator = np.random.default_rng(3)
    rows = 4000
    component = generator.choice(len(prior.weights), rows, p=prior.weights)
    rates = generator.beta(prior.a[component], prior.b[component])
    outcomes = generator.random((rows, MOST)) < rates[:, None]
    rule = fresh(prior)
    lengths = play(rule, outcomes)
    assert lengths.mean() == pytest.approx(rule.expected_samples, abs=0.25)
    assert lengths.min() == FIRST
    teaching = 1 - rates**GROUP - (1 - rates) ** GROUP
    known = [
        prior.after(int(n), int(row[:n].sum())).teaching_share(GROUP) for n, row in zip(lengths, outcomes, strict=True)
    ]
    best = np.argsort(-np.array(known), kind="stable")[: rows // 2]
    assert teaching[best].mean() == pytest.approx(rule.expected_teaching, abs=0.015)
    # By as many samples of each row the best half teaches less.
    samples = round(lengths.mean())
    alike = [prior.after(samples, int(row[:samples].sum())).teaching_share(GROUP) for row in outcomes]
    assert teaching[np.argsort(-np.array(alike), kind="stable")[: rows // 2]].mean() < teaching[best].mean()


def test_rows_that_will_be_selected_in_any_case_get_no_further_samples() -> None:
    rule = fresh(HALF_HOPELESS)
    going_on = rule.chances["all"][FIRST]
    assert going_on[0] > 0.5
    assert going_on[2] == 0.0


def test_where_many_rows_are_alike_some_of_them_go_on() -> None:
    # Most have passed none of four, and the quarter that is selected is found among some of them.
    rule = fresh(mixture((0.4, 0.002, 200.0), (0.6, 1.0, 30.0)), ((0.25,),))
    chances = np.concatenate([rule.chances["all"][level] for level in rule.levels])
    assert ((chances > 0.01) & (chances < 0.99)).any()
    draws = [rule.is_enough("all", 4, 0, random.Random(seed)) for seed in range(4000)]
    assert np.mean(draws) == pytest.approx(1 - rule.chances["all"][4][0], abs=0.03)


def test_where_all_problems_are_alike_the_first_samples_are_enough() -> None:
    prior = fit_prior(Counter({(16, 8): 300, (16, 7): 200, (16, 9): 200}))
    assert prior is not None
    assert fresh(prior).expected_samples == pytest.approx(4, abs=0.3)


def test_where_nearly_none_passes_the_few_do_not_take_the_samples_of_all() -> None:
    nearly_hopeless = mixture((0.98, 0.002, 200.0), (0.02, 4.0, 4.0))
    assert fresh(nearly_hopeless).expected_samples < 5
    # Where the hopeless cannot be told from the hard by four samples, stopping there costs what selection is for.
    assert fresh(HALF_HOPELESS).expected_samples > 6


def test_problems_that_have_more_samples_already_are_counted_with_them() -> None:
    counts = {(4, 0): 50, (4, 2): 30, (16, 5): 20}
    rule = allocate({"all": Stratum(HALF_HOPELESS, counts)}, FIRST, MOST, group_size=GROUP, cuts=((0.2,),))
    assert rule.expected_samples >= (80 * 4 + 20 * 16) / 100


def test_a_quota_has_its_rows_looked_at_although_they_teach_less() -> None:
    strata: Mapping[str, Stratum] = {
        "easy": Stratum(mixture((1.0, 8.0, 8.0)), {(4, 0): 80}, frozenset({"source:easy"})),
        "hard": Stratum(HALF_HOPELESS, {(4, 0): 20}, frozenset({"source:hard"})),
    }

    def samples_of_hard(quotas: dict[str, float]) -> float:
        rule = allocate(strata, FIRST, MOST, group_size=GROUP, cuts=((0.2,),), quotas=quotas, is_fresh=True)
        return float(rule.chances["hard"][FIRST].sum())

    assert samples_of_hard({}) == 0
    assert samples_of_hard({"source:hard": 0.5, "source:easy": 0.5}) > 0


def test_where_few_rows_without_a_pass_may_be_selected_more_of_them_get_further_samples() -> None:
    hard = mixture((0.4, 0.002, 200.0), (0.6, 1.0, 6.0))
    stratum = {"all": Stratum(hard, {(FIRST, 0): 1})}
    any_share, tenth, none = (
        allocate(stratum, FIRST, MOST, group_size=GROUP, cuts=((0.5,),), zero_share=share, is_fresh=True)
        for share in (1.0, 0.1, 0.0)
    )
    # Half of the rows without a pass among them teach less than half of the rows could.
    assert tenth.teaching_by_all < any_share.teaching_by_all
    assert none.teaching_by_all < tenth.teaching_by_all
    # So more of them get the samples of which one may pass.
    assert tenth.chances["all"][FIRST][0] > any_share.chances["all"][FIRST][0]
    assert tenth.expected_samples > any_share.expected_samples
    # Where rows that pass are enough for the selection, nothing changes.
    fifth = [
        allocate(stratum, FIRST, MOST, group_size=GROUP, cuts=((0.2,),), zero_share=share, is_fresh=True)
        for share in (1.0, 0.1)
    ]
    assert fifth[0].expected_samples == pytest.approx(fifth[1].expected_samples, abs=0.01)


def test_samples_without_a_verdict_count_as_the_level_below() -> None:
    rule = fresh(HALF_HOPELESS)
    always = {"all": {level: np.ones(level + 1) for level in rule.levels}}
    going_on = Allocation(rule.levels, always, 0.0, 0.0, 0.0)
    assert not going_on.is_enough("all", 5, 1, random.Random(0))
    assert not going_on.is_enough("unknown", 3, 3, random.Random(0))


def test_priors_of_sources_make_rules_of_their_own() -> None:
    generator = np.random.default_rng(0)

    def drawn(rates: np.ndarray) -> dict[tuple[int, int], int]:
        passes = generator.binomial(FIRST, rates)
        return {(FIRST, count): int((passes == count).sum()) for count in range(FIRST + 1)}

    counts = {("book", "math"): drawn(generator.beta(8, 2, 600)), ("web", "math"): drawn(generator.beta(0.3, 3, 2400))}
    priors = fit_priors(counts)
    assert priors is not None
    strata = {cell: Stratum(priors.of_group((cell[0], None)), cells) for cell, cells in counts.items()}
    rule = allocate(strata, FIRST, MOST, group_size=GROUP, cuts=find_cuts(0.5))
    assert rule.chances["book", "math"][FIRST].tolist() != rule.chances["web", "math"][FIRST].tolist()

"""What samples say of a pass rate: hand-computed shares, a prior that is found again, intervals that hold."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.rates import Mixture, expected_shares, fit_prior, fit_priors, moments, stack_mixtures


def mixture(*components: tuple[float, float, float]) -> Mixture:
    """Return the mixture of these weights and Beta distributions."""
    return Mixture(*np.array(components, dtype=float).T)


def beta(a: float, b: float) -> Mixture:
    return mixture((1.0, a, b))


def shares(counts: dict[tuple[int, int], int], prior: Mixture, group_size: int) -> tuple[float, float, float]:
    return expected_shares([(prior.after(*cell), rows) for cell, rows in counts.items()], group_size)


def test_the_shares_of_one_problem_by_hand():
    # Uniform prior, 1 of 2 passed: p ~ Beta(2, 2). E[p] = 1/2, E[(1-p)^2] = E[p^2] = 2*3 / (4*5) = 0.3.
    ones, dead, saturated = shares({(2, 1): 1}, beta(1, 1), 2)
    assert (ones, dead, saturated) == pytest.approx((0.5, 0.3, 0.3))


def test_a_problem_that_failed_its_few_samples_is_not_dead_for_sure():
    # Beta(1, 5) after 0 of 4: E[(1-p)^8] = B(1, 13) / B(1, 5) = 5 / 13.
    _, dead, _ = shares({(4, 0): 1}, beta(1, 1), 8)
    assert dead == pytest.approx(5 / 13)


def test_shares_are_means_over_problems():
    first, second = shares({(4, 1): 1}, beta(1, 2), 4), shares({(4, 4): 1}, beta(1, 2), 4)
    both = shares({(4, 1): 1, (4, 4): 3}, beta(1, 2), 4)
    assert both == pytest.approx(tuple((x + 3 * y) / 4 for x, y in zip(first, second, strict=True)))


@settings(max_examples=60)
@given(
    cells=st.dictionaries(
        st.tuples(st.integers(1, 16), st.integers(0, 16)), st.integers(1, 50), min_size=1, max_size=8
    ),
    group=st.integers(1, 32),
    a=st.floats(0.05, 20),
    b=st.floats(0.05, 20),
)
def test_shares_are_probabilities_that_leave_room_for_each_other(cells, group, a, b):
    counts = {(n, min(c, n)): rows for (n, c), rows in cells.items()}
    ones, dead, saturated = shares(counts, beta(a, b), group)
    assert min(ones, dead, saturated) >= 0
    assert dead + saturated <= 1 + (1e-9 if group > 1 else 1e-6)
    assert saturated <= ones + 1e-9
    assert dead <= 1 - ones + 1e-9


def test_a_group_of_one_is_dead_or_saturated():
    ones, dead, saturated = shares({(8, 3): 5}, beta(0.7, 1.2), 1)
    assert (saturated, dead) == pytest.approx((ones, 1 - ones))


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (0.4, 0.6), (5.0, 1.0)])
def test_the_prior_that_made_the_data_is_found_again(a, b):
    random_ = random.Random(0)
    counts: dict[tuple[int, int], int] = {}
    for _ in range(4000):
        rate = random_.betavariate(a, b)
        passes = sum(random_.random() < rate for _ in range(8))
        counts[8, passes] = counts.get((8, passes), 0) + 1
    prior = fit_prior(counts)
    assert prior is not None
    assert prior.mean == pytest.approx(a / (a + b), abs=0.02)
    assert prior.variance == pytest.approx(a * b / ((a + b) ** 2 * (a + b + 1)), rel=0.1)


def test_the_expected_dead_share_is_what_further_samples_show():
    random_ = random.Random(1)
    rates = [random_.betavariate(0.5, 0.9) for _ in range(6000)]
    counts: dict[tuple[int, int], int] = {}
    dead = saturated = 0
    for rate in rates:
        passes = sum(random_.random() < rate for _ in range(4))
        counts[4, passes] = counts.get((4, passes), 0) + 1
        later = sum(random_.random() < rate for _ in range(8))
        dead += later == 0
        saturated += later == 8
    prior = fit_prior(counts)
    assert prior is not None
    _, expected_dead, expected_saturated = shares(counts, prior, 8)
    assert expected_dead == pytest.approx(dead / 6000, abs=0.015)
    assert expected_saturated == pytest.approx(saturated / 6000, abs=0.015)
    plugged_in = sum(rows * (1 - c / n) ** 8 for (n, c), rows in counts.items()) / 6000
    assert abs(plugged_in - dead / 6000) > 0.05


@pytest.mark.parametrize(("a", "b"), [(0.4, 0.6), (3.0, 0.7)])
def test_nine_of_ten_intervals_hold_the_pass_rate(a, b):
    random_ = random.Random(2)
    rates = [random_.betavariate(a, b) for _ in range(4000)]
    passes = [sum(random_.random() < rate for _ in range(8)) for rate in rates]
    prior = fit_prior({(8, count): passes.count(count) for count in range(9)})
    assert prior is not None
    intervals = {count: prior.after(8, count).interval() for count in range(9)}
    covered = sum(intervals[count][0] <= rate <= intervals[count][1] for rate, count in zip(rates, passes, strict=True))
    assert 0.88 <= covered / len(rates) <= 0.92


def test_the_posterior_of_a_mixture_weighs_its_components_by_how_well_they_foretold_the_samples():
    # After a failure Beta(1, 1) and Beta(1, 3) are Beta(1, 2) and Beta(1, 4), and as likely as 1/2 to 3/4: 2/5 and 3/5.
    # Means 1/3 and 1/5, squares 2 / (3 * 4) and 2 / (5 * 6): the mixture has the mean 19/75 and the square 8/75.
    known = mixture((0.5, 1, 1), (0.5, 1, 3)).after(1, 0)
    assert known.weights == pytest.approx([0.4, 0.6])
    assert known.mean == pytest.approx(19 / 75)
    assert known.variance == pytest.approx(8 / 75 - (19 / 75) ** 2)
    # Of two samples none passes with 2*3 / (3*4) and 4*5 / (5*6), both with 2 / (3*4) and 2 / (5*6).
    assert known.dead_share(2) == pytest.approx(0.4 / 2 + 0.6 * 2 / 3)
    assert known.saturated_share(2) == pytest.approx(0.4 / 6 + 0.6 / 15)
    assert known.teaching_share(2) == pytest.approx(1 - 0.6 - 0.32 / 3)


def test_a_problem_that_is_easy_or_hopeless_teaches_less_than_one_between():
    known = mixture((0.5, 0.002, 200), (0.5, 10, 10))
    # One Beta distribution of the same mean and variance foretells .58.
    assert known.teaching_share(8) == pytest.approx(0.489, abs=0.001)
    assert known.merge(1).teaching_share(8) == pytest.approx(0.580, abs=0.001)


def test_merged_components_keep_mean_and_variance():
    known = mixture((0.2, 1, 9), (0.3, 2, 8), (0.1, 0.002, 200), (0.4, 9, 1))
    for most in (3, 2, 1):
        merged = known.merge(most)
        assert len(merged.weights) == most
        assert (merged.mean, merged.variance) == pytest.approx((known.mean, known.variance))
    # The two that differ least are one first.
    assert sorted(known.merge(3).weights) == pytest.approx([0.3, 0.3, 0.4])


def test_tables_keep_a_mixture_without_what_hardly_counts():
    known = mixture((0.5, 1, 9), (0.4996, 3, 8), (0.0004, 50, 1))
    kept = known.components()
    assert [component["a"] for component in kept] == [1, 3]
    assert sum(component["weight"] for component in kept) == pytest.approx(1)
    read = Mixture.from_components(kept)
    assert read is not None
    assert read.mean == pytest.approx(known.mean, abs=4e-4)
    assert Mixture.from_components([]) is None


def test_stacked_mixtures_have_the_moments_of_each_and_none_is_any_rate():
    mixtures = [mixture((0.3, 1, 2), (0.7, 4, 1)), beta(2, 2), None]
    means, single, variances = moments(*stack_mixtures(mixtures))
    assert means == pytest.approx([0.3 / 3 + 0.7 * 0.8, 0.5, 0.5])
    # E[p (1 - p)] of Beta(2, 2) is 2*2 / (4*5), of Beta(1, 1) 1/6; the variances are 1/20 and 1/12.
    assert single[1:] == pytest.approx([0.2, 1 / 6])
    assert variances[1:] == pytest.approx([1 / 20, 1 / 12])


def test_wrong_labels_among_easy_problems_are_known_to_be_hopeless():
    random_ = random.Random(3)
    rates = [0.0 if random_.random() < 0.1 else random_.betavariate(6, 1) for _ in range(8000)]
    counts: dict[tuple[int, int], int] = {}
    passes = [sum(random_.random() < rate for _ in range(4)) for rate in rates]
    for count in passes:
        counts[4, count] = counts.get((4, count), 0) + 1
    prior = fit_prior(counts)
    assert prior is not None
    never = [rate for rate, count in zip(rates, passes, strict=True) if count == 0]
    teaching = sum(1 - rate**8 - (1 - rate) ** 8 for rate in never) / len(never)
    assert prior.after(4, 0).teaching_share(8) == pytest.approx(teaching, abs=0.1)
    intervals = {count: prior.after(4, count).interval() for count in range(5)}
    covered = sum(intervals[count][0] <= rate <= intervals[count][1] for rate, count in zip(rates, passes, strict=True))
    assert covered / len(rates) >= 0.88


def test_an_interval_is_the_shortest():
    # The density of Beta(1, 2) is 2 (1 - p): nine tenths lie below 1 - .1^.5.
    assert beta(1, 2).interval() == pytest.approx((0, 1 - 0.1**0.5), abs=1e-3)
    low, high = beta(5, 5).interval()
    assert low + high == pytest.approx(1, abs=4e-3)
    assert beta(5, 5).below(np.array([low, high])) == pytest.approx([0.05, 0.95], abs=5e-3)


def test_an_interval_reaches_a_spike_that_is_possible_and_holds_what_lies_between():
    between = (4.0, 4.0)
    # With the spike at 0 the interval starts there, and ends where nine tenths of Beta(4, 4) lie below.
    low, high = mixture((0.5, 0.002, 200), (0.5, *between)).interval()
    assert low == 0
    assert beta(*between).below(np.array([high])) == pytest.approx([0.9], abs=2e-3)
    # A spike of hardly any weight is left out, and one that is all but certain is all there is.
    assert mixture((0.01, 0.002, 200), (0.99, *between)).interval() == pytest.approx(beta(*between).interval())
    assert mixture((0.99, 0.002, 200), (0.01, *between)).interval() == (0, 0)
    assert mixture((0.99, 200, 0.002), (0.01, *between)).interval() == (1, 1)


def test_without_a_judged_sample_there_is_no_prior():
    assert fit_prior({}) is None
    assert fit_prior({(0, 0): 7}) is None


@settings(max_examples=10)
@given(
    st.dictionaries(
        st.integers(1, 16).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.integers(1, 500), min_size=1
    ),
    st.randoms(),
)
def test_the_prior_does_not_depend_on_the_order_of_problems(
    counts: dict[tuple[int, int], int], draw: random.Random
) -> None:
    shuffled = list(counts.items())
    draw.shuffle(shuffled)
    assert [prior and prior.weights.tolist() for prior in (fit_prior(counts), fit_prior(dict(shuffled)))] == (
        2 * [fit_prior(counts).weights.tolist()]  # type: ignore[union-attr]
    )


def drawn(rates: np.ndarray, seed: int) -> dict[tuple[int, int], int]:
    passes = np.random.default_rng(seed).binomial(8, rates)
    return {(8, count): int((passes == count).sum()) for count in range(9)}


def test_large_sources_and_domains_have_priors_of_their_own_and_small_ones_that_of_all():
    generator = np.random.default_rng(0)
    easy, hard = drawn(generator.beta(8, 2, 600), 1), drawn(generator.beta(1, 9, 3000), 2)
    few = drawn(generator.beta(8, 2, 100), 3)
    priors = fit_priors({("book", "algebra"): easy, ("web", "algebra"): hard, ("quiz", "logic"): few})
    assert priors is not None
    assert priors.of_group(("book", None)).mean == pytest.approx(0.8, abs=0.03)
    assert priors.group("book", "algebra") == ("book", None)
    assert priors.group("web", "new") == ("web", None)
    assert priors.group("quiz", "logic") == (None, None)
    assert priors.group("quiz", "algebra") == (None, "algebra")
    # A failure in the book is unusual, on the web it is not.
    assert priors.after("book", "algebra", 4, 0).mean > 2 * priors.after("web", "algebra", 4, 0).mean
    assert priors.after("quiz", "logic", 4, 0).mean == pytest.approx(priors.whole.after(4, 0).mean)


def test_one_source_of_one_domain_is_read_as_all_are():
    counts = drawn(np.random.default_rng(4).beta(2, 2, 500), 5)
    priors = fit_priors({("book", "algebra"): counts})
    assert priors is not None
    assert not priors.groups
    alone = fit_prior(counts)
    assert alone is not None
    assert priors.whole.weights.tolist() == alone.weights.tolist()
    assert fit_priors({("book", "algebra"): {(0, 0): 7}}) is None

"""What samples say of a pass rate: hand-computed shares, a prior that is found again, intervals that hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.rates.posterior import Beta, Prior, expected_shares, fit_prior


def test_the_shares_of_one_problem_by_hand():
    # Uniform prior, 1 of 2 passed: p ~ Beta(2, 2). E[p] = 1/2, E[(1-p)^2] = E[p^2] = 2*3 / (4*5) = 0.3.
    ones, dead, saturated = expected_shares({(2, 1): 1}, Beta(1, 1), 2)
    assert (ones, dead, saturated) == pytest.approx((0.5, 0.3, 0.3))


def test_a_problem_that_failed_its_few_samples_is_not_dead_for_sure():
    # Beta(1, 5) after 0 of 4: E[(1-p)^8] = B(1, 13) / B(1, 5) = 5 / 13.
    _, dead, _ = expected_shares({(4, 0): 1}, Beta(1, 1), 8)
    assert dead == pytest.approx(5 / 13)


def test_shares_are_means_over_problems():
    first, second = expected_shares({(4, 1): 1}, Beta(1, 2), 4), expected_shares({(4, 4): 1}, Beta(1, 2), 4)
    both = expected_shares({(4, 1): 1, (4, 4): 3}, Beta(1, 2), 4)
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
    ones, dead, saturated = expected_shares(counts, Beta(a, b), group)
    assert min(ones, dead, saturated) >= 0
    assert dead + saturated <= 1 + (1e-9 if group > 1 else 1e-6)
    assert saturated <= ones + 1e-9
    assert dead <= 1 - ones + 1e-9


def test_a_group_of_one_is_dead_or_saturated():
    ones, dead, saturated = expected_shares({(8, 3): 5}, Beta(0.7, 1.2), 1)
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
    alike = prior.after(0, 0)
    assert alike.mean == pytest.approx(a / (a + b), abs=0.02)
    assert alike.a + alike.b == pytest.approx(a + b, rel=0.15)


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
    _, expected_dead, expected_saturated = expected_shares(counts, prior, 8)
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


def test_the_posterior_of_a_mixture_has_its_mean_and_variance():
    # After a failure Beta(1, 1) and Beta(1, 3) are Beta(1, 2) and Beta(1, 4), and as likely as 1/2 to 3/4: 2/5 and 3/5.
    # Means 1/3 and 1/5, squares 2 / (3 * 4) and 2 / (5 * 6): the mixture has the mean 19/75 and the square 8/75.
    known = Prior((0.5, 0.5), (Beta(1, 1), Beta(1, 3))).after(1, 0)
    assert known.mean == pytest.approx(19 / 75)
    variance = known.a * known.b / ((known.a + known.b) ** 2 * (known.a + known.b + 1))
    assert variance == pytest.approx(8 / 75 - (19 / 75) ** 2)


def test_one_component_stays_what_it_is():
    known, expected = Prior((1.0,), (Beta(0.3, 2),)).after(5, 1), Beta(1.3, 6)
    assert (known.a, known.b) == pytest.approx((expected.a, expected.b))


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


def test_an_interval_reaches_the_end_at_which_the_density_has_no_bound():
    assert Beta(0.5, 20).interval()[0] == 0
    assert Beta(20, 0.5).interval()[1] == 1
    # The other tail is the whole tenth: 1 - (1 - p)^b = .9.
    assert Beta(0.99999999, 2).interval()[1] == pytest.approx(1 - 0.1**0.5, abs=1e-6)


def test_an_interval_by_hand():
    # Beta(1, 1) is uniform: its central 90 % are .05 to .95.
    assert Beta(1, 1).interval() == pytest.approx((0.05, 0.95))


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
    assert fit_prior(counts) == fit_prior(dict(shuffled))

"""The reward-ratio view: hand-computed shares, a prior that is found again, groups and selection."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.profile.reward_ratio import Prior, expected_shares, fit_prior, reward_ratios


def test_the_shares_of_one_problem_by_hand():
    # Uniform prior, 1 of 2 passed: p ~ Beta(2, 2). E[p] = 1/2, E[(1-p)^2] = E[p^2] = 2*3 / (4*5) = 0.3.
    ones, dead, saturated = expected_shares({(2, 1): 1}, Prior(1, 1), 2)
    assert (ones, dead, saturated) == pytest.approx((0.5, 0.3, 0.3))


def test_a_problem_that_failed_its_few_samples_is_not_dead_for_sure():
    # Beta(1, 5) after 0 of 4: E[(1-p)^8] = B(1, 13) / B(1, 5) = 5 / 13.
    _, dead, _ = expected_shares({(4, 0): 1}, Prior(1, 1), 8)
    assert dead == pytest.approx(5 / 13)


def test_shares_are_means_over_problems():
    first, second = expected_shares({(4, 1): 1}, Prior(1, 2), 4), expected_shares({(4, 4): 1}, Prior(1, 2), 4)
    both = expected_shares({(4, 1): 1, (4, 4): 3}, Prior(1, 2), 4)
    assert both == pytest.approx(tuple((x + 3 * y) / 4 for x, y in zip(first, second, strict=True)))


@settings(max_examples=60, deadline=None)
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
    ones, dead, saturated = expected_shares(counts, Prior(a, b), group)
    assert min(ones, dead, saturated) >= 0
    assert dead + saturated <= 1 + (1e-9 if group > 1 else 1e-6)
    assert saturated <= ones + 1e-9
    assert dead <= 1 - ones + 1e-9


def test_a_group_of_one_is_dead_or_saturated():
    ones, dead, saturated = expected_shares({(8, 3): 5}, Prior(0.7, 1.2), 1)
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
    assert prior.a / (prior.a + prior.b) == pytest.approx(a / (a + b), abs=0.02)
    assert prior.a + prior.b == pytest.approx(a + b, rel=0.15)


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


def tables(entries):
    """(source, split, verifier, n, judged, passes), one problem each."""
    rows = [
        {
            "id": f"{i:020x}",
            "source": source,
            "source_row": i,
            "split": split,
            "n": n,
            "judged": judged,
            "passes": passes,
        }
        | {"domain": "math", "verifier": verifier}
        for i, (source, split, verifier, n, judged, passes) in enumerate(entries)
    ]
    frame = pl.DataFrame(rows).lazy()
    return frame.drop("domain", "verifier"), frame.select("id", "source", "source_row", "domain", "verifier"), frame


def test_groups_are_told_before_and_after_selection_without_held_out_rows():
    entries = [("a", "train", "math", 4, 4, 2)] * 60 + [("b", "train", "exact", 4, 4, 4)] * 70
    entries += [("a", "heldout", "math", 4, 4, 0)] * 50
    profile, rows, everything = tables(entries)
    selected = everything.filter(pl.col("source") == "a", pl.col("split") == "train")
    ratios = {(ratio.by, ratio.name, ratio.when): ratio for ratio in reward_ratios(profile, rows, selected, 8)}
    assert ratios["all", "all", "profiled"].rows == 130
    assert ratios["all", "all", "selected"].rows == 60
    assert list(ratios)[2] == ("source", "b", "profiled")
    assert ratios["source", "b", "selected"].rows == 0
    assert ratios["source", "b", "selected"].ones is None
    half = ratios["source", "a", "profiled"]
    assert half.ones == pytest.approx(0.5, abs=0.01)
    assert half.informative == pytest.approx(1 - 2 * 0.5**8, abs=0.01)
    assert ratios["verifier", "exact", "profiled"].saturated > 0.95
    assert half.dead + half.saturated + half.informative == pytest.approx(1)


def test_unjudged_samples_are_left_out_and_counted():
    profile, rows, _ = tables([("a", "train", "math", 4, 0, 0), ("a", "train", "math", 4, 2, 1)])
    ratio = reward_ratios(profile, rows, None, 8)[0]
    assert (ratio.rows, ratio.judged_rows, ratio.unjudged) == (2, 1, 0.75)
    profile, rows, _ = tables([("a", "train", "math", 4, 0, 0)])
    nothing = reward_ratios(profile, rows, None, 8)[0]
    assert (nothing.ones, nothing.dead, nothing.unjudged) == (None, None, 1.0)


def test_no_training_rows_no_ratios():
    profile, rows, _ = tables([("a", "heldout", "math", 4, 4, 1)])
    assert reward_ratios(profile, rows, None, 8) == []


def test_the_prior_of_few_problems_is_that_of_all():
    entries = [("big", "train", "math", 8, 8, i % 9) for i in range(90)] + [("small", "train", "math", 8, 8, 8)] * 3
    profile, rows, _ = tables(entries)
    ratios = {ratio.name: ratio for ratio in reward_ratios(profile, rows, None, 8)}
    assert (ratios["small"].prior_a, ratios["small"].prior_b) == (ratios["all"].prior_a, ratios["all"].prior_b)
    assert ratios["small"].saturated < 1
    assert not math.isclose(ratios["big"].prior_a, ratios["all"].prior_a)

"""Interval, pass@k and clusters against hand-computed and published values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.profile.summary import answer_clusters, pass_at_k, powers_up_to
from truegold.verifiers.rates import wilson_interval


def test_wilson_interval_matches_the_published_example() -> None:
    low, high = wilson_interval(3, 8)
    assert (low, high) == pytest.approx((0.1368, 0.6943), abs=1e-4)


def test_wilson_interval_of_nothing_is_everything() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_rate_and_stays_in_range(counted: tuple[int, int]) -> None:
    passes, n = counted
    low, high = wilson_interval(passes, n)
    assert 0.0 <= low <= passes / n + 1e-12
    assert passes / n - 1e-12 <= high <= 1.0


def test_pass_at_k_by_hand() -> None:
    assert pass_at_k(3, 8, 1) == pytest.approx(0.375)
    assert pass_at_k(3, 8, 2) == pytest.approx(1 - (5 * 4) / (8 * 7))
    assert pass_at_k(0, 8, 8) == 0.0
    assert pass_at_k(1, 8, 8) == 1.0
    with pytest.raises(ValueError, match=r"1\.\.n"):
        pass_at_k(1, 8, 9)


def test_powers_up_to() -> None:
    assert [powers_up_to(n) for n in (0, 1, 2, 5, 8)] == [[], [1], [1, 2], [1, 2, 4], [1, 2, 4, 8]]


def test_forms_of_one_answer_vote_together() -> None:
    def same(first: str, second: str) -> bool:
        return float(first) == float(second)

    assert answer_clusters(["2", "3", "2.0", "3", "2.00"], same) == [("2", 3), ("3", 2)]
    assert answer_clusters([], same) == []
    assert answer_clusters(["5", "7"], same) == [("5", 1), ("7", 1)]

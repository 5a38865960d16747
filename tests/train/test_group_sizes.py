"""Groups by posterior: hard problems get more of a step's completions, the sum stays, and every choice is the best."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.special import betaln

from truegold.pipeline.tables.rows import Row
from truegold.train.config.feed import FeedConfig
from truegold.train.config.groups import GroupsConfig
from truegold.train.config.grpo import GrpoConfig
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.group_choice import GroupScore
from truegold.train.grpo.group_sizes import marginal_worth, share_budget

EASY, MIDDLE, HARD = (9.0, 1.0), (1.0, 1.0), (1.0, 9.0)


def share(
    *posteriors: tuple[float, float], budget: int, least: int = 2, most: int = 16, chances: Any = None
) -> list[int]:
    a, b = np.array(posteriors).T
    return share_budget(a, b, np.ones(len(a)) if chances is None else np.array(chances), budget, least, most)


def worth(a: float, b: float, size: int) -> float:
    """E[(1 - p)(1 - p^n - (1 - p)^n)], term by term."""
    moments = [(a, b + 1), (a + size, b + 1), (a, b + size + 1)]
    room, saturated, dead = (np.exp(betaln(*moment) - betaln(a, b)) for moment in moments)
    return float(room - saturated - dead)


def make_feed(*names: str, is_equal: bool = False, suspicions: dict[str, float] | None = None) -> Feed:
    known = {"e": EASY, "m": MIDDLE, "h": HARD}
    rows = []
    for name in names:
        a, b = known[name[0]]
        suspicion = (suspicions or {}).get(name)
        rows.append(cast("Row", {"id": name, "posterior_a": a, "posterior_b": b, "suspicion": suspicion}))
    groups = GroupsConfig() if is_equal else GroupsConfig(sizes="by_posterior", least=2, most=16)
    return Feed(rows, [], FeedConfig(), group_size=4, steps=9, seed=0, groups=groups)


def test_one_more_completion_is_worth_what_a_pencil_says() -> None:
    gains = marginal_worth(np.array([1.0, 1.0]), np.array([1.0, 9.0]), np.array([2.0, 3.0]))
    # B(3, 3) + B(2, 4), B(4, 3) + B(2, 5); of Beta(1, 9) nine times B(3, 11) + B(2, 12), B(4, 11) + B(2, 13).
    expected = [[1 / 30 + 1 / 20, 1 / 60 + 1 / 30], [9 * (2 / 1716 + 1 / 156), 9 * (6 / 24024 + 1 / 182)]]
    np.testing.assert_allclose(gains, expected, rtol=1e-12)


def test_hard_problems_get_more_completions_and_easy_ones_fewer() -> None:
    assert share(EASY, MIDDLE, HARD, budget=12) == [2, 4, 6]


def test_equal_problems_have_equal_groups_and_what_is_left_goes_to_the_first() -> None:
    assert share(MIDDLE, MIDDLE, MIDDLE, budget=14) == [5, 5, 4]


def test_a_problem_that_hardly_can_teach_gets_the_least() -> None:
    assert share(HARD, HARD, budget=12, chances=[1.0, 0.01]) == [10, 2]


@given(
    st.lists(st.tuples(st.floats(0.2, 30), st.floats(0.2, 30)), min_size=1, max_size=4),
    st.lists(st.floats(0.01, 1), min_size=4, max_size=4),
    st.integers(2, 6),
)
def test_no_other_sizes_are_worth_more(posteriors: list[tuple[float, float]], chances: list[float], mean: int) -> None:
    least, most = 2, 7
    budget, chances = mean * len(posteriors), chances[: len(posteriors)]

    table = [
        {size: chance * worth(a, b, size) for size in range(least, most + 1)}
        for chance, (a, b) in zip(chances, posteriors, strict=True)
    ]

    def total(sizes: Any) -> float:
        return sum(row[size] for row, size in zip(table, sizes, strict=True))

    sizes = share(*posteriors, budget=budget, least=least, most=most, chances=chances)
    assert sum(sizes) == budget
    assert all(least <= size <= most for size in sizes)
    others = product(range(least, most + 1), repeat=len(posteriors))
    assert total(sizes) >= max(total(other) for other in others if sum(other) == budget) - 1e-9


def test_groups_cannot_have_less_or_more_than_their_bounds_together() -> None:
    with pytest.raises(ValueError, match="2 groups of 2 to 3 completions cannot have 7 together"):
        share(HARD, EASY, budget=7, most=3)


def test_a_step_and_each_of_its_refills_have_the_completions_of_equal_groups() -> None:
    feed = make_feed("e1", "m1", "h1")
    taken = [row["id"][0] for row in feed.take(3)]
    sizes = feed.group_sizes(0, 3)
    assert dict(zip(taken, sizes, strict=True)) == {"e": 2, "m": 4, "h": 6}
    refilled = [row["id"][0] for row in feed.refill(2)]
    assert sum(feed.group_sizes(3, 2)) == 8
    assert len(refilled) == 2
    # What is foretold is what groups of these sizes teach.
    score = GroupScore(1, 4, teaches=True)
    foretold = feed.finish_step(dict.fromkeys(range(5), score))["feed_expected_teaching"]
    equal = make_feed("e1", "m1", "h1", is_equal=True)
    equal.take(3)
    assert equal.group_sizes(0, 3) == [4, 4, 4]
    assert foretold > equal.finish_step(dict.fromkeys(range(3), score))["feed_expected_teaching"]


def test_sizes_follow_what_rollouts_have_shown() -> None:
    feed = make_feed("m1", "m2")
    for _ in range(6):
        taken = [row["id"] for row in feed.take(2)]
        feed.group_sizes(0, 2)
        scores = {"m1": GroupScore(4, 4, teaches=False), "m2": GroupScore(1, 4, teaches=True)}
        feed.finish_step({group: scores[name] for group, name in enumerate(taken)})
    taken = [row["id"] for row in feed.take(2)]
    sizes = dict(zip(taken, feed.group_sizes(0, 2), strict=True))
    assert sizes["m2"] > sizes["m1"]


def test_a_label_that_is_probably_wrong_draws_no_completions() -> None:
    feed = make_feed("h1", "h2", suspicions={"h1": 0.98})
    taken = [row["id"] for row in feed.take(2)]
    assert dict(zip(taken, feed.group_sizes(0, 2), strict=True)) == {"h1": 2, "h2": 6}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"groups": {"least": 2}}, "least: bounds are those of sizes: by_posterior"),
        ({"group_size": 3, "groups": {"sizes": "by_posterior"}}, r"group_size \(3\) is the mean size"),
        ({"group_size": 64, "groups": {"sizes": "by_posterior"}}, r"group_size \(64\) is the mean size"),
        ({"groups": {"sizes": "by_posterior"}, "asynchronous": {}}, "by_posterior does not go with asynchronous"),
        (
            {"groups": {"sizes": "by_posterior", "least": 2}, "objective": {"advantage": "pass_at_k_walder"}},
            r"pass_at_k \(4\) must be at most 2 in groups of 2",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError, match=error):
        GrpoConfig.model_validate(settings)

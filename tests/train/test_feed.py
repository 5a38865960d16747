"""Which problems come next: permutations, stages, skipped rows, refills from the reserve, and a state to resume."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.rates import Mixture
from truegold.pipeline.tables.rows import Row
from truegold.train.config.grpo import FeedConfig
from truegold.train.grpo.feed import Feed
from truegold.train.grpo.groups import GroupScore


def beta(a: float, b: float) -> list[dict[str, float]]:
    return [{"weight": 1.0, "a": a, "b": b}]


def rows(names: str, **fields: Any) -> list[Row]:
    return [cast("Row", {"id": name, **fields}) for name in names]


def make_feed(rows: list[Row], reserve: list[Row] | None = None, seed: int = 0, **config: Any) -> Feed:
    settings = FeedConfig.model_validate({"order": "signal", **config})
    return Feed(rows, reserve or [], settings, group_size=8, steps=12, seed=seed)


def ids(taken: list[Row]) -> str:
    return "".join(row["id"] for row in taken)


def score(right: int, judged: int = 8) -> GroupScore:
    return GroupScore(right, judged, teaches=0 < right < judged)


@given(st.integers(1, 9), st.lists(st.integers(0, 7), max_size=8), st.integers(0, 3))
def test_each_epoch_has_every_row_once_however_many_are_taken_at_a_time(size: int, takes: list[int], seed: int) -> None:
    feed = make_feed(rows("abcdefghi"[:size]), seed=seed, order="uniform")
    stream = "".join(ids(feed.take(count)) for count in takes)
    for start in range(0, len(stream) - size + 1, size):
        assert sorted(stream[start : start + size]) == list("abcdefghi"[:size])


def test_epochs_and_seeds_differ_in_order() -> None:
    feed = make_feed(rows("abcdefgh"), order="uniform")
    first, second = ids(feed.take(8)), ids(feed.take(8))
    assert first != second
    assert ids(make_feed(rows("abcdefgh"), seed=1, order="uniform").take(8)) != first


@pytest.mark.parametrize("order", ["uniform", "signal"])
def test_refills_come_from_the_reserve_in_order_and_then_from_the_stream(order: str) -> None:
    feed = make_feed(rows("ab"), rows("xyz"), order=order)
    assert ids(feed.refill(2)) == "xy"
    last = ids(feed.refill(3))
    assert last[0] == "z"
    assert sorted(last[1:]) == ["a", "b"]


@pytest.mark.parametrize("order", ["uniform", "signal", "curriculum"])
def test_a_restored_feed_goes_on_where_it_was(order: str) -> None:
    def steps(feed: Feed, count: int) -> str:
        seen = ""
        for _ in range(count):
            taken = ids(feed.take(3) + feed.refill(1))
            # Of the row "c" nothing can ever be judged.
            scores = {group: score(0, 0) if name == "c" else score(ord(name) % 9) for group, name in enumerate(taken)}
            feed.finish_step(scores)
            seen += taken
        return seen

    feed = make_feed(rows("abcdefghij"), rows("xy"), seed=3, order=order)
    steps(feed, 5)
    state = json.loads(json.dumps(feed.state())) if order == "uniform" else feed.state()
    expected = steps(feed, 6)
    resumed = make_feed(rows("abcdefghij"), rows("xy"), seed=3, order=order)
    resumed.restore(state)
    assert steps(resumed, 6) == expected


def test_rows_whose_groups_would_not_teach_are_skipped_and_those_that_would_are_not() -> None:
    dead, useful = rows("d" * 50, posterior=beta(0.1, 60.0)), rows("u" * 50, posterior=beta(20.0, 20.0))
    feed = make_feed(dead + useful)
    taken = ids(feed.take(40))
    assert taken.count("u") >= 38
    metrics = feed.finish_step({group: score(4) for group in range(40)})
    assert metrics["feed_skipped"] > 0.3
    assert metrics["feed_expected_teaching"] > 0.9


def test_a_skipped_row_comes_back_when_the_policy_has_moved() -> None:
    """All groups that are seen pass ever more often, so that the hard rows, never sampled, will be within reach."""
    hard = rows("h" * 40, posterior=beta(0.6, 60.0))
    middle = rows("m" * 40, posterior=beta(10.0, 10.0))
    feed = make_feed(hard + middle)
    shares = []
    for step in range(30):
        taken = ids(feed.take(10))
        feed.finish_step({group: score(min(8, 4 + step) if name == "m" else 0) for group, name in enumerate(taken)})
        shares.append(taken.count("h") / 10)
    assert sum(shares[:3]) / 3 < 0.2
    assert max(shares[5:]) > 0.4


def test_a_row_with_a_doubtful_label_is_taken_more_rarely() -> None:
    known = {"posterior": beta(10.0, 10.0)}
    feed = make_feed(rows("s" * 100, suspicion=0.7, **known) + rows("c" * 100, **known))
    taken = "".join(ids(feed.take(20)) for _ in range(5))
    assert taken.count("c") > 4 * taken.count("s")


def test_rows_that_cannot_be_judged_are_taken_ever_more_rarely() -> None:
    feed = make_feed(rows("u" * 20) + rows("j" * 20))
    first = ""
    for step in range(12):
        taken = ids(feed.take(10))
        first += taken if step < 2 else ""
        feed.finish_step({group: score(0, 0) if name == "u" else score(4) for group, name in enumerate(taken)})
    assert first.count("u") > 5
    assert taken.count("u") <= 2


def test_a_curriculum_begins_with_the_easy_rows_and_ends_with_all() -> None:
    pool = [
        *rows("hhhh", posterior=beta(1.0, 9.0)),
        *rows("mmmm", posterior=beta(5.0, 5.0)),
        *rows("eeee", posterior=beta(9.0, 1.0)),
    ]
    feed = make_feed(pool, order="curriculum")
    seen = []
    for _ in range(12):
        taken = ids(feed.take(12))
        feed.finish_step({group: score(4) for group in range(12)})
        seen.append({name: taken.count(name) for name in "emh"})
    assert seen[0] == seen[3] == {"e": 12, "m": 0, "h": 0}
    assert seen[4]["h"] == 0
    assert seen[4]["m"] in range(4, 9)
    assert seen[11] == {"e": 4, "m": 4, "h": 4}


def test_a_step_is_filled_even_where_hardly_any_row_would_teach() -> None:
    feed = make_feed(rows("abc", posterior=beta(0.01, 500.0)))
    assert len(feed.take(8)) == 8


def test_what_groups_since_a_checkpoint_have_taught_can_be_forgotten_and_the_stream_goes_on() -> None:
    feed, untaught = make_feed(rows("abcdefgh"), order="uniform"), make_feed(rows("abcdefgh"), order="uniform")
    state = feed.state()
    seen = ids(feed.take(4))
    before = feed.pass_rates(range(4))
    feed.finish_step({group: score(8) if group else score(0, 0) for group in range(4)})
    feed.unlearn(state)
    assert feed.state()["feed"]["unjudged"] == {}
    # A policy that has died is no evidence against the profile once it is given up.
    assert feed.state()["feed"]["forecast"] == state["feed"]["forecast"]
    seen += ids(feed.take(4))
    assert sorted(seen) == list("abcdefgh")
    untaught.take(8)
    assert feed.pass_rates(range(4)) == untaught.pass_rates(range(4)) == before


def test_a_training_hands_on_what_it_has_learnt_in_the_columns_of_the_profile() -> None:
    pool = [
        cast("Row", {"id": str(number), "source": "a", "source_row": number, "posterior": beta(2.0, 6.0)})
        for number in range(4)
    ]
    feed = make_feed(pool, order="uniform")
    for _ in range(6):
        taken = feed.take(4)
        feed.finish_step({group: score(0 if row["id"] == "0" else 7) for group, row in enumerate(taken)})
    known = {record["id"]: record for record in feed.known_rates()}
    assert known["1"]["source_row"] == 1
    assert known["1"]["expected_rate"] > 0.7
    # One that was all wrong while the others passed probably never passes.
    never = known["0"]["posterior"][0]
    assert never["weight"] > 0.5 and never["a"] < 0.01
    for record in known.values():
        mixture = Mixture.from_components(record["posterior"])
        assert mixture is not None
        assert mixture.mean == pytest.approx(record["expected_rate"], abs=1e-2)

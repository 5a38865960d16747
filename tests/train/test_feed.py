"""The stream of rows: fresh permutations, refills from the reserve in its order, and a state that is two numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truegold.train.grpo.feed import Feed


def rows(names: str) -> list[dict[str, str]]:
    return [{"id": name} for name in names]


def ids(taken: list[dict[str, str]]) -> str:
    return "".join(row["id"] for row in taken)


@given(st.integers(1, 9), st.lists(st.integers(0, 7), max_size=8), st.integers(0, 3))
def test_each_epoch_has_every_row_once_however_many_are_taken_at_a_time(size: int, takes: list[int], seed: int) -> None:
    feed = Feed(rows("abcdefghi"[:size]), [], seed)
    stream = "".join(ids(feed.take(count)) for count in takes)
    for start in range(0, len(stream) - size + 1, size):
        assert sorted(stream[start : start + size]) == list("abcdefghi"[:size])


def test_epochs_and_seeds_differ_in_order() -> None:
    feed = Feed(rows("abcdefgh"), [], 0)
    first, second = ids(feed.take(8)), ids(feed.take(8))
    assert first != second
    assert ids(Feed(rows("abcdefgh"), [], 1).take(8)) != first


def test_refills_come_from_the_reserve_in_order_and_then_from_the_stream() -> None:
    feed = Feed(rows("ab"), rows("xyz"), 0)
    assert ids(feed.refill(2)) == "xy"
    last = ids(feed.refill(3))
    assert last[0] == "z"
    assert sorted(last[1:]) == ["a", "b"]


def test_a_restored_feed_goes_on_where_it_was() -> None:
    feed = Feed(rows("abcde"), rows("xy"), 3)
    feed.take(4), feed.refill(1)
    state = feed.state()
    expected = ids(feed.take(5)) + ids(feed.refill(3))
    resumed = Feed(rows("abcde"), rows("xy"), 3)
    resumed.restore(state)
    assert ids(resumed.take(5)) + ids(resumed.refill(3)) == expected

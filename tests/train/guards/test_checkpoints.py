"""Which checkpoints stay, and which is returned to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truegold.train.guards.watch import MARGIN, SETTLED, healthy_checkpoint, kept_checkpoints


def test_the_newest_the_best_and_the_settled_ones_stay() -> None:
    assert kept_checkpoints([0, 20, 40, 60, 80], 80, best=20) == {20, 60, 80}
    assert kept_checkpoints([0, 20, 40], 40, best=None) == {20, 40}


@given(st.integers(1, 7), st.integers(1, 80), st.integers(0, 5))
def test_however_often_one_is_written_a_healthy_one_is_there(every: int, last: int, noticed: int) -> None:
    kept: set[int] = {0}
    for step in range(every, last + 1, every):
        kept = kept_checkpoints({*kept, step}, step, best=None)
    assert len(kept) <= 4
    since = last - noticed
    healthy = healthy_checkpoint(kept, since)
    assert healthy is not None
    assert healthy <= since - MARGIN or last < SETTLED + 2 * every + noticed


def test_where_all_are_too_young_the_oldest_has_to_do() -> None:
    assert healthy_checkpoint([10, 12], since=10) == 10
    assert healthy_checkpoint([], since=3) is None

"""What a step trains on belongs together: rows to ranks, verdicts to completions."""

from __future__ import annotations

import pytest

from truegold.train.grpo import belonging
from truegold.train.grpo.belonging import count_apart

Rank = tuple[list[str], list[tuple[int, str]]]


@pytest.mark.parametrize(
    ("ranks", "apart"),
    [
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("abcd"), [(1, "b"), (3, "d")])], 0),
        ([(list("abab"), [(0, "a"), (2, "a")]), (list("abab"), [(1, "b"), (3, "b")])], 0),  # Few rows, drawn twice.
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("bacd"), [(1, "a"), (3, "d")])], 2),  # Another seed.
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("acbd"), [(1, "c"), (3, "d")])], 2),
        ([(list("abcd"), [(0, "a"), (2, "c")]), (list("abxd"), [(1, "b"), (3, "d")])], 1),  # Not sampled there.
        ([(list("abcd"), [(0, "a"), (1, "b")]), (list("abcd"), [(1, "b"), (3, "d")])], 1),  # One group twice.
        ([(list("abc"), [(0, "a"), (2, "c")]), (list("abcd"), [(1, "b"), (3, "d")])], 1),
        ([(list("ab"), [(0, "a"), (1, "c")])], 1),  # A row in the place of another, on one rank.
    ],
)
def test_groups_that_are_apart_are_counted(monkeypatch: pytest.MonkeyPatch, ranks: list[Rank], apart: int) -> None:
    monkeypatch.setattr(belonging, "gathered", lambda value: ranks)
    assert count_apart(*ranks[-1]) == apart

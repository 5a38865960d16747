"""Diversity of groups, on values counted by hand."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import pytest

from truegold.train.grpo.batch_metrics import copies_evidence, distinct_ngrams, distinct_share, expected_copies
from truegold.train.model.segment import Segment


def test_distinct_answers_leave_out_what_has_none() -> None:
    assert distinct_share([["1", "1", "2", None], ["3", "3"]]) == (2 / 3 + 1 / 2) / 2
    assert distinct_share([[None], []]) is None


def test_distinct_ngrams_are_counted_within_a_group() -> None:
    same, other = [1, 2, 3, 4, 5], [1, 2, 3, 4, 9]
    assert distinct_ngrams([same, same]) == 2 / 4
    assert distinct_ngrams([same, other]) == 3 / 4
    assert distinct_ngrams([same]) == 1.0
    assert distinct_ngrams([[1, 2, 3]]) is None


def sampled_groups(chances: list[float], count: int, draws: int, size: int = 8) -> list[Any]:
    """Return groups of completions sampled from these chances, of which each draw is given to so many members."""
    random_draw, groups = random.Random(0), []
    for _ in range(count):
        drawn = random_draw.choices(range(len(chances)), chances, k=-(-size // draws))
        members = [drawn[index // draws] for index in range(size)]
        segments = [Segment((1,), (answer,), (math.log(chances[answer]),)) for answer in members]
        groups.append([SimpleNamespace(segment=segment, parts=()) for segment in segments])
    return groups


@pytest.mark.parametrize(
    ("chances", "count", "draws", "is_evident"),
    [
        ([0.05] * 20, 64, 1, False),
        ([0.999, 0.001], 64, 1, False),  # All are alike, and should be.
        ([1e-3] * 1000, 4, 1, False),
        ([0.5, *[0.001] * 500], 64, 1, False),
        ([0.05] * 20, 16, 8, True),  # A seed without the index of the member.
        ([0.05] * 20, 32, 2, True),  # Pairs.
        ([1e-3] * 1000, 4, 2, True),
    ],
)
def test_copies_within_groups_are_told_from_completions_that_are_likely(
    chances: list[float], count: int, draws: int, is_evident: bool
) -> None:
    groups = sampled_groups(chances, count, draws)
    assert (copies_evidence([expected_copies(group) for group in groups]) > 11.5) == is_evident

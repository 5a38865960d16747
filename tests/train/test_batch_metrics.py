"""Diversity of groups, on values counted by hand."""

from __future__ import annotations

from truegold.train.grpo.batch_metrics import distinct_ngrams, distinct_share


def test_distinct_answers_leave_out_what_has_none() -> None:
    assert distinct_share([["1", "1", "2", None], ["3", "3"]]) == (2 / 3 + 1 / 2) / 2
    assert distinct_share([[None], []]) is None


def test_distinct_ngrams_are_counted_within_a_group() -> None:
    same, other = [1, 2, 3, 4, 5], [1, 2, 3, 4, 9]
    assert distinct_ngrams([same, same]) == 2 / 4
    assert distinct_ngrams([same, other]) == 3 / 4
    assert distinct_ngrams([same]) == 1.0
    assert distinct_ngrams([[1, 2, 3]]) is None

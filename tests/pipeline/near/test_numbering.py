"""Numbers for distinct values: every value keeps the number it got when it first came, at any size."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from truegold.pipeline.near.numbering import HashNumbers, PairNumbers, TextNumbers

BATCHES = st.lists(st.lists(st.integers(0, 30), max_size=15), max_size=8)


@given(BATCHES)
def test_distinct_hashes_are_numbered_in_the_order_in_which_they_come(batches: list[list[int]]) -> None:
    numbers, expected = HashNumbers(), dict[int, int]()
    for batch in batches:
        assigned, new_positions = numbers.assign(np.array(batch, dtype=np.uint64))
        expected_new = []
        for position, value in enumerate(batch):
            if value not in expected:
                expected[value] = len(expected)
                expected_new.append(position)
        assert assigned.tolist() == [expected[value] for value in batch]
        assert new_positions.tolist() == expected_new
    assert len(numbers) == len(expected)


@given(BATCHES)
def test_distinct_texts_are_numbered_in_the_order_in_which_they_come(batches: list[list[int]]) -> None:
    numbers, expected = TextNumbers(), dict[str, int]()
    for batch in batches:
        texts = [f"text {value}" for value in batch]
        assigned, new_texts = numbers.assign(pl.Series(texts, dtype=pl.String))
        known = len(expected)
        for text in texts:
            expected.setdefault(text, len(expected))
        assert assigned.tolist() == [expected[text] for text in texts]
        assert new_texts.to_list() == list(expected)[known:]


def test_pairs_keep_their_numbers_while_the_table_grows() -> None:
    draw = np.random.default_rng(5)
    pairs = np.unique(draw.integers(0, 2**32, 60_000).astype(np.uint64))
    draw.shuffle(pairs)
    inside, outside = pairs[:50_000], pairs[50_000:]
    table = PairNumbers()
    for start in range(0, len(inside), 7_000):
        part = inside[start : start + 7_000]
        table.add(part, np.arange(start, start + len(part), dtype=np.int32))
    assert np.array_equal(table.look_up(inside), np.arange(len(inside)))
    assert (table.look_up(outside) == -1).all()


def test_the_pair_of_zeros_is_a_pair_like_others() -> None:
    table, zeros = PairNumbers(), np.zeros(1, dtype=np.uint64)
    assert table.look_up(zeros).tolist() == [-1]
    table.add(zeros, np.array([0], dtype=np.int32))
    assert table.look_up(zeros).tolist() == [0]

"""The table of pairs finds what was put in and nothing else, at any size."""

from __future__ import annotations

import numpy as np

from truegold.pipeline.dedup.near.pairs import PairTable


def test_pairs_are_found_again_while_the_table_grows() -> None:
    draw = np.random.default_rng(5)
    pairs = np.unique(draw.integers(0, 2**32, 60_000).astype(np.uint64))
    draw.shuffle(pairs)
    inside, outside = pairs[:50_000], pairs[50_000:]
    table = PairTable()
    for start in range(0, len(inside), 7_000):
        part = inside[start : start + 7_000]
        table.add(part, np.arange(start, start + len(part), dtype=np.int32))
    assert np.array_equal(table.look_up(inside), np.arange(len(inside)))
    assert (table.look_up(outside) == -1).all()


def test_the_pair_of_zeros_is_a_pair_like_others() -> None:
    table, zeros = PairTable(), np.zeros(1, dtype=np.uint64)
    assert table.look_up(zeros).tolist() == [-1]
    table.add(zeros, np.array([0], dtype=np.int32))
    assert table.look_up(zeros).tolist() == [0]

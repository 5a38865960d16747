"""Batches are padded on the right, masks come from lengths, and micro-batches keep within their tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truegold.train.segment import Segment, collate, micro_batches

PAD = 9


def test_a_pad_token_that_is_also_the_end_token_stays_in_the_mask() -> None:
    batch = collate([Segment((1, 2), (3, PAD), (-0.5, -0.25)), Segment((1,), (4,))], pad_id=PAD)
    assert batch.input_ids.tolist() == [[1, 2, 3, PAD], [1, 4, PAD, PAD]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch.mask.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert batch.targets.tolist() == [[3, PAD], [4, 0]]
    assert batch.rollout.tolist() == [[-0.5, -0.25], [0.0, 0.0]]
    assert batch.prompt_lengths.tolist() == [2, 1]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40), st.integers(10, 200))
def test_micro_batches_hold_every_segment_once_and_keep_the_limit(sizes: list[tuple[int, int]], limit: int) -> None:
    segments = [Segment((0,) * prompt, (0,) * output) for prompt, output in sizes]
    batches = list(micro_batches(segments, limit))
    assert sorted(index for batch in batches for index in batch) == list(range(len(segments)))
    for batch in batches:
        padded = max(segments[index].length for index in batch) * len(batch)
        assert padded <= limit or len(batch) == 1

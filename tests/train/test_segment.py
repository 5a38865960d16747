"""Batches are padded on the right, masks come from lengths, and micro-batches keep within their tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from truegold.train.model.segment import Segment, collate, micro_batches

PAD = 9


def test_a_pad_token_that_is_also_the_end_token_stays_in_the_mask() -> None:
    batch = collate([[Segment((1, 2), (3, PAD), (-0.5, -0.25))], [Segment((1,), (4,))]], pad_id=PAD)
    assert batch.input_ids.tolist() == [[1, 2, 3, PAD], [1, 4, PAD, PAD]]
    assert batch.attention_mask is not None
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch.mask.tolist() == [[1.0, 1.0], [1.0, 0.0]]
    assert batch.targets.tolist() == [[3, PAD], [4, 0]]
    assert batch.rollout_logprobs.tolist() == [[-0.5, -0.25], [0.0, 0.0]]
    assert batch.prompt_lengths.tolist() == [2, 1]


def test_packed_segments_lie_behind_each_other_with_positions_of_their_own() -> None:
    batch = collate([[Segment((1, 2), (3,)), Segment((4,), (5,))], [Segment((6,), (7, 8))]], pad_id=0)
    assert batch.input_ids.tolist() == [[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]]
    assert batch.attention_mask is None
    assert batch.position_ids is not None
    assert batch.position_ids.tolist() == [[0, 1, 2, 0, 1], [0, 1, 2, 0, 1]]
    assert (batch.rows.tolist(), batch.starts.tolist()) == ([0, 0, 1], [0, 3, 0])
    assert batch.targets.tolist() == [[3, 0], [5, 0], [7, 8]]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40),
    st.integers(10, 200),
    st.booleans(),
)
def test_micro_batches_hold_every_segment_once_and_keep_the_limit(
    sizes: list[tuple[int, int]], limit: int, packed: bool
) -> None:
    segments = [Segment((0,) * prompt, (0,) * output) for prompt, output in sizes]
    batches = list(micro_batches(segments, limit, packed))
    assert sorted(index for batch in batches for row in batch for index in row) == list(range(len(segments)))
    for batch in batches:
        lengths = [sum(segments[index].length for index in row) for row in batch]
        assert max(lengths) * len(batch) <= limit or len(batch) == 1
        assert packed or all(len(row) == 1 for row in batch)
        assert max(lengths) == max(segments[index].length for row in batch for index in row)


def test_each_token_knows_the_weights_that_sampled_it() -> None:
    alone = Segment((1,), (2, 3, 4), version=5)
    assert (alone.stretches, alone.token_versions) == (((5, 3),), [5, 5, 5])
    in_flight = Segment((1,), (2, 3, 4), version=5, versions=((5, 1), (6, 2)))
    assert in_flight.token_versions == [5, 6, 6]
    # What the environment has said between two turns is nobody's.
    turns = Segment((1,), (2, 3, 4, 5), sampled=(True, False, True, True), version=5, versions=((6, 1), (5, 2)))
    assert turns.token_versions == [6, 5, 5, 5]

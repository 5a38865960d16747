"""What is sampled next: the same samples in whatever order verdicts come in, and an end in every case."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Container, Iterator

from hypothesis import given
from hypothesis import strategies as st
from numbered_rows import make_row

from truegold.pipeline.profile.schedule import SampledRow, Schedule, Selection

ROWS = 40
FIRST, MOST = 4, 12


def sampled_row(index: int, split: str = "train") -> SampledRow:
    return SampledRow(make_row(index, split), index, (index,), str(index))


def coin(index: int, sample: int) -> float | None:
    """Return the score of a sample: the pass rate of a row grows with its number."""
    return float(random.Random(f"{index}-{sample}").random() < index / ROWS)


def run(
    pilot: int,
    order: random.Random,
    score: Callable[[int, int], float | None] = coin,
    heldout: frozenset[int] = frozenset(),
    stop_after: int | None = None,
    answer: Callable[[int, int], str | None] = lambda index, sample: None,
    kept: Container[tuple[int, int]] = (),
    quotas: dict[str, float] | None = None,
) -> tuple[dict[int, int], Schedule]:
    """Draw until the end, verdicts in a random order; return how many samples each row got."""
    rows = [sampled_row(index, "heldout" if index in heldout else "train") for index in range(ROWS)]
    pilot_rows = [row for row in rows[:pilot] if row.index not in heldout]
    others: Iterator[SampledRow] = (row for row in rows if row not in pilot_rows)
    selection = Selection(group_size=8, rows=ROWS // 2, quotas=quotas or {})
    schedule = Schedule(pilot_rows, others, FIRST, MOST, 0.75, ROWS, selection)
    on_their_way: list[tuple[SampledRow, int]] = []
    samples: dict[int, int] = {}
    recorded = 0
    while not schedule.finished:
        on_their_way += schedule.draws(order.randint(0, 7))
        if stop_after is not None and recorded >= stop_after and not schedule.stopped:
            schedule.stop(lambda sampled, sample: (sampled.index, sample) in kept)
        order.shuffle(on_their_way)
        for _ in range(order.randint(0, len(on_their_way))):
            sampled, sample = on_their_way.pop()
            samples[sampled.index] = samples.get(sampled.index, 0) + 1
            schedule.record(sampled, score(sampled.index, sample), answer(sampled.index, sample))
            recorded += 1
    assert not on_their_way
    assert not schedule.draws(10)
    return samples, schedule


@given(st.integers(0, 2**32))
def test_the_order_of_verdicts_changes_no_count(seed: int) -> None:
    expected, first = run(16, random.Random(0))
    samples, schedule = run(16, random.Random(seed))
    assert samples == expected
    assert schedule.counts == first.counts
    assert schedule.settled == ROWS


def test_quotas_and_sources_make_rules_of_their_own() -> None:
    quotas = {"source:train.jsonl": 1.0}
    samples, schedule = run(ROWS, random.Random(8), quotas=quotas)
    assert schedule.allocation is not None
    assert [stratum for _, stratum in schedule.allocation.chances] == [frozenset(quotas)]
    assert samples == run(ROWS, random.Random(9), quotas=quotas)[0]


def test_a_few_rows_of_the_pilot_get_all_samples_at_once() -> None:
    rows = [sampled_row(index) for index in range(64)]
    schedule = Schedule(rows, iter(()), FIRST, MOST, 0.75, 64, Selection(8, None))
    drawn = Counter(sampled.index for sampled, _ in schedule.draws(1000))
    assert sorted(drawn.values())[-3:] == [FIRST, MOST, MOST]


def test_open_rows_get_more_than_obvious_ones() -> None:
    samples, schedule = run(ROWS, random.Random(1))
    assert min(samples.values()) == FIRST
    assert samples[0] < max(samples.values())
    assert all(FIRST <= count <= MOST for count in samples.values())
    assert schedule.allocation is not None


def test_the_first_rule_expects_more_than_the_first_samples_while_the_pilot_goes_on() -> None:
    rows = [sampled_row(index) for index in range(ROWS)]
    schedule = Schedule(rows, iter(()), FIRST, MOST, 0.75, ROWS, Selection(group_size=8, rows=ROWS // 2))
    assert schedule.allocation is None
    for sampled, sample in schedule.draws(ROWS * MOST):
        schedule.record(sampled, coin(sampled.index, sample), None)
    assert schedule.is_piloting
    assert schedule.allocation is not None
    assert FIRST < schedule.allocation.expected_samples <= MOST


def test_rows_whose_samples_agree_on_another_answer_get_all() -> None:
    def never(index: int, sample: int) -> float:
        return 0.0

    def answer(index: int, sample: int) -> str:
        return "7" if index < 3 and sample != 1 else str(sample)

    samples, _ = run(16, random.Random(4), score=never, answer=answer)
    assert [samples[index] for index in range(4)] == [MOST, MOST, MOST, FIRST]
    once = lambda index, sample: float(sample == 0)  # noqa: E731
    assert run(16, random.Random(4), score=once, answer=answer)[0] == run(16, random.Random(4), score=once)[0]


def test_held_out_rows_get_all_samples_and_do_not_count() -> None:
    heldout = frozenset({3, 20, 39})
    samples, schedule = run(16, random.Random(2), heldout=heldout)
    assert all(samples[index] == MOST for index in heldout)
    assert sum(counts.total() for counts in schedule.counts.values()) == ROWS - len(heldout)


def test_rows_that_cannot_be_judged_end_after_their_first_samples() -> None:
    samples, schedule = run(16, random.Random(3), score=lambda index, sample: None)
    assert set(samples.values()) == {FIRST}
    assert schedule.allocation is None


@given(st.integers(0, 2**32), st.integers(0, 200), st.integers(0, ROWS))
def test_a_stop_ends_every_row_with_what_it_has(seed: int, stop_after: int, pilot: int) -> None:
    samples, schedule = run(pilot, random.Random(seed), stop_after=stop_after)
    assert schedule.stopped or schedule.settled == ROWS
    assert schedule.settled >= len(samples)


def test_samples_that_are_kept_are_planned_after_a_stop_as_without_one() -> None:
    whole, unstopped = run(16, random.Random(5))
    kept = {(index, sample) for index, count in whole.items() for sample in range(count)}
    samples, schedule = run(16, random.Random(6), stop_after=90, kept=kept)
    assert schedule.stopped
    assert samples == whole
    assert schedule.counts == unstopped.counts


def test_a_stop_leaves_out_what_is_not_kept_of_a_row() -> None:
    samples, _ = run(0, random.Random(7), stop_after=0, kept={(3, 0), (3, 2), (5, 1)})
    assert {index: samples[index] for index in (3, 5) if index in samples} == {3: 2, 5: 1}

"""The counts of a selection: demands are met where a selection can meet them, and limits hold whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from truegold.pipeline.select.choice import Demand, Limit, fulfilments, solve_counts


@settings(max_examples=60)
@given(st.data())
def test_demands_that_a_selection_of_that_size_can_meet_are_met(data: st.DataObject) -> None:
    draw: Callable[..., Any] = data.draw
    available = draw(st.lists(st.integers(0, 30), min_size=2, max_size=9))
    witness = [draw(st.integers(0, rows)) for rows in available]
    total = sum(witness)
    cells = range(len(available))
    members = [frozenset(draw(st.sets(st.sampled_from(cells), min_size=1))) for _ in range(draw(st.integers(0, 4)))]
    demands = [
        Demand(str(number), sum(witness[cell] for cell in group) / max(total, 1), group)
        for number, group in enumerate(members)
    ]
    if total == 0 or total == sum(available):
        return
    counts = solve_counts(available, demands, total)
    assert sum(counts) == total
    assert all(0 <= count <= rows for count, rows in zip(counts, available, strict=True))
    assert all(fulfilment.is_met for fulfilment in fulfilments(demands, counts, available))
    largest = solve_counts(available, demands, None)
    assert all(fulfilment.is_met for fulfilment in fulfilments(demands, largest, available))
    assert sum(largest) >= total


def test_the_largest_selection_of_many_kinds_is_large() -> None:
    keys = [(band, domain, source) for band in range(4) for domain in range(16) for source in range(6)]
    available = [(band * 37 + domain * 101 + source * 53) % 90 for band, domain, source in keys]
    demands = [
        Demand(f"{name} {value}", 1 / values, frozenset(cell for cell, key in enumerate(keys) if key[column] == value))
        for name, column, values in (("band", 0, 4), ("source", 2, 6))
        for value in range(values)
    ]
    counts = solve_counts(available, demands, None)
    assert all(fulfilment.is_met for fulfilment in fulfilments(demands, counts, available))
    scarcest = min(sum(available[cell] for cell in demand.cells) / demand.share for demand in demands)
    assert sum(counts) > 0.98 * scarcest


@settings(max_examples=40)
@given(st.data())
def test_no_demand_brings_in_more_rows_that_never_passed_than_their_share(data: st.DataObject) -> None:
    draw: Callable[..., Any] = data.draw
    never = draw(st.lists(st.integers(0, 20), min_size=2, max_size=6))
    passing = [draw(st.integers(0, 20)) for _ in never]
    available = [sum(rows) for rows in zip(never, passing, strict=True)]
    limit = Limit(draw(st.sampled_from([0.0, 0.1, 0.25, 0.5])), never, [draw(st.integers(0, rows)) for rows in never])
    share = draw(st.sampled_from([0.2, 0.5, 0.8]))
    demands = [Demand("first", share, frozenset({0}))] if available[0] else []
    most = draw(st.none() | st.integers(1, 80))
    counts = solve_counts(available, demands, most, limit)
    needed = sum(max(0, count - rows) for count, rows in zip(counts, passing, strict=True))
    assert needed <= limit.within(sum(counts))
    if most is not None:
        assert sum(counts) == min(most, sum(passing) + min(sum(never), limit.beside(sum(passing))))

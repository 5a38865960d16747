"""How many rows of each kind make up a selection: quotas and a histogram of pass rates, met exactly where rows allow.

    60 rows of algebra, 500 of geometry; quota algebra 1/2, at most 100    ->  50 and 50
    the same with no `max_rows`                                             ->  60 and 60: the largest that keeps it
    quota algebra 3/4, at most 100                                          ->  60 and 40, and algebra is named as short

Rows that no demand tells apart form a cell. Their counts are integers that miss the demands by as few rows as possible
and, among those, keep as near as possible to the proportions in which the cells have rows (HiGHS, by scipy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

HALF_A_ROW = 0.5
"""A share of a number of rows is met by the whole number next to it."""
MOST_SECONDS = 20.0
"""The solver gives its best answer so far after so long."""


@dataclass(frozen=True)
class Demand:
    """The share of the selection that is asked for of some cells."""

    name: str
    share: float
    cells: frozenset[int]


@dataclass(frozen=True)
class Fulfilment:
    """What became of a demand."""

    name: str
    share: float
    """What was asked for."""
    rows: int
    """What was selected."""
    available: int
    is_met: bool
    """Whether the share is met to the row."""


def solve_counts(
    available: Sequence[int], demands: Sequence[Demand], most: int | None
) -> tuple[list[int], list[Fulfilment]]:
    """Return how many rows to take of each cell, and what became of the demands.

    With `most`, that many rows are taken, or all: demands that cannot be met are missed by as little as possible.
    Without, all demands are met, by the largest selection that can.
    """
    total = sum(available) if most is None else min(most, sum(available))
    if total == sum(available) and (most is not None or not demands):
        counts = list(available)
    elif most is None:
        counts = _largest(available, demands)
    else:
        counts = _nearest(available, demands, total)
    return counts, [_fulfilment(demand, counts, available) for demand in demands]


def _fulfilment(demand: Demand, counts: Sequence[int], available: Sequence[int]) -> Fulfilment:
    rows = sum(counts[cell] for cell in demand.cells)
    # A share of a number of rows need not be a whole number.
    is_met = abs(rows - demand.share * sum(counts)) < 1
    return Fulfilment(demand.name, demand.share, rows, sum(available[cell] for cell in demand.cells), is_met)


def _largest(available: Sequence[int], demands: Sequence[Demand]) -> list[int]:
    """Return the counts of the largest selection in which every demand has its share, to the row."""
    import numpy as np
    from scipy.optimize import LinearConstraint

    members = _membership(len(available), demands)
    shares = np.array([demand.share for demand in demands])
    misses = LinearConstraint(members - shares[:, None], -HALF_A_ROW, HALF_A_ROW)
    return _minimise(-np.ones(len(available)), [misses], np.array(available, dtype=float), len(available))


def _nearest(available: Sequence[int], demands: Sequence[Demand], total: int) -> list[int]:
    """Return the counts of `total` rows that miss the demands by as few rows as possible."""
    import numpy as np
    from scipy.optimize import LinearConstraint

    cells, asked = len(available), len(demands)
    members = _membership(cells, demands)
    targets = np.array([round(demand.share * total) for demand in demands], dtype=float)
    usual = np.array(available, dtype=float) * total / sum(available)
    # The variables: the rows of each cell; by how many a demand is missed from below and from above; by how many the
    # rows of a cell exceed what they would be in proportion.
    upper = np.concatenate([np.array(available, dtype=float), np.full(2 * asked + cells, np.inf)])
    identity, nothing = np.eye(asked), np.zeros((asked, cells))
    whole = np.concatenate([np.ones(cells), np.zeros(2 * asked + cells)])
    constraints = [
        LinearConstraint(whole[None, :], total, total),
        LinearConstraint(
            np.hstack([np.eye(cells), np.zeros((cells, 2 * asked)), -np.eye(cells)]), -np.inf, np.ceil(usual)
        ),
    ]
    missed = np.concatenate([np.zeros(cells), np.ones(2 * asked), np.zeros(cells)])
    if asked:
        constraints.append(LinearConstraint(np.hstack([members, identity, -identity, nothing]), targets, targets))
        best = _minimise(missed, constraints, upper, cells)
        least = np.abs(members @ np.array(best, dtype=float) - targets).sum()
        constraints.append(LinearConstraint(missed[None, :], -np.inf, least + 0.5))
    excess = np.concatenate([np.zeros(cells + 2 * asked), np.ones(cells)])
    return _minimise(excess, constraints, upper, cells)


def _membership(cells: int, demands: Sequence[Demand]) -> Array:
    """Return 1 where a cell belongs to a demand, else 0. Shape [demands, cells]."""
    import numpy as np

    return np.array([[float(cell in demand.cells) for cell in range(cells)] for demand in demands])


def _minimise(cost: Array, constraints: Sequence[Any], upper: Array, cells: int) -> list[int]:
    """Return the first `cells` variables, which are whole numbers, of the solution of least cost."""
    import numpy as np
    from scipy.optimize import Bounds, milp

    integrality = (np.arange(len(cost)) < cells).astype(int)
    options = {"time_limit": MOST_SECONDS}
    solution = milp(
        cost, integrality=integrality, bounds=Bounds(0, upper), constraints=list(constraints), options=options
    )
    if solution.x is None:
        raise RuntimeError(f"The counts of a selection could not be solved for: {solution.message}")
    return [round(value) for value in solution.x[:cells]]

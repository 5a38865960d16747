"""How many rows of each kind make up a selection: quotas and a histogram of pass rates, met exactly where rows allow.

    60 rows of algebra, 500 of geometry; quota algebra 1/2, at most 100    ->  50 and 50
    the same with no `max_rows`                                             ->  60 and 60: the largest that keeps it
    quota algebra 3/4, at most 100                                          ->  60 and 40, and algebra is named as short

Rows that no demand tells apart form a cell. Their counts are integers that miss the demands by as few rows as possible,
have no more rows that never passed than their share (`Limit`) and, among those, keep as near as possible to the
proportions in which the cells have rows (HiGHS, by scipy).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

HALF_A_ROW = 0.5
"""A share of a number of rows is met by the whole number next to it."""
ROUNDING = 1e-9
"""A share such as .1 of 20 rows is 2, whatever floating point makes of it."""
SLACK = 1e-6
"""What the solver takes for nothing."""
MOST_SECONDS = 20.0
"""The solver gives its best answer so far after so long."""


@dataclass(frozen=True)
class Demand:
    """The share of the selection that is asked for of some cells."""

    name: str
    share: float
    cells: frozenset[int]


@dataclass(frozen=True)
class Limit:
    """The share that rows of one kind may have in the selection at most: those that never passed."""

    share: float
    rows: Sequence[int]
    """The rows of the kind in each cell."""
    last: Sequence[int]
    """Those of them that are taken only where no other rows meet the demands."""

    def within(self, total: int) -> int:
        """Return how many such rows a selection of `total` may have."""
        return math.floor(self.share * total + ROUNDING)

    def beside(self, others: int) -> int:
        """Return how many such rows there may be beside so many rows of other kinds."""
        if self.share == 1:
            return sum(self.rows)
        return math.floor(others * self.share / (1 - self.share) + ROUNDING)


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
    available: Sequence[int], demands: Sequence[Demand], most: int | None, limit: Limit | None = None
) -> list[int]:
    """Return how many rows to take of each cell.

    With `most`, that many rows are taken, or all that the limit allows: demands that cannot be met are missed by as
    little as possible. Without, all demands are met, by the largest selection that can.
    """
    limit = limit or Limit(1.0, [0] * len(available), [0] * len(available))
    others = sum(available) - sum(limit.rows)
    total = others + min(sum(limit.rows), limit.beside(others))
    if most is None and demands:
        return _largest(available, demands, limit)
    total = total if most is None else min(most, total)
    if total in (0, sum(available)):
        return list(available) if total else [0] * len(available)
    return _Program(available, demands, limit, total).nearest()


def _largest(available: Sequence[int], demands: Sequence[Demand], limit: Limit) -> list[int]:
    """Return the counts of the largest selection in which every demand has its share, to the row.

    Where shares contradict each other there is none: of a few rows, any share is right to the row. Otherwise parts of
    rows have a selection that is no smaller, and seldom much larger, so that sizes are tried from there down.
    """
    if _Program(available, demands, limit, None).bound(0.0) < 1:
        return [0] * len(available)
    bound = _Program(available, demands, limit, None).bound(HALF_A_ROW)
    deadline = time.monotonic() + MOST_SECONDS
    for total in range(bound, 0, -1):
        counts = _Program(available, demands, limit, total).exact()
        if counts is not None:
            return counts
        if time.monotonic() > deadline:
            return _Program(available, demands, limit, bound).nearest()
    return [0] * len(available)


def fulfilments(demands: Sequence[Demand], counts: Sequence[int], available: Sequence[int]) -> list[Fulfilment]:
    """Return what becomes of each demand where so many rows of each cell are selected."""
    return [_fulfilment(demand, counts, available) for demand in demands]


def _fulfilment(demand: Demand, counts: Sequence[int], available: Sequence[int]) -> Fulfilment:
    rows, there_are = (sum(values[cell] for cell in demand.cells) for values in (counts, available))
    # A share of a number of rows need not be a whole number, but no row at all is not a share.
    is_met = abs(rows - demand.share * sum(counts)) < 1 and (there_are > 0 or demand.share == 0)
    return Fulfilment(demand.name, demand.share, rows, there_are, is_met)


class _Program:
    """The integer program of one selection.

    Its variables, each for every cell or demand: the `rows` of a cell; how many of them are `rare`, of the kind that is
    limited, and how many `last` ones; by how many rows a demand is missed from `below` and from `above`; by how many
    the rows of a cell `exceed` what they would be in proportion.
    """

    def __init__(self, available: Sequence[int], demands: Sequence[Demand], limit: Limit, total: int | None) -> None:
        import numpy as np

        cells = len(available)
        self._demands, self._total = demands, total or 0
        self._available = np.array(available, dtype=float)
        sizes = {"rows": cells, "rare": cells, "last": cells, "below": len(demands), "above": len(demands)}
        self._sizes = {**sizes, "exceed": cells}
        # 1 where a cell belongs to a demand, else 0. Shape [demands, cells].
        self._members = np.array([[float(cell in demand.cells) for cell in range(cells)] for demand in demands])
        self._members = self._members.reshape(len(demands), cells)
        self._shares = np.array([demand.share for demand in demands])
        last = np.array(limit.last, dtype=float)
        rare = np.array(limit.rows, dtype=float) - last
        unbounded = np.full(2 * len(demands) + cells, np.inf)
        self._upper = np.concatenate([self._available, rare, last, unbounded])
        identity, ones = np.eye(cells), np.ones((1, cells))
        self._constraints: list[Any] = []
        # What exceeds a cell's other rows is of the limited kind.
        self._bind(-np.inf, self._available - rare - last, rows=identity, rare=-identity, last=-identity)
        if total is None:
            self._bind(-np.inf, 0.0, rows=-limit.share * ones, rare=ones, last=ones)
            return
        self._bind(-np.inf, float(limit.within(total)), rare=ones, last=ones)
        self._bind(total, total, rows=ones)
        usable = self._available - rare - last + np.minimum(rare + last, limit.within(total))
        self._bind(-np.inf, np.ceil(usable * total / usable.sum()), rows=identity, exceed=-identity)

    def bound(self, slack: float) -> int:
        """Return a number of rows that no selection exceeds in which every demand has its share, give or take `slack`
        rows."""
        import numpy as np

        self._bind(-slack, slack, rows=self._members - self._shares[:, None])
        variables = self._minimise(self._row(rows=-np.ones((1, self._sizes["rows"]))), are_whole=False)
        return 0 if variables is None else math.floor(variables[self._columns("rows")].sum() + SLACK)

    def exact(self) -> list[int] | None:
        """Return the counts of `total` rows in which every demand has its share, None where there are none."""
        targets = self._shares * self._total
        slack = HALF_A_ROW + ROUNDING
        self._bind(targets - slack, targets + slack, rows=self._members)
        return self._in_proportion()

    def nearest(self) -> list[int]:
        """Return the counts of `total` rows that miss the demands by as few rows as possible."""
        import numpy as np

        if self._demands:
            identity, ones = np.eye(len(self._demands)), np.ones((1, len(self._demands)))
            whole = np.round(self._shares * self._total)
            self._bind(whole, whole, rows=self._members, below=identity, above=-identity)
            self._keep_least(below=ones, above=ones)
        counts = self._in_proportion()
        if counts is None:
            raise RuntimeError("The counts of a selection could not be solved for.")
        return counts

    def _in_proportion(self) -> list[int] | None:
        """Return the counts that exceed the cells' proportions least, with as few of the `last` rows as possible."""
        import numpy as np

        ones = np.ones((1, self._sizes["rows"]))
        if self._upper[self._columns("last")].any():
            self._keep_least(last=ones)
        variables = self._minimise(self._row(exceed=ones))
        return None if variables is None else [round(value) for value in variables[self._columns("rows")].tolist()]

    def _columns(self, name: str) -> slice:
        names = list(self._sizes)
        start = sum(self._sizes[before] for before in names[: names.index(name)])
        return slice(start, start + self._sizes[name])

    def _row(self, **parts: Array) -> Array:
        """Return coefficients, 0 for the variables that are not named. Shape [constraints, variables]."""
        import numpy as np

        height = next(iter(parts.values())).shape[0]
        return np.hstack([parts.get(name, np.zeros((height, size))) for name, size in self._sizes.items()])

    def _bind(self, low: Any, high: Any, **parts: Array) -> None:
        from scipy.optimize import LinearConstraint

        self._constraints.append(LinearConstraint(self._row(**parts), low, high))

    def _keep_least(self, **parts: Array) -> None:
        """Bind a sum of whole numbers to the least that it can be."""
        import numpy as np

        cost = self._row(**parts)
        variables = self._minimise(cost)
        if variables is not None:
            self._bind(-np.inf, round(float((cost @ variables).item())) + HALF_A_ROW, **parts)

    def _minimise(self, cost: Array, *, are_whole: bool = True) -> Array | None:
        """Return the variables of the solution of least cost, None where there is none."""
        import numpy as np
        from scipy.optimize import Bounds, milp

        solution = milp(
            cost.ravel(),
            integrality=((np.arange(cost.size) < self._sizes["rows"]) & are_whole).astype(int),
            bounds=Bounds(0, self._upper),
            constraints=self._constraints,
            options={"time_limit": MOST_SECONDS, "mip_rel_gap": 0.0},
        )
        return None if solution.x is None else np.asarray(solution.x)

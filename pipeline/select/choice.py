"""Chooses candidates by the target and the quotas, and orders the remaining ones as a reserve.

    60 rows of algebra, 500 of geometry; quota algebra 1/2, at most 100    ->  50 and 50
    the same without `max_rows`                                            ->  60 and 60, the largest that meet it
    quota algebra 3/4, at most 100                                         ->  60 and 40, and algebra is reported short

A target demands shares of the selection for bands of pass rates, and a quota demands a share for a source or a domain.
Rows that count for the same demands form a cell. Integer programming (HiGHS in scipy) finds the number of rows to
select from each cell. These numbers meet the demands, or miss them by the fewest rows. A doubtful row never passed and
has a label that is not trusted. The share of doubtful rows is limited (`Limit`). Among equal solutions, the one nearest
to the natural proportions of the cells is taken. With `max_rows` but no target, a default histogram of pass rates is
demanded.
"""

from __future__ import annotations

import math
import random
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truegold.pipeline.config.stages import QUOTA_COLUMNS, SelectConfig, TargetName
from truegold.pipeline.select.candidates import Candidates
from truegold.pipeline.select.columns import Array, group_by
from truegold.verifiers import InputError

HALF_A_ROW = 0.5
"""The tolerance of a share: its number of rows is rounded to the nearest whole number."""
ROUNDING = 1e-9
"""The tolerance of floating point: .1 of 20 rows counts as 2."""
SLACK = 1e-6
"""The tolerance of the solver's sums."""
MOST_SECONDS = 20.0
"""The time limit of the solver in seconds. After this time, the best solution so far is used."""

LAST_BAND = 255
"""The largest index of a band. Indices are stored as bytes."""

CellKey = tuple[str | int, ...]
"""The key of a cell: the band, or -1 if bands have no demands, then the values of the columns with quotas."""

LET_THEM_ADD_UP = (
    "If every source or domain has a quota, let them add up to 1. With select.max_rows they are met as far as rows "
    "allow."
)
SHARE_ROUNDING = 0.01
"""The allowed difference of a sum of shares from 1: a third may be written as .33."""


@dataclass(frozen=True)
class Demand:
    """The share of the selection that is demanded for some cells."""

    name: str
    share: float
    cells: frozenset[int]
    is_default: bool = False
    """True for a demand of the default histogram. The user's demands take precedence over it."""


@dataclass(frozen=True)
class Limit:
    """The maximum share of the selection for doubtful rows."""

    share: float
    rows: Sequence[int]
    """The number of doubtful rows in each cell."""
    last: Sequence[int]
    """The number of doubtful rows in each cell that are taken only if the demands need them."""

    def within(self, total: int) -> int:
        """Return the largest number of limited rows in a selection of `total`."""
        return math.floor(self.share * total + ROUNDING)

    def beside(self, others: int) -> int:
        """Return the largest number of limited rows next to this number of other rows."""
        if self.share == 1:
            return sum(self.rows)
        return math.floor(others * self.share / (1 - self.share) + ROUNDING)


@dataclass(frozen=True)
class Fulfilment:
    """A demand with the number of rows that were selected for it."""

    name: str
    share: float
    """The demanded share."""
    rows: int
    """The number of selected rows."""
    available: int
    is_met: bool
    """True if the number of rows differs from the demanded number by less than 1."""


NO_ROWS: Array = np.empty(0, np.int64)


@dataclass(frozen=True)
class Choice:
    """The choice, as indices of rows."""

    selected: Array
    reserve: Array
    """The next rows, in order. Doubtful rows are limited to their share of selection and reserve together."""
    over_zero_share: Array
    """Doubtful candidates above `zero_share`, in order."""
    fulfilments: Sequence[Fulfilment]
    """The demands, with the numbers of rows selected for them."""


def choose(candidates: Candidates, config: SelectConfig) -> Choice:
    """Return the choice among the candidates.

    Among candidates with the same demands, the ones of the greatest worth are selected. Flagged rows that never passed
    come last. Raises InputError for a quota without rows, and for contradictory shares.
    """
    ordered = _shuffle(candidates, config.seed)
    columns = [column for column in QUOTA_COLUMNS if any(name.startswith(f"{column}:") for name in config.quotas)]
    is_choosy = config.max_rows is not None or config.target is not None
    has_bands = is_choosy and any(band.share for band in config.bands)
    keys, cells = _cells(candidates, ordered, columns, has_bands=has_bands)
    is_doubtful, is_last = candidates.is_doubtful, candidates.is_doubtful & candidates.is_flagged
    never = [int(is_doubtful[cell].sum()) for cell in cells]
    limit = Limit(config.zero_share, never, [int(is_last[cell].sum()) for cell in cells])
    passing = len(candidates) - sum(limit.rows)
    if not passing and not limit.beside(passing):
        return Choice(NO_ROWS, NO_ROWS, candidates.rows[ordered], ())
    bands = _band_demands(keys, config) if has_bands else []
    quotas = _quota_demands(keys, columns, config)
    quotas = _add_up(quotas, len(cells), columns, must=config.max_rows is None)
    available = [len(cell) for cell in cells]
    band_demands = bands if config.max_rows is not None else _within_reach(bands, available, never, config)
    counts = solve_counts(available, [*band_demands, *quotas], config.max_rows, limit)
    if not any(counts):
        names = ", ".join(each.name for each in bands + quotas)
        raise InputError(f"No selection has all the demanded shares: {names}.", LET_THEM_ADD_UP)
    selected = mix_cells(_fill(candidates, cells, counts, limit.within(sum(counts))))
    if config.target is TargetName.CURRICULUM:
        selected = selected[np.argsort(-candidates.band[selected].astype(np.int64), kind="stable")]
    is_gone = np.zeros(len(candidates), bool)
    is_gone[selected] = True
    waiting = ordered[is_doubtful[ordered] & ~is_gone[ordered]]
    over = waiting[max(0, limit.beside(passing) - int(is_doubtful[selected].sum())) :]
    is_gone[over] = True
    left = mix_cells([cell[~is_gone[cell]] for cell in cells])
    rows = candidates.rows
    return Choice(rows[selected], rows[left], rows[over], fulfilments(bands + quotas, counts, available))


def _shuffle(candidates: Candidates, seed: int) -> Array:
    """Return the candidates ordered by worth; candidates of equal worth are in random order."""
    shuffled = array("q", range(len(candidates)))
    random.Random(seed).shuffle(shuffled)
    order = np.frombuffer(shuffled, np.int64)
    return order[_by_preference(candidates, order)]


def _by_preference(candidates: Candidates, chosen: Array) -> Array:
    """Return the order of some candidates by worth. Flagged rows that never passed come last, because many of their
    golds are wrong."""
    is_last = candidates.is_doubtful[chosen] & candidates.is_flagged[chosen]
    order: Array = np.lexsort((-candidates.worth[chosen], is_last))
    return order


def _cells(
    candidates: Candidates, ordered: Array, columns: Sequence[str], *, has_bands: bool
) -> tuple[list[CellKey], list[Array]]:
    parts = [candidates.band[ordered] if has_bands else np.zeros(len(ordered), np.uint8)]
    parts += [candidates.numbers[column][ordered] for column in columns]
    sizes = [LAST_BAND + 1, *(max(len(candidates.names[column]), 1) for column in columns)]
    packed = np.ravel_multi_index([part.astype(np.int64) for part in parts], sizes)
    by_key: dict[CellKey, Array] = {}
    for code, members in group_by(packed, ordered):
        band, *numbers = map(int, np.unravel_index(code, sizes))
        values = (candidates.names[column][name_index] for column, name_index in zip(columns, numbers, strict=True))
        by_key[band if has_bands else -1, *values] = members
    keys = sorted(by_key)
    return keys, [by_key[key] for key in keys]


def _fill(candidates: Candidates, cells: Sequence[Array], counts: Sequence[int], zeros: int) -> list[Array]:
    """Return the best candidates of each cell, with at most `zeros` doubtful ones."""
    best = [cell[:count] for cell, count in zip(cells, counts, strict=True)]
    passing = [cell[~candidates.is_doubtful[cell]] for cell in cells]
    needed, optional = [], []
    for chosen, passing_ones, count in zip(best, passing, counts, strict=True):
        needed.append(max(0, count - len(passing_ones)))
        optional.append(chosen[candidates.is_doubtful[chosen]][needed[-1] :])
    if sum(needed) + sum(map(len, optional)) <= zeros:
        return best
    all_optional = np.concatenate(optional)
    cell_of = np.repeat(np.arange(len(cells)), list(map(len, optional)))
    taken = _by_preference(candidates, all_optional)[: zeros - sum(needed)]
    needed = (np.array(needed) + np.bincount(cell_of[taken], minlength=len(cells))).tolist()
    filled = []
    for index, (cell, count) in enumerate(zip(cells, counts, strict=True)):
        never = cell[candidates.is_doubtful[cell]][: needed[index]]
        both = np.concatenate([passing[index][: count - needed[index]], never])
        filled.append(both[_by_preference(candidates, both)])
    return filled


def _band_demands(keys: Sequence[CellKey], config: SelectConfig) -> list[Demand]:
    demands, low = [], 0.0
    for index, band in enumerate(config.bands):
        cells = frozenset(cell for cell, key in enumerate(keys) if key[0] == index)
        if band.share:
            name = f"pass rates {low:.3g} to {band.up_to:.3g}"
            demands.append(Demand(name, band.share, cells, is_default=config.target is None))
        low = band.up_to
    return demands


def _within_reach(
    demands: Sequence[Demand], available: Sequence[int], never: Sequence[int], config: SelectConfig
) -> list[Demand]:
    """Return the demands with shares that their bands can reach. A band without rows has no share. A band in which no
    row passed gets at most `zero_share`. The remaining share goes to bands without a demand, or to all other bands in
    proportion. `available` and `never` have the number of all rows and of doubtful rows by cell."""
    ceilings = []
    for demand in demands:
        rows, doubtful = (sum(counts[cell] for cell in demand.cells) for counts in (available, never))
        ceilings.append(1.0 if rows > doubtful else config.zero_share * bool(rows))
    lowered = [
        replace(demand, share=min(demand.share, ceiling)) for demand, ceiling in zip(demands, ceilings, strict=True)
    ]
    if sum(len(demand.cells) for demand in demands) < len(available):
        return [demand for demand in lowered if demand.share]
    fixed = sum(demand.share for demand, ceiling in zip(lowered, ceilings, strict=True) if ceiling < 1)
    growing = sum(demand.share for demand, ceiling in zip(lowered, ceilings, strict=True) if ceiling == 1)
    return [
        demand if ceiling < 1 else replace(demand, share=demand.share * (1 - fixed) / growing)
        for demand, ceiling in zip(lowered, ceilings, strict=True)
        if demand.share
    ]


def _add_up(quotas: Sequence[Demand], cells: int, columns: Sequence[str], *, must: bool) -> list[Demand]:
    """Return the quotas. If every value of a column has a quota, and their sum is nearly 1, they are scaled to 1.

    Raises InputError if such a sum is not nearly 1 and the quotas `must` be met.
    """
    scaled = []
    for column in columns:
        demands = [demand for demand in quotas if demand.name.startswith(f"{column}:")]
        covered = frozenset[int]().union(*(demand.cells for demand in demands))
        total = sum(demand.share for demand in demands)
        if len(covered) == cells and abs(total - 1) <= SHARE_ROUNDING + ROUNDING:
            demands = [replace(demand, share=demand.share / total) for demand in demands]
        elif len(covered) == cells and must:
            shares = ", ".join(f"{demand.name} {demand.share:g}" for demand in demands)
            raise InputError(
                f"Every row has a quota by its {column}, and they add up to {total:g}: {shares}.", LET_THEM_ADD_UP
            )
        scaled += demands
    return scaled


def _quota_demands(keys: Sequence[CellKey], columns: Sequence[str], config: SelectConfig) -> list[Demand]:
    demands = []
    for name, share in config.quotas.items():
        if not share:
            continue
        column, _, value = name.partition(":")
        position = 1 + columns.index(column)
        cells = frozenset(cell for cell, key in enumerate(keys) if key[position] == value)
        if not cells:
            raise InputError(
                f"select.quotas asks for {share:.0%} of {name}, but no row of {name} can be selected.",
                f"There are rows of {', '.join(sorted({f'{column}:{key[position]}' for key in keys}))}.",
            )
        demands.append(Demand(name, share, cells))
    return demands


def mix_cells(cells: Sequence[Array]) -> Array:
    """Return all candidates, alternating between cells. So the beginning of the list, of any length, is even."""
    if not cells:
        return NO_ROWS
    sizes = list(map(len, cells))
    ranks = np.concatenate([np.arange(size) for size in sizes])
    mixed: Array = np.concatenate(cells)[np.lexsort((np.repeat(np.arange(len(cells)), sizes), ranks))]
    return mixed


def solve_counts(
    available: Sequence[int], demands: Sequence[Demand], most: int | None, limit: Limit | None = None
) -> list[int]:
    """Return the number of rows to take of each cell.

    With `most`, this number of rows is taken, or all that the limit allows. Demands are missed by as little as
    possible. Without `most`, the largest selection that meets all demands is taken.
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
    """Return the counts of the largest selection that meets every demand up to half a row; all 0 if there is none. The
    solution with fractions of rows is an upper bound. Sizes are tried downwards from it."""
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
    """Return each demand with the number of rows for it, given the counts of the cells."""
    described = []
    for demand in demands:
        rows, there_are = (sum(values[cell] for cell in demand.cells) for values in (counts, available))
        # The demanded share may be a fraction of a row. But 0 rows do not meet a share.
        is_met = abs(rows - demand.share * sum(counts)) < 1 and (there_are > 0 or demand.share == 0)
        described.append(Fulfilment(demand.name, demand.share, rows, there_are, is_met))
    return described


class _Program:
    """The integer program of one selection.

    The variables are numbers of rows:

        rows     of each cell: selected rows
        last     of each cell: doubtful rows among them that are taken last
        rare     of each cell: other doubtful rows among them
        exceed   of each cell: rows beyond the natural proportion
        below    of each demand: missing rows
        above    of each demand: excess rows
    """

    def __init__(self, available: Sequence[int], demands: Sequence[Demand], limit: Limit, total: int | None) -> None:
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
        # A cell takes doubtful rows only after all its other rows.
        self._bind(-np.inf, self._available - rare - last, rows=identity, rare=-identity, last=-identity)
        if total is None:
            self._bind(-np.inf, 0.0, rows=-limit.share * ones, rare=ones, last=ones)
            return
        self._bind(-np.inf, float(limit.within(total)), rare=ones, last=ones)
        self._bind(total, total, rows=ones)
        usable = self._available - rare - last + np.minimum(rare + last, limit.within(total))
        self._bind(-np.inf, np.ceil(usable * total / usable.sum()), rows=identity, exceed=-identity)

    def bound(self, slack: float) -> int:
        """Return an upper bound for the size of a selection that meets every demand up to `slack` rows."""
        self._bind(-slack, slack, rows=self._members - self._shares[:, None])
        variables = self._minimise(self._row(rows=-np.ones((1, self._sizes["rows"]))), are_whole=False)
        return 0 if variables is None else math.floor(variables[self._columns("rows")].sum() + SLACK)

    def exact(self) -> list[int] | None:
        """Return the counts of `total` rows that meet every demand, or None if there are none."""
        targets = self._shares * self._total
        slack = HALF_A_ROW + ROUNDING
        self._bind(targets - slack, targets + slack, rows=self._members)
        return self._in_proportion()

    def nearest(self) -> list[int]:
        """Return the counts of `total` rows that miss the demands by the fewest rows. Default demands come last."""
        if self._demands:
            identity = np.eye(len(self._demands))
            whole = np.round(self._shares * self._total)
            self._bind(whole, whole, rows=self._members, below=identity, above=-identity)
            is_default = np.array([[demand.is_default for demand in self._demands]])
            for chosen in (~is_default, is_default):
                if chosen.any():
                    self._keep_least(below=chosen.astype(float), above=chosen.astype(float))
        counts = self._in_proportion()
        if counts is None:
            raise RuntimeError("The counts of a selection could not be computed.")
        return counts

    def _in_proportion(self) -> list[int] | None:
        """Return the counts that exceed the cells' natural proportions least, with the fewest rows of `last`."""
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
        """Return coefficients, with 0 for all other variables. Shape [constraints, variables]."""
        height = next(iter(parts.values())).shape[0]
        return np.hstack([parts.get(name, np.zeros((height, size))) for name, size in self._sizes.items()])

    def _bind(self, low: Any, high: Any, **parts: Array) -> None:
        from scipy.optimize import LinearConstraint

        self._constraints.append(LinearConstraint(self._row(**parts), low, high))

    def _keep_least(self, **parts: Array) -> None:
        """Constrain a sum of whole numbers to its least possible value."""
        cost = self._row(**parts)
        variables = self._minimise(cost)
        if variables is not None:
            self._bind(-np.inf, round(float((cost @ variables).item())) + HALF_A_ROW, **parts)

    def _minimise(self, cost: Array, *, are_whole: bool = True) -> Array | None:
        from scipy.optimize import Bounds, milp

        solution = milp(
            cost.ravel(),
            integrality=((np.arange(cost.size) < self._sizes["rows"]) & are_whole).astype(int),
            bounds=Bounds(0, self._upper),
            constraints=self._constraints,
            options={"time_limit": MOST_SECONDS, "mip_rel_gap": 0.0},
        )
        return None if solution.x is None else np.asarray(solution.x)

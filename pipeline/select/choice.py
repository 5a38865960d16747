"""Which candidates are selected, in the target's proportions and quotas, and in what order the others would follow."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from truegold.pipeline.config.stages import QUOTA_COLUMNS, SelectConfig, TargetName
from truegold.pipeline.select.candidates import Candidate
from truegold.pipeline.select.proportions import ROUNDING, Demand, Fulfilment, Limit, fulfilments, solve_counts
from truegold.pipeline.tables.rows import row_key
from truegold.verifiers import InputError

CellKey = tuple[str | int, ...]
"""What the demands tell apart: a band, where bands have demands (else -1), and values of the columns with quotas."""

LET_THEM_ADD_UP = (
    "Where every source or domain has a quota, let them add up to 1. With select.max_rows they are met as far as rows "
    "allow."
)
SHARE_ROUNDING = 0.01
"""By how much shares may miss 1: a third is written as .33."""


@dataclass(frozen=True)
class Choice:
    """What becomes of the candidates."""

    selected: Sequence[Candidate] = ()
    reserve: Sequence[Candidate] = ()
    """The others in the order in which they would follow."""
    over_zero_share: Sequence[Candidate] = ()
    """Those that never passed, where selection and reserve together have their share of such rows."""
    fulfilments: Sequence[Fulfilment] = ()
    """What became of the demands."""


def choose(candidates: Sequence[Candidate], config: SelectConfig) -> Choice:
    """Return which candidates are selected.

    Of candidates that no demand tells apart, those of the greatest worth are selected; flagged ones that never passed
    come last. Raises InputError for a quota of which there is no row, and for shares that no selection has.
    """
    ordered = sorted(candidates, key=lambda candidate: row_key(candidate.row))
    random.Random(config.seed).shuffle(ordered)
    ordered.sort(key=_preference)
    columns = [column for column in QUOTA_COLUMNS if any(name.startswith(f"{column}:") for name in config.quotas)]
    is_choosy = config.max_rows is not None or config.target is not None
    has_bands = is_choosy and any(band.share for band in config.bands)
    by_key: defaultdict[CellKey, list[Candidate]] = defaultdict(list)
    for candidate in ordered:
        values = (str(candidate.row[column]) for column in columns)  # type: ignore[literal-required]
        by_key[candidate.band if has_bands else -1, *values].append(candidate)
    keys = sorted(by_key)
    cells = [by_key[key] for key in keys]
    limit = Limit(
        config.zero_share,
        [sum(candidate.never_passed for candidate in cell) for cell in cells],
        [sum(candidate.never_passed and candidate.is_flagged for candidate in cell) for cell in cells],
    )
    passing = len(candidates) - sum(limit.rows)
    if not passing and not limit.beside(passing):
        return Choice(over_zero_share=ordered)
    bands = _band_demands(keys, config) if has_bands else []
    quotas = _quota_demands(keys, columns, config)
    quotas = _add_up(quotas, len(cells), columns, must=config.max_rows is None)
    available = [len(cell) for cell in cells]
    band_demands = bands if config.max_rows is not None else _within_reach(bands, cells, config)
    counts = solve_counts(available, [*band_demands, *quotas], config.max_rows, limit)
    if not any(counts):
        names = ", ".join(each.name for each in bands + quotas)
        raise InputError(f"No selection has all the shares that are asked for: {names}.", LET_THEM_ADD_UP)
    chosen = _fill(cells, counts, limit.within(sum(counts)))
    selected = mix_cells(chosen)
    if config.target is TargetName.CURRICULUM:
        selected.sort(key=lambda candidate: -candidate.band)
    is_chosen = {row_key(candidate.row) for candidate in selected}
    never = [candidate for candidate in ordered if candidate.never_passed and row_key(candidate.row) not in is_chosen]
    taken = sum(candidate.never_passed for candidate in selected)
    over = never[max(0, limit.beside(passing) - taken) :]
    is_gone = is_chosen | {row_key(candidate.row) for candidate in over}
    left = [[candidate for candidate in cell if row_key(candidate.row) not in is_gone] for cell in cells]
    return Choice(selected, mix_cells(left), over, fulfilments(bands + quotas, counts, available))


def _preference(candidate: Candidate) -> tuple[bool, float]:
    """Return what candidates are ordered by: a flagged row that never passes is either hard or at fault."""
    return candidate.never_passed and candidate.is_flagged, -candidate.worth


def _fill(cells: Sequence[Sequence[Candidate]], counts: Sequence[int], zeros: int) -> list[list[Candidate]]:
    """Return the best candidates of each cell, of which `zeros` at most never passed."""
    best = [list(cell[:count]) for cell, count in zip(cells, counts, strict=True)]
    passing = [[candidate for candidate in cell if not candidate.never_passed] for cell in cells]
    needed, optional = [], []
    for index, (chosen, count) in enumerate(zip(best, counts, strict=True)):
        never = [candidate for candidate in chosen if candidate.never_passed]
        needed.append(max(0, count - len(passing[index])))
        optional += [(_preference(candidate), index) for candidate in never[needed[-1] :]]
    if sum(needed) + len(optional) <= zeros:
        return best
    for _, index in sorted(optional)[: zeros - sum(needed)]:
        needed[index] += 1
    filled = []
    for index, (cell, count) in enumerate(zip(cells, counts, strict=True)):
        never = [candidate for candidate in cell if candidate.never_passed][: needed[index]]
        filled.append(sorted([*passing[index][: count - needed[index]], *never], key=_preference))
    return filled


def _band_demands(keys: Sequence[CellKey], config: SelectConfig) -> list[Demand]:
    demands, low = [], 0.0
    for index, band in enumerate(config.bands):
        cells = frozenset(cell for cell, key in enumerate(keys) if key[0] == index)
        if band.share:
            demands.append(Demand(f"pass rates {low:.3g} to {band.up_to:.3g}", band.share, cells))
        low = band.up_to
    return demands


def _within_reach(
    demands: Sequence[Demand], cells: Sequence[Sequence[Candidate]], config: SelectConfig
) -> list[Demand]:
    """Return the demands with shares that bands can have: one without rows would leave no selection at all.

    A band of which no row passed has `zero_share` at most. Bands without a share take what is left, and where there are
    none the other demands grow in proportion.
    """
    ceilings = []
    for demand in demands:
        rows = [candidate for cell in demand.cells for candidate in cells[cell]]
        ceilings.append(1.0 if any(not row.never_passed for row in rows) else config.zero_share * bool(rows))
    lowered = [
        replace(demand, share=min(demand.share, ceiling)) for demand, ceiling in zip(demands, ceilings, strict=True)
    ]
    if sum(len(demand.cells) for demand in demands) < len(cells):
        return [demand for demand in lowered if demand.share]
    fixed = sum(demand.share for demand, ceiling in zip(lowered, ceilings, strict=True) if ceiling < 1)
    growing = sum(demand.share for demand, ceiling in zip(lowered, ceilings, strict=True) if ceiling == 1)
    return [
        demand if ceiling < 1 else replace(demand, share=demand.share * (1 - fixed) / growing)
        for demand, ceiling in zip(lowered, ceilings, strict=True)
        if demand.share
    ]


def _add_up(quotas: Sequence[Demand], cells: int, columns: Sequence[str], *, must: bool) -> list[Demand]:
    """Return the quotas, scaled so that those of a column of which every row has one add up to 1, where they nearly do.

    Raises InputError where they `must` and leave a share to nobody: a few rows, of which shares are hardly to be told
    apart, would still have them all.
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
                f"select.quotas asks for {share:.0%} of {name}, of which no row can be selected.",
                f"There are rows of {', '.join(sorted({f'{column}:{key[position]}' for key in keys}))}.",
            )
        demands.append(Demand(name, share, cells))
    return demands


def mix_cells(cells: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return all candidates, one of each cell in turn as long as it lasts: every prefix is as even as it can be."""
    longest = max(map(len, cells), default=0)
    return [cell[position] for position in range(longest) for cell in cells if position < len(cell)]

"""Which candidates are selected, in the target's proportions and quotas, and in what order the others would follow."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from truegold.pipeline.config.selection import QUOTA_COLUMNS, SelectConfig, TargetName
from truegold.pipeline.rows import row_key
from truegold.pipeline.select.candidates import Candidate
from truegold.pipeline.select.proportions import Demand, Fulfilment, solve_counts
from truegold.verifiers import InputError

Cells = Mapping[tuple[str | int, ...], Sequence[Candidate]]
"""Candidates by what the demands tell apart: their band, then their values of the columns that have quotas."""


def choose(
    candidates: Sequence[Candidate], config: SelectConfig
) -> tuple[list[Candidate], list[Candidate], list[Fulfilment]]:
    """Return the selected candidates, the others in the order in which they would follow, and the fate of the demands.

    Of candidates that no demand tells apart, those of the greatest worth are selected. Raises InputError for a quota of
    which there is no row, and for shares that no selection has.
    """
    if not candidates:
        return [], [], []
    ordered = sorted(candidates, key=lambda candidate: row_key(candidate.row))
    random.Random(config.seed).shuffle(ordered)
    ordered.sort(key=lambda candidate: -candidate.worth)
    columns = [column for column in QUOTA_COLUMNS if any(name.startswith(f"{column}:") for name in config.quotas)]
    cells: defaultdict[tuple[str | int, ...], list[Candidate]] = defaultdict(list)
    for candidate in ordered:
        cells[candidate.band, *(str(candidate.row[column]) for column in columns)].append(candidate)  # type: ignore[literal-required]
    keys = sorted(cells)
    demands = _band_demands(keys, config) + _quota_demands(keys, columns, config)
    counts, fulfilments = solve_counts([len(cells[key]) for key in keys], demands, config.max_rows)
    if not any(counts):
        raise InputError(
            f"No selection has all the shares that are asked for: {', '.join(demand.name for demand in demands)}.",
            "Where every source or domain has a quota, let them add up to 1. With select.max_rows they are met as far "
            "as rows allow.",
        )
    selected = in_turn([cells[key][:count] for key, count in zip(keys, counts, strict=True)])
    if config.target is TargetName.CURRICULUM:
        selected.sort(key=lambda candidate: -candidate.band)
    reserve = in_turn([cells[key][count:] for key, count in zip(keys, counts, strict=True)])
    return selected, reserve, fulfilments


def _band_demands(keys: Sequence[tuple[str | int, ...]], config: SelectConfig) -> list[Demand]:
    if config.target is None and config.max_rows is None:
        return []
    demands, low = [], 0.0
    for index, band in enumerate(config.bands):
        cells = frozenset(cell for cell, key in enumerate(keys) if key[0] == index)
        if band.share:
            demands.append(Demand(f"pass rates {low:.3g} to {band.up_to:.3g}", band.share, cells))
        low = band.up_to
    return demands


def _quota_demands(keys: Sequence[tuple[str | int, ...]], columns: Sequence[str], config: SelectConfig) -> list[Demand]:
    demands = []
    for name, share in config.quotas.items():
        column, _, value = name.partition(":")
        position = 1 + columns.index(column)
        cells = frozenset(cell for cell, key in enumerate(keys) if key[position] == value)
        if share and not cells:
            raise InputError(
                f"select.quotas asks for {share:.0%} of {name}, of which no row can be selected.",
                f"There are rows of {', '.join(sorted({f'{column}:{key[position]}' for key in keys}))}.",
            )
        demands.append(Demand(name, share, cells))
    return demands


def in_turn(cells: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return all candidates, one of each cell in turn as long as it lasts: every prefix is as even as it can be."""
    longest = max(map(len, cells), default=0)
    return [cell[position] for position in range(longest) for cell in cells if position < len(cell)]

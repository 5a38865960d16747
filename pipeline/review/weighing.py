"""What all decisions come to for the rows of a run, before any of them is applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from truegold.pipeline.review.conflicts import Settlement, conflict_groups, settle_conflicts
from truegold.pipeline.review.decisions import Decisions
from truegold.pipeline.review.precision import FlagPrecision, measure_flags
from truegold.pipeline.review.reading import unpayable_because
from truegold.pipeline.review.words import Standing, weigh_decisions
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.rows import Row, RowKey, row_key


@dataclass(frozen=True)
class WeighedReview:
    """What all decisions come to for the rows of a run."""

    standings: Mapping[RowKey, Standing]
    """What was decided about each row that anything was decided about."""
    conflicts: tuple[tuple[RowKey, ...], ...]
    """The rows of each conflict of labels that holds them back."""
    settlements: Mapping[RowKey, Settlement]
    """What words about one side of these do to another one."""
    unpayable: Mapping[RowKey, FlagRecord]
    """Why the golds that some rows were given cannot be paid by their verifiers."""

    def measure_flags(self, flags: Iterable[FlagRecord]) -> list[FlagPrecision]:
        """Return how often these flags were right."""
        words = {key: standing.word for key, standing in self.standings.items() if standing.word is not None}
        return measure_flags(flags, words, self.conflicts)


def weigh_review(rows: Iterable[Row], flags: Iterable[FlagRecord], decisions: Decisions) -> WeighedReview:
    """Return what decisions come to for rows as they stand before they are applied.

    Rows and flags that are neither decided about nor in a conflict may be left out.
    """
    if not decisions:
        return WeighedReview({}, (), {}, {})
    conflicts = tuple(map(tuple, conflict_groups(flags)))
    in_conflict = {key for group in conflicts for key in group}
    standings: dict[RowKey, Standing] = {}
    members: dict[RowKey, Row] = {}
    unpayable: dict[RowKey, FlagRecord] = {}
    for row in rows:
        key = row_key(row)
        if row["id"] in decisions:
            standings[key] = weigh_decisions(row, decisions[row["id"]])
            word = standings[key].word
            if word is not None and word.gold is not None and (fault := unpayable_because(row, word.gold)) is not None:
                unpayable[key] = fault
        if key in in_conflict:
            members[key] = row
    applied = {
        key: standing.word for key, standing in standings.items() if standing.word is not None and key not in unpayable
    }
    return WeighedReview(standings, conflicts, settle_conflicts(conflicts, members, applied), unpayable)

"""What a row is worth to training, by what the profile knows of it, and why it is not selected where it is not.

0 passes of 8, prior mean .3    68 % of its groups of 8 are expected to teach    ->  a candidate
8 passes of 8, prior mean .8    9 %                                             ->  dropped, `too_easy`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from truegold.pipeline.config.stages import QUOTA_COLUMNS, SelectConfig
from truegold.pipeline.rates.posterior import Beta
from truegold.pipeline.select.teaching import known_pass_rate
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.profile import ProfileRow
from truegold.pipeline.tables.reasons import DropReason
from truegold.pipeline.tables.rows import KEY, Row, RowKey, RowReference, read_table, row_key


@dataclass(frozen=True)
class Candidate:
    """A row that may be selected."""

    row: Row
    known: Beta
    """Its pass rate, as far as it is known."""
    never_passed: bool
    is_flagged: bool
    """Whether a rule advises against it, which no reviewer has decided about."""
    suspicion: float
    """How probable it is that its label is at fault."""
    worth: float
    """The share of its groups that are expected to teach what is right: those that teach, times the probability that
    its label is."""
    band: int
    """The band of the target that its expected pass rate lies in."""

    @property
    def pass_rate(self) -> float:
        """The expected pass rate."""
        return self.known.mean


class _Suspicion(TypedDict):
    """What is read of `suspicion.parquet`, whose column `id` is the name by which samples know a row."""

    row_id: str
    source: str
    source_row: int
    suspicion: float | None


class Judgement:
    """Which rows are candidates."""

    def __init__(self, inputs: Mapping[str, Path], config: SelectConfig) -> None:
        """Read the profile's tables `profile`, `flags` and `suspicion`; where `settle` ran, its `open_flags` and
        `decided` too."""
        self._config = config
        self.profile = {row_key(summary): summary for summary in read_table(inputs["profile"], ProfileRow)}
        """What the profile says of each row."""
        decided: set[RowKey] = set()
        if "decided" in inputs:
            decided = {row_key(row) for row in read_table(inputs["decided"], RowReference)}
        self.blocked_by: dict[RowKey, list[str]] = {}
        """The reasons of the flags that hold rows back. A row that passed by a reviewer's word is held by none."""
        for flag in read_table(inputs["flags"], FlagRecord):
            if flag["blocks"] and row_key(flag) not in decided:
                self.blocked_by.setdefault(row_key(flag), []).append(flag["reason"])
        self._flagged: set[RowKey] = set()
        if "open_flags" in inputs:
            self._flagged = {row_key(flag) for flag in read_table(inputs["open_flags"], RowReference, KEY)}
        self._suspicion = {
            (record["row_id"], record["source"], record["source_row"]): record["suspicion"]
            for record in read_table(inputs["suspicion"], _Suspicion, list(_Suspicion.__annotations__))
        }

    def consider(self, row: Row) -> Candidate | DropReason:
        """Return a row as a candidate, or why it is none."""
        config, summary = self._config, self.profile[row_key(row)]
        known = known_pass_rate(summary)
        if row_key(row) in self.blocked_by:
            return DropReason.HELD
        if known is None:
            return DropReason.UNJUDGED
        size = config.group_size
        teaching = known.teaching_share(size)
        if teaching < config.min_teaching:
            is_dead = known.dead_share(size) > known.saturated_share(size)
            return DropReason.TOO_HARD if is_dead else DropReason.TOO_EASY
        if summary["passes"] < config.min_passes:
            return DropReason.TOO_FEW_PASSES
        band = next(index for index, band in enumerate(config.bands) if known.mean <= band.up_to)
        if reason := self._exclude(row, known.mean, band):
            return reason
        # Where no answer was read nothing is known.
        suspicion = self._suspicion[row_key(row)] or 0.0
        is_flagged = row_key(row) in self._flagged
        return Candidate(row, known, not summary["passes"], is_flagged, suspicion, teaching * (1 - suspicion), band)

    def _exclude(self, row: Row, pass_rate: float, band: int) -> DropReason | None:
        """Return why a row that would teach is not to be selected, None where it may be."""
        config = self._config
        in_range = config.min_pass_rate <= pass_rate <= config.max_pass_rate
        if not in_range or (config.target is not None and config.bands[band].share == 0):
            return DropReason.OUTSIDE_BAND
        names = (f"{column}:{row[column]}" for column in QUOTA_COLUMNS)  # type: ignore[literal-required]
        return DropReason.ZERO_QUOTA if any(config.quotas.get(name) == 0 for name in names) else None

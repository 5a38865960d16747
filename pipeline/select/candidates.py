"""Judges what a row is worth to training, by its profile, and says why it is no candidate where it is none.

    0 passes of 8, prior mean .3    68 % of its groups of 8 are expected to teach    ->  a candidate
    8 passes of 8, prior mean .8    9 %                                             ->  dropped, `too_easy`

A group that is all wrong or all right has no gradient. How many groups of a selection will teach is told before a GPU
is spent on training:

    1,200 rows at pass rates like Beta(.8, 1.4), groups of 8      61 % are expected to teach
    400 rows of which none ever passed                            .3 %: refused, with what would help
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TypedDict

from truegold.pipeline.config.stages import QUOTA_COLUMNS, SelectConfig
from truegold.pipeline.rates.posterior import Mixture
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.measured_flags import BLOCKING_PRECISION
from truegold.pipeline.tables.reasons import DropReason, LabelCheck
from truegold.pipeline.tables.rows import KEY, ProfileRow, Row, RowKey, RowReference, read_table, row_key
from truegold.verifiers import InputError

OFTEN_CUT = 0.2
"""With a larger share of samples that were cut, more room for an answer is the first thing to try."""
SUSPECTED = 0.5
"""From this suspicion on a label is more probably at fault than right."""
FEWEST_CHECKS = 20
"""The decisions about rows without suspicion that it takes to trust others like them."""


@dataclass(frozen=True)
class Candidate:
    """A row that may be selected."""

    row: Row
    known: Mixture
    """Its pass rate, as far as it is known."""
    is_doubtful: bool
    """Whether it never passed and nothing vouches for its label, so that `zero_share` bounds it."""
    is_flagged: bool
    """Whether a rule advises against it, which no reviewer has decided about."""
    suspicion: float
    """How probable it is that its label is at fault."""
    worth: float
    """The share of its groups that are expected to teach what is right: those that teach, times the probability that
    its label is."""
    band: int
    """The band of the target that its expected pass rate lies in."""


class _Suspicion(TypedDict):
    """The columns that are read of `suspicion.parquet`, whose column `id` is the name by which samples know a row."""

    row_id: str
    source: str
    source_row: int
    suspicion: float | None


@dataclass(frozen=True)
class SuspicionRecord:
    """How far suspicion has told wrong labels from right ones, where reviewers decided about rows that never passed,
    have no flag and were drawn at random."""

    suspected: int
    """Those that had a suspicion of SUSPECTED at least."""
    suspected_at_fault: int
    others: int
    others_at_fault: int

    @property
    def is_trusted(self) -> bool:
        """Whether enough of those without suspicion were decided, and nine in ten of them are right: then others like
        them are as good as rows that pass."""
        right = self.others - self.others_at_fault
        return self.others >= FEWEST_CHECKS and right >= BLOCKING_PRECISION * self.others

    @classmethod
    def count(cls, checks: Iterable[LabelCheck]) -> SuspicionRecord:
        """Count the checks of rows that never passed."""
        counts = Counter(
            (check["suspicion"] >= SUSPECTED, check["at_fault"]) for check in checks if not check["passes"]
        )
        suspected, others = (counts[side, True] + counts[side, False] for side in (True, False))
        return cls(suspected, counts[True, True], others, counts[False, True])


class Judgement:
    """Sorts rows into candidates and others, by the tables of the profile."""

    def __init__(self, inputs: Mapping[str, Path], config: SelectConfig) -> None:
        """Read the profile's tables `profile`, `flags` and `suspicion`; where `settle` ran, its `open_flags`,
        `decided` and `checks` too."""
        self._config = config
        self.profile = {row_key(summary): summary for summary in read_table(inputs["profile"], ProfileRow)}
        """The profile of each row."""
        self._decided: set[RowKey] = set()
        if "decided" in inputs:
            self._decided = {row_key(row) for row in read_table(inputs["decided"], RowReference)}
        self.blocked_by: dict[RowKey, list[str]] = {}
        """The reasons of the flags that hold rows back. A row that passed by a reviewer's word is held by none."""
        for flag in read_table(inputs["flags"], FlagRecord):
            if flag["blocks"] and row_key(flag) not in self._decided:
                self.blocked_by.setdefault(row_key(flag), []).append(flag["reason"])
        self._flagged: set[RowKey] = set()
        if "open_flags" in inputs:
            self._flagged = {row_key(flag) for flag in read_table(inputs["open_flags"], RowReference, KEY)}
        self.record = SuspicionRecord.count(read_table(inputs["checks"], LabelCheck) if "checks" in inputs else ())
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
        # Where nothing was looked at nothing is known, and a reviewer's word settles it.
        suspicion = 0.0 if row_key(row) in self._decided else self._suspicion[row_key(row)] or 0.0
        is_flagged = row_key(row) in self._flagged
        is_vouched_for = self.record.is_trusted and not is_flagged and suspicion < SUSPECTED
        is_doubtful = not summary["passes"] and not is_vouched_for
        return Candidate(row, known, is_doubtful, is_flagged, suspicion, teaching * (1 - suspicion), band)

    def _exclude(self, row: Row, pass_rate: float, band: int) -> DropReason | None:
        """Return why a row that would teach is not to be selected, None where it may be."""
        config = self._config
        in_range = config.min_pass_rate <= pass_rate <= config.max_pass_rate
        if not in_range or (config.target is not None and config.bands[band].share == 0):
            return DropReason.OUTSIDE_BAND
        names = (f"{column}:{row[column]}" for column in QUOTA_COLUMNS)  # type: ignore[literal-required]
        return DropReason.ZERO_QUOTA if any(config.quotas.get(name) == 0 for name in names) else None


def known_pass_rate(row: ProfileRow) -> Mixture | None:
    """Return what the profile knows of a row's pass rate, None where none of its samples could be judged."""
    return Mixture.from_components(row["posterior"])


def teaching_facts(selected: Sequence[ProfileRow], config: SelectConfig) -> dict[str, object]:
    """Return what share of the selection's groups is expected to teach, for the stage's record.

    Raises InputError where the share is below `config.min_teaching_share`, unless `config.may_be_empty`.
    """
    size = config.group_size
    known = [mixture for row in selected if (mixture := known_pass_rate(row)) is not None]
    dead = fmean(mixture.dead_share(size) for mixture in known)
    saturated = fmean(mixture.saturated_share(size) for mixture in known)
    teaching = max(0.0, 1 - dead - saturated)
    if teaching < config.min_teaching_share and not config.may_be_empty:
        raise InputError(
            f"Of the groups of {size} that training would sample from the {len(selected)} selected rows {teaching:.1%} "
            f"are expected to teach, {dead:.1%} to be all wrong and {saturated:.1%} all right.",
            f"{remedy(selected, dead > saturated)} The bound is select.min_teaching_share: "
            f"{config.min_teaching_share:g}.",
        )
    return {"expected_teaching_share": round(teaching, 4), "group_size": size}


def remedy_for_none(rows: Sequence[ProfileRow], drops: Mapping[str, int], rows_in: int) -> str:
    """Return what would help where none of `rows_in` rows is left, by the reason for which most of them went.

    rows: those of training.
    """
    if not rows_in:
        return "An earlier stage has dropped them all: its dropped.parquet has each row with the reason."
    if not rows:
        return "All rows are held out: lower data.heldout."
    reason = max(drops, key=lambda name: (drops[name], name != "too_easy"), default="")
    others = {
        "held_for_review": "Decide about them (`decisions`), or let flags advise only (flag.advise_only).",
        "unjudged": "truegold explain ID --run RUN says why verdicts have no score; profile.judge asks a model.",
        "outside_band": "Select other pass rates: select.target.",
        "zero_quota": "Raise the quotas in select.quotas.",
        "over_zero_share": "Raise select.zero_share.",
        "in_reserve": "None of them has a right sample: raise select.zero_share.",
        "not_sampled": "Raise profile.budget_tokens.",
    }
    return others[reason] if reason in others else remedy(rows, reason != "too_easy")


def remedy(rows: Sequence[ProfileRow], is_too_hard: bool) -> str:
    """Return what would help rows that are too hard, or too easy, to teach anything."""
    if not is_too_hard:
        return "Take a harder source, or set select.max_pass_rate lower."
    cut = sum(row["truncated"] for row in rows) / len(rows)
    room = f"{cut:.0%} of their samples were cut: raise profile.max_tokens. Else take" if cut > OFTEN_CUT else "Take"
    return f"{room} an easier source, an SFT cold start (`sft`), or more samples of each row (profile.samples)."

"""Decides which rows are candidates for training, from their profiles, and gives the reason for all others.

    a row                                          groups of 8 that are expected to teach      outcome
    0 passes of 8, prior mean .3                   68 %                                        a candidate
    8 passes of 8, prior mean .8                   9 %                                         dropped, `too_easy`

A training group is the samples of a row in one step. It teaches only if it has right and wrong samples. Other groups
have no gradient. The share of groups that will teach is estimated before any GPU time is spent on training:

    1,200 rows with pass rates as Beta(.8, 1.4)    61 %
    400 rows of which none ever passed             .3 %                                        an error, with advice
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import polars as pl

from truegold.pipeline.config.stages import QUOTA_COLUMNS, SelectConfig
from truegold.pipeline.rates import Mixture
from truegold.pipeline.select.columns import Array, ProfiledRows
from truegold.pipeline.tables.measured_flags import BLOCKING_PRECISION
from truegold.pipeline.tables.reasons import DropReason, LabelCheck
from truegold.pipeline.tables.rows import read_table
from truegold.verifiers import InputError

OFTEN_CUT = 0.2
"""If more than this share of samples was cut, the first advice is a larger limit on tokens."""
SUSPECTED = 0.5
"""A label with at least this suspicion is more probably wrong than right."""
FEWEST_CHECKS = 20
"""Rows without suspicion are trusted only after reviewers decided about at least this number of them."""


HELD_OUT, CANDIDATE = "heldout", "candidate"
OUTCOMES = (CANDIDATE, HELD_OUT, *DropReason)
"""The outcomes of rows; an outcome is stored as its index here."""


@dataclass(frozen=True)
class Candidates:
    """The rows that may be selected, ordered by key. All arrays have the shape [candidates]."""

    rows: Array
    """The index of each row in its table."""
    is_doubtful: Array
    """True for a row that never passed and whose label is not trusted. `zero_share` limits such rows."""
    is_flagged: Array
    """True for a row with an advising flag that no reviewer has decided about."""
    worth: Array
    """The expected share of groups that teach something right: the share that teaches, times the probability that the
    label is right."""
    band: Array
    """The index of the target's band that has the row's expected pass rate."""
    numbers: Mapping[str, Array]
    """For "source" and "domain", the index of each row's value in `names`."""
    names: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class SuspicionRecord:
    """Reviewers' decisions about rows that were drawn at random, never passed and have no flag. They measure the
    precision of the suspicion."""

    suspected: int
    """The number of decided rows with a suspicion of at least SUSPECTED."""
    suspected_at_fault: int
    others: int
    others_at_fault: int

    @property
    def is_trusted(self) -> bool:
        """True if enough rows without suspicion were decided, and nine in ten of their labels are right.

        If so, other rows without suspicion are trusted like rows that pass.
        """
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
    """The outcomes of all rows, from the tables of the profile."""

    def __init__(self, inputs: Mapping[str, Path], config: SelectConfig) -> None:
        """Read the table `rows` and the profile's tables `profile`, `flags` and `suspicion`. If `settle` ran, its
        tables `open_flags`, `decided` and `checks` are read, too."""
        self._config = config
        self.rows = rows = ProfiledRows(inputs)
        self._is_decided = self._mark("decided")
        self.is_flagged = self._mark("open_flags")
        """True for each row with an advising flag that no reviewer has decided about. Shape [rows]."""
        self.blocked_by: dict[int, list[str]] = {}
        """The reasons of the blocking flags of each held row. Rows with a reviewer's decision are not held."""
        for row_index, reason, blocks in rows.named["flags"].select("number", "reason", "blocks").iter_rows():
            if blocks and not self._is_decided[row_index]:
                self.blocked_by.setdefault(row_index, []).append(reason)
        self.record = SuspicionRecord.count(read_table(inputs["checks"], LabelCheck) if "checks" in inputs else ())
        size = config.group_size
        known = rows.posteriors
        self.components = [[] if mixture is None else mixture.components() for mixture in known]
        """The components of each posterior."""
        self.mean = _each(known, lambda mixture: mixture.mean)
        """The expected pass rate for each posterior."""
        self.dead, self.saturated, self.teaching = (
            _each(known, lambda mixture: mixture.dead_share(size)),
            _each(known, lambda mixture: mixture.saturated_share(size)),
            _each(known, lambda mixture: mixture.teaching_share(size)),
        )
        """For each posterior, the expected shares of groups that are all wrong, that are all right, and that teach."""
        self.suspicion = np.where(self._is_decided, 0.0, rows.suspicion)
        """The suspicion of each row; 0 after a reviewer's decision."""

    def outcomes(self) -> Array:
        """Return the index of each row's outcome in OUTCOMES. Shape [rows]."""
        rows, config = self.rows, self._config
        is_held = np.zeros(len(rows), bool)
        is_held[list(self.blocked_by)] = True
        teaching = self.teaching[rows.known]
        hardly_teaches = teaching < config.min_teaching
        is_dead = (self.dead > self.saturated)[rows.known]
        mean = self.mean[rows.known]
        no_share = [config.target is not None and band.share == 0 for band in config.bands]
        is_outside = (mean < config.min_pass_rate) | (mean > config.max_pass_rate) | np.array(no_share)[self.bands()]
        no_quota = np.zeros(len(rows), bool)
        for column in QUOTA_COLUMNS:
            refused = np.array([config.quotas.get(f"{column}:{name}") == 0 for name in rows.names[column]], bool)
            no_quota |= refused[rows.numbers[column]]
        outcomes: Array = np.select(
            [
                rows.is_heldout,
                is_held,
                rows.known == 0,
                hardly_teaches & is_dead,
                hardly_teaches,
                rows.passes < config.min_passes,
                is_outside,
                no_quota,
            ],
            [
                np.uint8(OUTCOMES.index(name))
                for name in (
                    HELD_OUT,
                    DropReason.HELD,
                    DropReason.UNJUDGED,
                    DropReason.TOO_HARD,
                    DropReason.TOO_EASY,
                    DropReason.TOO_FEW_PASSES,
                    DropReason.OUTSIDE_BAND,
                    DropReason.ZERO_QUOTA,
                )
            ],
            np.uint8(OUTCOMES.index(CANDIDATE)),
        )
        return outcomes

    def bands(self) -> Array:
        """Return the index of each row's band of the target. Shape [rows]."""
        ends = [band.up_to for band in self._config.bands]
        bands: Array = np.searchsorted(ends, self.mean)[self.rows.known].astype(np.uint8)
        return bands

    def candidates(self, outcomes: Array) -> Candidates:
        """Return the candidates among the rows with these outcomes."""
        rows = self.rows
        chosen = rows.order[outcomes[rows.order] == OUTCOMES.index(CANDIDATE)]
        suspicion, is_flagged = self.suspicion[chosen], self.is_flagged[chosen]
        is_doubtful = rows.passes[chosen] == 0
        if self.record.is_trusted:
            is_doubtful &= is_flagged | (suspicion >= SUSPECTED)
        return Candidates(
            chosen,
            is_doubtful,
            is_flagged,
            self.teaching[rows.known[chosen]] * (1 - suspicion),
            self.bands()[chosen],
            {name: numbers[chosen] for name, numbers in rows.numbers.items()},
            rows.names,
        )

    def _mark(self, table: str) -> Array:
        """Return a mask of the rows that a table names. Shape [rows]."""
        is_named = np.zeros(len(self.rows), bool)
        if table in self.rows.named:
            is_named[self.rows.named[table]["number"].to_numpy()] = True
        return is_named


def _each(known: Sequence[Mixture | None], measure: Callable[[Mixture], float]) -> Array:
    """Return a measure of each posterior, 0 for None."""
    return np.array([0.0 if mixture is None else measure(mixture) for mixture in known])


def teaching_facts(judgement: Judgement, selected: Array, cut: pl.LazyFrame, config: SelectConfig) -> dict[str, object]:
    """Return the expected share of teaching groups in the selection, for the stage's record.

    `cut` has each row's share of `truncated` samples. Raises InputError if the share of groups is below
    `config.min_teaching_share`, unless `config.may_be_empty`.
    """
    size = config.group_size
    weights = np.bincount(judgement.rows.known[selected], minlength=len(judgement.dead)) / len(selected)
    dead, saturated = float(weights @ judgement.dead), float(weights @ judgement.saturated)
    teaching = max(0.0, 1 - dead - saturated)
    if teaching < config.min_teaching_share and not config.may_be_empty:
        helps = remedy(cut.collect()["truncated"].to_numpy()[selected].tolist(), dead > saturated)
        raise InputError(
            f"Of the groups of {size} that training would sample from the {len(selected)} selected rows, "
            f"{teaching:.1%} are expected to teach, {dead:.1%} to be all wrong and {saturated:.1%} all right.",
            f"{helps} The bound is select.min_teaching_share: {config.min_teaching_share:g}.",
        )
    return {"expected_teaching_share": round(teaching, 4), "group_size": size}


def remedy_for_none(cut: Sequence[float], drops: Mapping[str, int], rows_in: int) -> str:
    """Return advice if none of `rows_in` rows remains, by the most frequent reason of `drops`.

    `cut` has the share of cut samples of each training row.
    """
    if not rows_in:
        return "An earlier stage has dropped them all: its dropped.parquet has each row with the reason."
    if not cut:
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
    return others[reason] if reason in others else remedy(cut, reason != "too_easy")


def remedy(cut: Sequence[float], is_too_hard: bool) -> str:
    """Return advice about rows that are too hard, or too easy, to teach."""
    if not is_too_hard:
        return "Take a harder source, or set select.max_pass_rate lower."
    share = fmean(cut)
    room = (
        f"{share:.0%} of their samples were cut: raise profile.max_tokens. Else take" if share > OFTEN_CUT else "Take"
    )
    return f"{room} an easier source, an SFT cold start (`sft`), or more samples of each row (profile.samples)."

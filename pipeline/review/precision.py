"""How often each flag is right, by what reviewers decided about the rows that carry it.

    proof   12 of 14 decided rows were dropped or fixed: .86 [.60, .96]     of 9 drawn at random 7: .78 [.45, .94]

A flag is right where its row was dropped or given another gold, wrong where it was kept; the unsure do not count. The
rows that were read first because they were the most suspicious are more often at fault than others with the same flag,
so that rows drawn at random are counted apart as well, and they alone set what a flag may do (`settle.tiers`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truegold.pipeline.review.decisions import DecisionKind
from truegold.pipeline.review.words import Word
from truegold.pipeline.tables.ledger import FlagRecord
from truegold.pipeline.tables.measured_flags import BLOCKING_PRECISION
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS
from truegold.pipeline.tables.rows import RowKey, row_key
from truegold.verifiers.rates import wilson_interval


@dataclass(frozen=True)
class FlagPrecision:
    """How often the flags of one reason were right. Intervals are Wilson's, 95 %."""

    reason: str
    detector: str
    blocks: bool
    """Whether they hold rows back."""
    right: int
    decided: int
    low: float
    high: float
    random_right: int
    random_decided: int
    """Of the rows that were drawn at random alone."""
    random_low: float | None
    random_high: float | None
    """None where no row was."""

    def tier(self, min_decisions: int) -> bool | None:
        """Return whether such flags should hold rows back; None where too few rows drawn at random tell."""
        if self.random_decided < min_decisions:
            return None
        return self.random_right / self.random_decided > BLOCKING_PRECISION


def measure_flags(
    flags: Iterable[FlagRecord], words: Mapping[RowKey, Word], conflicts: Iterable[Sequence[RowKey]] = ()
) -> list[FlagPrecision]:
    """Return the precision of each reason that decided rows carry, in the order of the reasons.

    `conflicts` are the rows of each conflict of labels: such a flag is right wherever not all its rows were kept, also
    for the row that was.
    """
    all_kept = {key for group in conflicts if all(_was_kept(words.get(member)) for member in group) for key in group}
    counts: Counter[tuple[str, bool, bool]] = Counter()
    """Flags by reason, whether they were right, and whether their row was drawn at random."""
    detectors: dict[str, tuple[str, bool]] = {}
    counted: set[tuple[RowKey, str]] = set()
    for flag in flags:
        key, reason = row_key(flag), flag["reason"]
        word = words.get(key)
        if word is None or (key, reason) in counted:
            continue
        counted.add((key, reason))
        detector, blocks = detectors.get(reason, (flag["detector"], False))
        detectors[reason] = detector, blocks or flag["blocks"]
        is_right = key not in all_kept if reason == CONFLICTING_LABELS and flag["blocks"] else word.faults_row
        counts[reason, is_right, word.is_random] += 1
    return [_precision(reason, *detectors[reason], counts) for reason in sorted(detectors)]


def _was_kept(word: Word | None) -> bool:
    return word is not None and word.kind is DecisionKind.KEEP


def _precision(reason: str, detector: str, blocks: bool, counts: Mapping[tuple[str, bool, bool], int]) -> FlagPrecision:
    random_right, random_wrong = counts[reason, True, True], counts[reason, False, True]
    right = random_right + counts[reason, True, False]
    decided = right + random_wrong + counts[reason, False, False]
    low, high = wilson_interval(right, decided)
    drawn = random_right + random_wrong
    random_low, random_high = wilson_interval(random_right, drawn) if drawn else (None, None)
    return FlagPrecision(
        reason, detector, blocks, right, decided, low, high, random_right, drawn, random_low, random_high
    )

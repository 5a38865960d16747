"""The precision of each built-in flag, measured on rows of several corpora that were read by hand.

    "truncated_text": Measured(right=15, read=30, corpora=6, by=Readers.TWO_BLIND)   ->   confidence 0.5, advises

Two readers who see the row and a question, and neither rule nor tier, have read what rules say on fifty corpora
(`tests/data/flag_readings.jsonl`); what both say counts. Where these are fewer than MIN_BLIND rows or MIN_CORPORA
corpora, older rows that one reader has labelled are added (`rule_labels.jsonl`). Of a rule that speaks of nothing in
them, rows count that were damaged for it. `tests/pipeline/test_measured.py` holds the table `measured_flags.json`
against these files.

A rule that is right on fewer than half of the rows read is not built in, and neither is one without an entry. Its flags
hold rows back where more than nine tenths of at least MIN_READ rows were right, from MIN_CORPORA corpora or more.
Reasons of other stages that have no entry are facts, by a verifier or a comparison: they hold rows back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.rows import RowReference

MIN_PRECISION = 0.5
"""No built-in rule is below this."""
MIN_BLIND = 30
"""So many rows that two readers have read, of MIN_CORPORA corpora, need no others beside them."""
MIN_READ = 5
"""Of fewer rows nothing is known for sure."""
MIN_CORPORA = 3
"""A rule that was read on fewer corpora may be right by the habits of one."""
BLOCKING_PRECISION = 0.9
"""A flag above this may hold a row back."""


class Readers(StrEnum):
    """Who has said whether flags are right."""

    TWO_BLIND = "two blind readers"
    MIXED = "two blind readers, and one for older rows"
    SINGLE = "one reader"
    """Who knew the reason, and not the confidence."""
    PLANTED = "planted"
    """Nobody: the rows were damaged for it."""


@dataclass(frozen=True)
class Measured:
    """What reading a rule's flags by hand came to."""

    right: int
    read: int
    corpora: int
    """The corpora that the rows read are from."""
    by: Readers
    advises: bool = False
    """Whether it holds nothing back all the same: the verifier reads most wrapped golds, and of `multi_part` 55 of 62
    were right where one reader's are counted too."""

    @property
    def precision(self) -> float:
        """The share of the rows read that were flagged rightly."""
        return round(self.right / self.read, 2)

    @property
    def blocks(self) -> bool:
        """Whether such a flag may hold a row back."""
        is_known = self.read >= MIN_READ and self.corpora >= MIN_CORPORA
        may_block = not self.advises and self.by is not Readers.PLANTED
        return may_block and is_known and self.right / self.read > BLOCKING_PRECISION

    def shown(self) -> dict[str, Any]:
        """Return what a flag's evidence says of it."""
        return {"precision": self.precision, "rows": self.read, "corpora": self.corpora, "by": self.by}


MEASURED: Mapping[str, Measured] = {
    reason: Measured(**{**counts, "by": Readers(counts["by"])})
    for reason, counts in json.loads((files(__package__) / "measured_flags.json").read_bytes()).items()
}
"""By the flag's reason."""


def measured_flag(
    row: RowReference,
    reason: str,
    detector: str,
    evidence: Mapping[str, Any],
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the row of `flags.parquet` that flags `row`, with the measured precision as confidence and in evidence.

    A reason without an entry is a fact, and holds the row back.
    """
    measured = MEASURED.get(reason)
    if measured is None:
        confidence, blocks = 1.0, True
    else:
        confidence, blocks = measured.precision, measured.blocks
        evidence = {**evidence, "measured": measured.shown()}
    return flag_record(
        row, reason, detector=detector, evidence=evidence, confidence=confidence, blocks=blocks, suggestion=suggestion
    )

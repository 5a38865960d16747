"""How often each built-in flag is right: rows of several corpora, read by hand, and what follows from that.

    "truncated_text": Measured(right=46, read=50, corpora=6)   ->   confidence 0.92, blocks

Rows were drawn with a fixed seed from what the rule says on the corpora of `benchmarks/curation_corpora.py`, in the half
that it was not written on, and labelled without its confidence; the labels are `tests/data/rule_labels.jsonl`, and
`tests/pipeline/test_measured.py` holds this table against them.

A flag is on by default where at least half of the rows read were right, and holds a row back where more than nine
tenths were. Reasons that are not listed are facts that a verifier or a stage found, not readings of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.ledger import FlagRecord, flag_record
from truegold.pipeline.rows import RowReference

MIN_PRECISION = 0.5
"""A rule below this is off unless the configuration names it."""
BLOCKING_PRECISION = 0.9
"""A flag above this may hold a row back."""


@dataclass(frozen=True)
class Measured:
    """What reading a rule's flags by hand came to."""

    right: int
    read: int
    corpora: int
    """The corpora that the rows read are from."""

    @property
    def precision(self) -> float:
        """The share of the rows read that were flagged rightly."""
        return round(self.right / self.read, 2)

    @property
    def blocks(self) -> bool:
        """Whether such a flag may hold a row back."""
        return self.right / self.read > BLOCKING_PRECISION

    def shown(self) -> dict[str, Any]:
        """Return what a flag's evidence says of it."""
        return {"precision": self.precision, "rows": self.read, "corpora": self.corpora}


MEASURED: Mapping[str, Measured] = {}
"""By the flag's reason."""


def measured_flag(
    row: RowReference,
    reason: str,
    detector: str,
    evidence: Mapping[str, Any],
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the row of `flags.parquet` that flags `row`, with the measured precision as confidence and in evidence."""
    measured = MEASURED.get(reason)
    if measured is None:
        return flag_record(row, reason, detector=detector, evidence=evidence, suggestion=suggestion)
    return flag_record(
        row,
        reason,
        detector=detector,
        evidence={**evidence, "measured": measured.shown()},
        confidence=measured.precision,
        blocks=measured.blocks,
        suggestion=suggestion,
    )

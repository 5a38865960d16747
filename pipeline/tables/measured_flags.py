"""The precision of each built-in flag, measured on rows of several corpora that were read by hand.

    "proof": Measured(right=34, read=59, corpora=5, precision=0.8, blind=(8, 33))   ->   confidence 0.8, advises

Two readers read the flagged rows of 53 corpora (`tests/data/flag_readings.jsonl`). The readers saw the row and a
question, but not the rule or its tier. A flag is right if both readers say so. Rows labelled by one reader are added
(`rule_labels.jsonl`). All rows that were flagged when the rule first ran on their corpus count, even if a later version
of the rule no longer flags them.

A wrong rule is mostly wrong on a whole corpus: `proof` was right on four corpora, and wrong on all 25 rows of a fifth.
So the precision is a weighted mean over corpora. The weight of a corpus is its number of rows read, at most
CORPUS_ROWS.

A rule below MIN_PRECISION is off unless a configuration names it. The flags of a rule hold rows back if its precision
is above BLOCKING_PRECISION, on at least MIN_CORPORA corpora and MIN_BLIND rows read by two readers. Other flags advise.
Reasons without an entry come from other stages. Such flags are facts that a verifier or a comparison found, and hold
rows back.

`tests/pipeline/test_measured.py` checks the table `measured_flags.json` against the readings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.rows import RowReference

MIN_PRECISION = 0.6
"""The precision below which a rule is off by default."""
CORPUS_ROWS = 5
"""The maximum weight of a corpus. A corpus with fewer rows read has their number as weight."""
MIN_BLIND = 5
"""The minimum number of rows read by two readers for a rule whose flags hold rows back."""
MIN_CORPORA = 3
"""The minimum number of corpora for a rule whose flags hold rows back. On fewer, one corpus may decide the
precision."""
BLOCKING_PRECISION = 0.9
"""The precision above which flags hold rows back."""


@dataclass(frozen=True)
class Measured:
    """The measured precision of a rule's flags."""

    right: int
    """The number of right flags among the rows read."""
    read: int
    """The number of flagged rows that were read."""
    corpora: int
    """The number of corpora of the rows read."""
    precision: float
    """The weighted mean over corpora of the share of right flags."""
    blind: tuple[int, int]
    """Of the rows read by two blind readers, the number of right flags and the number of rows."""

    @property
    def is_on(self) -> bool:
        """Return whether the rule runs by default."""
        return self.precision >= MIN_PRECISION

    @property
    def blocks(self) -> bool:
        """Return whether the rule's flags hold rows back."""
        is_known = self.blind[1] >= MIN_BLIND and self.corpora >= MIN_CORPORA
        return is_known and self.precision > BLOCKING_PRECISION

    def shown(self) -> dict[str, Any]:
        """Return the measurement as evidence of a flag."""
        return {"precision": self.precision, "right": self.right, "rows": self.read, "corpora": self.corpora}


MEASURED: Mapping[str, Measured] = {
    reason: Measured(**{**counts, "blind": tuple(counts["blind"])})
    for reason, counts in json.loads((files(__package__) / "measured_flags.json").read_bytes()).items()
}
"""The measured precision of rules, by the reason of their flags."""
ILL_POSED_RULES = frozenset(
    {
        "foreign_question",
        "impossible_quantity",
        "missing_figure",
        "missing_quantity",
        "negative_count",
        "no_question",
        "truncated_text",
    }
)
"""The measured reasons that call the problem ill-posed. Other reasons concern gold, the form of the question, or text
around it."""


def measured_flag(
    row: RowReference,
    reason: str,
    detector: str,
    evidence: Mapping[str, Any],
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the record of a flag on `row`, with the measured precision as confidence and in its evidence.

    A reason without a measurement is a fact, and holds the row back.
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

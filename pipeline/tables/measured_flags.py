"""The precision of each built-in flag, measured on rows of several corpora that were read by hand.

    "proof": Measured(right=34, read=59, corpora=5, precision=0.8, blind=(8, 33))   ->   confidence 0.8, advises

Two readers read the flagged rows of 53 corpora (`tests/data/flag_readings.jsonl`). They saw each row and a question.
The rule was hidden. A flag is right if both readers say so. Further rows were read by one reader (`rule_labels.jsonl`).
The rows are those that the first version of a rule flagged. Later versions may flag fewer of them.

A rule that is wrong is mostly wrong on a whole corpus: `proof` was right on four corpora, and wrong on all 25 rows of a
fifth. So the precision is a weighted mean over corpora. The weight of a corpus is the number of its rows that were
read, but at most CORPUS_ROWS.

    precision below MIN_PRECISION         the rule is off, unless a configuration turns it on
    precision above BLOCKING_PRECISION    its flags hold rows back, if it was measured on at least MIN_CORPORA corpora
                                          and on at least MIN_BLIND rows that two readers read
    otherwise                             its flags advise

Flags that are not in the table come from other stages, are certain, and hold rows back.
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
"""A rule with a lower precision is off by default."""
CORPUS_ROWS = 5
"""The maximum weight of a corpus."""
MIN_BLIND = 5
"""Flags hold rows back only if two readers read at least this number of rows."""
MIN_CORPORA = 3
"""Flags hold rows back only if the rule was measured on at least this number of corpora."""
BLOCKING_PRECISION = 0.9
"""Flags hold rows back only if their precision is higher than this."""


@dataclass(frozen=True)
class Measured:
    """The measured precision of a rule's flags."""

    right: int
    """The number of right flags among the rows read."""
    read: int
    """The number of flagged rows that were read."""
    corpora: int
    """The number of corpora from which the read rows come."""
    precision: float
    """The share of right flags, as a weighted mean over corpora."""
    blind: tuple[int, int]
    """The number of right flags among the rows that two readers read, and the number of these rows."""

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
"""The measured reasons that call the problem ill-posed. Others concern its gold, its form, or the text around it."""


def measured_flag(
    row: RowReference,
    reason: str,
    detector: str,
    evidence: Mapping[str, Any],
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the record of a flag on `row`. Its confidence is the measured precision, which is also in the evidence.

    If the reason was not measured, the flag is certain and holds the row back.
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

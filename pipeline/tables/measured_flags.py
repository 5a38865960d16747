"""The precision of each built-in flag, measured on rows of several corpora that were read by hand.

    "proof": Measured(right=34, read=59, corpora=5, precision=0.8, blind=(8, 33))   ->   confidence 0.8, advises

Two readers who see the row and a question, and neither rule nor tier, have read the rules' flags on 53 corpora
(`tests/data/flag_readings.jsonl`); a flag is right where both say so. Rows that one reader labelled are added
(`rule_labels.jsonl`). Every row counts that was flagged when its corpus was met first, those too that a later version
of the rule no longer flags.

A rule that is wrong is wrong on a whole corpus: `proof` was right on four, and wrong on the 25 rows of a fifth. So
its precision is the mean over corpora, each weighted by the rows read in it, of which at most CORPUS_ROWS count.

A rule below MIN_PRECISION is off unless a configuration names it. Above BLOCKING_PRECISION, on MIN_CORPORA corpora or
more and with at least MIN_BLIND rows that two readers have read, its flags hold rows back. The others advise.
Reasons of other stages that have no entry are facts, by a verifier or a comparison: they hold rows back.
`tests/pipeline/test_measured.py` holds the table `measured_flags.json` against the readings.
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
"""A rule below this is off by default."""
CORPUS_ROWS = 5
"""The number of rows of a corpus that gives it full weight."""
MIN_BLIND = 5
"""The fewest rows read by two readers by which a rule is known for sure."""
MIN_CORPORA = 3
"""A rule that was read on fewer corpora may be right by the habits of one."""
BLOCKING_PRECISION = 0.9
"""A flag above this may hold a row back."""


@dataclass(frozen=True)
class Measured:
    """The result of reading a rule's flags by hand."""

    right: int
    read: int
    corpora: int
    """The corpora that the rows read are from."""
    precision: float
    """The mean share of right flags over corpora."""
    blind: tuple[int, int]
    """The right ones of the rows that two blind readers have read, and these rows."""

    @property
    def is_on(self) -> bool:
        """Return whether the rule runs where a configuration names no rules."""
        return self.precision >= MIN_PRECISION

    @property
    def blocks(self) -> bool:
        """Return whether such a flag may hold a row back."""
        is_known = self.blind[1] >= MIN_BLIND and self.corpora >= MIN_CORPORA
        return is_known and self.precision > BLOCKING_PRECISION

    def shown(self) -> dict[str, Any]:
        """Return what a flag's evidence says of it."""
        return {"precision": self.precision, "right": self.right, "rows": self.read, "corpora": self.corpora}


MEASURED: Mapping[str, Measured] = {
    reason: Measured(**{**counts, "blind": tuple(counts["blind"])})
    for reason, counts in json.loads((files(__package__) / "measured_flags.json").read_bytes()).items()
}
"""The measured rules by the flag's reason."""
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
"""The measured reasons that call the problem ill-posed. Others speak of gold, of the form of the question, or of words
next to it."""


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

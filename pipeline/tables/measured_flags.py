"""The precision of each built-in flag, measured on rows of several corpora that were read by hand.

    "truncated_text": Measured(right=10, read=14, corpora=7)   ->   confidence 0.71, advises

The rows were drawn with a fixed seed from what each rule says on forty corpora (`benchmarks/curation_corpora.py`), and
labelled without its confidence. The labels are `tests/data/rule_labels.jsonl`; `tests/pipeline/test_measured.py` holds
the table `measured_flags.json` against them.

A rule that is right on fewer than half of the rows read is not built in. Its flags hold rows back where more than nine
tenths of at least MIN_READ rows were right, from MIN_CORPORA corpora or more. A built-in rule without an entry was
silent on all of them: it only advises. Reasons of other stages that have no entry are facts, by a verifier or a
comparison: they hold rows back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from truegold.pipeline.tables.ledger import FlagRecord, flag_record
from truegold.pipeline.tables.rows import RowReference

MIN_PRECISION = 0.5
"""No built-in rule is below this."""
UNMEASURED_CONFIDENCE = 0.5
"""The confidence of a built-in rule that was silent on all corpora."""
MIN_READ = 5
"""Of fewer rows nothing is known for sure."""
MIN_CORPORA = 3
"""A rule that was read on fewer corpora may be right by the habits of one."""
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
        is_known = self.read >= MIN_READ and self.corpora >= MIN_CORPORA
        return is_known and self.right / self.read > BLOCKING_PRECISION

    def shown(self) -> dict[str, Any]:
        """Return what a flag's evidence says of it."""
        return {"precision": self.precision, "rows": self.read, "corpora": self.corpora}


MEASURED: Mapping[str, Measured] = {
    reason: Measured(**counts)
    for reason, counts in json.loads((files(__package__) / "measured_flags.json").read_bytes()).items()
}
"""By the flag's reason."""
ILL_POSED_RULES = frozenset(
    ("lost_number", "missing_figure", "missing_quantity", "negative_count", "no_question", "truncated_text")
)
"""The measured reasons that call the problem ill-posed. Others speak of gold, of the form of the question, or of words
beside it."""


def measured_flag(
    row: RowReference,
    reason: str,
    detector: str,
    evidence: Mapping[str, Any],
    suggestion: str | None = None,
    *,
    is_fact: bool,
) -> FlagRecord:
    """Return the row of `flags.parquet` that flags `row`, with the measured precision as confidence and in evidence.

    What has not been measured holds a row back where it is a fact, and only advises where it is a reading of a text.
    """
    measured = MEASURED.get(reason)
    if measured is None:
        confidence, blocks = (1.0 if is_fact else UNMEASURED_CONFIDENCE), is_fact
    else:
        confidence, blocks = measured.precision, measured.blocks
        evidence = {**evidence, "measured": measured.shown()}
    return flag_record(
        row, reason, detector=detector, evidence=evidence, confidence=confidence, blocks=blocks, suggestion=suggestion
    )

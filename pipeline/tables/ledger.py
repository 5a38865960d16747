"""The ledger: one record for every edit, drop or flag, so that every row's story can be told.

    {"id": "9f0c...", "source": "train.jsonl", "source_row": 17, "stage": "dedup", "action": "drop",
     "reason": "exact_duplicate", "evidence": "{\"kept\": \"train.jsonl:3\"}", "before": null, "after": null}

Nothing leaves the data without a record here. Flags have a table of their own and are mirrored in the ledger. The
precision of each built-in flag was measured on rows of several corpora, read by hand:

    "truncated_text": Measured(right=10, read=14, corpora=7)   ->   confidence 0.71, advises

The rows were drawn with a fixed seed from what each rule says on forty corpora (`benchmarks/curation_corpora.py`), and
labelled without its confidence. The labels are `tests/data/rule_labels.jsonl`; `tests/pipeline/test_measured.py` holds
this table against them.

A rule that is right on fewer than half of the rows read is not built in. Its flags hold rows back where more than nine
tenths of at least MIN_READ rows were right, from MIN_CORPORA corpora or more. A built-in rule without an entry was
silent on all of them: it only advises. Reasons of other stages that have no entry are facts, by a verifier or a
comparison.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from truegold.pipeline.tables.rows import ROW_SCHEMA, RowReference, TableWriter, arrow_schema, dump_json, row_reference

DROPPED_SCHEMA = ROW_SCHEMA.append(pa.field("drop_reason", pa.string()))

LEDGER_FILE = "ledger.parquet"
DROPPED_FILE = "dropped.parquet"
FLAGS_FILE = "flags.parquet"

MIN_PRECISION = 0.5
"""No built-in rule is below this. It is the confidence of what has not been measured."""
MIN_READ = 5
"""Of fewer rows nothing is known for sure."""
MIN_CORPORA = 3
"""A rule that was read on fewer corpora may be right by the habits of one."""
BLOCKING_PRECISION = 0.9
"""A flag above this may hold a row back."""


class LedgerRecord(RowReference):
    """A row of `ledger.parquet`."""

    stage: str
    action: str
    reason: str
    evidence: str
    """A JSON object."""
    before: str | None
    after: str | None


class FlagRecord(RowReference):
    """A row of `flags.parquet`."""

    reason: str
    detector: str
    confidence: float
    blocks: bool
    """Whether the flag holds the row back for review."""
    evidence: str
    """A JSON object."""
    suggestion: str | None


LEDGER_SCHEMA = arrow_schema(LedgerRecord)
FLAG_SCHEMA = arrow_schema(FlagRecord)


def flag_record(
    row: RowReference,
    reason: str,
    *,
    detector: str,
    evidence: Mapping[str, Any],
    confidence: float = 1.0,
    blocks: bool = True,
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the row of `flags.parquet` that flags `row`."""
    return {
        **row_reference(row),
        "reason": reason,
        "detector": detector,
        "confidence": confidence,
        "blocks": blocks,
        "evidence": dump_json(evidence),
        "suggestion": suggestion,
    }


class Action(StrEnum):
    """What was done to a row."""

    KEEP = "keep"
    EDIT = "edit"
    DROP = "drop"
    FLAG = "flag"


class Ledger:
    """Writes one stage's records and the rows it drops: `ledger.parquet` and `dropped.parquet` in `out_dir`."""

    def __init__(self, out_dir: Path, stage: str) -> None:
        self._stage = stage
        self._records = TableWriter(out_dir / LEDGER_FILE, LEDGER_SCHEMA)
        self._dropped = TableWriter(out_dir / DROPPED_FILE, DROPPED_SCHEMA)
        self.counts: dict[str, int] = {}

    def _record(
        self,
        row: RowReference,
        action: Action,
        reason: str,
        evidence: Mapping[str, Any],
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        record: LedgerRecord = {
            **row_reference(row),
            "stage": self._stage,
            "action": str(action),
            "reason": reason,
            "evidence": dump_json(evidence),
            "before": before,
            "after": after,
        }
        self._records.write(record)
        key = f"{action}:{reason}"
        self.counts[key] = self.counts.get(key, 0) + 1

    def keep(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that a row stays which could have gone, such as by a reviewer's decision."""
        self._record(row, Action.KEEP, reason, evidence)

    def edit(self, row: RowReference, reason: str, before: str | None, after: str | None, /, **evidence: Any) -> None:
        """Record that a column's value changed; `evidence` names the column."""
        self._record(row, Action.EDIT, reason, evidence, before, after)

    def drop(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that the row goes no further; it is kept in `dropped.parquet`."""
        self._record(row, Action.DROP, reason, evidence)
        self._dropped.write({**{name: row.get(name) for name in ROW_SCHEMA.names}, "drop_reason": reason})

    def flag(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that the row stays and carries a flag."""
        self._record(row, Action.FLAG, reason, evidence)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._records.__exit__(kind, error, tb)
        self._dropped.__exit__(kind, error, tb)

    @property
    def drops(self) -> int:
        """The number of rows dropped so far."""
        return sum(count for key, count in self.counts.items() if key.startswith("drop:"))


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
    confidence = 1.0 if is_fact else MIN_PRECISION
    return flag_record(
        row,
        reason,
        detector=detector,
        evidence=evidence if measured is None else {**evidence, "measured": measured.shown()},
        confidence=confidence if measured is None else measured.precision,
        blocks=is_fact if measured is None else measured.blocks,
        suggestion=suggestion,
    )

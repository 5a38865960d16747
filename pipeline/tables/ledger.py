"""Writes the ledger of a stage, which has a record of every edit, drop and flag:

    {"id": "9f0c...", "source": "train.jsonl", "source_row": 17, "stage": "dedup", "action": "drop",
     "reason": "exact_duplicate", "evidence": "{\"kept\": \"train.jsonl:3\"}", "before": null, "after": null}

Together, the ledgers of a run tell the history of each row. Every drop is recorded. Flags also have their own table,
`flags.parquet`, with more columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from truegold.pipeline.tables.rows import (
    FILE,
    ROW_SCHEMA,
    Row,
    RowReference,
    TableWriter,
    arrow_schema,
    dump_json,
    file_of,
    row_reference,
)

DROPPED_SCHEMA = ROW_SCHEMA.append(pa.field("drop_reason", pa.string()))

LEDGER_FILE = "ledger.parquet"
DROPPED_FILE = "dropped.parquet"
FLAGS_FILE = "flags.parquet"
RESTORED = "reviewer_restored"
"""The reason, in the ledger of `settle`, for a row that an earlier stage dropped and a reviewer restored."""


class DropRecord(Row):
    """A row of `dropped.parquet`."""

    drop_reason: str


class LedgerRecord(RowReference):
    """A row of `ledger.parquet`."""

    stage: str
    action: str
    reason: str
    evidence: str
    """A JSON object. If the source has several files, its key `file` has the name of the row's file."""
    before: str | None
    """The value of an edited column before the edit; null for other actions."""
    after: str | None
    """The value of the column after the edit."""


class FlagRecord(RowReference):
    """A row of `flags.parquet`."""

    reason: str
    detector: str
    """The rule, stage or model that raised the flag."""
    confidence: float | None
    """The measured precision of such flags. Null if it was not measured, as for the verdict of a model."""
    blocks: bool
    """Whether the flag holds the row back for review."""
    evidence: str
    """A JSON object."""
    suggestion: str | None
    """The proposed gold or correction, or null."""


LEDGER_SCHEMA = arrow_schema(LedgerRecord)
FLAG_SCHEMA = arrow_schema(FlagRecord)


def flag_record(
    row: RowReference,
    reason: str,
    *,
    detector: str,
    evidence: Mapping[str, Any],
    confidence: float | None = 1.0,
    blocks: bool = True,
    suggestion: str | None = None,
) -> FlagRecord:
    """Return the record of a flag on `row` for `flags.parquet`."""
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
    """An action that a stage takes on a row."""

    KEEP = "keep"
    EDIT = "edit"
    DROP = "drop"
    FLAG = "flag"


class Ledger:
    """Writes the records of a stage to `ledger.parquet`, and its dropped rows to `dropped.parquet`."""

    def __init__(self, output: Path | Callable[[str], Path], stage: str) -> None:
        """Open the tables in `output`: the stage's folder, or a function from a table's name to its path."""
        path = output.joinpath if isinstance(output, Path) else output
        self._stage = stage
        self._files = ExitStack()
        self._records = self._files.enter_context(TableWriter(path(LEDGER_FILE), LEDGER_SCHEMA))
        self._dropped = self._files.enter_context(TableWriter(path(DROPPED_FILE), DROPPED_SCHEMA))
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
            "evidence": dump_json(evidence if (file := file_of(row)) is None else {**evidence, FILE: file}),
            "before": before,
            "after": after,
        }
        self._records.write(record)
        key = f"{action}:{reason}"
        self.counts[key] = self.counts.get(key, 0) + 1

    def keep(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that a row stays for a reason, such as a reviewer's decision."""
        self._record(row, Action.KEEP, reason, evidence)

    def edit(self, row: RowReference, reason: str, before: str | None, after: str | None, /, **evidence: Any) -> None:
        """Record that the value of a column changed. `evidence` names the column."""
        self._record(row, Action.EDIT, reason, evidence, before, after)

    def drop(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that a row is dropped, and write it to `dropped.parquet`."""
        self._record(row, Action.DROP, reason, evidence)
        self._dropped.write({**{name: row.get(name) for name in ROW_SCHEMA.names}, "drop_reason": reason})

    def flag(self, row: RowReference, reason: str, /, **evidence: Any) -> None:
        """Record that a row is flagged. The row stays."""
        self._record(row, Action.FLAG, reason, evidence)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._files.__exit__(kind, error, tb)

    @property
    def drops(self) -> int:
        """The number of rows dropped so far."""
        return sum(count for key, count in self.counts.items() if key.startswith("drop:"))

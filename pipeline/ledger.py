"""The ledger: one record for every edit, drop or flag, so that every row's story can be told.

    {"id": "9f0c...", "source": "train.jsonl", "source_row": 17, "stage": "dedup", "action": "drop",
     "reason": "exact_duplicate", "evidence": "{\"kept\": \"train.jsonl:3\"}", "before": null, "after": null}

Nothing leaves the data without a record here. Flags stand in a table of their own and are mirrored in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from truegold.pipeline.rows import ROW_SCHEMA, Row, TableWriter, dump_json

LEDGER_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("stage", pa.string()),
        ("action", pa.string()),
        ("reason", pa.string()),
        ("evidence", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
    ]
)

FLAG_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("reason", pa.string()),
        ("detector", pa.string()),
        ("confidence", pa.float64()),
        ("blocks", pa.bool_()),
        ("evidence", pa.string()),
        ("suggestion", pa.string()),
    ]
)

DROPPED_SCHEMA = ROW_SCHEMA.append(pa.field("drop_reason", pa.string()))

LEDGER_FILE = "ledger.parquet"
DROPPED_FILE = "dropped.parquet"
FLAGS_FILE = "flags.parquet"


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
        row: Mapping[str, Any],
        action: Action,
        reason: str,
        evidence: Mapping[str, Any],
        before: str | None = None,
        after: str | None = None,
    ) -> None:
        self._records.write(
            {
                "id": row["id"],
                "source": row["source"],
                "source_row": row["source_row"],
                "stage": self._stage,
                "action": str(action),
                "reason": reason,
                "evidence": dump_json(evidence),
                "before": before,
                "after": after,
            }
        )
        key = f"{action}:{reason}"
        self.counts[key] = self.counts.get(key, 0) + 1

    def keep(self, row: Mapping[str, Any], reason: str, /, **evidence: Any) -> None:
        """A row that could have gone and stayed, such as by a reviewer's word."""
        self._record(row, Action.KEEP, reason, evidence)

    def edit(
        self, row: Mapping[str, Any], reason: str, before: str | None, after: str | None, /, **evidence: Any
    ) -> None:
        """A column's value changed; `evidence` names the column."""
        self._record(row, Action.EDIT, reason, evidence, before, after)

    def drop(self, row: Row, reason: str, /, **evidence: Any) -> None:
        """The row goes no further; it is kept in `dropped.parquet`."""
        self._record(row, Action.DROP, reason, evidence)
        self._dropped.write({**{name: row.get(name) for name in ROW_SCHEMA.names}, "drop_reason": reason})

    def flag(self, row: Mapping[str, Any], reason: str, /, **evidence: Any) -> None:
        """The row stays and carries a flag."""
        self._record(row, Action.FLAG, reason, evidence)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._records.__exit__(kind, error, tb)
        self._dropped.__exit__(kind, error, tb)

    @property
    def drops(self) -> int:
        return sum(count for key, count in self.counts.items() if key.startswith("drop:"))

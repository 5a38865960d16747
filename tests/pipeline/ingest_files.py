"""What tests of ingest share: files of records, and the rows and rejects that become of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.ingest.stage import ingest
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.tables.rows import Row, read_rows

GOOD = {"prompt": "What is 1+1?", "gold": "2"}
"""A record that is a row beside any other."""


class Notes(NullProgress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_lines(folder: Path, *records: Any, name: str = "train.jsonl") -> Path:
    """Write records to a JSON Lines file; bytes are lines as they are."""
    path = folder / name
    lines = (record if isinstance(record, bytes) else json.dumps(record).encode() for record in records)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def read_file(
    path: Path, folder: Path, progress: NullProgress | None = None, **config: Any
) -> tuple[StageReport, list[Row]]:
    """Ingest a file, and check that every record is counted."""
    out = folder / "ingested"
    out.mkdir(exist_ok=True)
    report = ingest({"data": path}, FileSource(path=str(path), **config), out, progress or NullProgress())
    rows = list(read_rows(out / "rows.parquet"))
    rejected = sum(count for name, count in report.counts.items() if name.startswith("reject:"))
    assert (report.rows_out, report.rows_in, rejected) == (len(rows), len(rows) + rejected, len(rejects(folder)))
    return report, rows


def rejects(folder: Path) -> list[dict[str, Any]]:
    """Return the rejects of the last file that was read."""
    return [json.loads(line) for line in (folder / "ingested" / "rejects.jsonl").read_bytes().splitlines()]


def row_of(folder: Path, record: dict[str, Any], **config: Any) -> Row:
    """Return the row that a record becomes."""
    _, (row,) = read_file(write_lines(folder, record), folder, **config)
    return row


def reject_of(folder: Path, record: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Return the reject that a record becomes beside a good one, whichever of them comes first."""
    found = []
    good = {**dict.fromkeys(record), **GOOD}
    for records in ((record, good), (good, record)):
        _, rows = read_file(write_lines(folder, *records), folder, **config)
        assert [row["gold"] for row in rows] == ["2"]
        (reject,) = rejects(folder)
        found.append((reject["reason"], reject["detail"]))
    assert found[0] == found[1]
    return reject

"""Judges a whole file of responses: `truegold verify --input rows.jsonl --output verdicts.parquet`.

    {"id": "7", "response": "... so \\\\boxed{42}", "gold": "42"}   ->   id="7", row=1, score=1.0, reason="match", ...

The response stands in a column `response` or `completion`, the gold answer in `gold`, `answer` or `target`; `id`,
`problem`, `verifier` and `verifier_args` are read where they are there. No row is lost: one that cannot be read gets a
row of its own with no score and the reason. `cpu_ms` is what judging the row took in CPU milliseconds, without what
processes of the verifier's own took; it is empty where the judging process died or was killed. At the end the slowest
rows and the throughput are told.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import tee
from pathlib import Path
from typing import Any

import pyarrow as pa

from truegold.pipeline.ingest.columns import text_of
from truegold.pipeline.ingest.readers import open_file
from truegold.pipeline.ingest.records import Record, Reject
from truegold.pipeline.rows import TableWriter, dump_json
from truegold.pipeline.running.progress import Progress
from truegold.verifiers import InputError, Item, resolve
from truegold.verifiers.running.batch import verify_batch_timed

RESPONSE_COLUMNS = ("response", "completion")
GOLD_COLUMNS = ("gold", "answer", "target")
MAX_ROW_BYTES = 64 * 2**20
"""A longer line is not read into memory."""

VERDICT_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("id", pa.string()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("extracted", pa.string()),
        ("verifier", pa.string()),
        ("evidence", pa.string()),
        ("cpu_ms", pa.float64()),
    ]
)

SLOW_MS = 100.0
"""Rows above this are told: a verdict takes about a millisecond."""

MAX_SLOW_ROWS = 5


def verify_file(source: Path, target: Path, verifier: str, workers: int, progress: Progress) -> dict[str, int]:
    """Write one verdict for each record of `source` and return how many there are by reason.

    Raises InputError where the file cannot be read or its first record has no response column.
    """
    resolve(verifier)
    opened = open_file(source, "auto", MAX_ROW_BYTES)
    progress.start("verifying", opened.total)
    for_items, for_output = tee(opened.records)
    verdicts = verify_batch_timed(_items(for_items, verifier, opened.place), workers=workers)
    counts: dict[str, int] = {}
    costs = _Costs()
    aside = target.with_name(target.name + ".tmp")
    with closing(verdicts), TableWriter(aside, VERDICT_SCHEMA) as writer:
        for record in for_output:
            if isinstance(record, Reject):
                reason = f"rejected:{record.reason}"
                writer.write({"row": record.number, "reason": reason, "evidence": dump_json({"detail": record.detail})})
            else:
                verdict, cpu_ms = next(verdicts)
                costs.add(record.number, cpu_ms)
                reason = str(verdict.reason)
                writer.write(
                    {
                        "row": record.number,
                        "id": text_of(record.values.get("id")),
                        "score": verdict.score,
                        "reason": reason,
                        "extracted": verdict.extracted,
                        "verifier": record.values.get("verifier") or verifier,
                        "evidence": dump_json(dict(verdict.evidence)),
                        "cpu_ms": cpu_ms,
                    }
                )
            counts[reason] = counts.get(reason, 0) + 1
            progress.advance()
    aside.replace(target)
    for line in costs.lines():
        progress.note(line)
    return counts


class _Costs:
    """What judging took, and the rows that took most."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._rows = 0
        self._cpu_ms = 0.0
        self._slow: list[tuple[float, int]] = []  # a heap of the slowest, the fastest of them first

    def add(self, row: int, cpu_ms: float | None) -> None:
        self._rows += 1
        if cpu_ms is None:
            return
        self._cpu_ms += cpu_ms
        if cpu_ms > SLOW_MS:
            heapq.heappush(self._slow, (cpu_ms, row))
            if len(self._slow) > MAX_SLOW_ROWS:
                heapq.heappop(self._slow)

    def lines(self) -> list[str]:
        if not self._rows:
            return []
        seconds = max(time.monotonic() - self._began, 0.001)
        total = (
            f"{self._rows:,} rows in {seconds:,.1f} s, {self._rows / seconds:,.0f} a second;"
            f" {self._cpu_ms / self._rows:,.2f} ms CPU each"
        )
        slow = ", ".join(f"row {row} ({cpu_ms:,.0f} ms)" for cpu_ms, row in sorted(self._slow, reverse=True))
        return [total, f"slowest: {slow}"] if slow else [total]


def _items(records: Iterator[Record | Reject], verifier: str, place: str) -> Iterator[Item]:
    for record in records:
        if isinstance(record, Reject):
            continue
        values = record.values
        response = _first(values, RESPONSE_COLUMNS)
        if response is None:
            raise InputError(
                f"{place}, row {record.number}: no {' or '.join(RESPONSE_COLUMNS)} column; it has {', '.join(values)}.",
                "Rename the column of the responses.",
            )
        arguments = values.get("verifier_args") or "{}"
        yield Item(
            response=response,
            gold=_first(values, GOLD_COLUMNS),
            verifier=values.get("verifier") or verifier,
            verifier_args=arguments if isinstance(arguments, str) else dump_json(arguments),
            problem=text_of(values.get("problem")),
        )


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        if values.get(name) is not None:
            return text_of(values[name])
    return None

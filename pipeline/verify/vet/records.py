"""The result of vetting one row, as JSON: it is kept on disk while the stage runs, so that no row is vetted twice.

    {"key": ["9f0c...", "train.jsonl", 17], "outcome": "repair", "findings": [...], "repaired": "{...}", ...}

A line that a kill cut short is left out when the file is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import pyarrow as pa

from truegold.pipeline.tables.rows import Row, RowKey, dump_json, row_key
from truegold.verifiers.audit.suites import Outcome, Vetting

NOT_VETTED = "not_vetted"
"""The reason of a row's flag where the sandbox failed, so that nothing is known of the tests."""

SUITES_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("source_id", pa.string()),
        ("type", pa.string()),
        ("outcome", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("cases", pa.int64()),
        ("kept", pa.int64()),
        ("references", pa.int64()),
        ("mutants", pa.int64()),
        ("kill_rate", pa.float64()),
        ("kill_low", pa.float64()),
        ("kill_high", pa.float64()),
        ("survivors", pa.list_(pa.string())),
        ("equivalent", pa.int64()),
        ("undecided", pa.int64()),
        ("paid", pa.list_(pa.string())),
        ("headroom", pa.float64()),
        ("guess_chance", pa.float64()),
        ("leaked", pa.float64()),
        ("caught", pa.float64()),
        ("findings", pa.string()),
    ]
)
_ID_NAMES = ("source_id", "task_id", "problem_id", "question_id", "id", "name")
"""What sources call the identifier of a problem, the likeliest first."""

_NOT_IN_TABLE = ("key", "repaired")


def make_record(row: Row, vetting: Vetting) -> dict[str, Any]:
    """Return the record of a row that was vetted."""
    low, high = vetting.kills.interval or (None, None)
    findings = [
        {
            "reason": str(finding.reason),
            "severity": str(finding.severity),
            "evidence": dict(finding.evidence),
            "suggestion": finding.suggestion,
        }
        for finding in vetting.findings
    ]
    return {
        "key": list(row_key(row)),
        "outcome": str(vetting.outcome),
        "reasons": vetting.reasons,
        "findings": findings,
        "repaired": None if vetting.repaired is None else dump_json(vetting.repaired),
        "cases": vetting.cases,
        "kept": vetting.kept,
        "references": vetting.references,
        "mutants": vetting.kills.mutants,
        "kill_rate": vetting.kill_rate,
        "kill_low": low,
        "kill_high": high,
        "survivors": [mutant.description for mutant in vetting.kills.survivors],
        "equivalent": vetting.kills.equivalent,
        "undecided": vetting.kills.undecided,
        "paid": list(vetting.paid),
        "headroom": vetting.headroom,
        "guess_chance": vetting.guess_chance,
        "leaked": vetting.leaked,
        "caught": vetting.caught,
    }


def make_failed_record(row: Row, error: str) -> dict[str, Any]:
    """Return the record of a row whose programs the sandbox could not run."""
    finding = {"reason": NOT_VETTED, "severity": "flag", "evidence": {"error": error}, "suggestion": "run it again"}
    return {
        "key": list(row_key(row)),
        "outcome": str(Outcome.KEEP),
        "reasons": [NOT_VETTED],
        "findings": [finding],
        "repaired": None,
    }


def suite_row(row: Row, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of `suites.parquet` for a row and its record."""
    arguments = orjson.loads(row["verifier_args"])
    tests = arguments.get("tests")
    kind = tests.get("type") if isinstance(tests, dict) else arguments.get("type")
    values = {name: value for name, value in record.items() if name not in _NOT_IN_TABLE}
    identity = {name: row[name] for name in ("id", "source", "source_row")}
    # The source's own id is what a reader finds the problem by.
    meta = orjson.loads(row["meta"] or "{}")
    source_id = next((str(meta[name]) for name in _ID_NAMES if isinstance(meta.get(name), str | int)), None)
    named = {"source_id": source_id, "type": kind}
    return {**identity, **values, **named, "findings": dump_json(record["findings"])}


class Finished:
    """The records of rows that are done, in a file that only grows; a context manager."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._offsets = dict(_read_offsets(path))
        self._records = path.open("rb")
        self._file = path.open("ab")
        self._file.write(b"\n")  # It ends a line that a kill cut short.

    def get(self, row: Row) -> dict[str, Any] | None:
        """Return the row's record where an earlier run left one, else None."""
        offset = self._offsets.get(row_key(row))
        if offset is None:
            return None
        self._records.seek(offset)
        record: dict[str, Any] = orjson.loads(self._records.readline())
        return record

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record, so that it survives a kill of this process."""
        self._file.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
        self._file.flush()

    def __enter__(self) -> Finished:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
        self._records.close()


def _read_offsets(path: Path) -> Iterator[tuple[RowKey, int]]:
    """Yield the row of each whole record, and the byte that the record begins at."""
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if len(line) > 1 and line.endswith(b"\n"):
                with suppress(orjson.JSONDecodeError):  # A kill has cut the line short.
                    yield tuple(orjson.loads(line)["key"]), offset
            offset += len(line)

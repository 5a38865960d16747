"""Reads samples from a file and writes `suspicion.parquet`.

    {"id": "17", "system": "model-a", "answer": "26"}                 an answer
    {"id": "17", "system": "model-a", "response": "So \\\\boxed{26}"}    a whole response, judged by the item's verifier
    {"id": "17", "extracted": "26", "score": 0.0}                     samples.parquet of a profile: already judged

A sample without a system counts as one of the system "-". Rows without an id are told apart from rows of unknown items:
the first are counted as rejects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from truegold.pipeline.flag.suspicion.assess import Assessment
from truegold.pipeline.flag.suspicion.items import Sample
from truegold.pipeline.ingest.columns import text_of
from truegold.pipeline.ingest.readers import open_file
from truegold.pipeline.ingest.records import Reject
from truegold.pipeline.rows import TableWriter, dump_json
from truegold.verifiers import InputError

SUSPICION_FILE = "suspicion.parquet"
SUSPICION_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("row_id", pa.string()),
        ("source", pa.string()),
        ("source_row", pa.int64()),
        ("suspicion", pa.float64()),
        ("tier", pa.string()),
        ("evidence", pa.string()),
        ("suggestion", pa.string()),
    ]
)

ID_COLUMNS = ("id", "item", "item_id", "problem_id")
SYSTEM_COLUMNS = ("system", "model", "generator")
ANSWER_COLUMNS = ("answer", "extracted", "prediction")
RESPONSE_COLUMNS = ("response", "completion", "text")
MAX_ROW_BYTES = 64 * 2**20
"""A longer line is not read into memory."""
NO_SYSTEM = "-"


@dataclass(slots=True)
class SampleCounts:
    """What came of a samples file: rows read, and those that could not be used."""

    read: int = 0
    rejected: int = 0


def read_samples(path: Path, counts: SampleCounts) -> Iterator[Sample]:
    """The samples of a file, streamed. InputError where its first record lacks what every sample needs."""
    opened = open_file(path, "auto", MAX_ROW_BYTES)
    checked = False
    for record in opened.records:
        counts.read += 1
        if isinstance(record, Reject):
            counts.rejected += 1
            continue
        values = record.values
        if not checked:
            _check(values, f"{opened.place}, {opened.unit} {record.number}")
            checked = True
        identity = _first(values, ID_COLUMNS)
        if identity is None:
            counts.rejected += 1
            continue
        score = values.get("score")
        judged = "score" in values and (score is None or isinstance(score, int | float))
        yield Sample(
            identity,
            _first(values, SYSTEM_COLUMNS) or NO_SYSTEM,
            answer=_first(values, ANSWER_COLUMNS),
            response=None if judged else _first(values, RESPONSE_COLUMNS),
            score=float(score) if judged and score is not None else None,
            judged=judged,
        )


def _check(values: Mapping[str, Any], place: str) -> None:
    wanted = {"id": ID_COLUMNS, "answer or response": (*ANSWER_COLUMNS, *RESPONSE_COLUMNS)}
    missing = [what for what, names in wanted.items() if not set(names) & values.keys()]
    if missing:
        raise InputError(
            f"{place}: a sample needs the columns {' and '.join(missing)}; it has {', '.join(map(str, values))}.",
            'Each row is one sample: {"id": ..., "system": ..., "answer": ...}, with response instead of answer where '
            "the answer has not been extracted.",
        )


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        if (text := text_of(values.get(name))) is not None:
            return text
    return None


def write_suspicion(path: Path, rows: Iterable[Mapping[str, Any]], assessments: Mapping[str, Assessment]) -> None:
    """One line for each row, by its `key`; rows of one key share the assessment.

    rows have key, id, source and source_row: `id` is the row's own, `key` what samples name it by.
    """
    with TableWriter(path, SUSPICION_SCHEMA) as writer:
        for row in rows:
            found = assessments[row["key"]]
            writer.write(
                {
                    "id": row["key"],
                    "row_id": row["id"],
                    "source": row["source"],
                    "source_row": row["source_row"],
                    "suspicion": found.suspicion,
                    "tier": str(found.tier),
                    "evidence": dump_json(found.evidence),
                    "suggestion": found.suggestion,
                }
            )

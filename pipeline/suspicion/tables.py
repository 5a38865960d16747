"""Reads samples from a file and writes `suspicion.parquet`.

    {"id": "17", "system": "model-a", "answer": "26"}                 an answer
    {"id": "17", "system": "model-a", "response": "So \\\\boxed{26}"}    a whole response, judged by the item's verifier
    {"id": "17", "extracted": "26", "score": 0.0}                     samples.parquet of a profile, judged before

    {"id": "17", "system": "policy", "step": 40, "extracted": "26", "score": 0.0}       completions of a training

A sample without a system is of the one that its file is named by, else of "-". A row without an id is counted as
rejected, which a row of an unknown item is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truegold.pipeline.sources.columns import text_of
from truegold.pipeline.sources.data_files import open_file
from truegold.pipeline.sources.records import Reject
from truegold.pipeline.suspicion.assess import Assessment
from truegold.pipeline.suspicion.ballot import AnswerVotes
from truegold.pipeline.suspicion.item import Sample
from truegold.pipeline.tables.reasons import ANSWERS_SCHEMA, SUSPICION_SCHEMA
from truegold.pipeline.tables.rows import KEY, TableWriter, dump_json
from truegold.verifiers import InputError

ID_COLUMNS = ("id", "item", "item_id", "problem_id")
SYSTEM_COLUMNS = ("system", "model", "generator")
ANSWER_COLUMNS = ("answer", "extracted", "prediction")
STEP_COLUMN = "step"
MAX_STEP = 2**31 - 1
SAMPLE_SUFFIXES = (".parquet", ".jsonl", ".csv")
RESPONSE_COLUMNS = ("response", "completion", "text")
MAX_ROW_BYTES = 64 * 2**20
"""A longer line is not read into memory."""
NO_SYSTEM = "-"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of samples, and what it is of where its rows do not say so."""

    path: Path
    system: str | None = None
    step: int | None = None


@dataclass(slots=True)
class SampleCounts:
    """Counts of a samples file."""

    read: int = 0
    """Rows of the file."""
    rejected: int = 0
    """Rows among them that could not be used."""


def sample_files(arguments: Sequence[str]) -> list[SampleFile]:
    """Return the files that arguments such as `PATH`, `SYSTEM=PATH` and `SYSTEM@STEP=PATH` name.

    A folder stands for its files. Of several without a system each is a system of its own.
    """
    files: list[SampleFile] = []
    for argument in arguments:
        name, separator, path = argument.partition("=")
        if not separator or Path(argument).exists():
            name, path = argument if len(arguments) > 1 else "", argument
        system, marker, step = name.rpartition("@")
        if not (marker and step.isdecimal() and int(step) <= MAX_STEP):
            system, step = name, ""
        file = SampleFile(Path(path), system or None, int(step) if step else None)
        files += _files_of(file) if file.path.is_dir() else [file]
    return files


def _files_of(folder: SampleFile) -> list[SampleFile]:
    paths = sorted(path for path in folder.path.iterdir() if path.suffix in SAMPLE_SUFFIXES)
    if not paths:
        raise InputError(f"{folder.path} holds no file of samples.", f"Files of {', '.join(SAMPLE_SUFFIXES)} are read.")
    return [replace(folder, path=path) for path in paths]


def read_samples(file: SampleFile, counts: SampleCounts) -> Iterator[Sample]:
    """Yield the samples of a file and count them. InputError where its first record lacks what every sample needs."""
    opened = open_file(file.path, "auto", MAX_ROW_BYTES)
    checked = False
    for record in opened.records:
        counts.read += 1
        if isinstance(record, Reject):
            counts.rejected += 1
            continue
        values = record.values
        if not checked:
            _check_columns(values, f"{opened.location}, {opened.unit} {record.row_number}")
            checked = True
        item_id = _first_text(values, ID_COLUMNS)
        if item_id is None:
            counts.rejected += 1
            continue
        score = values.get("score")
        judged = "score" in values and (score is None or isinstance(score, int | float))
        yield Sample(
            item_id,
            _first_text(values, SYSTEM_COLUMNS) or file.system or NO_SYSTEM,
            answer=_first_text(values, ANSWER_COLUMNS),
            response=None if judged else _first_text(values, RESPONSE_COLUMNS),
            score=float(score) if judged and score is not None else None,
            judged=judged,
            step=_step(values.get(STEP_COLUMN), file.step),
        )


def _step(value: Any, of_file: int | None) -> int | None:
    """Return a row's step, else its file's; a value that is no step counts as none."""
    is_step = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_STEP
    return value if is_step else of_file


def _check_columns(values: Mapping[str, Any], location: str) -> None:
    required = {"id": ID_COLUMNS, "answer or response": (*ANSWER_COLUMNS, *RESPONSE_COLUMNS)}
    missing = [content for content, names in required.items() if not set(names) & values.keys()]
    if missing:
        raise InputError(
            f"{location}: a sample needs the columns {' and '.join(missing)}; it has {', '.join(map(str, values))}.",
            'Each row is one sample: {"id": ..., "system": ..., "answer": ...}, with response instead of answer where '
            "the answer has not been extracted.",
        )


def _first_text(values: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        if (text := text_of(values.get(name))) is not None:
            return text
    return None


def write_answers(
    path: Path, rows: Iterable[Mapping[str, Any]], keys: Sequence[str], answers: Iterable[AnswerVotes]
) -> None:
    """Write the answers to each row, as `write_suspicion` does; `keys` has the key of each item."""
    by_key: dict[str, list[AnswerVotes]] = {}
    for answer in answers:
        by_key.setdefault(keys[answer.item], []).append(answer)
    with TableWriter(path, ANSWERS_SCHEMA) as writer:
        for row in rows:
            for answer in by_key.get(row["key"], ()):
                known = {"spellings": answer.spellings, "votes": answer.votes, "systems": answer.systems}
                key = {name: row[name] for name in KEY}
                writer.write({**key, "kind": answer.kind, **known})


def write_suspicion(path: Path, rows: Iterable[Mapping[str, Any]], assessments: Mapping[str, Assessment]) -> None:
    """Write one line for each row, with the assessment of its `key`; rows of one key share it.

    rows have key, id, source and source_row: `id` is truegold's, `key` is what samples name the row by.
    """
    with TableWriter(path, SUSPICION_SCHEMA) as writer:
        for row in rows:
            assessment = assessments[row["key"]]
            writer.write(
                {
                    "id": row["key"],
                    "row_id": row["id"],
                    "source": row["source"],
                    "source_row": row["source_row"],
                    "suspicion": assessment.suspicion,
                    "tier": str(assessment.tier),
                    "evidence": dump_json(assessment.evidence),
                    "suggestion": assessment.suggestion,
                }
            )

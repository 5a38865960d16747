r"""Reads problems from any file, for commands that work alone on one: id, prompt, gold, length of the solution.

    {"id": 7, "question": "Natalia sold clips to 48 ...", "answer": "48+24 = 72\n#### 72"}
    ->  id "7", prompt "Natalia sold ...", gold "72", solution of 21 characters

Columns are found by the names most often used, or named (`prompt="Body"`, `gold="meta.label"`). A chat is read as its
last user message. A record without an id is called by its number in the file, from 1. No record is lost: one without a
prompt, or one that cannot be read, comes with an empty prompt, which is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.ingest.columns import MISSING, Column, last_boxed, text_of
from truegold.pipeline.ingest.jsonl import Line, has_long_number, is_packed, parse_lines, read_jsonl, read_line_lists
from truegold.pipeline.ingest.readers import form_by_suffix, open_file
from truegold.pipeline.ingest.records import Record, Reject, Source
from truegold.pipeline.ingest.row_builder import last_user_content
from truegold.verifiers import InputError

PROMPT_COLUMNS = ("prompt", "question", "problem", "instruction", "input", "text", "content", "original_text")
GOLD_COLUMNS = ("gold", "answer", "final_answer", "ground_truth", "reward_model.ground_truth", "target", "label")
SOLUTION_COLUMNS = ("solution", "rationale", "worked_solution")
ID_COLUMNS = ("id", "unique_id", "task_id", "uuid", "ID")
LOOK_AHEAD = 100
"""Records that are looked at to find the columns."""
MAX_ROW_BYTES = 64 * 2**20
BATCH_ROWS = 10_000
FINAL_MARK = "####"
PLAIN = {str, int, bool, type(None), type(MISSING)}
"""Types that orjson reads as the careful parser does; a float may have been a whole number beyond 64 bits."""


@dataclass
class Batch:
    """Columns of consecutive problems; `numbers` are record numbers from 1, lines where the format has lines."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    golds: list[str | None] = field(default_factory=list)
    solutions: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class ProblemColumns:
    """Which columns to read; those not given are found by their names."""

    prompt: str | None = None
    gold: str | None = None
    id: str | None = None


def read_problems(path: Path, given: ProblemColumns) -> Iterator[Batch]:
    """The problems of a JSON Lines, Parquet or CSV file, in batches of at most BATCH_ROWS.

    Raises InputError where the file cannot be read or has no column for the prompt.
    """
    source = open_file(path, "auto", MAX_ROW_BYTES)
    if form_by_suffix(path) == "jsonl" and not is_packed(path):
        return _problems_of_lines(path, source, given)
    return problems_of(source, given)


def problems_of(source: Source, given: ProblemColumns) -> Iterator[Batch]:
    """The problems of an opened source; see `read_problems`."""
    records = iter(source.records)
    ahead = list(islice(records, LOOK_AHEAD))
    reader = _reader(source.place, ahead, given)
    everything = chain(ahead, records)
    del ahead
    yield from _batches(everything, reader)


def _problems_of_lines(path: Path, source: Source, given: ProblemColumns) -> Iterator[Batch]:
    """The same of a JSON Lines file: all lines of a batch at once, where each holds plain values."""
    reader = _reader(source.place, list(islice(source.records, LOOK_AHEAD)), given)
    done = 0
    for lines in read_line_lists(path, BATCH_ROWS, MAX_ROW_BYTES):
        if lines is None:
            yield from _batches(read_jsonl(path, MAX_ROW_BYTES, after=done), reader)
            break
        batch = reader.read_plain(lines, done)
        if batch is None:
            numbered = (Line(number, line, len(line)) for number, line in enumerate(lines, done + 1))
            yield from _batches(parse_lines(numbered, MAX_ROW_BYTES), reader)
        else:
            yield batch
        done += len(lines)


def _batches(records: Iterable[Record | Reject], reader: _Reader) -> Iterator[Batch]:
    rest = iter(records)
    while taken := list(islice(rest, BATCH_ROWS)):
        batch = Batch()
        for record in taken:
            reader.read(record, batch)
        yield batch


def _reader(place: str, ahead: list[Record | Reject], given: ProblemColumns) -> _Reader:
    """A reader of the columns that are given or found in the first records."""
    samples = [record.values for record in ahead if isinstance(record, Record)]
    prompt = _column(given.prompt, PROMPT_COLUMNS, samples)
    if prompt is None:
        names = ", ".join(samples[0]) if samples else "no record that can be read"
        wanted = given.prompt or ", ".join(PROMPT_COLUMNS)
        raise InputError(
            f"{place} has no prompt column ({wanted}); it has: {names[:1000]}.",
            "Name it: --prompt-column COLUMN",
        )
    gold = _column(given.gold, GOLD_COLUMNS, samples)
    if given.gold is not None and gold is None:
        raise InputError(f"{place} has no column {given.gold!r}.", "Name the gold column: --gold-column COLUMN")
    return _Reader(prompt, gold, _column(None, SOLUTION_COLUMNS, samples), _column(given.id, ID_COLUMNS, samples))


def _column(given: str | None, names: tuple[str, ...], samples: list[Mapping[str, Any]]) -> Column | None:
    for name in (given,) if given is not None else names:
        column = Column(name, None)
        if any(column(values) not in (MISSING, None) for values in samples):
            return column
    return None


@dataclass(frozen=True)
class _Reader:
    prompt: Column
    gold: Column | None
    solution: Column | None
    id: Column | None

    def read(self, record: Record | Reject, batch: Batch) -> None:
        """Add one record."""
        batch.numbers.append(record.number)
        if isinstance(record, Reject):
            batch.ids.append(str(record.number))
            batch.prompts.append("")
            batch.golds.append(None)
            batch.solutions.append(0)
            return
        values = record.values
        batch.ids.append((_text(self.id(values)) if self.id else None) or str(record.number))
        batch.prompts.append(_prompt(self.prompt(values)))
        gold, length = _answer(
            self.gold(values) if self.gold else None, self.solution(values) if self.solution else None
        )
        batch.golds.append(gold)
        batch.solutions.append(length)

    def read_plain(self, lines: list[bytes], before: int) -> Batch | None:
        """The batch of lines that hold objects of plain values; None where any of them asks for more care.

        before: how many lines stand before them.
        """
        try:
            values = [orjson.loads(line) for line in lines]
        except orjson.JSONDecodeError:
            return None
        if set(map(type, values)) != {dict}:
            return None
        prompts, golds, solutions, ids = (
            list(map(column, values)) if column else [None] * len(values)
            for column in (self.prompt, self.gold, self.solution, self.id)
        )
        kinds = set[type]().union(*(map(type, column) for column in (prompts, golds, solutions, ids)))
        if not kinds <= PLAIN and any(map(has_long_number, lines)):
            return None
        numbers = list(range(before + 1, before + len(lines) + 1))
        names = [_text(name) or str(number) for name, number in zip(ids, numbers, strict=True)]
        answers = [_answer(gold, solution) for gold, solution in zip(golds, solutions, strict=True)]
        return Batch(
            names,
            numbers,
            [prompt if type(prompt) is str else _prompt(prompt) for prompt in prompts],
            [gold for gold, _ in answers],
            [length for _, length in answers],
        )


def _answer(gold_value: Any, solution_value: Any) -> tuple[str | None, int]:
    """The gold answer, which may stand at the end of a solution, and the length of the solution."""
    gold, solution = _text(gold_value), _text(solution_value)
    if gold is not None and FINAL_MARK in gold:
        solution = solution or gold
        gold = gold.rpartition(FINAL_MARK)[2].strip() or None
    elif gold is None and solution is not None:
        gold = last_boxed(solution)
    return gold, len(solution or "")


def _text(value: Any) -> str | None:
    if value is None or (type(value) is str and value[:1] > " "):
        return value
    return str(value) if type(value) is int else text_of(value)


def _prompt(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        value = last_user_content(value)
    text = (value if type(value) is str else text_of(value)) or ""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

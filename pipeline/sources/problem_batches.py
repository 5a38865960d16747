r"""Reads problems from any file, for commands that work alone on one: id, prompt, gold, length of the solution.

    {"id": 7, "question": "Natalia sold clips to 48 ...", "answer": "48+24 = 72\n#### 72"}
    ->  id "7", prompt "Natalia sold ...", gold "72", solution of 21 characters

Columns are guessed as a run guesses them (`layouts.guess_columns`), or named (`prompt="Body"`, `gold="meta.label"`). A
chat is read as its last user message. Answer options in a column of their own belong to the prompt: one stem with other
options is another problem. A record without an id is called by its number in the file, from 1. No record is
lost: one without a prompt, or one that cannot be read, comes with an empty prompt, which is compared with nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.pipeline.sources.columns import (
    CHOICE_COLUMNS,
    MISSING,
    NAMES,
    Column,
    compile_column,
    describe_columns,
    extracted_golds,
    gold_spec,
    gold_texts,
    text_of,
)
from truegold.pipeline.sources.conversations import read_prompt
from truegold.pipeline.sources.data_files import form_by_suffix, open_file
from truegold.pipeline.sources.jsonl import Line, has_long_number, is_packed, parse_lines, read_jsonl, read_line_lists
from truegold.pipeline.sources.presets import guess_columns, layout_of_preset
from truegold.pipeline.sources.records import (
    LOOK_AHEAD,
    Record,
    Reject,
    Source,
    Unusable,
    check_readable,
    sample_values,
)
from truegold.verifiers import InputError

MAX_ROW_BYTES = 64 * 2**20
"""A longer line is not read into memory."""
BATCH_ROWS = 10_000
"""This many problems are in one batch at most."""
PLAIN = {str, int, bool, type(None), type(MISSING)}
"""Types that orjson reads as the careful parser does; a float may have been a whole number beyond 64 bits."""


@dataclass
class Batch:
    """Columns of consecutive problems."""

    ids: list[str] = field(default_factory=list)
    row_numbers: list[int] = field(default_factory=list)
    """The numbers of the records from 1, which are line numbers where the format has lines."""
    prompts: list[str] = field(default_factory=list)
    golds: list[str | None] = field(default_factory=list)
    solution_chars: list[int] = field(default_factory=list)
    """The lengths of the worked solutions, in characters."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class ProblemColumns:
    """The columns that a user has named; the others are guessed."""

    prompt: str | None = None
    gold: str | None = None
    id: str | None = None
    response: str | None = None
    preset: str | None = None
    """The shape of the records, where it is named rather than guessed."""
    spelling: str = "--{role}-column COLUMN, or {role}=COLUMN in Python"
    """What a user types to name a column, for errors."""

    def spell(self, role: str) -> str:
        """Say what to type to name the column of a role."""
        return f"Name the {role} column: {self.spelling.replace('{role}', role)}"

    def _check(self, samples: list[Mapping[str, Any]], location: str) -> None:
        """Raise InputError where a named column is in none of the records; `location` names the file."""
        for role in ("prompt", "gold", "id", "response"):
            name = getattr(self, role)
            if name is not None and all(Column(name)(values) is MISSING for values in samples):
                raise InputError(
                    f"{location} has no column {name!r}; it has: {describe_columns(samples)}.", self.spell(role)
                )

    def resolve(self, samples: list[Mapping[str, Any]], location: str) -> Columns:
        """Return which column is which in records such as `samples`.

        `location` names the file in errors. Raises InputError where a named column is not there.
        """
        self._check(samples, location)
        named = {role: ColumnSpec(column=name) for role in ("prompt", "id") if (name := getattr(self, role))}
        if self.gold is not None:
            named["gold"] = gold_spec(self.gold, samples)
        if self.preset is not None:
            return layout_of_preset(self.preset, samples, location).columns.model_copy(update=named)
        return guess_columns(samples).model_copy(update=named)


def read_problems(path: Path, named: ProblemColumns) -> Iterator[Batch]:
    """Yield the problems of a JSON Lines, Parquet or CSV file, in batches of at most BATCH_ROWS.

    Raises InputError where the file cannot be read or has no column for the prompt.
    """
    source = open_file(path, "auto", MAX_ROW_BYTES)
    if form_by_suffix(path) == "jsonl" and not is_packed(path):
        return _problems_of_lines(path, source, named)
    return problems_of(source, named)


def read_golds(path: Path, gold_column: str | None, on_skipped: Callable[[str, str], None]) -> Iterator[str]:
    """Yield the gold answers of a file, from the column that is named or guessed.

    `on_skipped` is called for every record without one, with its number in words and the reason. Raises InputError
    where the file cannot be read or has no such column.
    """
    source = open_file(path, "auto", MAX_ROW_BYTES)
    ahead = list(islice(source.records, LOOK_AHEAD))
    samples = sample_values(ahead)
    spec = ProblemColumns(gold=gold_column).resolve(samples, source.location).gold if samples else None
    if spec is None:
        raise missing_gold(samples, source.location)
    column = compile_column(spec, "gold")
    for record in chain(ahead, source.records):
        reason, golds = "empty gold", list[str]()
        if isinstance(record, Reject):
            reason = record.reason
        elif column(record.values) is MISSING:
            reason = "no gold column"
        else:
            try:
                golds = extracted_golds(column, record.values)
            except Unusable as error:
                reason = error.reason
        yield from golds
        if not golds:
            on_skipped(f"{source.unit} {record.row_number}", reason)


def missing_gold(samples: list[Mapping[str, Any]], location: str) -> InputError:
    """Return the error for a file without a gold column, where one is needed."""
    return InputError(
        f"{location} has no gold column ({', '.join(NAMES['gold'])}); it has: {describe_columns(samples)}.",
        "Name it: --gold-column COLUMN, or gold=COLUMN in Python",
    )


def describe_reading(path: Path, named: ProblemColumns) -> str:
    """Say in one line which columns of a file a command reads, and what to type where there is no gold."""
    source = open_file(path, "auto", MAX_ROW_BYTES)
    samples = sample_values(islice(source.records, LOOK_AHEAD))
    columns = named.resolve(samples, source.location)
    specs = {"prompt": columns.prompt, "gold": columns.gold, "id": columns.id}
    if columns.prompt is None:
        return "looking for the problems"
    line = "reading " + ", ".join(f"{role} from {spec.column}" for role, spec in specs.items() if spec is not None)
    if columns.gold is not None:
        return line
    return (
        f"{line}; there is no gold column among {describe_columns(samples)}, so that golds are not compared "
        "(name it: --gold-column COLUMN, or gold=COLUMN in Python)"
    )


def guess_columns_with_options(data: Path) -> dict[str, dict[str, str]] | None:
    """Return the columns of prompt and gold of a file whose answer options stand in a column of their own, else None.

    A run refuses such a file, because the question alone cannot be trained on. Answers can be compared all the same.
    """
    samples = sample_values(islice(open_file(data, "auto", MAX_ROW_BYTES).records, LOOK_AHEAD))
    if not any(values.get(name) for values in samples for name in CHOICE_COLUMNS):
        return None
    columns = guess_columns(samples)
    if columns.prompt is None or columns.gold is None:
        return None
    return columns.model_dump(include={"prompt", "gold"})


def problems_of(source: Source, named: ProblemColumns) -> Iterator[Batch]:
    """Yield the problems of an opened source; see `read_problems`."""
    ahead = list(islice(source.records, LOOK_AHEAD))
    reader = _make_reader(source, ahead, named)
    yield from _batches(chain(ahead, source.records), reader)


def _problems_of_lines(path: Path, source: Source, named: ProblemColumns) -> Iterator[Batch]:
    """Yield the problems of a JSON Lines file; the lines of a batch are read at once where all hold plain values."""
    reader = _make_reader(source, list(islice(source.records, LOOK_AHEAD)), named)
    lines_read = 0
    for lines in read_line_lists(path, BATCH_ROWS, MAX_ROW_BYTES):
        if lines is None:
            yield from _batches(read_jsonl(path, MAX_ROW_BYTES, after=lines_read), reader)
            break
        batch = reader.read_plain(lines, lines_read)
        if batch is None:
            numbered_lines = (Line(index, line, len(line)) for index, line in enumerate(lines, lines_read + 1))
            yield from _batches(parse_lines(numbered_lines, MAX_ROW_BYTES), reader)
        else:
            yield batch
        lines_read += len(lines)


def _batches(records: Iterable[Record | Reject], reader: _Reader) -> Iterator[Batch]:
    remaining = iter(records)
    while chunk := list(islice(remaining, BATCH_ROWS)):
        batch = Batch()
        for record in chunk:
            reader.read(record, batch)
        yield batch


def _make_reader(source: Source, ahead: list[Record | Reject], named: ProblemColumns) -> _Reader:
    """Return a reader of the columns that are named or guessed from the first records."""
    check_readable(source, ahead)
    location, samples = source.location, sample_values(ahead)
    columns = named.resolve(samples, location)
    if columns.prompt is None:
        names = describe_columns(samples)
        raise InputError(
            f"{location} has no prompt column ({', '.join(NAMES['prompt'])}); it has: {names}.", named.spell("prompt")
        )
    specs = {"gold": columns.gold, "solution": columns.solution, "id": columns.id}
    options = next((name for name in CHOICE_COLUMNS if any(values.get(name) for values in samples)), None)
    return _Reader(
        compile_column(columns.prompt, "prompt"),
        options=None if options is None or columns.prompt.column == options else options,
        **{role: compile_column(spec, role) if spec is not None else None for role, spec in specs.items()},
    )


@dataclass(frozen=True)
class _Reader:
    """Reads the columns of problems out of records."""

    prompt: Column
    gold: Column | None
    solution: Column | None
    id: Column | None
    options: str | None = None
    """The column with the answer options, which are part of the problem."""

    def _prompt(self, values: Mapping[str, Any]) -> str:
        prompt = self.prompt(values)
        text = prompt if type(prompt) is str else prompt_text(prompt)
        options = options_text(values.get(self.options)) if self.options is not None and text else ""
        return f"{text}\n{options}" if options else text

    def read(self, record: Record | Reject, batch: Batch) -> None:
        """Add one record to the batch."""
        values: Mapping[str, Any] = record.values if isinstance(record, Record) else {}
        batch.row_numbers.append(record.row_number)
        batch.ids.append((_text(self.id(values)) if self.id else None) or str(record.row_number))
        batch.prompts.append(prompt_text(self._prompt(values)))
        batch.golds.append(self._gold(self.gold(values)) if self.gold else None)
        batch.solution_chars.append(len(_text(self.solution(values)) or "") if self.solution else 0)

    def read_plain(self, lines: list[bytes], lines_before: int) -> Batch | None:
        """Return the batch of lines that hold objects of plain values; None where any of them asks for more care."""
        try:
            values = [orjson.loads(line) for line in lines]
        except orjson.JSONDecodeError:
            return None
        if set(map(type, values)) != {dict}:
            return None
        read_prompt = self.prompt if self.options is None else self._prompt
        prompts, golds, solutions, ids = (
            list(map(column, values)) if column else [None] * len(values)
            for column in (read_prompt, self.gold, self.solution, self.id)
        )
        kinds = set[type]().union(*(map(type, column) for column in (prompts, golds, solutions, ids)))
        if not kinds <= PLAIN and any(map(has_long_number, lines)):
            return None
        row_numbers = list(range(lines_before + 1, lines_before + len(lines) + 1))
        return Batch(
            [_text(identity) or str(row) for identity, row in zip(ids, row_numbers, strict=True)],
            row_numbers,
            [prompt if type(prompt) is str else prompt_text(prompt) for prompt in prompts],
            list(map(self._gold, golds)),
            [len(_text(solution) or "") for solution in solutions],
        )

    def _gold(self, value: Any) -> str | None:
        """Return the gold of a column's value, of several accepted ones the first."""
        text = next(iter(gold_texts(value)), None) if isinstance(value, list) else _text(value)
        extract = self.gold.extract if self.gold else None
        return extract(text) if text is not None and extract is not None else text


def _text(value: Any) -> str | None:
    """Return the same as `text_of`, faster for most values."""
    if value is None or (type(value) is str and value[:1] > " "):
        return value
    return str(value) if type(value) is int else text_of(value)


def options_text(value: Any) -> str:
    """Return answer options as lines: of a list, of an object's values, or of `{"text": [...], "label": [...]}`."""
    if isinstance(value, Mapping):
        value = value.get("text", list(value.values()))
    if isinstance(value, (list, tuple)):
        return "\n".join(text for option in value if (text := text_of(option)))
    return text_of(value) or ""


def prompt_text(value: Any) -> str:
    """Return the text of a prompt, of a conversation the last user message; empty where there is none."""
    content, _ = read_prompt(value)
    text = (content if type(content) is str else text_of(content)) or ""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

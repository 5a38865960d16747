r"""Reads the problems of any file, so that commands can compare or judge them.

Columns are read as by the stage `ingest`, and texts are cleaned as by the stage `clean`:

    {"id": 7, "question": "Question 3: Natalia sold clips to 48 ...", "answer": "48+24 = 72\n#### 72"}
    ->  id "7", prompt "Natalia sold clips to 48 ...", gold "72", solution of 17 characters

The user may name columns, as in `prompt="Body"` or `gold="meta.label"`. The other columns are guessed
(`presets.guess_layout`). A problem includes the conversation before its question, and the answer options, also from a
column of their own. So a question with other options is another problem. A record without an id gets its number in the
file, counted from 1. A record without a readable prompt gets an empty prompt, which is never compared.

    make_item_reader(source, ahead, ProblemColumns(), None).read(record)  ->  items for `truegold verify`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from truegold.pipeline.clean.stage import Cleaner
from truegold.pipeline.config.sources import Columns, ColumnSpec, FileSource
from truegold.pipeline.near.gold_keys import join_golds
from truegold.pipeline.sources.columns import (
    Column,
    Derived,
    Layout,
    column_paths,
    compile_column,
    describe_columns,
    extracted_golds,
    gold_spec,
    listed_golds,
)
from truegold.pipeline.sources.conversations import context_text, read_conversation, read_prompt, read_samples
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, open_file
from truegold.pipeline.sources.presets import guess_layout, layout_of_preset
from truegold.pipeline.sources.provenance import ORIGIN_COLUMNS
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, Reject, Source, check_readable, sample_values
from truegold.pipeline.sources.row_builder import RowBuilder, RowWarnings, with_row_columns
from truegold.pipeline.tables.conversation import turns_text
from truegold.pipeline.tables.rows import dump_json, problem_of
from truegold.verifiers import InputError, Item, judges_solutions, resolve
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import MISSING, NAMES, find_column, json_safe, text_of
from truegold.verifiers.gold import OTHER_GOLDS, all_golds
from truegold.verifiers.row_kinds import are_tests
from truegold.verifiers.user_code import did_you_mean

BATCH_ROWS = 10_000
"""The maximum number of problems in one batch."""


@dataclass
class Batch:
    """Consecutive problems, one list per column."""

    ids: list[str] = field(default_factory=list)
    row_numbers: list[int] = field(default_factory=list)
    """The numbers of the records, counted from 1: the line numbers in a format with lines."""
    prompts: list[str] = field(default_factory=list)
    golds: list[str | None] = field(default_factory=list)
    solution_chars: list[int] = field(default_factory=list)
    """The lengths of the worked solutions, in characters."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class ProblemColumns:
    """The columns that a user names; the rest are guessed."""

    prompt: str | None = None
    gold: str | None = None
    id: str | None = None
    response: str | None = None
    preset: str | None = None
    """The layout of the records, such as `gsm8k`; guessed if None."""
    spelling: str = "--{role}-column COLUMN, or {role}=COLUMN in Python"
    """How a user names a column, for error messages."""

    def spell(self, role: str) -> str:
        """Return the advice to name the column of a role: `Name the gold column: --gold-column COLUMN, ...`."""
        return f"Name the {role} column: {self.spelling.replace('{role}', role)}"

    def resolve(self, samples: list[Mapping[str, Any]], location: str) -> Layout:
        """Return the layout of the records. Named columns replace guessed ones.

        `samples` are some of the records, and `location` names the file in errors. Raises InputError if none of the
        records has a named column.
        """
        for role in ("prompt", "gold", "id", "response"):
            name = getattr(self, role)
            if name is not None and all(Column(name)(values) is MISSING for values in samples):
                raise InputError(
                    f"{location} has no column {name!r}; it has: {describe_columns(samples)}.",
                    did_you_mean(name, column_paths(samples)) or self.spell(role),
                )
        named = {role: ColumnSpec(column=name) for role in ("prompt", "id") if (name := getattr(self, role))}
        if self.gold is not None:
            named["gold"] = gold_spec(self.gold, samples)
        layout = guess_layout(samples) if self.preset is None else layout_of_preset(self.preset, samples, location)
        if self.prompt is not None and layout.columns.prompt != named["prompt"]:
            layout = replace(layout, derive=None)
        return replace(layout, columns=layout.columns.model_copy(update=named))


def read_problems(path: Path, named: ProblemColumns, *, clean: bool = True) -> Iterator[Batch]:
    """Yield the problems of a JSON Lines, Parquet or CSV file, in batches of at most BATCH_ROWS.

    Texts are cleaned unless `clean` is False. Raises InputError if the file cannot be read or has no prompt column.
    """
    return problems_of(open_file(path, "auto", MAX_ROW_BYTES), named, clean=clean)


def problems_of(source: Source, named: ProblemColumns, *, clean: bool = True) -> Iterator[Batch]:
    """Yield the problems of an opened source; see `read_problems`."""
    ahead = list(islice(source.records, LOOK_AHEAD))
    reader = _make_reader(source, ahead, named, clean)
    records = chain(ahead, source.records)
    while chunk := list(islice(records, BATCH_ROWS)):
        batch = Batch()
        for record in chunk:
            reader.read(record, batch)
        yield batch


def read_golds(path: Path, gold_column: str | None, on_skipped: Callable[[str, str], None]) -> Iterator[str]:
    """Yield the gold answers of a file, from the named or guessed column.

    `on_skipped` is called for every record without a gold, with its place ("line 7") and the reason. Raises InputError
    if the file cannot be read or has no gold column.
    """
    source = open_file(path, "auto", MAX_ROW_BYTES)
    ahead = list(islice(source.records, LOOK_AHEAD))
    samples = sample_values(ahead)
    spec = ProblemColumns(gold=gold_column).resolve(samples, source.location).columns.gold if samples else None
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
    """Return the error for a file that needs a gold column and has none."""
    tested = any(are_tests(value) for values in samples for value in values.values())
    tests = "Its rows have tests, which `truegold testcases vet` checks. " if tested else ""
    return InputError(
        f"{location} has no gold column, such as {' or '.join(NAMES['gold'][:3])}; it has: "
        f"{describe_columns(samples)}.",
        f"{tests}Name it: --gold-column COLUMN, or gold=COLUMN in Python",
    )


def describe_reading(path: Path, named: ProblemColumns) -> str:
    """Return a line that names the columns that a command reads. If none has golds, the line gives advice."""
    source = open_file(path, "auto", MAX_ROW_BYTES)
    samples = sample_values(islice(source.records, LOOK_AHEAD))
    layout = named.resolve(samples, source.location)
    columns = layout.columns
    specs = {"prompt": columns.prompt, "gold": columns.gold, "id": columns.id}
    if columns.prompt is None:
        return "looking for the problems"
    line = "reading " + ", ".join(f"{role} from {spec.column}" for role, spec in specs.items() if spec is not None)
    if columns.gold is not None:
        return line
    if taken := sorted(name for name in layout.uses if any(name in values for values in samples)):
        return f"{line}, and {', '.join(taken)} as {layout.domain}"
    return (
        f"{line}; there is no gold column among {describe_columns(samples)}, so that golds are not compared "
        "(name it: --gold-column COLUMN, or gold=COLUMN in Python)"
    )


def _make_reader(source: Source, ahead: list[Record | Reject], named: ProblemColumns, clean: bool) -> _Reader:
    """Return a reader of the named columns, and of columns that are guessed from the records `ahead`."""
    check_readable(source, ahead)
    location, samples = source.location, sample_values(ahead)
    layout = named.resolve(samples, location)
    if layout.columns.prompt is None:
        names = describe_columns(samples)
        raise InputError(
            f"{location} has no prompt column, such as {' or '.join(NAMES['prompt'][:3])}; it has: {names}.",
            named.spell("prompt"),
        )
    columns = {role: compile_column(spec, role) for role, spec in layout.columns if spec is not None}
    gold = columns.get("gold")
    one_gold = None if gold is None or gold.extract or "golds" in columns or layout.restore else gold
    has_context = any(_context(columns["prompt"], values) is not None for values in samples)
    return _Reader(layout, columns, Cleaner() if clean else None, one_gold, has_context)


def _context(prompt: Column, values: Mapping[str, Any]) -> str | None:
    """Return the messages before the question, in the form of a row's context, or None if there are no messages."""
    return context_text(read_conversation(prompt(values), (values,)))


@dataclass(frozen=True)
class _Reader:
    """Reads problems from records."""

    layout: Layout
    columns: Mapping[str, Column]
    """The layout's columns by role, compiled."""
    cleaner: Cleaner | None
    one_gold: Column | None
    """The gold column if it is the only source of golds, and its values need no extract. Else None."""
    has_context: bool
    """True if some of the first records have messages before the question."""

    def read(self, record: Record | Reject, batch: Batch) -> None:
        """Add one record to the batch."""
        values: Mapping[str, Any] = record.values if isinstance(record, Record) else {}
        try:
            derived = self.layout.derive(values) if self.layout.derive is not None else Derived({})
        except Unusable:
            derived = Derived({})
        prompt = derived.prompt or self._prompt(values)
        golds = [derived.gold] if derived.gold is not None else []
        if not golds and derived.verifier != "code":
            golds = self._golds(values)
        if self.cleaner is not None:
            domain = self.layout.domain
            golds = [self.cleaner.clean("gold", gold, None, domain) for gold in golds]
            prompt = self.cleaner.clean("prompt", prompt, golds[0] if golds else None, domain)
        if self.has_context:
            prompt = turns_text({"prompt": prompt, "context": _context(self.columns["prompt"], values)})
        batch.ids.append(self._optional(values, "id") or str(record.row_number))
        batch.row_numbers.append(record.row_number)
        batch.prompts.append(prompt)
        batch.golds.append(join_golds(golds))
        batch.solution_chars.append(len(self._optional(values, "solution") or derived.solution or ""))

    def _optional(self, values: Mapping[str, Any], role: str) -> str | None:
        column = self.columns.get(role)
        return _text(column(values)) if column is not None else None

    def _prompt(self, values: Mapping[str, Any]) -> str:
        prompt = self.columns["prompt"](values)
        return prompt if type(prompt) is str else prompt_text(prompt)

    def _golds(self, values: Mapping[str, Any]) -> list[str]:
        """Return the accepted golds; empty if the values are unusable."""
        gold, several = self.columns.get("gold"), self.columns.get("golds")
        if self.one_gold is not None and OTHER_GOLDS not in values:
            value = self.one_gold(values)
            # Nearly every gold is a short text or a number. A text can be a list only if it has a bracket.
            if type(value) is int or (type(value) is str and "[" not in value):
                return [text] if (text := _text(value)) is not None else []
        try:
            if self.layout.restore is not None:
                parts = self.layout.restore(values)
                return list(all_golds(parts.gold, parts.verifier_args))
            problem = self._prompt(values)
            golds = extracted_golds(gold, values, of_values=True, problem=problem) if gold is not None else []
            if several is not None:
                golds += listed_golds(several(values), several.name)
            return golds + listed_golds(values.get(OTHER_GOLDS), OTHER_GOLDS)
        except Unusable:
            return []


def _text(value: Any) -> str | None:
    """Return `text_of(value)`, with a fast path for texts and integers."""
    if value is None or (type(value) is str and value[:1] > " "):
        return value
    return str(value) if type(value) is int else text_of(value)


def prompt_text(value: Any) -> str:
    """Return a prompt as text. For a conversation, this is the last user message, or "" if there is none."""
    content, _ = read_prompt(value)
    text = (content if type(content) is str else text_of(content)) or ""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


FINISH_COLUMNS = ("finish_reason", "stop_reason")
CUT = ("length", "max_tokens")
"""The finish reasons of a response that was cut at the token limit, in the APIs of OpenAI and Anthropic."""


@dataclass(frozen=True)
class ItemReader:
    """Makes items to judge from records with responses.

    Golds, tests and verifiers are read as by `ingest`. Only the problem is cleaned; responses and golds stay unchanged.
    A record without a gold is accepted, since some verifiers need no gold.
    """

    rows: RowBuilder
    response: Column
    cleaner: Cleaner = field(default_factory=Cleaner)

    @property
    def reads_gold(self) -> bool:
        """True if records have golds or tests."""
        return bool(self.rows.columns.keys() & {"gold", "golds"}) or self.rows.layout.domain == "code"

    def read(self, record: Record | Reject) -> list[Item | Reject]:
        """Return an item for each sample of the record; a sample or record that cannot be judged gives a reject."""
        if isinstance(record, Reject):
            return [record]
        values = record.values
        try:
            derived = self.rows.derive(values)
            parts = self.rows.read_parts(values, derived, keep_prompt=False)
            prompt = self.rows.columns.get("prompt")
            problem = derived.prompt or (prompt_text(prompt(values)) if prompt else "")
            problem = self.cleaner.clean("prompt", problem, parts.gold, parts.domain) if problem else ""
            context = _context(prompt, values) if prompt else None
            item = Item(
                response="",
                gold=parts.gold,
                verifier=parts.verifier,
                verifier_args=dump_json(json_safe(parts.verifier_args)),
                problem=problem_of({"prompt": problem, "context": context}) or None,
            )
        except Unusable as error:
            return [record.reject(error.reason, error.detail)]
        samples = read_samples(self.response(values)) or [None]
        return [
            self._missing_response(record, sample, len(samples)) if text is None else replace(item, response=text)
            for sample, text in enumerate(samples)
        ]

    def _missing_response(self, record: Record, sample: int, samples: int) -> Reject:
        value = self.response(record.values)
        what = "is not there" if value is MISSING else f"holds no response: {dump_json(json_safe(value))[:60]}"
        where = f"sample {sample} of column" if samples > 1 else "column"
        return record.reject("missing_response", f"{where} {self.response.name!r} {what}")

    def id_of(self, record: Record | Reject) -> str | None:
        """Return the record's id, or None if the record could not be read."""
        return self.rows.source_id(record) if isinstance(record, Record) else None

    def was_cut(self, record: Record | Reject, sample: int) -> bool:
        """Return True if the record states that this sample, counted from 0, was cut at the token limit."""
        if not isinstance(record, Record):
            return False
        stated = [record.values.get(name) for name in FINISH_COLUMNS]
        each = [value[sample] if isinstance(value, list) and sample < len(value) else value for value in stated]
        return record.values.get("truncated") is True or any(value in CUT for value in each)

    def source_of(self, record: Record | Reject) -> str:
        """Return the name of the data set that the record came from, or "" if it names none."""
        values = record.values if isinstance(record, Record) else {}
        return next((name for column in ("source", *ORIGIN_COLUMNS) if isinstance(name := values.get(column), str)), "")


def make_item_reader(
    source: Source, ahead: list[Record | Reject], named: ProblemColumns, verifier: str | None
) -> ItemReader:
    """Return a reader of the named columns, and of columns that are guessed from the records `ahead`.

    `verifier` judges the rows that do not name one. If it is None, files with tests get `code` and other files `math`.
    Raises InputError if there is no response column.
    """
    check_readable(source, ahead)
    samples = sample_values(ahead)
    layout = named.resolve(samples, source.location)
    judged_by_gold = verifier is not None and not judges_solutions(resolve(verifier))
    if named.gold is not None or (layout.domain == "code" and judged_by_gold):
        layout = Layout(layout.columns)
    taken = [
        spec.column for spec in (layout.columns.prompt, layout.columns.gold, layout.columns.id) if spec is not None
    ]
    if (response := named.response or find_column("response", samples, exclude=taken)) is None:
        raise InputError(
            f"{source.location} has no response column ({', '.join(NAMES['response'])}); "
            f"it has: {describe_columns(samples)}.",
            "Name it: --response-column COLUMN",
        )
    free = {role: None for role, spec in layout.columns if spec is not None and spec.column == response}
    config = FileSource(path=source.location, columns=Columns(gold=layout.columns.gold if named.gold else None))
    columns = with_row_columns(layout.columns.model_copy(update=free), config, layout.uses)
    layout = replace(layout, columns=columns, verifier=verifier or layout.verifier)
    return ItemReader(RowBuilder(config, layout, source.name, RowWarnings(), gold_required=False), Column(response))

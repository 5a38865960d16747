"""Proposes how to read a data file: the roles of its columns, and the verifier of its answers.

    Nr;Aufgabe;Lösungsweg;Ergebnis                      columns: {prompt: Aufgabe, gold: Ergebnis, solution: Lösungsweg}
    1;"Anna hat 3 Äpfel ... Wie viele hat sie?";"3 + 4 = 7";7

    {"question": "Which? A) 2 B) 3", "answer": "B"}     verifier: choice; without a proposal, a run uses math

Columns with usual names are found by their names. Otherwise the texts decide: a problem is a text that asks; a gold is
short, differs from row to row and often ends the worked solution. A run never guesses by texts. A proposal is shown to
a person, who writes it into the configuration.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from truegold.pipeline.config.sources import Columns, ColumnSpec, FileSource
from truegold.pipeline.sources.columns import Layout, describe_columns, gold_spec
from truegold.pipeline.sources.data_files import at_hand, data_files, form_by_suffix, not_utf8, open_file
from truegold.pipeline.sources.jsonl import is_json_array, is_over_lines, open_bytes, packing_of
from truegold.pipeline.sources.likely_causes import (
    ANSWERS,
    MOST,
    SHORT_WORDS,
    best_verifier,
    cause_of_rejects,
    ends_with,
)
from truegold.pipeline.sources.presets import UnusualNamesError, choose_layout
from truegold.pipeline.sources.records import (
    LOOK_AHEAD,
    REMEDIES,
    Record,
    Reject,
    Source,
    check_readable,
    describe_reasons,
    look_ahead,
    readable,
)
from truegold.pipeline.sources.row_builder import RowBuilder, RowWarnings
from truegold.pipeline.sources.story_columns import count_words
from truegold.pipeline.sources.unused_columns import describe_unused, unused_columns
from truegold.pipeline.tables.losses import LossCount
from truegold.pipeline.tables.rows import Row, row_place
from truegold.pipeline.text.prose import language_of
from truegold.verifiers import InputError
from truegold.verifiers.answers.choice_arguments import choice_arguments
from truegold.verifiers.answers.gold_types import gold_note
from truegold.verifiers.choice_rows import LETTER
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import NAMES, Samples, Values, find_column, spelled, text_of
from truegold.verifiers.decimal_commas import MIN_SIGNS, CommaUse, comma_use, may_be_otherwise, with_points
from truegold.verifiers.row_kinds import are_tests

COUNT_BYTES = 4 * 2**30
"""The size in bytes up to which the lines of a file are counted. Lines of larger files are not counted."""
SPREAD_RECORDS = 20_000
"""The verifier is chosen by 100 records. They are sampled from this number of first records."""
READ_BYTES = 2**25
"""CSV, an array, or a compressed file is read to count its records if it has at most this size, in bytes."""
BLOCK = 2**20
"""The maximum length of a row that is read while records are counted, in bytes."""
OTHER_ENCODING = 0.1
"""A file has another encoding if more than this share of its records have invalid UTF-8."""
RISING_ROWS = 5
"""The minimum number of rising numbers in a column that numbers the rows. Fewer numbers may rise by chance."""
PROBLEM_WORDS = 3
"""The minimum mean number of words in a column of problems."""
NAME_WORDS = 8
"""The maximum number of words in the name of a column."""
QUESTION_MARKS = ("?", "？", "؟")


Rejected = LossCount[tuple[Reject, Values]]


@dataclass(frozen=True)
class Proposal:
    """A proposal for the settings of a file, with the rows that its first records become under these settings."""

    source: FileSource
    """The source with the proposed settings: columns that were found by their texts, and a verifier for the golds."""
    layout: Layout
    records: Sequence[Record]
    rows: Sequence[Row]
    """The rows from the first records."""
    spread: Sequence[Row]
    """The rows from records that are spread over the file."""
    rejected: Rejected
    """The rejects among the first records, by reason, with their values. A record that could not be read has no
    values."""
    commas: str = ""
    """A remark on golds with commas, empty for none."""

    def shown_rows(self, least: int, most: int) -> list[Row]:
        """Return sample rows: at least one for each verifier and kind of gold, and further first rows up to `least`."""
        kinds: dict[tuple[str, str], Row] = {}
        for row in (*self.rows, *self.spread):
            note = gold_note(row["gold"], "math") if row["gold"] is not None else None
            kinds.setdefault((row["verifier"], note[0] if note else ""), row)
        chosen = {row_place(row): row for row in list(kinds.values())[:most]}
        for row in self.rows:
            if len(chosen) < least:
                chosen.setdefault(row_place(row), row)
        return list(chosen.values())

    def lines(self) -> Iterator[str]:
        """Yield lines on the number of records, the roles of columns, and the unused columns."""
        yield describe_records(self.source)
        yield from describe_reading(self.source, self.layout, self.records, [*self.rows, *self.spread])
        if self.commas:
            yield f"commas    {self.commas}"
        if counts := self.rejected.counts:
            yield f"rejected  of the first {len(self.rows) + counts.total()} records: {describe_reasons(counts)}"
        for reason, rejects in self.rejected.samples.items():
            gold = self.layout.columns.gold
            samples = [values for _, values in rejects]
            cause = cause_of_rejects(reason, samples, None if gold is None else gold.column)
            # A remedy may have two spellings, the second for the commands that show proposals.
            remedy = cause.remedy.rpartition(", or ")[2] or REMEDIES.get(reason, "")
            first = rejects[0][0]
            advice = " ".join(filter(None, (cause.cause, remedy)))
            yield f"  {self.source.label}:{first.row_number}: {reason}: {first.detail}. {advice}".rstrip()


def propose(source: FileSource) -> Proposal:
    """Return a proposal by the first records of a file. Settings of `source` are kept.

    Raises InputError for a file that cannot be read, and if no column of problems or answers is found.
    """
    rejects: list[Reject] = []
    records, opened = first_records(source, rejects)
    location = opened.location
    samples = [record.values for record in records]
    first = len(samples) + len(rejects)
    if (encoded := sum(reject.reason == "invalid_utf8" for reject in rejects)) > OTHER_ENCODING * first:
        raise not_utf8(location, f"the text of {encoded} of the first {first} records")
    if not first:
        hint = "A CSV file needs lines after its header." if location.endswith((".csv", ".tsv")) else None
        raise InputError(f"{location} has no records.", hint)
    check_readable(opened, [*rejects, *records])
    try:
        layout = choose_layout(source, location, samples)
    except InputError as error:
        if (columns := columns_by_texts(samples)) is None:
            if not isinstance(error, UnusualNamesError):
                raise
            raise _no_columns(location, samples) from None
        if columns.prompt is not None and _is_sentence(columns.prompt.column):
            raise InputError(
                f"{location}: its first line, which should name the columns, is a record: {describe_columns(samples)}.",
                "Write the names of the columns above it, such as question,answer.",
            ) from None
        chosen = {name: spec for name, spec in source.columns if spec is not None}
        verifier = "code" if columns.tests is not None and source.verifier is None else source.verifier
        update = {"columns": columns.model_copy(update=chosen), "verifier": verifier}
        source = source.model_copy(update=update)
        layout = choose_layout(source, location, samples)
    if (
        layout.columns.id is None
        and layout.restore is None
        and (id_column := _id_by_values(samples, layout)) is not None
    ):
        with_id = source.columns.model_copy(update={"id": ColumnSpec(column=id_column)})
        source = source.model_copy(update={"columns": with_id})
        layout = choose_layout(source, location, samples)
    rejected: Rejected = LossCount()
    for reject in rejects:
        rejected.add(reject.reason, (reject, {}))
    rows = _build(source, layout, records, rejected)
    over_file = spread_records(source)
    seen = _build(source, layout, over_file, LossCount())
    open_rows = [row for row in seen if row["verifier"] == "math" and choice_arguments(row) is None]
    golds = [row["gold"] for row in open_rows if row["gold"] is not None]
    if source.verifier is None and 2 * len(golds) > len(seen) and (best := best_verifier(golds)) not in (None, "math"):
        source = source.model_copy(update={"verifier": best})
        rows = _build(source, layout, records, LossCount())
    commas = ""
    if (sign := gold_with_comma(rows)) is not None:
        use, gold = sign
        commas = doubt_on_comma(gold)
        if use == "decimal":
            source = source.model_copy(update={"verifier_args": {**source.verifier_args, "comma": use}})
            rows = _build(source, layout, records, LossCount())
            commas = f"decimal: {gold} is read as {with_points(gold)}; answers may have a comma or a point"
    spread = _build(source, layout, over_file, LossCount())
    return Proposal(source, layout, records, rows, spread, rejected, commas)


def gold_with_comma(rows: Sequence[Row]) -> tuple[CommaUse, str] | None:
    """Return the use of commas in golds that `math` judges, with an example. Return None if the use is clear."""
    rows = [row for row in rows if row["gold"] and row["verifier"] == "math" and '"comma"' not in row["verifier_args"]]
    golds = [row["gold"] or "" for row in rows]
    signs = list(filter(may_be_otherwise, golds))
    if len(signs) < MIN_SIGNS:
        return None
    problems = [row["prompt"] for row in rows]
    use = comma_use(golds, Counter(map(language_of, problems)).most_common(1)[0][0], problems)
    return None if use is None else (use, signs[0])


def doubt_on_comma(gold: str) -> str:
    """Return a sentence on golds that may have decimal commas, but are not read that way."""
    are = "lists or thousands" if "," in gold else "decimals"
    return (
        f"golds such as {gold} are {are}, as in English; "
        f"if {gold} means {with_points(gold)}, set data.verifier_args: {{comma: decimal}}"
    )


def first_records(source: FileSource, rejects: list[Reject]) -> tuple[list[Record], Source]:
    """Return the first records of a file, and the opened file. Rejects are added to the list."""
    opened = open_file(Path(source.path).expanduser(), source.format, source.max_row_bytes)
    return look_ahead(islice(opened.records, LOOK_AHEAD), rejects.append), opened


def spread_records(source: FileSource) -> list[Record]:
    """Return records that are spread over a file. The file may be sorted by kind."""
    path = Path(source.path).expanduser()
    counts = (SPREAD_RECORDS, count_records(path, source.format), source.limit)
    records = min(count for count in counts if count is not None)
    opened = open_file(path, source.format, source.max_row_bytes)
    return readable(islice(opened.records, 0, records, max(1, records // LOOK_AHEAD)))


def rows_over(source: FileSource, layout: Layout) -> list[Row]:
    """Return the rows from records that are spread over a file."""
    return _build(source, layout, spread_records(source), LossCount())


def _build(source: FileSource, layout: Layout, records: Sequence[Record], rejected: Rejected) -> list[Row]:
    builder, rows = RowBuilder(source, layout, source.label, RowWarnings()), []
    for record in records:
        try:
            rows.append(builder.build(record))
        except Unusable as unusable:
            rejected.add(unusable.reason, (record.reject(unusable.reason, unusable.detail), record.values))
    return rows


def _no_columns(location: str, samples: Samples) -> InputError:
    columns = describe_columns(samples)
    texts = [text for values in samples for value in values.values() if (text := text_of(value)) is not None]
    if len({name for values in samples for name in values}) == 1 and all(map(_ANSWER_MARK.search, texts)):
        return InputError(
            f"{location}: each text of its only column, {columns}, holds a question and its answer.",
            'Split them into two columns: {"question": ..., "answer": ...}',
        )
    if (name := find_column("prompt", samples)) is not None:
        return InputError(
            f"{location}: the problems are in {name!r}, and no column of answers is found by names or texts.",
            f"Its columns: {columns}. Name the answers: --gold-column COLUMN",
        )
    return InputError(
        f"{location}: no column of problems, or none of answers, is found by names or texts.",
        f"Its columns: {columns}. Name them: --prompt-column COLUMN --gold-column COLUMN",
    )


def columns_by_texts(samples: Samples) -> Columns | None:
    """Return the roles of columns by their texts alone. Return None without a column of problems or of answers."""
    names = dict.fromkeys(name for values in samples for name in values)
    texts = {name: [text_of(values.get(name)) or "" for values in samples] for name in names}
    filled = [name for name in names if sum(map(bool, texts[name])) >= MOST * len(samples)]
    varied = [name for name in filled if 2 * len(set(texts[name])) > len(samples)]
    tests = next((name for name in filled if all(are_tests(values.get(name)) for values in samples)), None)

    def words(name: str) -> float:
        return fmean(map(count_words, texts[name]))

    def quotes(name: str, gold: str) -> bool:
        return 2 * sum(map(ends_with, texts[name], texts[gold])) > len(samples)

    short = [name for name in filled if words(name) <= SHORT_WORDS and not spelled(NAMES["id"], [name])]
    long = [name for name in varied if words(name) >= PROBLEM_WORDS and name != tests]
    solutions = {name for name in long if any(quotes(name, gold) for gold in short)}
    asking = [name for name in long if 2 * sum(map(_asks, texts[name])) > len(samples)]
    candidates = asking or [name for name in long if name not in solutions]
    programs = [name for name in varied if tests is not None and sum(map(_is_program, texts[name])) > len(samples) / 2]
    candidates = [name for name in candidates if name not in programs] or candidates
    if not candidates:
        return None
    prompt = max(candidates, key=words)
    if tests is not None:
        program = next((ColumnSpec(column=name) for name in programs if name not in (prompt, tests)), None)
        return Columns(prompt=ColumnSpec(column=prompt), tests=ColumnSpec(column=tests), solution=program)

    def are_letters(name: str) -> bool:
        return all(LETTER.fullmatch(text) for text in texts[name] if text)

    def is_quoted(name: str) -> bool:
        return any(quotes(other, name) for other in long)

    def numbers_rows(name: str) -> bool:
        is_called_so = _is_called_id(name) and not are_letters(name)
        return _count_rows(texts[name]) or (not is_quoted(name) and (is_called_so or _rise(texts[name])))

    def gold_signs(name: str) -> tuple[bool, bool, bool, int, bool]:
        has_digits = any(any(map(str.isdigit, text)) for text in texts[name])
        return name in answers, is_quoted(name), are_letters(name), len(set(texts[name])), has_digits

    answers = spelled(ANSWERS, names)
    golds = [name for name in short if name != prompt and len(set(texts[name])) > 1]
    if not (golds := [name for name in golds if name in answers or not numbers_rows(name)] or golds):
        return None
    gold = max(golds, key=gold_signs)
    solution = next((name for name in long if name != prompt and quotes(name, gold)), None)
    named: dict[str, Any] = {"prompt": ColumnSpec(column=prompt), "gold": gold_spec(gold, samples)}
    return Columns(**named, solution=None if solution is None else ColumnSpec(column=solution))


_ID_NAME = re.compile(
    r"(?:.*[^a-z])?(?:id|nr|no|num|number|nummer|numero|index|row|key|n|lp|sira)|#|序号|番号|번호|номер|.*(?<=[a-z])(?:Id|ID|Nr|No)"
)
"""Names of columns that number rows, such as `Nr`, `No.`, `Lfd. Nr.` and `taskId`. All are in lower case except the
last."""


def _id_by_values(samples: Samples, layout: Layout) -> str | None:
    """Return the column that has such a name (_ID_NAME) and distinct whole numbers, or None."""
    taken = {spec.column.split(".")[0] for _, spec in layout.columns if spec is not None} | layout.uses

    def numbers(name: str) -> bool:
        texts = [text_of(values.get(name)) or "" for values in samples]
        return all(map(str.isdecimal, texts)) and len(set(texts)) == len(texts) > 1

    columns = dict.fromkeys(name for values in samples for name in values)
    return next((name for name in columns if name not in taken and _is_called_id(name) and numbers(name)), None)


def _is_called_id(name: str) -> bool:
    """Return whether a column has a name of _ID_NAME."""
    plain = unicodedata.normalize("NFKD", name.strip().rstrip(".°º")).encode("ascii", "ignore").decode() or name
    return any(map(_ID_NAME.fullmatch, (plain, plain.lower())))


_ANSWER_MARK = re.compile(r"\n\W*(?:final )?(?:answer|solution|response|output)\W{0,4}:", re.IGNORECASE)
"""The mark of the answer in a text that also has the question: "### Answer: 18"."""
_PROGRAM = re.compile(r"^\s*(?:def|class) \w+[^\n]*:|^(?:from|import) \w+", re.MULTILINE)
"""A line of a Python program."""


def _is_program(text: str) -> bool:
    return _PROGRAM.search(text) is not None


def _is_sentence(name: str) -> bool:
    """Return whether the name of a column is a text of a record: a question, or more than NAME_WORDS words."""
    return _asks(name) or count_words(name) > NAME_WORDS


def _asks(text: str) -> bool:
    return text.rstrip().endswith(QUESTION_MARKS)


def _count_rows(texts: Sequence[str]) -> bool:
    numbers = [int(text) for text in texts if text.isdecimal()]
    return len(numbers) == len(texts) and all(after - before == 1 for before, after in pairwise(numbers))


def _rise(texts: Sequence[str]) -> bool:
    """Return whether a column has whole numbers that rise from row to row, in at least RISING_ROWS rows."""
    numbers = [int(text) for text in texts if text.isdecimal()]
    return len(texts) == len(numbers) >= RISING_ROWS and all(before < after for before, after in pairwise(numbers))


def describe_records(source: FileSource) -> str:
    """Return a line with the number of records of a file."""
    count = count_records(Path(source.path).expanduser(), source.format)
    records = "not counted yet" if count is None else f"{count:,} records"
    limit = f", of which the first {source.limit:,} are taken" if source.limit else ""
    return f"data      {source.path}: {records}{limit}"


def describe_reading(
    source: FileSource, layout: Layout, records: Sequence[Record], rows: Sequence[Row]
) -> Iterator[str]:
    """Yield lines on the roles of columns, the verifier of the rows, and the unused columns."""
    named = {role: spec for role, spec in layout.columns if spec is not None}
    present = {name for record in records for name in record.values}
    columns = {role: spec.column for role, spec in named.items()}
    if layout.asks and source.columns.prompt is None:
        columns["prompt"] = " + ".join(layout.asks)
    roles = [
        f"{role} {columns[role]}{f' ({spec.extract})' if spec.extract else ''}"
        for role, spec in named.items()
        if spec.column in present or spec.column.split(".")[0] in present
    ]
    taken = sorted(layout.uses & present - {spec.column for spec in named.values()})
    roles += [f"{', '.join(taken)} as {layout.domain}"] if taken else []
    verifiers = ", ".join(dict.fromkeys(row["verifier"] for row in rows))
    yield f"columns   {'; '.join(roles)}; verifier {verifiers or source.verifier or layout.verifier}"
    if unused := unused_columns(source, layout, records):
        yield f"unused    {describe_unused(unused)}"


def count_records(path: Path, form: str) -> int | None:
    """Return the number of records of a file, or None if counting takes long."""
    path = at_hand(path)
    if not path.is_file():
        parts = data_files(path)
        counts = [count_records(part, form) for part in parts if part != path]
        return None if None in counts or not counts else sum(count or 0 for count in counts)
    form = form_by_suffix(path) if form == "auto" else form
    if form == "parquet":
        return open_file(path, form, BLOCK).total
    is_packed = packing_of(path) is not None
    if path.stat().st_size > (COUNT_BYTES if form == "jsonl" and not is_packed else READ_BYTES):
        return None
    if is_packed or form == "csv" or is_json_array(path) or is_over_lines(path):
        return sum(1 for _ in open_file(path, form, BLOCK).records)
    with open_bytes(path) as file:
        return sum(line.strip() != b"" for line in file)

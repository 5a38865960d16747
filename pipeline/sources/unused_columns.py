"""Finds the unused columns of a source, with hints on their likely use.

    {"question": "...", "answer": "72", "aliases": ["72", "seventy-two"], "difficulty": 3, "pre_text": ["In 2008 ..."]}
    ->  aliases (has the gold among others: data.columns.golds=aliases), difficulty (a measure),
        pre_text (a text: do questions need it?)

A column is used if its text is in the prompt, the context, the gold, the solution or the verifier's arguments. Other
columns are stored in `meta`. A dry run lists all of them. `ingest` lists those that a verdict may depend on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from truegold.pipeline.config.sources import SourceConfig
from truegold.pipeline.sources.columns import Layout, gold_texts
from truegold.pipeline.sources.conversations import PICTURES, SYSTEM_COLUMNS
from truegold.pipeline.sources.likely_causes import ANSWERS, MOST
from truegold.pipeline.sources.records import Record
from truegold.pipeline.sources.row_builder import RowBuilder, RowWarnings
from truegold.pipeline.sources.story_columns import (
    CONTEXTS,
    STORIES,
    STORY_WORDS,
    are_solutions,
    count_words,
    story_text,
)
from truegold.pipeline.tables.rows import Row
from truegold.verifiers.choice_rows import LISTS, read_slots
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import GOLDS_COLUMNS, NAMES, are_shared, spelled, text_of
from truegold.verifiers.gold import quoted_list
from truegold.verifiers.row_kinds import are_tests
from truegold.verifiers.strict_json import parse_structure

LOOKED_AT = 20
"""The number of records by which unused columns are found."""
TEXTS = (
    *STORIES,
    *CONTEXTS,
    "text",
    "pre_text",
    "post_text",
    "table",
    "ctx",
    "passages",
    "paragraphs",
    "facts",
    "reference_text",
)
"""Columns that may hold the text that a question is about."""
FILES = ("file_name", "file_path", "file", "files", "attachment", "attachments")
_SPEAKS_OF_FILE = re.compile(r"\b(?:attach(?:ed|ment)|spreadsheet|(?:this|the) file)\b|附件", re.IGNORECASE)
"""Words of a question about an attached file."""
_HASHED = re.compile(r"\S\s+####\s*\S+\s*$")
"""The end of a worked solution of GSM8K."""
MEASURES = ("difficulty", "level", "grade", "rating", "pass_rate", "solve_rate", "llama8b_solve_rate", "score")
"""Columns of measures of difficulty or quality."""
_RESPONSES = (*NAMES["response"], *NAMES["solution"], "generated_solution", "cot", "chain_of_thought", "reasoning")


@dataclass(frozen=True, slots=True)
class UnusedColumn:
    """An unused column of a source."""

    name: str
    hint: str = ""
    """A likely use of the column, with the setting for it; empty for none."""
    decides: bool = False
    """Whether a verdict may depend on the column."""

    def __str__(self) -> str:
        return f"{self.name} ({self.hint})" if self.hint else self.name


def unused_columns(config: SourceConfig, layout: Layout, records: Sequence[Record]) -> list[UnusedColumn]:
    """Return the unused columns of the records, in their order."""
    if layout.restore is not None:
        return []
    builder = RowBuilder(config, layout, "", RowWarnings())
    pairs: list[tuple[Row, Record]] = []
    for record in records[:LOOKED_AT]:
        try:
            pairs.append((builder.build(record), record))
        except Unusable:
            continue
    names = dict.fromkeys(name for row, _ in pairs for name in orjson.loads(row["meta"]))
    read = {"source_id", *(spec.column.split(".")[0] for _, spec in layout.columns if spec is not None)}
    left = [name for name in names if name not in read and not _is_carried(name, pairs)]
    empty = list(_passed_over(layout, records))
    names_of_empty = {column.name for column in empty}
    return [*empty, *(_described(name, pairs) for name in left if name not in names_of_empty)]


def _passed_over(layout: Layout, records: Sequence[Record]) -> Iterator[UnusedColumn]:
    """Yield columns that have usual names of problems or golds, and are empty. Columns with other names replace
    them."""
    columns = dict.fromkeys(name for record in records for name in record.values)
    for role, names, spec in (
        ("prompt", NAMES["prompt"], layout.columns.prompt),
        ("gold", ANSWERS, layout.columns.gold),
    ):
        for name in spelled(names, columns) if spec is not None else ():
            if spec is None or name == spec.column:
                break
            empty = sum(text_of(record.values.get(name)) is None for record in records)
            if name in columns and empty >= MOST * len(records):
                hint = f"empty in {empty} of the first {len(records)} records; {role} is read from {spec.column}"
                yield UnusedColumn(name, hint, decides=True)


def describe_unused(columns: Iterable[UnusedColumn]) -> str:
    """Return the columns on one line, columns with hints first."""
    return ", ".join(map(str, sorted(columns, key=lambda column: not column.hint)))


def _values(name: str, pairs: Sequence[tuple[Row, Record]]) -> list[tuple[Row, Any]]:
    filled = [(row, record.values.get(name)) for row, record in pairs]
    return [(row, value) for row, value in filled if value not in (None, "", [], {})]


def _is_carried(name: str, pairs: Sequence[tuple[Row, Record]]) -> bool:
    """Return whether at least half of the rows contain the text of a column, or a text of its list.

    True for an empty column.
    """
    filled = _values(name, pairs)
    carried = 0
    for row, value in filled:
        text = (story_text(value) or text_of(value) or "").strip()
        asked = (row["prompt"], row["context"] or "", row["solution"] or "")
        is_first = row["solution"] is not None and row["solution"] in gold_texts(parse_structure(value))
        carried += is_first or text == row["gold"] or any(text in part for part in asked if len(text) > 1)
    return 2 * carried >= len(filled)


def _are_solutions(filled: Sequence[tuple[Row, Any]]) -> bool:
    texts = [(story_text(value) or "", row["prompt"], [row["gold"] or ""]) for row, value in filled]
    return are_solutions(texts)


def _worked_answer(filled: Sequence[tuple[Row, Any]]) -> str | None:
    """Return the part of a struct that has GSM8K's worked solutions, such as verl's `extra_info.answer`, or None."""
    structs = [value for _, value in filled if isinstance(value, Mapping)]
    for name in dict.fromkeys(name for struct in structs for name in struct):
        if all(_HASHED.search(str(struct.get(name))) for struct in structs):
            return str(name)
    return None


def _described(name: str, pairs: Sequence[tuple[Row, Record]]) -> UnusedColumn:
    filled = _values(name, pairs)
    most = len(filled) / 2

    def is_called(names: Iterable[str]) -> bool:
        return name in spelled(names, [name])

    lists = [(row, [part.strip() for part in quoted_list(value) or gold_texts(value)]) for row, value in filled]
    with_gold = sum(len(texts) > 1 and row["gold"] in texts for row, texts in lists)
    words = sum(count_words(story_text(value) or "") for _, value in filled)
    is_asked_for = any(_SPEAKS_OF_FILE.search(row["prompt"]) for row, _ in filled)
    is_shared = are_shared(name, [record.values for _, record in pairs])
    is_response = is_called(_RESPONSES)
    have_tests = sum(are_tests(value) for _, value in filled) > most
    is_program = any(row["verifier"] == "code" for row, _ in filled)
    is_read = any(len(read_slots(value)) > 1 for _, value in filled) if is_called(LISTS) else False
    inner = _worked_answer(filled)
    options = "options" if is_read else "options in a form that is not read"
    if is_read and len(filled) < len(pairs):
        options = "options of some rows: in a file of their own, these rows are read with them"
    looks = (
        (have_tests and is_program, "further tests", False),
        (have_tests, f"tests: data.verifier=code with data.columns.tests={name} judges by them", True),
        (is_called(LISTS), options, True),
        (is_called(PICTURES), "pictures, which no row carries", False),
        (is_called(FILES) and is_asked_for, "a file that questions speak of", True),
        (inner is not None, f"worked solutions: data.columns.solution={name}.{inner} checks golds by them", False),
        (with_gold > most and not is_response, f"has the gold among others: data.columns.golds={name}", False),
        (is_called((*NAMES["gold"], *GOLDS_COLUMNS)), f"other answers? data.columns.other_golds={name}", False),
        (is_called(MEASURES), "a measure", False),
        (is_called(SYSTEM_COLUMNS), "a name, not a message", False),
        (is_called(NAMES["prompt"]) and is_shared, "one text in all rows, which no row carries", True),
        (is_called(TEXTS) and _are_solutions(filled), f"solutions: data.columns.solution={name}", True),
        (is_called(TEXTS) and words >= STORY_WORDS * len(filled), "a text: do questions need it?", True),
    )
    return next((UnusedColumn(name, hint, decides) for is_so, hint, decides in looks if is_so), UnusedColumn(name))

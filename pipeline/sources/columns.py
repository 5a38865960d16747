r"""Reads values from a record: columns by their paths, extracts of texts, and golds.

    {"reward_model": {"ground_truth": 72}}   column "reward_model.ground_truth"              -> "72"
    {"answer": "48+24 = 72 #### 72"}         column "answer", extract "after ####"           -> "72"
    {"solution": "... so \\boxed{\\frac12}"} column "solution", extract "boxed"              -> "\\frac12"
    {"answer": "12.0"}                       column "answer", extract "whole"                -> "12"
    {"output": "Answer: (C)"}                column "output", extract "regex:Answer: (\S+)"  -> "(C)"

A dot in a path leads into a struct, into a text with a JSON object, or by number into a list. A column whose name
contains the dot takes precedence.

`verifiers.columns` finds the roles of columns. `presets` has the formats of known data sets.

A column of gold has one answer, or a list of accepted answers:

    "answer": 72                              golds ["72"]
    "answer": ["1/2", 0.5, null, "1/2"]       golds ["1/2", "0.5"]
    "answer": [["1/2"]]                       golds ["1/2"]
    "answer": "[1, 2]"                        golds ["[1, 2]"]: a text is one answer, here an interval
    "answer": "['72', '73']"                  golds ["72", "73"] if the verifier compares numbers or formulas
    "answer": {"value": "72"}                 rejected as gold_not_text; the column `answer.value` can be named instead
    "answer": {"value": "72", "aliases": []}  golds ["72"]; objects of number, date and spans (DROP) are read as well
    "answer": "nan"                           no golds: a missing value

With the option `multiple` of the verifier `choice`, a list is one answer with several options. The first gold is the
row's gold; the other golds become the argument `other_golds` of its verifier.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.verifiers import ConfigError
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import FINAL_MARK, Values, boxed_spans, last_boxed, marked_answer, text_of, value_at
from truegold.verifiers.gold import MAX_GOLDS, quoted_list
from truegold.verifiers.strict_json import parse_structure

Extract = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A compiled `ColumnSpec`. Called with a record's values, it returns the column's value, or MISSING."""

    name: str
    """A column's name, or a path with dots."""
    extract: Extract | None = None
    """The function that extracts a part of the column's text, or None for the whole text."""

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return value_at(values, self.name)

    def text(self, values: Mapping[str, Any]) -> str | None:
        """Return the column's text after its extract, or None for an empty column."""
        text = text_of(self(values))
        return self.extract(text) if text is not None and self.extract is not None else text

    @property
    def root(self) -> str:
        """The name of the top-level column at the start of the path."""
        return self.name.split(".")[0]


def compile_column(spec: ColumnSpec, field: str) -> Column:
    """Compile a `ColumnSpec`. Raises a ConfigError that names `columns.<field>` if its extract is not valid."""
    return Column(spec.column, _compile_extract(spec.extract, field) if spec.extract is not None else None)


def _compile_extract(text: str, field: str) -> Extract:
    if text == "boxed":
        return last_boxed
    if text == WHOLE:
        return _without_zeros
    if text == f"after {FINAL_MARK}":
        return marked_answer
    if text.startswith("after ") and (marker := text.removeprefix("after ").strip()):
        return lambda value: (value.rpartition(marker)[2].strip() or None) if marker in value else None
    if text.startswith("regex:"):
        return _compile_regex(text.removeprefix("regex:"), field)
    raise ConfigError(
        f"columns.{field}.extract: {text!r} is not an extract.", "There are: after MARKER, boxed, whole, regex:PATTERN."
    )


WHOLE = "whole"
"""The extract for golds that were stored as floats: 12.0 becomes 12. Other texts are unchanged."""
_FLOAT = re.compile(r"-?\d+\.\d+", re.ASCII)


def _without_zeros(value: str) -> str:
    return value.strip().removesuffix(".0") if _FLOAT.fullmatch(value.strip()) else value


def _were_floats(texts: Sequence[str]) -> bool:
    """Return whether all texts are floats as Python writes them, such as 12.0, 6.5 and 9.0. At least two texts, and at
    least half of all, must be whole numbers."""
    numbers = [text.strip() for text in texts]
    if not all(_FLOAT.fullmatch(text) and repr(float(text)) == text for text in numbers):
        return False
    return sum(text.endswith(".0") for text in numbers) >= max(2, len(numbers) / 2)


def _compile_regex(pattern: str, field: str) -> Extract:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"columns.{field}.extract: the pattern {pattern!r} is invalid: {error}.") from None
    if compiled.groups < 1:
        raise ConfigError(
            f"columns.{field}.extract: the pattern {pattern!r} has no group.", "Put the part to take in parentheses."
        )

    def extract(value: str) -> str | None:
        match = compiled.search(value)
        return (match[1].strip() or None) if match and match[1] else None

    return extract


def golds_of(value: Any, column: str) -> list[str]:
    """Return the distinct accepted golds in a value. The list may be empty.

    `column` is the name for errors. Raises Unusable for objects, nested lists, and too many golds.
    """
    value = _only_entry(value)
    if isinstance(value, Mapping) and (answers := _answers_of(value, column)) is not None:
        return distinct(answers)
    entries = [_only_entry(entry) for entry in value] if isinstance(value, list | tuple) else [value]
    for entry in entries:
        if entry and isinstance(entry, Mapping | list | tuple):
            raise Unusable("gold_not_text", _describe_structure(entry, column, alone=entry is value))
    return distinct(text for entry in entries if (text := text_of(entry)) is not None)


_SPANS = ("number", "date", "spans")
"""The keys of an answer object in DROP. One of these keys has the answer."""


def _answers_of(value: Mapping[str, Any], column: str) -> list[str] | None:
    """Return the golds of an answer object in a known format, else None.

    {"value": "Ada Holm", "aliases": ["A. Holm"]}                              ["Ada Holm", "A. Holm"]
    {"number": "65", "date": {"day": "", ...}, "spans": []}                    ["65"]
    {"number": ["65", "66"], "date": [...], "spans": [[], []]}                 ["65", "66"]

    Raises Unusable for an answer of several spans, because no verifier compares them.
    """
    if {"value", "aliases"} <= value.keys():
        return [text for part in (value["value"], *(value["aliases"] or ())) if (text := text_of(part)) is not None]
    if not set(_SPANS) <= value.keys():
        return None
    if isinstance(value["number"], list):
        answers = [
            dict(zip(_SPANS, parts, strict=False)) for parts in zip(*(value[key] for key in _SPANS), strict=False)
        ]
        return [gold for answer in answers if len(answer["spans"] or ()) < 2 for gold in _filled_part(answer)]
    spans = value["spans"]
    if isinstance(spans, list | tuple) and len(spans) > 1:
        raise Unusable("gold_not_text", f"column {column!r} holds an answer of {len(spans)} spans")
    return _filled_part(value)


def _filled_part(answer: Mapping[str, Any]) -> list[str]:
    """Return the number, the span or the date of one answer."""
    date = answer["date"] if isinstance(answer["date"], Mapping) else {}
    day = " ".join(text for key in ("day", "month", "year") if (text := text_of(date.get(key))) is not None)
    parts = (text_of(answer["number"]), text_of(answer["spans"]), day or None)
    return [text for text in parts if text is not None][:1]


WRITTEN_NULLS = ("nan", "NaN", "NAN", "<NA>", "NaT", "null", "NULL", "\\N")
"""Texts that libraries write for missing values."""


def is_written_null(gold: str, of_values: bool) -> bool:
    """Return whether a gold is the text of a missing value. "None" is such a text only if golds are numbers or
    formulas."""
    return gold.strip() in WRITTEN_NULLS or (of_values and gold.strip() == "None")


def gold_texts(value: Any) -> list[str]:
    """Return the text of a value, or all texts of a list, without checking that they can be golds."""
    value = _only_entry(value)
    return [text for part in (value if isinstance(value, list) else [value]) if (text := text_of(part)) is not None]


def extracted_golds(
    column: Column, values: Mapping[str, Any], together: bool = False, of_values: bool = False, problem: str = ""
) -> list[str]:
    """Return the golds of a column after its extract. Golds in which the extract finds nothing are left out.

    - `together`: whether a list is one answer with several entries
    - `of_values`: whether golds are numbers, formulas or letters. Then the text "['72', '73']", as in CSV files, is a
      list
    - `problem`: the question, which decides whether several boxes are one answer
    """
    if together:
        return [text for text in (column.text(values),) if text is not None]
    value = column(values)
    golds = golds_of(quoted_list(value) or value if of_values else value, column.name)
    golds = [gold for gold in golds if not is_written_null(gold, of_values)]
    if column.extract is None:
        return golds
    if column.extract is last_boxed and len(golds) == 1:
        return boxed_golds(golds[0], problem)
    return distinct(part for gold in golds if (part := column.extract(gold)) is not None)


_SEPARATED = re.compile(
    r"\bseparat\w+\s+(?:\w+\s+){0,3}?(?:by|with)\s+(?:a\s+)?(?:comma|semicolon)|逗号|分号", re.IGNORECASE
)
"""A question whose answer has several parts: "Enter all the solutions, separated by commas"."""
_ASKS_FOR_SEVERAL = re.compile(
    r"\b(?:all|both|the\s+(?:two|three|four))\b[^.?!]{0,60}"
    r"\b(?:solutions?|values?|roots?|zeros|points?|angles|numbers|integers|pairs)\b",
    re.IGNORECASE,
)
"""A question for several values: "all the solutions"."""
_ASKS_FOR_ONE_OF_ALL = re.compile(
    r"\b(?:sum|product|number|how\s+many|average|mean|median|largest|smallest|greatest|least|difference|distance)\b"
    r"[^.?!]{0,60}\b(?:all|both|the\s+(?:two|three|four))\b",
    re.IGNORECASE,
)
"""A question for one value that depends on several: "the sum of all solutions". The boxes of these are intermediate
results."""
_ASKS_FOR_ONE = re.compile(
    r"\b(?:only\s+one|one\s+of|any\s+one|one\s+such|one\s+possible|an\s+example|either)\b", re.IGNORECASE
)
"""A question for one of several possible answers: "one such number"."""
_EITHER_ACCEPTED = re.compile(r"\beither\b[^.]{0,60}\b(?:correct|accept)|\balso\b[^.]{0,40}\baccept", re.IGNORECASE)
"""Words of a solution that accept each of its boxes as an answer."""
_JOINED = re.compile(r"[\s\\$}.,;:!()\[\]]*(?:\\text\s*\{)?\s*(?P<word>and|or)\b[^.\n]{0,20}", re.IGNORECASE)
"""The text between two boxes of one sentence: "} or $x = "."""
_LIST = re.compile(r",(?!\d{3})(?![^()\[\]]*[)\]])|\band\b|\bor\b")
"""A separator of a list: a comma outside of brackets, "and", "or"."""
_TYPESET = re.compile(r"\\[,;!: ]|[\s{}]|\\(?:left|right|displaystyle)(?![a-zA-Z])|(?<=\\)[dt](?=frac)")
"""LaTeX layout, which does not change an answer."""
_FILLED_BOX = re.compile(r"\\boxed\s*\{\s*[^}\s.]")
"""The beginning of a box with content."""


def boxed_golds(solution: str, problem: str) -> list[str]:
    r"""Return the accepted golds from the boxes of a worked solution: mostly the last box alone.

    "the answers are \boxed{-2} and \boxed{1}"                        ["-2, 1"]: both are needed
    "b = \boxed{-7}. ... b = \boxed{7}", "separated by commas"        ["-7, 7"]
    "\boxed{x+11} or \boxed{11+x}", "Simplify"                        ["x+11", "11+x"]: each one is right
    "foci \boxed{(9, 0)} and \boxed{(0, 0)}", "Enter only one"        ["(9, 0)", "(0, 0)"]
    "\boxed{\frac{3}{5}} ..., so a+b = \boxed{8}", "Find a+b"         ["8"]: the first is an intermediate result

    A problem may use a box as a symbol, which its solution repeats. Then only the last box is gold.
    """
    texts = [text for start, end in boxed_spans(solution) if (text := solution[start:end].strip())]
    boxes = list({_TYPESET.sub("", text): text for text in texts}.values())
    if len(boxes) < 2 or _FILLED_BOX.search(problem) or len(boxes) > MAX_GOLDS:
        return texts[-1:]
    if _ASKS_FOR_ONE.search(problem) or _EITHER_ACCEPTED.search(solution):
        return boxes
    spans = boxed_spans(solution)
    between = [_JOINED.match(solution[left:right]) for (_, left), (right, _) in itertools.pairwise(spans)]
    words = {match["word"].lower() if match else "" for match in between}
    asks_for_one = _ASKS_FOR_ONE_OF_ALL.search(problem) is not None
    is_list = words == {"and"} or ("" not in words and _ASKS_FOR_SEVERAL.search(problem) is not None)
    if _SEPARATED.search(problem) or (is_list and not asks_for_one):
        return texts[-1:] if _LIST.search(boxes[-1]) else [", ".join(boxes)]
    return boxes if words == {"or"} else texts[-1:]


def listed_golds(value: Any, column: str) -> list[str]:
    """Return the golds of a column of lists (`golds_of`). A list may be a text in JSON."""
    structure = parse_structure(value)
    return golds_of(structure if isinstance(structure, list | Mapping) else value, column)


def distinct(golds: Iterable[str]) -> list[str]:
    """Return the distinct golds. Raises Unusable if there are more than a row may have."""
    once = list(dict.fromkeys(golds))
    if len(once) > MAX_GOLDS:
        raise Unusable("too_many_golds", f"{len(once)} accepted golds; a row may have {MAX_GOLDS}")
    return once


def _only_entry(value: Any) -> Any:
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return value


def _describe_structure(entry: Any, column: str, alone: bool) -> str:
    if isinstance(entry, Mapping) and alone:
        parts = ", ".join(f"{column}.{name}" for name in list(entry)[:8])
        return f"column {column!r} holds an object, not an answer; name a part of it: {parts}"
    kind = "objects" if isinstance(entry, Mapping) else "lists within a list"
    return f"column {column!r} holds {kind}, not answers"


SHOWN_DEPTH = 3
"""The depth of nested structs that an error lists."""

SHOWN_NAMES = 40
"""The maximum number of columns that an error lists."""


def gold_spec(name: str, samples: Sequence[Mapping[str, Any]]) -> ColumnSpec:
    """Return the spec of a gold column.

    The extract is `after ####` if at least half of the values have this mark, and `whole` if they are floats such as
    12.0.
    """
    column = Column(name)
    texts = [text for values in samples for text in gold_texts(column(values))]
    marked = sum(FINAL_MARK in text for text in texts)
    extract = f"after {FINAL_MARK}" if marked and 2 * marked >= len(texts) else None
    return ColumnSpec(column=name, extract=extract or (WHOLE if texts and _were_floats(texts) else None))


def boxed_gold_spec(solution: str, samples: Sequence[Mapping[str, Any]]) -> ColumnSpec | None:
    r"""Return the spec for golds in the last \boxed{} of worked solutions, or None if no solution has a box."""
    column = Column(solution)
    if any(last_boxed(text) for values in samples for text in gold_texts(column(values))):
        return ColumnSpec(column=solution, extract="boxed")
    return None


def column_paths(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the columns, each followed by the paths of its parts: `q`, `q.text`."""
    paths: dict[str, None] = {}

    def add(values: Mapping[str, Any], prefix: str, depth: int) -> None:
        for name, value in values.items():
            paths[f"{prefix}{name}"] = None
            if isinstance(value, Mapping) and depth < SHOWN_DEPTH:
                add(value, f"{prefix}{name}.", depth + 1)

    for sample in samples:
        add(sample, "", 1)
    return list(paths)


def describe_columns(samples: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the columns in sample records, with the fields of structs, for an error."""
    names = column_paths(samples)
    names = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    more = ", ..." if len(names) > SHOWN_NAMES else ""
    shown = ", ".join(name if name.isprintable() and name else repr(name) for name in names[:SHOWN_NAMES])
    return shown[:1000] + more if names else "no columns"


@dataclass(frozen=True, slots=True)
class Derived:
    """The parts of a row that a preset derives from several columns of a record."""

    verifier_args: Mapping[str, Any]
    solution: str | None = None
    """The worked solution, if the layout has no column for it."""
    prompt: str | None = None
    """The prompt, which replaces the text of the layout's prompt column."""
    gold: str | None = None
    """The gold, if the layout has no column for it."""
    verifier: str | None = None
    """The verifier of this row, if it differs from the layout's."""


@dataclass(frozen=True, slots=True)
class RowParts:
    """The parts of a row besides the prompt."""

    id: str | None
    """The id of a row in an exported file; None for other files, and for rows that were edited after the export."""
    gold: str | None
    domain: str
    verifier: str
    verifier_args: Mapping[str, Any]
    solution: str | None
    split: str | None
    """train or heldout, or None for an unknown word."""
    meta: Mapping[str, Any]
    prompt: str | None = None
    """The prompt of a row in an exported file; None if it is read from its column."""
    context: str | None = None
    """The messages before the prompt, for a row in an exported file."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a source: the roles of its columns, and the functions that read its records."""

    columns: Columns
    """The columns of the source by their roles."""
    domain: str = "math"
    """math, code, choice, ..."""
    verifier: str = "math"
    """The verifier of the source's rows."""
    derive: Callable[[Values], Derived] | None = None
    """The function that derives parts of a row from several columns. Raises `Unusable` if it cannot."""
    uses: frozenset[str] = frozenset()
    """The columns that `derive` reads. They are not stored in `meta`."""
    asks: tuple[str, ...] = ()
    """The columns of a prompt that consists of several columns, in order."""
    unseen: frozenset[str] = frozenset()
    """Columns of options, tests and stories that the first records do not have. A row with such a column is of another
    kind, and is rejected."""
    restore: Callable[[Values], RowParts] | None = None
    """The function that restores a whole row from an exported file (`provenance.exported`). The prompt is read from its
    column."""

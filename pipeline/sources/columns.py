r"""Takes values out of a source's record: column paths, extracts, and texts from values of any type.

    {"reward_model": {"ground_truth": 72}}   column "reward_model.ground_truth"              -> "72"
    {"answer": "48+24 = 72 #### 72"}         column "answer", extract "after ####"           -> "72"
    {"solution": "... so \\boxed{\\frac12}"} column "solution", extract "boxed"              -> "\\frac12"
    {"output": "Answer: (C)"}                column "output", extract "regex:Answer: (\S+)"  -> "(C)"

A dot reaches into structs, into texts that hold a JSON object, and by number into lists; a column whose own name has a
dot in it comes first.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from truegold.pipeline.config.sources import ColumnSpec
from truegold.pipeline.sources.jsonl import parse_json
from truegold.pipeline.sources.records import Unusable
from truegold.pipeline.tables.rows import dump_json
from truegold.verifiers import ConfigError

MAX_DEPTH = 64
"""Structures nested deeper are cut: a line of a thousand brackets would end the JSON writer otherwise."""
INT64: Final = 2**63
"""From here on, and below its negative, an integer does not fit into 64 bits."""
EXACT_FLOAT: Final = 2**53
"""Below this every whole float is the integer it looks like."""

Extract = Callable[[str], str | None]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of a column that a record does not have, as opposed to one that holds null."""


@dataclass(frozen=True, slots=True)
class Column:
    """A `ColumnSpec` made ready: called with a record's values, it returns the column's value, MISSING or None."""

    name: str
    """A column's name, or a path with dots."""
    extract: Extract | None = None
    """The function that takes the meant part out of the column's text; None where all of it is meant."""

    def __call__(self, values: Mapping[str, Any]) -> Any:
        if self.name in values:
            return values[self.name]
        head, *rest = self.name.split(".")
        value = values.get(head, MISSING)
        for step in rest:
            value = _take_step(value, step)
        return value

    def text(self, values: Mapping[str, Any]) -> str | None:
        """Return the column's text, after the extract where there is one; None where there is none."""
        text = text_of(self(values))
        return self.extract(text) if text is not None and self.extract is not None else text

    @property
    def root(self) -> str:
        """The name of the top-level column that a path starts at."""
        return self.name.split(".")[0]


def compile_column(spec: ColumnSpec, field: str) -> Column:
    """Make a `ColumnSpec` ready; raise a ConfigError that names `columns.<field>` where its extract is none."""
    return Column(spec.column, _compile_extract(spec.extract, field) if spec.extract is not None else None)


def _take_step(value: Any, step: str) -> Any:
    if value is None or value is MISSING:
        return value
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return MISSING
    if isinstance(value, Mapping):
        return value.get(step, MISSING)
    if isinstance(value, list) and step.isdecimal():
        return value[int(step)] if int(step) < len(value) else MISSING
    return MISSING


def _compile_extract(text: str, field: str) -> Extract:
    """Return the function that an extract stands for."""
    if text == "boxed":
        return last_boxed
    if text.startswith("after ") and (marker := text.removeprefix("after ").strip()):
        return lambda value: (value.rpartition(marker)[2].strip() or None) if marker in value else None
    if text.startswith("regex:"):
        return _compile_regex(text.removeprefix("regex:"), field)
    raise ConfigError(
        f"columns.{field}.extract: {text!r} is no extract.", "There are: after MARKER, boxed, regex:PATTERN."
    )


def _compile_regex(pattern: str, field: str) -> Extract:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"columns.{field}.extract: the pattern {pattern!r} is invalid: {error}.") from None
    if compiled.groups < 1:
        raise ConfigError(
            f"columns.{field}.extract: the pattern {pattern!r} has no group.", "Put what to take in parentheses."
        )

    def extract(value: str) -> str | None:
        match = compiled.search(value)
        return (match[1].strip() or None) if match and match[1] else None

    return extract


_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{|\\(?:boxed|fbox) (?P<bare>[^${}\\\s][^${}\n]*)|\\.|[{}]", re.DOTALL)


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last balanced `\boxed{...}`, or what follows a bare `\boxed 7`."""
    spans = boxed_spans(text)
    return text[slice(*spans[-1])].strip() or None if spans else None


def boxed_spans(text: str) -> list[tuple[int, int]]:
    """Return where the content of each balanced or bare box starts and ends, in the order of their starts.

    It takes one pass with a stack, so that a text of a million open boxes costs no more than its length.
    """
    # Each open brace is the position where the content of its box starts, or None where it opens no box.
    open_braces: list[int | None] = []
    spans: list[tuple[int, int]] = []
    for token in _BOXED.finditer(text):
        if token["bare"] is not None:
            spans.append(token.span("bare"))
        elif token[0] == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None:
                spans.append((start, token.start()))
        elif token[0].endswith("{") and token[0] != "\\{":
            open_braces.append(token.end() if len(token[0]) > 1 else None)
    return sorted(spans)


def text_of(value: Any) -> str | None:
    """Return a value as text, or None for null, NaN, empty values, and texts of nothing but whitespace.

    42 -> "42", 51.0 -> "51", 0.5 -> "0.5", true -> "true", ["x"] -> "x", other structures -> JSON.
    """
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or value is MISSING:
        return None
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float):
        text = _float_text(value)
    elif isinstance(value, list | tuple | Mapping):
        text = dump_json(json_safe(value)) if value else ""
    else:
        text = str(value)  # It is a text, an integer, a decimal, a date.
    return text if text and not text.isspace() else None


def _float_text(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else repr(value)


def json_safe(value: Any, depth: int = 0) -> Any:
    """Return `value` with what JSON cannot hold replaced: bytes and objects by `<type>`, big integers by text."""
    safe: Any = f"<{type(value).__name__}>"
    if isinstance(value, str):
        check_unicode(value)
        safe = value
    elif value is None or isinstance(value, bool | float):
        safe = value
    elif isinstance(value, int):
        safe = value if -INT64 <= value < INT64 else str(value)
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        safe = {json_safe(str(key)): json_safe(item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list | tuple) and depth < MAX_DEPTH:
        safe = [json_safe(item, depth + 1) for item in value]
    elif isinstance(value, datetime.date | datetime.time | decimal.Decimal):
        safe = str(value)
    elif callable(plain := getattr(value, "tolist", None)):  # An array or a number of numpy, as pandas hands them out.
        safe = json_safe(plain(), depth + 1)
    return safe


def check_unicode(text: str) -> None:
    """Raise `Unusable` for lone surrogates: `"\\ud800"` is legal JSON, and no file can hold it as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unusable("invalid_unicode", f"a lone surrogate at character {error.start} of a text") from None

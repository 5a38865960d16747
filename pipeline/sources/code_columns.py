"""Reads the columns that datasets of programs share: solutions, time limits, starter code, function names.

    "solutions": "[\\"print(1)\\", \\"print(2)\\"]"                                  solution_of  ->  "print(1)"
    "solutions": {"language": [2, 3], "solution": ["int main ...", "print(1)"]}    solution_of  ->  "print(1)"
    "time_limit": "2.0 seconds"                                                    limits_of    ->  {"cpu_s": 2.0}

Tests that cannot be read make the record unusable; a solution or a time limit that cannot be read counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from truegold.pipeline.sources.code_tests import parse_tests
from truegold.pipeline.sources.columns import text_of
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.layout import Values
from truegold.pipeline.sources.records import Unusable
from truegold.verifiers.code.suite import is_source

TIME_LIMITS_S = (0.01, 120.0)
"""A time limit outside these bounds is taken for a mistake of the source, and left out."""

PYTHON3 = 3
"""The language of solutions in Python 3, as CodeContests writes it."""

_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?)?\s*", re.IGNORECASE)
_FENCED = re.compile(r"\s*```[\w+]*[ \t]*\n(.*?)\n?```\s*", re.DOTALL)


def refuse_packed(values: Values, column: str) -> None:
    """Raise Unusable where the column holds a text that is no JSON, as LiveCodeBench's private tests do."""
    value = values.get(column)
    if isinstance(value, str) and value.strip() and value.lstrip()[:1] not in ("[", "{"):
        raise Unusable(
            "unsafe_tests",
            f"column {column!r} holds packed data, such as a pickle, which could run anything when it is read; "
            "unpack it where you trust its source, and write the tests as JSON",
        )


def function_name(values: Values) -> str | None:
    """Return the name of the function that tests call, which LiveCodeBench has in its metadata."""
    metadata = values.get("metadata")
    if isinstance(metadata, str):
        metadata = parse_tests(metadata, "metadata") if metadata.lstrip().startswith("{") else None
    name = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) and name else None


def limits_of(values: Values) -> dict[str, float]:
    """Return the source's time limit (2, "2.0 seconds", "1500 ms" or {"seconds": 2, "nanos": 0}) as the verifier's."""
    value = values.get("time_limit")
    seconds: Any = None
    if isinstance(value, Mapping):
        whole, nanos = value.get("seconds") or 0, value.get("nanos") or 0
        seconds = whole + nanos / 1e9 if isinstance(whole, int) and isinstance(nanos, int) else None
    elif isinstance(value, str):
        if match := _TIME.fullmatch(value):
            seconds = float(match[1]) / (1000 if (match[2] or "").lower().startswith("m") else 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    return {"cpu_s": seconds} if seconds is not None and TIME_LIMITS_S[0] <= seconds <= TIME_LIMITS_S[1] else {}


def programs_of(values: Values) -> dict[str, str]:
    """Return the checker and the interactor that come as columns of their own, as in CodeContests+."""
    texts = {name: text_of(values.get(name)) for name in ("checker", "interactor")}
    return {name: text for name, text in texts.items() if text is not None and is_source(text)}


def solution_of(values: Values, *columns: str) -> str | None:
    """Return the first solution that the columns hold, out of its code block where it is in one."""
    for column in columns:
        value = values.get(column)
        # A program may begin with a bracket, too: only JSON that is a list is one of solutions.
        if isinstance(solutions := parse_structure(value), list):
            value = solutions
        if isinstance(value, Mapping):
            value = programs_in_python3(value)
        if isinstance(value, list):
            value = next((text for text in value if text_of(text)), None)
        text = text_of(value)
        if text is not None:
            fenced = _FENCED.fullmatch(text)
            return fenced[1] if fenced and "```" not in fenced[1] else text
    return None


def programs_in_python3(solutions: Mapping[str, Any]) -> list[Any]:
    """Return the programs in Python 3 of CodeContests, which has a list of languages and one of solutions."""
    languages, programs = solutions.get("language"), solutions.get("solution")
    if not isinstance(languages, list) or not isinstance(programs, list):
        return []
    return [program for language, program in zip(languages, programs, strict=False) if language == PYTHON3]


def with_starter(values: Values, column: str) -> str | None:
    """Return the problem with the starter code below it, where there is some that the problem does not show itself."""
    problem, starter = text_of(values.get(column)), text_of(values.get("starter_code"))
    if problem is None or starter is None or starter.strip() in problem:
        return problem
    return f"{problem}\n\nComplete this code:\n\n```python\n{starter.rstrip()}\n```"


def required_text(values: Values, column: str) -> str:
    """Return the text of a column that tests need; raise Unusable where it is empty."""
    text = text_of(values.get(column))
    if text is None:
        raise Unusable("missing_tests", f"column {column!r} is empty")
    return text


def texts_of(value: Any) -> list[str]:
    """Return the texts of a list, or of a value that stands alone."""
    parts = value if isinstance(value, list) else [value]
    return [text for part in parts if (text := text_of(part)) is not None]

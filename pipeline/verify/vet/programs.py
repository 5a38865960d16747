"""The programs that a code row brings along to vet its tests with.

    solution "print(1)", meta {"solutions": ["print(1)", "print(2 - 1)"]}     references: both
    meta {"solutions": {"language": [2, 3], "solution": ["int main ...", "print(1)"]}}   references: the one in Python 3
    meta {"incorrect_solutions": {...}}                                       wrong: those in Python 3

What a source knows of further solutions stays in a row's `meta` (APPS, TACO, CodeContests). Everything else in there is
left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.ingest.code_columns import PYTHON3
from truegold.pipeline.rows import Row


@dataclass(frozen=True, slots=True)
class Programs:
    """references: worked solutions, the row's own first. wrong: programs that the source says are wrong."""

    references: tuple[str, ...]
    wrong: tuple[str, ...]


def programs_of(row: Row, most: int) -> Programs:
    """Up to `most` of each, without repetitions."""
    meta = json.loads(row["meta"] or "{}")
    found = [row["solution"]] if row["solution"] else []
    found += _texts(meta.get("solutions"))
    return Programs(_first(found, most), _first(_texts(meta.get("incorrect_solutions")), most))


def _first(texts: list[str], most: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip("\n") for text in texts if text.strip()))[:most]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    if isinstance(value, Mapping):
        languages, programs = value.get("language"), value.get("solution")
        if not isinstance(languages, list) or not isinstance(programs, list):
            return []
        value = [text for language, text in zip(languages, programs, strict=False) if language == PYTHON3]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

"""What is wrong with the tests of a row, in one line.

require(isinstance(output, str), "tests.cases[3].output", "text", 5)
    BadSuite: tests.cases[3].output must be text, got 5
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

SHOWN_CHARS = 60
"""Characters that a message shows of a value. Stops megabytes of tests being copied into every verdict."""

MAX_FILES, MAX_FILE_CHARS = 32, 4 * 2**20
"""Files that a program of the tests may bring along. Stops a row that fills its folder with gigabytes."""

_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_][\w.+-]{0,100}/){0,4}[A-Za-z0-9_][\w.+-]{0,100}", re.ASCII)


class BadSuite(ValueError):
    """The tests of a row cannot be used; the text names the field and what it may be, on one line."""

    def __init__(self, message: str) -> None:
        super().__init__("\\n".join(message.splitlines()))


def require(fits: bool, field: str, expected: str, value: object) -> None:
    """Raise `BadSuite` unless a field's value fits."""
    if not fits:
        raise BadSuite(f"{field} must be {expected}, got {shown(value)}")


def require_switch(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value is true or false."""
    require(isinstance(value, bool), field, "true or false", value)


def require_tolerance(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value can be a tolerance."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and 0 <= value <= 1e9, field, "a number from 0 to 1000000000", value)  # type: ignore[operator]


def require_files(value: object, field: str) -> None:
    """Raise `BadSuite` unless a value holds the texts of files by their names."""
    fits = isinstance(value, Mapping) and len(value) <= MAX_FILES
    require(fits, field, f"an object of at most {MAX_FILES} files", value)
    for name, text in value.items():  # type: ignore[attr-defined]
        is_name = isinstance(name, str) and _FILE_NAME.fullmatch(name) is not None
        require(is_name, field, "an object whose keys are names of files, such as params.h", name)
        fits = isinstance(text, str) and len(text) <= MAX_FILE_CHARS
        require(fits, f"{field}.{name}", f"text of at most {MAX_FILE_CHARS} characters", text)


def checker_options(
    spec: object, field: str, presets: Mapping[str, Mapping[str, Any]], default: str
) -> tuple[str, dict[str, Any]]:
    """Return the type and the options of a checker, which is a type's name or an object with a `type`.

    presets: the options that each type stands for. default: the type of an object that names none.
    """
    options: dict[str, Any] = {}
    if isinstance(spec, str):
        options = {"type": spec}
    elif isinstance(spec, Mapping):
        options = dict(spec)
    kind = options.pop("type", default) if options else None
    known = isinstance(kind, str) and kind in presets
    require(known, field, f"one of {', '.join(presets)}", spec if kind is None else kind)
    return str(kind), {**presets[str(kind)], **options}


def shown(value: object) -> str:
    """Return the beginning of a value, on one line. It may be as large as its author likes."""
    if isinstance(value, str | bytes):
        return repr(value[:SHOWN_CHARS])[:SHOWN_CHARS]
    if isinstance(value, list | tuple | dict | set | frozenset):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:SHOWN_CHARS]

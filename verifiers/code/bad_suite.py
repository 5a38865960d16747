"""What is wrong with the tests of a row, in one line.

require(isinstance(output, str), "tests.cases[3].output", "text", 5)
    BadSuite: tests.cases[3].output must be text, got 5
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN_CHARS = 60
"""Characters that a message shows of a value. Stops megabytes of tests being copied into every verdict."""


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

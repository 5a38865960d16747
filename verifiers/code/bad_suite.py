"""What is wrong with the tests of a row, in one line.

BadSuite("tests.cases[3].output must be text, got 5")
"""

from __future__ import annotations

SHOWN_CHARS = 60
"""What a message shows of a bad value. Stops megabytes of tests being copied into every verdict."""


class BadSuite(ValueError):
    """The tests of a row cannot be used; the text names the field and what it may be, on one line."""

    def __init__(self, message: str) -> None:
        super().__init__("\\n".join(message.splitlines()))


def shown(value: object) -> str:
    """The beginning of a value, on one line."""
    if isinstance(value, str):
        return repr(value[:SHOWN_CHARS])
    if isinstance(value, list | tuple | dict | set):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 1_000:
        return f"a number of {value.bit_length()} bits"
    return repr(value)[:SHOWN_CHARS]

"""Reads a verifier's options from its `info`; `AnswerVerifier` turns a bad value into a verdict.

    {"decimals": 2}      integer_option(info, "decimals", low=0, high=100)  ->  2
    {"decimals": "two"}  BadOption: decimals must be a whole number from 0 to 100, got 'two'

Each function `..._option` raises `BadOption` for a bad value and returns None, or a default, for an absent option.

    `info` of              allowed options                       a bad option
    a row                  those of all built-in verifiers       the verdict has no score (`registry.unknown_option`)
    a call                 those of the verifier                 raises an error (`registry.declared`)
    a configuration        those of the verifier                 raises an error before any work
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from truegold.verifiers.verdict import NO_INFO, Reason, Verdict

SHOWN_CHARS = 60
"""Maximum number of characters of a bad value that an error shows, since `info` may be large."""


class BadOption(ValueError):
    """An option of `info` with an invalid value; the text says which values are valid."""


def bad_option_verdict(error: BadOption) -> Verdict:
    """Return the verdict on a row with a bad option: it has no score, and the evidence holds the error."""
    return Verdict(None, Reason.VERIFIER_ERROR, evidence={"error": str(error)})


def integer_option(info: Mapping[str, Any], key: str, low: int, high: int) -> int | None:
    """Return a whole number from `low` to `high`."""
    value = info.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
        return value
    raise _wrong_option(key, f"a whole number from {low} to {high}", value)


def number_option(info: Mapping[str, Any], key: str) -> float | None:
    """Return a finite number that is not negative."""
    if (value := info.get(key)) is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A Python integer may be too large for a float.
    if is_number and 0 <= value < 1e300 and math.isfinite(value):
        return float(value)
    raise _wrong_option(key, "a number, 0 or more", value)


def switch_option(info: Mapping[str, Any], key: str, default: bool) -> bool:
    """Return true or false."""
    value = info.get(key, default)
    if isinstance(value, bool):
        return value
    raise _wrong_option(key, "true or false", value)


def word_option(info: Mapping[str, Any], key: str, allowed: Sequence[str], default: str) -> str:
    """Return one of the words in `allowed`."""
    value = info.get(key, default)
    if isinstance(value, str) and value in allowed:
        return value
    raise _wrong_option(key, f"one of {', '.join(allowed)}", value)


def text_option(info: Mapping[str, Any], key: str, max_chars: int) -> str | None:
    """Return a text of at most `max_chars` characters."""
    if (value := info.get(key)) is None or (isinstance(value, str) and len(value) <= max_chars):
        return value
    raise _wrong_option(key, f"a text of at most {max_chars} characters", value)


def texts_option(info: Mapping[str, Any], key: str, default: Sequence[str], most: int, max_chars: int) -> list[str]:
    """Return a list of at most `most` texts, or an empty list for null."""
    value = info.get(key, default) or ()
    is_list = isinstance(value, list | tuple) and len(value) <= most
    if is_list and all(isinstance(entry, str) and len(entry) <= max_chars for entry in value):
        return list(value)
    raise _wrong_option(key, f"a list of at most {most} texts of at most {max_chars} characters", value)


def _wrong_option(key: str, expected: str, value: object) -> BadOption:
    # The value may be huge: a text is cut before repr(), any other value after it.
    shown = repr(value[:SHOWN_CHARS] if isinstance(value, str) else value)[:SHOWN_CHARS]
    return BadOption(f"{key} must be {expected}, got {shown}")


class AnswerVerifier(ABC):
    """Base class of verifiers that compare the response with gold and ignore the problem."""

    __slots__ = ()

    options: ClassVar[tuple[str, ...]] = ()
    """The keys of `info` that the verifier reads."""
    needed_options: ClassVar[tuple[str, ...]] = ()
    """The keys of `info` that are required."""

    def check_options(self, info: Mapping[str, Any]) -> None:
        """Raise BadOption for an invalid value. An empty response is judged: `_judge` reads the options first."""
        verdict = self("", None, info=info)
        if verdict.reason is Reason.VERIFIER_ERROR:
            raise BadOption(verdict.evidence["error"])

    def __call__(
        self, response: str, gold: str | None, *, problem: str | None = None, info: Mapping[str, Any] = NO_INFO
    ) -> Verdict:
        """Judge `response` against `gold`; `problem` is ignored."""
        try:
            return self._judge(response, gold, info)
        except BadOption as error:
            return bad_option_verdict(error)

    @abstractmethod
    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        """Return the verdict. Raises BadOption for an invalid option."""

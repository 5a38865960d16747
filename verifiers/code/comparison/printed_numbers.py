"""Numbers as programs print them.

    same_number("0.5", ".5000001", Tolerance(1e-6, 1e-6))     True
    same_number("5", "5.1", Tolerance(1, 1))                  False: an integer was expected
    same_integer("5", "5.000")                                True: exactly the same
    same_integer("-0", "0"), same_integer("+7", "7")          True

Digits are those of ASCII. `inf`, `nan` and what overflows a float (`1e400`) are texts.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

MAX_NUMBER_CHARS = 1_000
"""A longer number is a text. Stops decimals of megabytes being converted."""

_BOUNDED = rf"(?=.{{1,{MAX_NUMBER_CHARS}}}\Z)"
NUMBER_PATTERN = re.compile(_BOUNDED + r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_WHOLE_DECIMAL = re.compile(_BOUNDED + r"[+-]?[0-9]+\.0+")
_NOT_INTEGER = (".", "e", "E")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far two numbers may be apart."""

    absolute: float
    relative: float
    everywhere: bool = False
    """Whether numbers are compared as such wherever either is written with a decimal point or an exponent; otherwise
    only where the expected one is."""


def same_number(expected: str, got: str, tolerance: Tolerance) -> bool:
    """Whether two texts are numbers that are compared as such, and close enough."""
    if not _is_float(expected) and not (tolerance.everywhere and _is_float(got)):
        return False
    if NUMBER_PATTERN.fullmatch(expected) is None or NUMBER_PATTERN.fullmatch(got) is None:
        return False
    expected_number, got_number = float(expected), float(got)
    if not (math.isfinite(expected_number) and math.isfinite(got_number)):
        return False
    return abs(expected_number - got_number) <= max(tolerance.absolute, tolerance.relative * abs(expected_number))


def same_integer(expected: str, got: str) -> bool:
    """Whether two integers differ in no more than a plus sign, the sign of zero, or zeros behind a decimal point."""
    if _WHOLE_DECIMAL.fullmatch(got) and expected.lstrip("+-").isdecimal():
        got = got.partition(".")[0]
        if expected == got:
            return expected.isascii()
    if expected[:1] not in ("+", "-") and got[:1] not in ("+", "-"):
        return False
    expected, got = _without_plus(expected), _without_plus(got)
    digits = expected.lstrip("-")
    return expected == got and digits.isascii() and digits.isdecimal()


def _without_plus(text: str) -> str:
    text = text.removeprefix("+")
    return "0" if text == "-0" else text


def _is_float(text: str) -> bool:
    return any(mark in text for mark in _NOT_INTEGER)

"""Reads single values and sums: numbers, radicals, multiples of pi, polynomials. `reading.py` reads the rest.

`tight` is the text without the blanks that mean nothing, where it has any; every pattern is linear in its length.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

from truegold.verifiers.audit.variants.forms import Irrational, Rational, Scalar, Sum

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,29})")
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:(?:,\\!|\{,\}|\\,)\d{3})+")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,19})?\.\d{1,12}")
_FRACTION = re.compile(
    r"(-?)\\[dt]?frac(?:\{(-?\d{1,20})\}\{(\d{1,20})\}|\{(-?\d{1,20})\}(\d)|(\d)(\d))|(-?)(\d{1,20})/(\d{1,20})"
)
_MIXED = re.compile(r"(-?)([1-9]\d{0,9})\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}")
_SYMBOL = r"(?:\\pi|\\sqrt(?:\{\d{1,9}\}|\d))"
_IRRATIONAL = re.compile(
    rf"(-?)(?:(\d{{0,12}})({_SYMBOL})|\\[dt]?frac\{{(-?)(\d{{0,12}})({_SYMBOL})\}}\{{(\d{{1,12}})\}})"
)
_TERM = re.compile(
    rf"([+-]?)(\d{{0,12}})({_SYMBOL}(?![a-zA-Z])|(?:[a-zA-Z](?:\^(?:\d|\{{\d{{1,3}}\}}))?){{1,6}})?(?=[+-]|$)"
)


def scalar_of(text: str, tight: str = "") -> Scalar | None:
    """A rational or an irrational value, or None."""
    return rational_of(text, tight) or irrational_of(text, tight)


def rational_of(text: str, tight: str = "") -> Rational | None:
    """An integer, decimal, fraction or mixed number, or None."""
    tight = tight or text
    if _INTEGER.fullmatch(tight) and tight != "-0":
        return Rational(text, Fraction(tight), "integer")
    if _GROUPED.fullmatch(tight):
        return Rational(text, Fraction(re.sub(r"[^\d-]", "", tight)), "integer")
    if _DECIMAL.fullmatch(tight):
        return Rational(text, Fraction(tight), "decimal")
    if (match := _MIXED.fullmatch(tight)) and 0 < int(match[3]) < int(match[4]):
        value = int(match[2]) + Fraction(int(match[3]), int(match[4]))
        return Rational(text, -value if match[1] else value, "mixed number")
    if match := _FRACTION.fullmatch(tight):
        sign, top, bottom = [group for group in match.groups() if group is not None]
        if int(bottom):
            return Rational(text, Fraction(int(top), int(bottom)) * (-1 if sign else 1), "fraction")
    return None


def irrational_of(text: str, tight: str = "") -> Irrational | None:
    """A multiple of pi or of a root that is irrational, or None."""
    tight = tight or text
    match = _IRRATIONAL.fullmatch(tight)
    if match is None:
        return None
    top, bottom = match[2] if match[3] else match[5], int(match[7] or 1)
    radicand = _radicand(match[3] or match[6])
    coefficient = Fraction(int(top or 1), bottom) if bottom else Fraction(0)
    if bool(match[1]) != bool(match[4]):
        coefficient = -coefficient
    if not coefficient or (radicand is not None and math.isqrt(radicand) ** 2 == radicand):
        return None
    return Irrational(text, coefficient, radicand)


def _radicand(symbol: str) -> int | None:
    return None if symbol == "\\pi" else int(re.sub(r"\D", "", symbol))


def sum_of(text: str, tight: str = "") -> Sum | None:
    """A sum of terms that cannot be collected any further, or None."""
    tight = tight or text
    terms: list[tuple[int, str]] = []
    position = 0
    while position < len(tight):
        match = _TERM.match(tight, position)
        if match is None or match.end() == position or not (match[2] or match[3]) or (position and not match[1]):
            return None
        position = match.end()
        symbol = re.sub(r"\\sqrt(\d)", r"\\sqrt{\1}", match[3] or "")
        terms.append((int(match[2] or 1) * (-1 if match[1] == "-" else 1), symbol))
    return _classify(text, terms)


def _classify(text: str, terms: list[tuple[int, str]]) -> Sum | None:
    symbols = [symbol for _, symbol in terms]
    if len(terms) == 1 and abs(terms[0][0]) == 1 and "^" not in symbols[0]:
        return None  # `x` may be a label and `cat` an animal.
    if not all(coefficient for coefficient, _ in terms) or not _are_independent(symbols):
        return None
    variables = set(re.findall("[a-zA-Z]", re.sub(r"\\[a-z]+", "", "".join(symbols))))
    constants = any("\\" in symbol for symbol in symbols)
    kind = None
    if variables == {"i"} and set(symbols) == {"", "i"}:
        kind = "complex number"
    elif variables and not variables & {"e", "i"} and not constants:
        labels = all(re.fullmatch("[A-Z]+", symbol) for symbol in symbols if symbol)  # AB may be a segment, C a choice.
        kind = None if labels else "polynomial"
    elif not variables and len(terms) > 1 and _are_free_of_squares(symbols):
        kind = "sum of constants"
    return Sum(text, tuple(terms), kind) if kind else None


def _are_independent(symbols: list[str]) -> bool:
    """Whether no monomial stands twice, not even as `xy` and `yx`, and no letter twice in one."""
    letters = [re.findall("[a-zA-Z]", symbol) for symbol in symbols if "\\" not in symbol]
    distinct = {"".join(sorted(symbol)) for symbol in symbols}
    return len(distinct) == len(symbols) and all(len(set(factors)) == len(factors) for factors in letters)


def _are_free_of_squares(symbols: list[str]) -> bool:
    radicands = [int(symbol[6:-1]) for symbol in symbols if symbol.startswith("\\sqrt")]
    return not any(radicand % factor**2 == 0 for radicand in radicands for factor in range(2, math.isqrt(radicand) + 1))

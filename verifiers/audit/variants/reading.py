"""Which form does a gold answer have? `form_of(r"\\frac{3}{4}")` is a Number; None where no form certainly fits.

The patterns are strict and are tried from the narrow to the wide. What could be read in two ways is not read at all:
`1,234` may be a number or a list, `6/20` after a word a date, `abc` a word or a product. Nested structures and
functions are not covered.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise

from truegold.verifiers.audit.variants.forms import (
    BaseN,
    Collection,
    Congruence,
    Degrees,
    Equation,
    Form,
    Inequality,
    Interval,
    Letter,
    Matrix,
    Money,
    Pair,
    Percent,
    PlusMinus,
    Scalar,
    TimeOfDay,
    Union,
    WithUnit,
    Word,
)
from truegold.verifiers.audit.variants.reading_values import rational_of, scalar_of, sum_of
from truegold.verifiers.audit.variants.words import KNOWN_WORDS, UNITS

MAX_GOLD_CHARS = 400
"""A longer gold is a document; none of these forms is so long."""

CLOSE = 1e-9
"""Two values nearer than this, relatively, may be one value: no rule may rely on their being two."""

_INFINITE = re.compile(r"([+-]?)\\infty")
_BRACKETS = re.compile(r"([(\[])([^()\[\]]+)([)\]])")
_MATRIX = re.compile(r"\\begin\{([pb]matrix)\}(.+)\\end\{\1\}", re.DOTALL)
_TEXT = r"\\(?:text|mbox|textbf|mathrm|textit)"
_TIME = re.compile(rf"(1[0-2]|[1-9]):([0-5]\d)(?:\\[ ,]|~)?\s*(?:{_TEXT}\{{)?\s*([aApP])\.?[mM]\.?\s*\}}?")
_CONGRUENCE = re.compile(r"([a-zA-Z])\\equiv ?(\d{1,6})\\pmod(?:\{(\d{1,6})\}|(\d)| (\d{1,6}))")
_BASE = re.compile(r"(?:([0-9]{1,30})|\(([0-9]{1,30})\))_(?:([2-9])|\{([2-9]|1[0-6])\})")
_UNIT = re.compile(
    rf"(.+?)(?:\\[ ,]|~)?(?:{_TEXT}\{{([^{{}}]{{1,40}})\}}|\s([a-zA-Z ]{{1,40}}))(?:\^(?:([23])|\{{([23])\}}))?"
)
_LETTER = re.compile(rf"([A-E])|\(([A-J])\)|{_TEXT}\{{(?:([A-J])|\(([A-J])\))\}}|\({_TEXT}\{{([A-J])\}}\)")
_WORDS = re.compile(
    rf"{_TEXT}\{{\s*([A-Za-z]{{2,20}}(?: [A-Za-z]{{1,20}}){{0,2}})\s*\}}|([A-Z][a-z]{{2,20}}|[a-z]{{2,20}})"
)
_RELATIONS = {"<": "<", ">": ">", r"\le": "<=", r"\leq": "<=", r"\ge": ">=", r"\geq": ">=", "≤": "<=", "≥": ">="}
_RELATION = re.compile(r"(\\leq?|\\geq?|[<>≤≥])(?![a-zA-Z])")


def form_of(gold: str) -> Form | None:
    """The form of `gold`, or None where none certainly fits."""
    text = gold.strip()
    if not text or len(text) > MAX_GOLD_CHARS:
        return None
    plain = re.sub(r"\\left(?=[(\[\\])|\\right(?=[)\]\\])", "", text)
    # Blanks mean nothing between mathematical symbols, except that one ends a command: `\pi r`.
    tight = re.sub(r"(\\[a-zA-Z]+)\s+(?=[a-zA-Z])|\s+", lambda m: f"{m[1]} " if m[1] else "", plain)
    for read in _READERS:
        form = read(text, tight)
        if form is not None:
            return form
    return None


def _entries(inner: str) -> tuple[Scalar, ...] | None:
    parts = [part.strip() for part in inner.split(",")]
    entries = [scalar_of(part) for part in parts]
    # A later part of just three digits may be the end of a number with a thousands comma.
    if len(parts) < 2 or any(re.fullmatch(r"\d{3}", part) for part in parts[1:]):
        return None
    return tuple(entry for entry in entries if entry) if all(entries) else None


def _are_distinct(entries: tuple[Scalar, ...]) -> bool:
    values = sorted(entry.approx for entry in entries)
    return all(b - a > CLOSE * max(abs(a), abs(b)) for a, b in pairwise(values))


def _list(text: str, tight: str) -> Collection | None:
    braced = re.fullmatch(r"\\\{(.+)\\\}", tight)
    if re.search(r"\{,\}|,\\!|\\,", tight):
        return None
    entries = _entries(braced[1] if braced else tight)
    if entries is None or not _are_distinct(entries):
        return None
    return Collection(text, entries, "set" if braced else "list")


def _bracketed(text: str, tight: str) -> Pair | Interval | None:
    match = _BRACKETS.fullmatch(tight)
    if match is None or re.search(r"\{,\}|,\\!|\\,", tight):
        return None
    if interval := _interval(text, match):
        return interval
    entries = _entries(match[2])
    return Pair(text, entries) if entries and match[1] + match[3] == "()" else None


def _interval(text: str, match: re.Match[str]) -> Interval | None:
    left, inner, right = match.groups()
    ends = [part.strip() for part in inner.split(",")]
    if len(ends) != 2 or (left + right == "()" and "\\infty" not in inner):
        return None
    low, high = scalar_of(ends[0]), scalar_of(ends[1])
    if (low is None and ends[0] != "-\\infty") or (high is None and not re.fullmatch(r"\+?\\infty", ends[1])):
        return None
    if (low is None and left == "[") or (high is None and right == "]"):
        return None
    if low is not None and high is not None and not _are_distinct((low, high)):
        return None
    if low is not None and high is not None and low.approx > high.approx:
        return None
    return Interval(text, left, low, high, right)


def _union(text: str, tight: str) -> Union | None:
    pieces = tight.split("\\cup")
    ends: list[float] = []
    for piece in pieces:
        match = _BRACKETS.fullmatch(piece.strip())
        parts = [part.strip() for part in match[2].split(",")] if match else []
        values = [_end(part) for part in parts]
        if len(values) != 2 or None in values:
            return None
        ends += [value for value in values if value is not None]
    # Strictly rising, except that two open ends may meet in the point they leave out.
    for index, (a, b) in enumerate(pairwise(ends)):
        meets_open = (
            index % 2 == 1 and a == b and pieces[index // 2].strip()[-1] + pieces[index // 2 + 1].strip()[0] == ")("
        )
        if not (b - a > CLOSE * max(1.0, abs(a) if math.isfinite(a) else 1.0) or meets_open):
            return None
    return Union(text, tuple(piece.strip() for piece in pieces)) if len(pieces) > 1 else None


def _end(text: str) -> float | None:
    if match := _INFINITE.fullmatch(text):
        return -math.inf if match[1] == "-" else math.inf
    value = scalar_of(text)
    return None if value is None else value.approx


def _plus_minus(text: str, tight: str) -> PlusMinus | None:
    parts = re.split(r"\\pm ?", tight)
    if len(parts) != 2:
        return None
    middle, offset = scalar_of(parts[0]), scalar_of(parts[1])
    if offset is None or offset.approx == 0 or (parts[0] and middle is None):
        return None
    return PlusMinus(text, middle, offset)


def _matrix(text: str, tight: str) -> Matrix | None:
    match = _MATRIX.fullmatch(tight)
    if match is None:
        return None
    rows = [[scalar_of(cell) for cell in row.split("&")] for row in match[2].removesuffix("\\\\").split("\\\\")]
    if len({len(row) for row in rows}) != 1 or not all(all(row) for row in rows):
        return None
    return Matrix(text, match[1], tuple(tuple(cell for cell in row if cell) for row in rows))


def _measured(text: str, tight: str) -> Form | None:
    if (match := re.fullmatch(r"(.+?)\\?%", tight)) and (amount := rational_of(match[1])):
        return Percent(text, amount)
    if match := re.fullmatch(r"\\?\$(.+)", tight):
        amount = rational_of(re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", match[1]))
        return Money(text, amount) if amount and amount.kind in {"integer", "decimal"} else None
    if (match := re.fullmatch(r"(.+?)(?:\^(?:\\circ|\{\\circ\})|°)", tight)) and (amount := rational_of(match[1])):
        return Degrees(text, amount)
    return _with_unit(text)


def _with_unit(text: str) -> WithUnit | None:
    match = _UNIT.fullmatch(text)
    if match is None:
        return None
    unit = " ".join((match[2] or match[3]).removesuffix(".").split())
    amount = rational_of(match[1].strip())
    if amount is None or unit not in UNITS:
        return None
    return WithUnit(text, amount, unit, int(match[4] or match[5] or 1))


def _base(text: str, tight: str) -> BaseN | None:
    match = _BASE.fullmatch(tight)
    if match is None:
        return None
    digits, base = match[1] or match[2], int(match[3] or match[4])
    return BaseN(text, digits, base) if all(int(digit) < base for digit in digits) and digits[0] != "0" else None


def _equation(text: str, tight: str) -> Equation | None:
    match = re.fullmatch(r"([a-zA-Z])=([^=<>]+)", tight)
    if match is None:
        return None
    right = scalar_of(match[2])
    if right is not None:
        return Equation(text, match[1], right)
    line = sum_of(match[2])
    if match[1] == "y" and line and line.kind == "polynomial" and "y" not in match[2]:
        return Equation(text, match[1], line)
    return None


def _inequality(text: str, tight: str) -> Inequality | None:
    parts = _RELATION.split(tight)
    if len(parts) != 3:
        return None
    left, relation, right = parts[0].strip(), _RELATIONS[parts[1]], parts[2].strip()
    if re.fullmatch("[a-zA-Z]", right):
        left, right, relation = right, left, relation.translate(str.maketrans("<>", "><"))
    bound = scalar_of(right)
    return Inequality(text, left, relation, bound) if bound and re.fullmatch("[a-df-hj-zA-Z]", left) else None


def _time(text: str, tight: str) -> TimeOfDay | None:
    match = _TIME.fullmatch(text)
    return TimeOfDay(text, int(match[1]), int(match[2]), match[3].lower()) if match else None


def _congruence(text: str, tight: str) -> Congruence | None:
    match = _CONGRUENCE.fullmatch(tight)
    if match is None:
        return None
    residue, modulus = int(match[2]), int(match[3] or match[4] or match[5])
    return Congruence(text, match[1], residue, modulus) if residue < modulus > 1 else None


def _letter(text: str, tight: str) -> Letter | None:
    match = _LETTER.fullmatch(tight)
    return Letter(text, next(group for group in match.groups() if group)) if match else None


def _word(text: str, tight: str) -> Word | None:
    match = _WORDS.fullmatch(text)
    if match is None:
        return None
    word = match[1] or match[2]
    # Without \text a lower-case word may be a product of variables.
    return Word(text, word) if match[1] or word.lower() in KNOWN_WORDS or word[0].isupper() else None


_READERS: tuple[Callable[[str, str], Form | None], ...] = (
    scalar_of,
    _letter,
    _base,
    _time,
    _congruence,
    _measured,
    _matrix,
    _bracketed,
    _union,
    _list,
    _plus_minus,
    sum_of,
    _equation,
    _inequality,
    _word,
)

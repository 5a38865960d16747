"""Determines the form of a gold, such as a number or an interval: `form_of(r"\\frac{3}{4}")` returns a Rational.

The patterns are strict, and narrow ones are tried first. For a gold with two possible readings, `form_of` returns None:
`1,234` may be a number or a list, `6/20` after a word may be a date, `abc` may be a word or a product. Not covered:
nested structures and functions.

This is a second reader of LaTeX on purpose: if the audit used the math verifier's reader, it could not find that
reader's mistakes. Every pattern takes linear time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import truegold.verifiers.audit.gold_forms as forms

MAX_GOLD_CHARS = 400
"""Maximum length of a gold that is read, in characters."""

CLOSE = 1e-9
"""The relative difference below which two values may be equal. Rules do not treat such values as different."""

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,29})")
_GROUPED = re.compile(r"-?[1-9]\d{0,2}(?:(?:,\\!|\{,\}|\\,)\d{3})+")
"""An integer with groups of three digits: `1{,}234`."""
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,19})?\.\d{1,12}")
_FRACTION = re.compile(
    r"(-?)\\[dt]?frac(?:\{(-?\d{1,20})\}\{(\d{1,20})\}|\{(-?\d{1,20})\}(\d)|(\d)(\d))|(-?)(\d{1,20})/(\d{1,20})"
)
_MIXED = re.compile(r"(-?)([1-9]\d{0,9})\\[dt]?frac\{(\d{1,9})\}\{(\d{1,9})\}")
_SYMBOL = r"(?:\\pi|\\sqrt(?:\{\d{1,9}\}|\d))"
r"""Pi or a root: `\pi`, `\sqrt{3}`."""
_IRRATIONAL = re.compile(
    rf"(-?)(?:(\d{{0,12}})({_SYMBOL})|\\[dt]?frac\{{(-?)(\d{{0,12}})({_SYMBOL})\}}\{{(\d{{1,12}})\}})"
)
_TERM = re.compile(
    rf"([+-]?)(\d{{0,12}})({_SYMBOL}(?![a-zA-Z])|(?:[a-zA-Z](?:\^(?:\d|\{{\d{{1,3}}\}}))?){{1,6}})?(?=[+-]|$)"
)
r"""A term of a sum: `-7x`, `4\sqrt{3}`."""
_BRACKETS = re.compile(r"([(\[])([^()\[\]]+)([)\]])")
_GROUPS = re.compile(r"\{,\}|,\\!|\\,")
"""A separator of thousands."""
_TEXT = r"\\(?:text|mbox|textbf|mathrm|textit)"
_UNIT = re.compile(
    rf"(.+?)(?:\\[ ,]|~)?(?:{_TEXT}\{{([^{{}}]{{1,40}})\}}|\s([a-zA-Z ]{{1,40}}))(?:\^(?:([23])|\{{([23])\}}))?"
)
r"""An amount with a unit: `5\text{ cm}^2`."""
_RELATIONS = {"<": "<", ">": ">", r"\le": "<=", r"\leq": "<=", r"\ge": ">=", r"\geq": ">=", "≤": "<=", "≥": ">="}
_RELATION = re.compile(r"(\\leq?|\\geq?|[<>≤≥])(?![a-zA-Z])")


def form_of(gold: str) -> forms.Form | None:
    """Return the form of a gold, or None if no form is certain."""
    if not (text := gold.strip()) or len(text) > MAX_GOLD_CHARS:
        return None
    plain = re.sub(r"\\left(?=[(\[\\])|\\right(?=[)\]\\])", "", text)
    # Blanks between mathematical symbols have no meaning, except after a command: `\pi r`.
    tight = re.sub(r"(\\[a-zA-Z]+)\s+(?=[a-zA-Z])|\s+", lambda m: f"{m[1]} " if m[1] else "", plain)
    return next((form for read in _READERS if (form := read(text, tight)) is not None), None)


def scalar_of(text: str, tight: str = "") -> forms.Scalar | None:
    """Return a rational or irrational value, or None. tight: the text without blanks, if it has any."""
    return _rational(text, tight or text) or _irrational(text, tight or text)


def _rational(text: str, tight: str) -> forms.Rational | None:
    if _INTEGER.fullmatch(tight) and tight != "-0":
        return forms.Rational(text, Fraction(tight), "integer")
    if _GROUPED.fullmatch(tight):
        return forms.Rational(text, Fraction(re.sub(r"[^\d-]", "", tight)), "integer")
    if _DECIMAL.fullmatch(tight):
        return forms.Rational(text, Fraction(tight), "decimal")
    if (match := _MIXED.fullmatch(tight)) and 0 < int(match[3]) < int(match[4]):
        value = int(match[2]) + Fraction(int(match[3]), int(match[4]))
        return forms.Rational(text, -value if match[1] else value, "mixed number")
    if match := _FRACTION.fullmatch(tight):
        minus, top, bottom = [group for group in match.groups() if group is not None]
        if int(bottom):
            return forms.Rational(text, Fraction(int(top), int(bottom)) * (-1 if minus else 1), "fraction")
    return None


def _irrational(text: str, tight: str) -> forms.Irrational | None:
    """Return a rational multiple of pi or of an irrational root, or None."""
    if (match := _IRRATIONAL.fullmatch(tight)) is None:
        return None
    symbol, bottom = match[3] or match[6], int(match[7] or 1)
    top = match[2] if match[3] else match[5]
    radicand = None if symbol == "\\pi" else int(re.sub(r"\D", "", symbol))
    coefficient = Fraction(int(top or 1), bottom) if bottom else Fraction(0)
    if bool(match[1]) != bool(match[4]):
        coefficient = -coefficient
    if not coefficient or (radicand is not None and math.isqrt(radicand) ** 2 == radicand):
        return None
    return forms.Irrational(text, coefficient, radicand)


def _sum(text: str, tight: str) -> forms.Sum | None:
    """Return a sum of terms that cannot be combined any further, or None."""
    terms: list[tuple[int, str]] = []
    position = 0
    while position < len(tight):
        match = _TERM.match(tight, position)
        if match is None or match.end() == position or not (match[2] or match[3]) or (position and not match[1]):
            return None
        position = match.end()
        symbol = re.sub(r"\\sqrt(\d)", r"\\sqrt{\1}", match[3] or "")
        terms.append((int(match[2] or 1) * (-1 if match[1] == "-" else 1), symbol))
    kind = _kind_of_sum(terms)
    return forms.Sum(text, tuple(terms), kind) if kind else None


def _kind_of_sum(terms: Sequence[tuple[int, str]]) -> str | None:
    symbols = [symbol for _, symbol in terms]
    if len(terms) == 1 and abs(terms[0][0]) == 1 and "^" not in symbols[0]:
        return None  # `x` may be a label, and `cat` a word.
    if not all(coefficient for coefficient, _ in terms) or not _are_independent(symbols):
        return None
    variables = set(re.findall("[a-zA-Z]", re.sub(r"\\[a-z]+", "", "".join(symbols))))
    if variables == {"i"} and set(symbols) == {"", "i"}:
        return "complex number"
    if variables and not variables & {"e", "i"} and not any("\\" in symbol for symbol in symbols):
        labels = all(re.fullmatch("[A-Z]+", symbol) for symbol in symbols if symbol)  # AB may be a segment, C a choice.
        return None if labels else "polynomial"
    radicands = [int(symbol[6:-1]) for symbol in symbols if symbol.startswith("\\sqrt")]
    has_square = any(inner % n**2 == 0 for inner in radicands for n in range(2, math.isqrt(inner) + 1))
    return None if variables or len(terms) < 2 or has_square else "sum of constants"


def _are_independent(symbols: Sequence[str]) -> bool:
    """Return whether all monomials differ (`xy` and `yx` do not), and no monomial has a letter twice."""
    letters = [re.findall("[a-zA-Z]", symbol) for symbol in symbols if "\\" not in symbol]
    distinct = {"".join(sorted(symbol)) for symbol in symbols}
    return len(distinct) == len(symbols) and all(len(set(factors)) == len(factors) for factors in letters)


def _entries(inner: str) -> tuple[forms.Scalar, ...] | None:
    parts = [part.strip() for part in inner.split(",")]
    entries = [entry for part in parts if (entry := scalar_of(part))]
    # A later part of just three digits may be the end of a number with a thousands comma.
    if not 2 <= len(parts) == len(entries) or any(re.fullmatch(r"\d{3}", part) for part in parts[1:]):
        return None
    return tuple(entries)


def _are_distinct(entries: Sequence[forms.Scalar]) -> bool:
    values = sorted(entry.approx for entry in entries)
    return all(b - a > CLOSE * max(abs(a), abs(b)) for a, b in pairwise(values))


def _list(text: str, tight: str) -> forms.Collection | None:
    braced = re.fullmatch(r"\\\{(.+)\\\}", tight)
    entries = _entries(braced[1] if braced else tight)
    if _GROUPS.search(tight) or entries is None or not _are_distinct(entries):
        return None
    return forms.Collection(text, entries, "set" if braced else "list")


def _bracketed(text: str, tight: str) -> forms.Pair | forms.Interval | None:
    if (match := _BRACKETS.fullmatch(tight)) is None or _GROUPS.search(tight):
        return None
    if interval := _interval(text, *match.groups()):
        return interval
    entries = _entries(match[2])
    return forms.Pair(text, entries) if entries and match[1] + match[3] == "()" else None


def _interval(text: str, left: str, inner: str, right: str) -> forms.Interval | None:
    ends = [part.strip() for part in inner.split(",")]
    if len(ends) != 2 or (left + right == "()" and "\\infty" not in inner):
        return None
    low, high = scalar_of(ends[0]), scalar_of(ends[1])
    if (low is None and (ends[0] != "-\\infty" or left == "[")) or (
        high is None and (ends[1] not in ("\\infty", "+\\infty") or right == "]")
    ):
        return None
    if low is not None and high is not None and not (low.approx <= high.approx and _are_distinct((low, high))):
        return None
    return forms.Interval(text, left, low, high, right)


def _union(text: str, tight: str) -> forms.Union | None:
    pieces = [piece.strip() for piece in tight.split("\\cup")]
    ends: list[float] = []
    for piece in pieces:
        match = _BRACKETS.fullmatch(piece)
        values = [_end(part.strip()) for part in match[2].split(",")] if match else []
        if len(values) != 2 or None in values:
            return None
        ends += [value for value in values if value is not None]
    # The ends must rise strictly, except that two open ends may be equal: (0,1) and (1,2).
    for index, (a, b) in enumerate(pairwise(ends)):
        meets_open = index % 2 == 1 and a == b and pieces[index // 2][-1] + pieces[index // 2 + 1][0] == ")("
        if not (b - a > CLOSE * max(1.0, abs(a) if math.isfinite(a) else 1.0) or meets_open):
            return None
    return forms.Union(text, tuple(pieces), tuple(ends)) if len(pieces) > 1 else None


def _end(text: str) -> float | None:
    if match := re.fullmatch(r"([+-]?)\\infty", text):
        return -math.inf if match[1] == "-" else math.inf
    value = scalar_of(text)
    return None if value is None else value.approx


def _plus_minus(text: str, tight: str) -> forms.PlusMinus | None:
    parts = re.split(r"\\pm ?", tight)
    if len(parts) != 2:
        return None
    middle, offset = scalar_of(parts[0]), scalar_of(parts[1])
    if offset is None or offset.approx == 0 or (parts[0] and middle is None):
        return None
    return forms.PlusMinus(text, middle, offset)


def _matrix(text: str, tight: str) -> forms.MatrixForm | None:
    if (match := re.fullmatch(r"(?s)\\begin\{([pb]matrix)\}(.+)\\end\{\1\}", tight)) is None:
        return None
    cells = [row.split("&") for row in match[2].removesuffix("\\\\").split("\\\\")]
    rows = tuple(tuple(value for cell in row if (value := scalar_of(cell))) for row in cells)
    if len({len(row) for row in cells}) != 1 or [*map(len, rows)] != [*map(len, cells)]:
        return None
    return forms.MatrixForm(text, match[1], rows)


def _measured(text: str, tight: str) -> forms.Form | None:
    if (match := re.fullmatch(r"(.+?)\\?%", tight)) and (amount := _rational(match[1], match[1])):
        return forms.Quantity(text, amount, "percent")
    if match := re.fullmatch(r"\\?\$(.+)", tight):
        digits = re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", match[1])
        amount = _rational(digits, digits)
        return forms.Quantity(text, amount, "money") if amount and amount.kind in {"integer", "decimal"} else None
    match = re.fullmatch(r"(.+?)(?:\^(?:\\circ|\{\\circ\})|°)", tight)
    if match and (amount := _rational(match[1], match[1])):
        return forms.Quantity(text, amount, "degrees")
    if match := _UNIT.fullmatch(text):
        unit = " ".join((match[2] or match[3]).removesuffix(".").split())
        digits = match[1].strip()
        if unit in forms.UNITS and (amount := _rational(digits, digits)):
            return forms.Quantity(text, amount, "with unit", unit, int(match[4] or match[5] or 1))
    return None


def _equation(text: str, tight: str) -> forms.Equation | None:
    if (match := re.fullmatch(r"([a-zA-Z])=([^=<>]+)", tight)) is None:
        return None
    right: forms.Scalar | forms.Sum | None = scalar_of(match[2])
    if right is None and match[1] == "y" and "y" not in match[2]:
        line = _sum(match[2], match[2])
        right = line if line and line.kind == "polynomial" else None
    return forms.Equation(text, match[1], right) if right else None


def _inequality(text: str, tight: str) -> forms.Inequality | None:
    parts = _RELATION.split(tight)
    if len(parts) != 3:
        return None
    left, relation, right = parts[0].strip(), _RELATIONS[parts[1]], parts[2].strip()
    if re.fullmatch("[a-zA-Z]", right):
        left, right, relation = right, left, relation.translate(str.maketrans("<>", "><"))
    bound = scalar_of(right)
    return forms.Inequality(text, left, relation, bound) if bound and re.fullmatch("[a-df-hj-zA-Z]", left) else None


def _base(text: str, digits: str, base: str) -> forms.BaseForm | None:
    fits = digits[0] != "0" and all(int(digit) < int(base) for digit in digits)
    return forms.BaseForm(text, digits, int(base)) if fits else None


def _congruence(text: str, variable: str, residue: str, modulus: str) -> forms.Congruence | None:
    return forms.Congruence(text, variable, int(residue), int(modulus)) if int(residue) < int(modulus) > 1 else None


def _word(text: str, word: str) -> forms.WordForm | None:
    # Without \text, an unknown word in small letters may be a product of variables.
    is_word = "\\" in text or word.lower() in forms.KNOWN_WORDS or word[0].isupper()
    return forms.WordForm(text, word) if is_word else None


def _matching(
    pattern: str, build: Callable[..., forms.Form | None], reads_blanks: bool = False
) -> Callable[[str, str], forms.Form | None]:
    """Return a reader that calls `build` with the text and the matched groups of the pattern.

    reads_blanks: match the text with its blanks.
    """
    compiled = re.compile(pattern)

    def read(text: str, tight: str) -> forms.Form | None:
        match = compiled.fullmatch(text if reads_blanks else tight)
        return None if match is None else build(text, *(group for group in match.groups() if group is not None))

    return read


_READERS: tuple[Callable[[str, str], forms.Form | None], ...] = (
    scalar_of,
    _matching(rf"([A-E])|\(([A-J])\)|{_TEXT}\{{(?:([A-J])|\(([A-J])\))\}}|\({_TEXT}\{{([A-J])\}}\)", forms.Letter),
    _matching(r"(?:([0-9]{1,30})|\(([0-9]{1,30})\))_(?:([2-9])|\{([2-9]|1[0-6])\})", _base),
    _matching(
        rf"(1[0-2]|[1-9]):([0-5]\d)(?:\\[ ,]|~)?\s*(?:{_TEXT}\{{)?\s*([aApP])\.?[mM]\.?\s*\}}?",
        lambda text, hour, minute, half: forms.ClockForm(text, int(hour), int(minute), half.lower()),
        reads_blanks=True,
    ),
    _matching(r"([a-zA-Z])\\equiv ?(\d{1,6})\\pmod(?:\{(\d{1,6})\}|(\d)| (\d{1,6}))", _congruence),
    _measured,
    _matrix,
    _bracketed,
    _union,
    _list,
    _plus_minus,
    _sum,
    _equation,
    _inequality,
    _matching(
        rf"{_TEXT}\{{\s*([A-Za-z]{{2,20}}(?: [A-Za-z]{{1,20}}){{0,2}})\s*\}}|([A-Z][a-z]{{2,20}}|[a-z]{{2,20}})",
        _word,
        reads_blanks=True,
    ),
)

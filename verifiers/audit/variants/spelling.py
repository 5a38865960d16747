"""Ordinary LaTeX for values, sums, lists and matrices."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

MAX_DECIMALS = 12
"""An exact decimal of more digits is nothing a person would write."""


def sign(value: Fraction) -> str:
    """A minus sign, or nothing."""
    return "-" if value < 0 else ""


def fraction(top: int | Fraction, bottom: int) -> str:
    """`\\frac{3}{4}`, whatever the two are."""
    return f"\\frac{{{top}}}{{{bottom}}}"


def latex(value: Fraction) -> str:
    """5, or -\\frac{3}{4}."""
    if value.denominator == 1:
        return str(value.numerator)
    return sign(value) + fraction(abs(value.numerator), value.denominator)


def exact_decimal(value: Fraction) -> str | None:
    """The whole decimal expansion; None where it does not end within MAX_DECIMALS digits."""
    for decimals in range(MAX_DECIMALS + 1):
        if (value * 10**decimals).denominator == 1:
            return fixed(value, decimals)
    return None


def fixed(value: Fraction, decimals: int) -> str:
    """Rounded to so many decimals, halves away from zero."""
    scaled = abs(value) * 10**decimals
    digits = str((scaled + Fraction(1, 2)).__floor__()).rjust(decimals + 1, "0")
    minus = sign(value) if digits.strip("0") else ""
    split = len(digits) - decimals
    return f"{minus}{digits[:split]}.{digits[split:]}" if decimals else f"{minus}{digits}"


def repeating(value: Fraction, max_period: int = 6) -> str | None:
    """0.1\\overline{6} for 1/6; None where it ends or the period is long."""
    rest, digits, seen = abs(value) % 1, "", dict[Fraction, int]()
    while rest and rest not in seen and len(digits) <= 2 * max_period:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
    if rest not in seen or len(digits) - seen[rest] > max_period:
        return None
    start = seen[rest]
    return f"{sign(value)}{abs(value).__floor__()}.{digits[:start]}\\overline{{{digits[start:]}}}"


def surd(coefficient: Fraction, symbol: str) -> str:
    """`-\\frac{3\\sqrt{2}}{4}`: a coefficient and an irrational symbol in the usual order."""
    top, bottom = abs(coefficient.numerator), coefficient.denominator
    product = symbol if top == 1 else f"{top}{symbol}"
    return sign(coefficient) + (product if bottom == 1 else f"\\frac{{{product}}}{{{bottom}}}")


def root(radicand: int) -> str:
    """The square root of a whole number."""
    return f"\\sqrt{{{radicand}}}"


def terms_sum(terms: Iterable[tuple[int, str]]) -> str:
    """`x^2-7x+12` from coefficients and symbols; terms with coefficient 0 are left out."""
    text = ""
    for coefficient, symbol in terms:
        if coefficient:
            size = "" if abs(coefficient) == 1 and symbol else str(abs(coefficient))
            plus = "+" if text else ""
            text += ("-" if coefficient < 0 else plus) + size + symbol
    return text or "0"


def point(entries: Iterable[object], separator: str = ",") -> str:
    """`(1,2)`."""
    return f"({separator.join(map(str, entries))})"


def collection(kind: str, entries: Iterable[object]) -> str:
    """A bare list `1, 2`, or a set."""
    inner = ", ".join(map(str, entries))
    return f"\\{{{inner}\\}}" if kind == "set" else inner


def matrix(environment: str, rows: Iterable[Iterable[object]]) -> str:
    """`\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}`."""
    body = " \\\\ ".join(" & ".join(map(str, row)) for row in rows)
    return f"\\begin{{{environment}}} {body} \\end{{{environment}}}"

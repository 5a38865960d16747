"""Ordinary LaTeX and ASCII for the values of `forms.py`."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from truegold.verifiers.audit.forms import Irrational, Number, Scalar

MAX_DECIMALS = 12
"""An exact decimal of more digits is nothing a person would write."""


def latex(value: Fraction) -> str:
    """5, or -\\frac{3}{4}."""
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def ascii_fraction(value: Fraction) -> str:
    """5, or -3/4."""
    return str(value)


def exact_decimal(value: Fraction) -> str | None:
    """The whole decimal expansion; None where it does not end within MAX_DECIMALS digits."""
    for places in range(MAX_DECIMALS + 1):
        if (value * 10**places).denominator == 1:
            return fixed(value, places)
    return None


def fixed(value: Fraction, places: int) -> str:
    """Rounded to `places` decimals, halves away from zero."""
    scaled = abs(value) * 10**places
    digits = str((scaled + Fraction(1, 2)).__floor__()).rjust(places + 1, "0")
    sign = "-" if value < 0 and digits.strip("0") else ""
    return f"{sign}{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else f"{sign}{digits}"


def mixed(value: Fraction) -> tuple[str, str] | None:
    """`-8\\frac{2}{7}` and `-8 2/7`; None for whole numbers and proper fractions."""
    whole, rest = divmod(abs(value.numerator), value.denominator)
    if not whole or not rest:
        return None
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}\\frac{{{rest}}}{{{value.denominator}}}", f"{sign}{whole} {rest}/{value.denominator}"


def repeating(value: Fraction, max_period: int = 6) -> str | None:
    """0.1\\overline{6} for 1/6; None where it ends or the period is long."""
    rest, digits, seen = abs(value) % 1, "", dict[Fraction, int]()
    while rest and rest not in seen and len(digits) <= 2 * max_period:
        seen[rest] = len(digits)
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
    if rest not in seen or len(digits) - seen[rest] > max_period:
        return None
    sign, start = "-" if value < 0 else "", seen[rest]
    return f"{sign}{abs(value).__floor__()}.{digits[:start]}\\overline{{{digits[start:]}}}"


def in_style(number: Number, value: Fraction) -> str:
    """Another value, written the way `number` is."""
    if number.style == "decimal":
        exact = exact_decimal(value)
        return fixed(value, number.places) if exact is None else exact
    return latex(value)


def surd(coefficient: Fraction, symbol: str) -> str:
    """`-\\frac{3\\sqrt{2}}{4}`: a coefficient and an irrational symbol in the usual order."""
    sign = "-" if coefficient < 0 else ""
    top, bottom = abs(coefficient.numerator), coefficient.denominator
    product = symbol if top == 1 else f"{top}{symbol}"
    return f"{sign}{product}" if bottom == 1 else f"{sign}\\frac{{{product}}}{{{bottom}}}"


def symbol_of(form: Irrational) -> str:
    return "\\pi" if form.radicand is None else f"\\sqrt{{{form.radicand}}}"


def scalar(form: Scalar) -> str:
    return latex(form.value) if isinstance(form, Number) else surd(form.coefficient, symbol_of(form))


def total(terms: Iterable[tuple[int, str]]) -> str:
    """`x^2-7x+12` from coefficients and symbols; terms with coefficient 0 are left out."""
    text = ""
    for coefficient, symbol in terms:
        if coefficient:
            size = "" if abs(coefficient) == 1 and symbol else str(abs(coefficient))
            text += ("-" if coefficient < 0 else "+" if text else "") + size + symbol
    return text or "0"


def collection(kind: str, items: Iterable[str]) -> str:
    """A bare list `1, 2`, or a set."""
    inner = ", ".join(items)
    return f"\\{{{inner}\\}}" if kind == "set" else inner


def matrix(environment: str, rows: Iterable[Iterable[str]]) -> str:
    body = " \\\\ ".join(" & ".join(row) for row in rows)
    return f"\\begin{{{environment}}} {body} \\end{{{environment}}}"


def grouped(value: int, separator: str) -> str:
    """1234567 as 1,234,567 with any separator."""
    return f"{value:,}".replace(",", separator)

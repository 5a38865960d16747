"""Rewrites of single values: numbers, radicals, multiples of pi, and numbers with a unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegold.verifiers.audit.forms import Irrational, Number
from truegold.verifiers.audit.spelling import (
    ascii_fraction,
    exact_decimal,
    grouped,
    latex,
    mixed,
    repeating,
    surd,
    symbol_of,
)
from truegold.verifiers.audit.units import NUMERALS
from truegold.verifiers.audit.variants import REWRITES

_rule = REWRITES.rule


@_rule("int.0", ("54", "54.0"), Number)
def integer_point_zero(form: Number) -> Iterator[str]:
    """A whole number with a decimal zero."""
    if form.style == "integer":
        yield f"{form.value}.0"
        yield f"{form.value}.00"


@_rule("plus sign", ("5", "+5"), Number, Irrational)
def plus_sign(form: Number | Irrational) -> Iterator[str]:
    """A sign before a positive value."""
    if form.approx > 0:
        yield f"+{form.text}"


@_rule("x= prefix", ("625", "x=625"), Number, Irrational)
def named_value(form: Number | Irrational) -> Iterator[str]:
    """The name of the unknown before it."""
    yield f"x={form.text}"
    yield f"x = {form.text}"


@_rule("equality chain", ("42", "6 \\cdot 7=42"), Number)
def equality_chain(form: Number) -> Iterator[str]:
    """The last step of the computation before it."""
    if form.style == "integer":
        size = abs(int(form.value))
        factor = next((n for n in (6, 5, 7, 3, 2) if size > n and size % n == 0), None)
        if factor and form.value > 0:
            yield f"{factor} \\cdot {size // factor}={form.text}"
        yield f"{form.value - 1}+1={form.text}"
    elif form.style == "fraction":
        yield f"{latex(form.value - 1)}+1={form.text}"


@_rule("spelled out", ("3", "three"), Number)
def spelled_out(form: Number) -> Iterator[str]:
    """A small number as a word."""
    if form.style == "integer" and 0 <= form.value < len(NUMERALS):
        yield f"\\text{{{NUMERALS[int(form.value)]}}}"
        yield NUMERALS[int(form.value)]


@_rule("thousands comma", ("1260", "1,260"), Number)
def thousands_comma(form: Number) -> Iterator[str]:
    """Groups of three digits, with commas."""
    yield from _groups(form, ",")


@_rule("{,} sep", ("1710", "1{,}710"), Number)
def thousands_braced_comma(form: Number) -> Iterator[str]:
    """Groups of three digits, with commas in braces."""
    yield from _groups(form, "{,}")


@_rule(",\\! sep", ("3255", "3,\\!255"), Number)
def thousands_tight_comma(form: Number) -> Iterator[str]:
    """Groups of three digits, with commas that take no room."""
    yield from _groups(form, ",\\!")


@_rule("thin space sep", ("1041", "1\\,041"), Number)
def thousands_thin_space(form: Number) -> Iterator[str]:
    """Groups of three digits, with thin spaces."""
    yield from _groups(form, "\\,")


@_rule("blank sep", ("12345", "12 345"), Number)
def thousands_blank(form: Number) -> Iterator[str]:
    """Groups of three digits, with blanks."""
    yield from _groups(form, " ")


@_rule("no sep", ("3,\\!255", "3255"), Number)
def no_separator(form: Number) -> Iterator[str]:
    """The groups of three digits joined."""
    if form.style == "integer":
        yield str(form.value)


@_rule("scientific", ("300000000", "3 \\times 10^{8}"), Number)
def scientific(form: Number) -> Iterator[str]:
    """An exact power of ten times a short decimal."""
    if form.style == "integer" and abs(form.value) >= 10_000:
        exponent = len(str(abs(form.value))) - 1
        short = exact_decimal(form.value / 10**exponent)
        if short:
            yield f"{short} \\times 10^{{{exponent}}}"
            yield f"{short} \\cdot 10^{{{exponent}}}"
            yield f"{short}e{exponent}"


@_rule("leading zero dropped", ("0.5", ".5"), Number)
def leading_zero_dropped(form: Number) -> Iterator[str]:
    """A decimal that begins with its point, and the other way round."""
    if form.style == "decimal":
        yield re.sub(r"^(-?)0\.", r"\1.", form.text)
        yield re.sub(r"^(-?)\.", r"\g<1>0.", form.text)


@_rule("trailing zero", ("3.5", "3.50"), Number)
def trailing_zero(form: Number) -> Iterator[str]:
    """One more zero after the decimals."""
    if form.style == "decimal":
        yield f"{form.text}0"


@_rule("decimal as fraction", ("3.14", "\\frac{157}{50}"), Number)
def decimal_as_fraction(form: Number) -> Iterator[str]:
    """The exact fraction of a decimal."""
    if form.style == "decimal":
        yield latex(form.value)


@_rule("exact decimal", ("\\frac{9}{32}", "0.28125"), Number)
def fraction_as_decimal(form: Number) -> Iterator[str]:
    """The whole decimal expansion of a fraction, where it ends."""
    if form.style in {"fraction", "mixed number"} and (text := exact_decimal(form.value)):
        yield text


@_rule("repeating decimal", ("\\frac{1}{3}", "0.\\overline{3}"), Number)
def fraction_as_repeating(form: Number) -> Iterator[str]:
    """The decimal expansion of a fraction with its period marked."""
    if form.style in {"fraction", "mixed number"} and (text := repeating(form.value)):
        yield text


@_rule("unreduced", ("\\frac{2}{3}", "\\frac{4}{6}"), Number)
def unreduced(form: Number) -> Iterator[str]:
    """A fraction with a common factor."""
    if form.style == "fraction":
        sign = "-" if form.value < 0 else ""
        for factor in (2, 3):
            top, bottom = abs(form.value.numerator) * factor, form.value.denominator * factor
            yield f"{sign}\\frac{{{top}}}{{{bottom}}}"


@_rule("frac->slash", ("\\frac{24}{7}", "24/7"), Number)
def slash(form: Number) -> Iterator[str]:
    """A fraction with a slash."""
    if form.style == "fraction":
        yield ascii_fraction(form.value)


@_rule("slash->frac", ("24/7", "\\frac{24}{7}"), Number)
def built_up(form: Number) -> Iterator[str]:
    """A fraction built up, whatever its spelling was."""
    if form.style in {"fraction", "mixed number"}:
        yield latex(form.value)


@_rule("dfrac", ("\\frac{37}{11}", "\\dfrac{37}{11}"), Number, Irrational)
def dfrac(form: Number | Irrational) -> Iterator[str]:
    """The display and the text style of a fraction, and \\cfrac."""
    for command in ("\\dfrac", "\\tfrac", "\\cfrac"):
        yield re.sub(r"\\[dt]?frac(?=\{)", lambda _, command=command: command, form.text)  # type: ignore[misc]


@_rule("short frac", ("\\frac{1}{2}", "\\frac12"), Number)
def short_fraction(form: Number) -> Iterator[str]:
    """A fraction of two digits without braces."""
    if form.style == "fraction" and abs(form.value.numerator) < 10 and 1 < form.value.denominator < 10:
        sign = "-" if form.value < 0 else ""
        yield f"{sign}\\frac{abs(form.value.numerator)}{form.value.denominator}"
        yield f"{sign}\\frac {abs(form.value.numerator)}{form.value.denominator}"


@_rule("sign inside", ("-\\frac{1}{2}", "\\frac{-1}{2}"), Number)
def sign_inside(form: Number) -> Iterator[str]:
    """The sign of a negative fraction in the numerator or in the denominator."""
    if form.style == "fraction" and form.value < 0:
        top, bottom = abs(form.value.numerator), form.value.denominator
        yield f"\\frac{{-{top}}}{{{bottom}}}"
        yield f"\\frac{{{top}}}{{-{bottom}}}"
        yield f"-{top}/{bottom}"


@_rule("mixed number", ("\\frac{58}{7}", "8\\frac{2}{7}"), Number)
def mixed_number(form: Number) -> Iterator[str]:
    """An improper fraction as a whole number and a proper one."""
    if form.style in {"fraction", "decimal"} and (spelled := mixed(form.value)):
        built_up, plain = spelled
        yield built_up
        if not re.search(r" \d{3}/", plain):  # which may be a number of four digits with a blank in it
            yield plain


@_rule("approximation appended", ("\\frac{1}{3}", "\\frac{1}{3} \\approx 0.333"), Number, Irrational)
def approximation_appended(form: Number | Irrational) -> Iterator[str]:
    """The exact value, then its first decimals."""
    if isinstance(form, Irrational) or (form.style == "fraction" and exact_decimal(form.value) is None):
        yield f"{form.text} \\approx {form.approx:.3f}"


@_rule("commuted", ("49\\pi", "\\pi \\cdot 49"), Irrational)
def commuted(form: Irrational) -> Iterator[str]:
    """The irrational factor first."""
    if form.coefficient.denominator == 1 and form.coefficient > 1:
        yield f"{symbol_of(form)} \\cdot {form.coefficient}"


@_rule("times", ("8\\sqrt{3}", "8 \\times \\sqrt{3}"), Irrational)
def times(form: Irrational) -> Iterator[str]:
    """A multiplication sign between the factors."""
    if form.coefficient.denominator == 1 and abs(form.coefficient) > 1:
        for sign in ("\\times", "\\cdot", "*", "·", "×"):
            yield f"{form.coefficient} {sign} {symbol_of(form)}"


@_rule("fraction factored", ("\\frac{3\\pi}{4}", "\\frac{3}{4}\\pi"), Irrational)
def fraction_factored(form: Irrational) -> Iterator[str]:
    """The fraction before the irrational factor."""
    if form.coefficient.denominator > 1:
        yield f"{latex(form.coefficient)}{symbol_of(form)}"
        yield surd(form.coefficient, symbol_of(form))


@_rule("under root", ("24\\sqrt{2}", "\\sqrt{1152}"), Irrational)
def under_root(form: Irrational) -> Iterator[str]:
    """The coefficient brought under the root."""
    if form.radicand is not None and form.coefficient.denominator == 1 and abs(form.coefficient) > 1:
        sign = "-" if form.coefficient < 0 else ""
        yield f"{sign}\\sqrt{{{int(form.coefficient) ** 2 * form.radicand}}}"


@_rule("half power", ("24\\sqrt{2}", "24 \\cdot 2^{1/2}"), Irrational)
def half_power(form: Irrational) -> Iterator[str]:
    """The root as a power."""
    if form.radicand is not None and form.coefficient.denominator == 1:
        factor = "" if form.coefficient == 1 else f"{form.coefficient} \\cdot "
        yield f"{factor}{form.radicand}^{{1/2}}"


@_rule("ascii", ("4\\sqrt{3}", "4*sqrt(3)"), Irrational)
def ascii_spelling(form: Irrational) -> Iterator[str]:
    """The spelling of a programming language."""
    symbol = "pi" if form.radicand is None else f"sqrt({form.radicand})"
    top = "" if form.coefficient.numerator == 1 else "-" if form.coefficient.numerator == -1 else None
    product = f"{form.coefficient.numerator}*{symbol}" if top is None else f"{top}{symbol}"
    yield product if form.coefficient.denominator == 1 else f"{product}/{form.coefficient.denominator}"


def _groups(form: Number, separator: str) -> Iterator[str]:
    if form.style == "integer" and abs(form.value) >= 1000:
        yield grouped(int(form.value), separator)

"""Rewrites of numbers with a unit, in degrees, dollars or percent, and of numbers in a base."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from truegold.verifiers.audit.forms import BaseN, Degrees, Money, Percent, WithUnit
from truegold.verifiers.audit.spelling import exact_decimal, fixed, grouped, latex, surd
from truegold.verifiers.audit.units import CONVERSIONS
from truegold.verifiers.audit.values import amount_of
from truegold.verifiers.audit.variants import REWRITES

_rule = REWRITES.rule


@_rule("unit dropped", ("65 \\text{ tickets}", "65"), WithUnit, Degrees, Money)
def unit_dropped(form: WithUnit | Degrees | Money) -> Iterator[str]:
    """The number alone."""
    yield amount_of(form.number, form.number.value)


@_rule("unit spelling", ("5\\text{ cm}", "5\\,\\mathrm{cm}"), WithUnit)
def unit_spelling(form: WithUnit) -> Iterator[str]:
    """The unit in other type, with another blank, or as plain text."""
    power = "" if form.power == 1 else f"^{form.power}"
    number = amount_of(form.number, form.number.value)
    yield f"{number}\\text{{ {form.unit}}}{power}"
    yield f"{number}\\ \\text{{{form.unit}}}{power}"
    yield f"{number} {form.unit}{power}"
    if " " not in form.unit:
        yield f"{number}\\,\\mathrm{{{form.unit}}}{power}"


@_rule("unit conversion", ("5\\text{ cm}", "50\\text{ mm}"), WithUnit)
def unit_conversion(form: WithUnit) -> Iterator[str]:
    """The same quantity in another unit."""
    if form.unit in CONVERSIONS:
        other, factor = CONVERSIONS[form.unit]
        power = "" if form.power == 1 else f"^{form.power}"
        yield f"{latex(form.number.value * factor**form.power)}\\text{{ {other}}}{power}"


@_rule("degree spelling", ("30^\\circ", "30°"), Degrees)
def degree_spelling(form: Degrees) -> Iterator[str]:
    """The degree sign in its several spellings."""
    number = form.number.text
    yield f"{number}°"
    yield f"{number}^\\circ"
    yield f"{number}^{{\\circ}}"
    yield f"{number}\\text{{ degrees}}"
    yield f"{number} degrees"


@_rule("degrees as radians", ("30^\\circ", "\\frac{\\pi}{6}"), Degrees, policy=True)
def degrees_as_radians(form: Degrees) -> Iterator[str]:
    """The same angle in radians."""
    if form.number.value:
        yield surd(form.number.value / 180, "\\pi")


@_rule("money spelling", ("\\$6", "6\\text{ dollars}"), Money)
def money_spelling(form: Money) -> Iterator[str]:
    """Dollars before or after the amount, and with cents."""
    value = form.number.value
    amount = amount_of(form.number, value)
    yield f"\\${amount}"
    yield f"{amount}\\text{{ dollars}}"
    yield f"{amount} dollars"
    if (value * 100).denominator == 1:
        yield f"\\${fixed(value, 2)}"
    if value.denominator == 1 and value >= 1000:
        yield f"\\${grouped(int(value), ',')}"


@_rule("percent spelling", ("50\\%", "50%"), Percent)
def percent_spelling(form: Percent) -> Iterator[str]:
    """The percent sign without its backslash, after a blank, or as a word."""
    number = form.number.text
    yield f"{number}\\%"
    yield f"{number}%"
    yield f"{number} \\%"
    yield f"{number}\\text{{ percent}}"


@_rule("percent as fraction", ("50\\%", "\\frac{1}{2}"), Percent)
def percent_as_fraction(form: Percent) -> Iterator[str]:
    """The part of one that the percentage is."""
    yield latex(form.number.value / 100)
    if decimal := exact_decimal(form.number.value / 100):
        yield decimal


@_rule("percent sign dropped", ("50\\%", "50"), Percent, policy=True)
def percent_dropped(form: Percent) -> Iterator[str]:
    """The number of the percentage alone, as where the question asks for percent."""
    yield form.number.text


@_rule("base spelling", ("101_2", "101_{2}"), BaseN)
def base_spelling(form: BaseN) -> Iterator[str]:
    """The base with and without braces, the digits in parentheses."""
    if form.base < 10:
        yield f"{form.digits}_{form.base}"
    yield f"{form.digits}_{{{form.base}}}"
    yield f"({form.digits})_{{{form.base}}}"


@_rule("base dropped", ("2516_8", "2516"), BaseN, policy=True)
def base_dropped(form: BaseN) -> Iterator[str]:
    """The digits alone, as where the question names the base."""
    yield form.digits


@_rule("base ten", ("101_2", "5"), BaseN, policy=True)
def base_ten(form: BaseN) -> Iterator[str]:
    """The same number in ordinary notation."""
    yield str(Fraction(int(form.digits, form.base)))

"""Edits of the value: another number, sign, unit, base, letter or word; approximations, which are policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from truegold.verifiers.audit.forms import (
    BaseN,
    Degrees,
    Irrational,
    Letter,
    Measured,
    Money,
    Number,
    Percent,
    Sum,
    WithUnit,
    Word,
)
from truegold.verifiers.audit.spelling import fixed, in_style, latex, surd, symbol_of, total
from truegold.verifiers.audit.units import CONVERSIONS, NEGATIONS, OTHER_WORD
from truegold.verifiers.audit.values import amount_of, measured, other_letter
from truegold.verifiers.audit.variants import EDITS

_rule = EDITS.rule
_MEASURED = (Percent, Money, Degrees, WithUnit)


@_rule("+1", ("46", "47"), Number)
def plus_one(form: Number) -> Iterator[str]:
    """One more, for a number that is no fraction."""
    if form.style != "fraction":
        yield in_style(form, form.value + 1)


@_rule("-1", ("46", "45"), Number)
def minus_one(form: Number) -> Iterator[str]:
    """One less, for a number that is no fraction."""
    if form.style != "fraction":
        yield in_style(form, form.value - 1)


@_rule("+0.5", ("650", "650.5"), Number)
def plus_half(form: Number) -> Iterator[str]:
    """A half more."""
    if form.style == "integer":
        yield fixed(form.value + Fraction(1, 2), 1)
    elif form.style == "decimal":
        yield in_style(form, form.value + Fraction(1, 2))


@_rule("last decimal", ("3.14", "3.15"), Number)
def last_decimal(form: Number) -> Iterator[str]:
    """The last written decimal one higher."""
    if form.style == "decimal":
        yield fixed(form.value + Fraction(1, 10**form.places), form.places)


@_rule("value+1", ("18^\\circ", "19^\\circ"), *_MEASURED)
def value_plus_one(form: Measured) -> Iterator[str]:
    """One more of the same unit."""
    yield measured(form, form.number.value + 1)


@_rule("numerator+1", ("\\frac{161}{36}", "\\frac{162}{36}"), Number)
def numerator_plus_one(form: Number) -> Iterator[str]:
    """A numerator one higher."""
    if form.style == "fraction":
        yield f"{_sign(form.value)}\\frac{{{abs(form.value.numerator) + 1}}}{{{form.value.denominator}}}"


@_rule("denominator+1", ("\\frac{1}{3}", "\\frac{1}{4}"), Number)
def denominator_plus_one(form: Number) -> Iterator[str]:
    """A denominator one higher."""
    if form.style == "fraction" and form.value:
        yield f"{_sign(form.value)}\\frac{{{abs(form.value.numerator)}}}{{{form.value.denominator + 1}}}"


@_rule("inverted", ("\\frac{17}{8}", "\\frac{8}{17}"), Number)
def inverted(form: Number) -> Iterator[str]:
    """Numerator and denominator exchanged."""
    if form.style == "fraction" and abs(form.value) not in {0, 1}:
        yield latex(1 / form.value)


@_rule("sign flip", ("-64", "64"), Number, Irrational, Sum)
def sign_flip(form: Number | Irrational | Sum) -> Iterator[str]:
    """The negative."""
    if isinstance(form, Sum):
        yield total((-coefficient, symbol) for coefficient, symbol in form.terms)
    elif isinstance(form, Irrational):
        yield surd(-form.coefficient, symbol_of(form))
    elif form.value:
        yield in_style(form, -form.value)


@_rule("x10", ("180", "1800"), Number)
def times_ten(form: Number) -> Iterator[str]:
    """Ten times as much: a misplaced decimal point."""
    if form.value and form.style in {"integer", "decimal"}:
        yield in_style(form, form.value * 10)


@_rule("digits swapped", ("1260", "2160"), Number)
def digits_swapped(form: Number) -> Iterator[str]:
    """The first two digits exchanged, where they differ."""
    digits = str(abs(form.value))
    if form.style == "integer" and len(digits) > 1 and digits[1] not in {"0", digits[0]}:
        yield f"{_sign(form.value)}{digits[1]}{digits[0]}{digits[2:]}"


@_rule("mixed number as product", ("1\\frac{4}{5}", "1 \\cdot \\frac{4}{5}"), Number)
def mixed_as_product(form: Number) -> Iterator[str]:
    """The whole part of a mixed number taken for a factor."""
    if form.style == "mixed number":
        whole, rest = divmod(abs(form.value), 1)
        yield f"{_sign(form.value)}{whole} \\cdot {latex(rest)}"


@_rule("radicand+1", ("36\\sqrt{3}", "36\\sqrt{4}"), Irrational)
def radicand_plus_one(form: Irrational) -> Iterator[str]:
    """A radicand one higher."""
    if form.radicand is not None:
        yield surd(form.coefficient, f"\\sqrt{{{form.radicand + 1}}}")


@_rule("root dropped", ("36\\sqrt{3}", "108"), Irrational)
def root_dropped(form: Irrational) -> Iterator[str]:
    """The radicand taken out of its root."""
    if form.radicand is not None:
        yield latex(form.coefficient * form.radicand)


@_rule("cube root", ("\\sqrt{70}", "\\sqrt[3]{70}"), Irrational)
def cube_root(form: Irrational) -> Iterator[str]:
    """A cube root for a square root."""
    if form.radicand is not None:
        yield surd(form.coefficient, f"\\sqrt[3]{{{form.radicand}}}")


@_rule("coefficient+1", ("24\\sqrt{2}", "25\\sqrt{2}"), Irrational)
def coefficient_plus_one(form: Irrational) -> Iterator[str]:
    """A coefficient one higher."""
    if form.coefficient != -1:
        yield surd(form.coefficient + 1, symbol_of(form))


@_rule("pi dropped", ("96\\pi", "96"), Irrational)
def pi_dropped(form: Irrational) -> Iterator[str]:
    """The coefficient of pi alone."""
    if form.radicand is None:
        yield latex(form.coefficient)


@_rule("wrong unit", ("5\\text{ cm}", "5\\text{ mm}"), WithUnit, Money)
def wrong_unit(form: WithUnit | Money) -> Iterator[str]:
    """The same number of another unit of the same quantity, or of another currency."""
    if not form.number.value:
        return
    if isinstance(form, Money):
        yield f"{amount_of(form.number, form.number.value)}\\text{{ euros}}"
    elif form.unit in CONVERSIONS:
        power = "" if form.power == 1 else f"^{form.power}"
        yield f"{amount_of(form.number, form.number.value)}\\text{{ {CONVERSIONS[form.unit][0]}}}{power}"


@_rule("wrong power of the unit", ("5\\text{ cm}^2", "5\\text{ cm}^3"), WithUnit)
def wrong_power(form: WithUnit) -> Iterator[str]:
    """A volume for an area, an area for a length."""
    if form.number.value and form.unit in CONVERSIONS:
        yield f"{amount_of(form.number, form.number.value)}\\text{{ {form.unit}}}^{form.power + 1}"


@_rule("other base", ("101_2", "101_{3}"), BaseN)
def other_base(form: BaseN) -> Iterator[str]:
    """The same digits in another base."""
    if len(form.digits) > 1:
        yield f"{form.digits}_{{{form.base + 1}}}"


@_rule("last digit", ("101_2", "100_{2}"), BaseN)
def last_digit(form: BaseN) -> Iterator[str]:
    """Another last digit in the same base."""
    digit = (int(form.digits[-1]) + 1) % form.base
    if digit < 10 and (digit or len(form.digits) > 1):
        yield f"{form.digits[:-1]}{digit}_{{{form.base}}}"


@_rule("other choice letter", ("C", "A"), Letter)
def choice_letter(form: Letter) -> Iterator[str]:
    """Another letter."""
    yield other_letter(form.letter)
    yield f"({chr(ord(form.letter) + 1)})"


@_rule("several choices", ("C", "C or A"), Letter)
def several_choices(form: Letter) -> Iterator[str]:
    """The right letter among others."""
    other = other_letter(form.letter)
    for joint in (" or ", ", ", " and ", "/"):
        yield f"{form.letter}{joint}{other}"
    yield f"\\text{{{other} or {form.letter}}}"


@_rule("negated", ("\\text{even}", "\\text{not even}"), Word, Letter)
def negated(form: Word | Letter) -> Iterator[str]:
    """The answer with `not` before it."""
    word = form.letter if isinstance(form, Letter) else form.word
    if not set(word.lower().split()) & NEGATIONS:
        yield f"\\text{{not {word}}}"
        yield f"not {word}"


@_rule("other word", ("\\text{even}", "\\text{odd}"), Word)
def another_word(form: Word) -> Iterator[str]:
    """Another word that would answer the same question."""
    if other := OTHER_WORD.get(form.word.lower()):
        yield f"\\text{{{other}}}"
        yield other


@_rule("either word", ("\\text{even}", "\\text{even or odd}"), Word)
def either_word(form: Word) -> Iterator[str]:
    """The right word and another one."""
    if other := OTHER_WORD.get(form.word.lower()):
        yield f"\\text{{{form.word} or {other}}}"
        yield f"\\text{{{other}, {form.word}}}"


@_rule("percent of int", ("636", "636\\%"), Number, policy=True)
def percent_of_integer(form: Number) -> Iterator[str]:
    """A percent sign after a whole number."""
    if form.style == "integer" and form.value:
        yield f"{form.text}\\%"


@_rule("/100", ("361", "\\frac{361}{100}"), Number, policy=True)
def hundredth(form: Number) -> Iterator[str]:
    """A hundredth of a whole number, as if it had been meant in percent."""
    if form.style == "integer" and form.value:
        yield f"{_sign(form.value)}\\frac{{{abs(form.value)}}}{{100}}"


@_rule("rounded to 2 decimals", ("\\frac{6}{23}", "0.26"), Number, policy=True)
def rounded(form: Number) -> Iterator[str]:
    """A fraction as a decimal of two places that is not exact."""
    if form.style in {"fraction", "mixed number"} and (form.value * 100).denominator != 1:
        yield fixed(form.value, 2)


@_rule("2-decimal approximation", ("2\\sqrt{3}", "3.46"), Irrational, Sum, policy=True)
def approximated(form: Irrational | Sum) -> Iterator[str]:
    """An irrational constant as a decimal of two places."""
    value = form.approx if isinstance(form, Irrational) else _constant(form)
    if value is not None and abs(value) < 1e12:
        yield f"{value:.2f}"


@_rule("pi=3.14", ("10\\pi", "31.4"), Irrational, policy=True)
def coarse_pi(form: Irrational) -> Iterator[str]:
    """A multiple of pi with 3.14 for pi."""
    if form.radicand is None:
        value = form.coefficient * Fraction(314, 100)
        yield fixed(value, 4).rstrip("0").rstrip(".") if (value * 10_000).denominator == 1 else f"{float(value):.2f}"


def _sign(value: Fraction) -> str:
    return "-" if value < 0 else ""


def _constant(form: Sum) -> float | None:
    if form.kind != "sum of constants":
        return None
    values = {"": 1.0, "\\pi": math.pi}
    return sum(
        coefficient * (values[symbol] if symbol in values else math.sqrt(int(symbol[6:-1])))
        for coefficient, symbol in form.terms
    )

"""A wrong answer next to a right one: the same form, another value. Edits and gaming cases are made with it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from truegold.verifiers.audit.forms import (
    BaseN,
    Collection,
    Degrees,
    Equation,
    Form,
    Inequality,
    Interval,
    Irrational,
    Letter,
    Matrix,
    Money,
    Number,
    Pair,
    Percent,
    PlusMinus,
    Scalar,
    Sum,
    Union,
    WithUnit,
    Word,
)
from truegold.verifiers.audit.reading_values import scalar_of
from truegold.verifiers.audit.spelling import collection, fixed, in_style, latex, matrix, scalar, surd, symbol_of, total
from truegold.verifiers.audit.units import NEGATIONS, OTHER_WORD

SIGNS = {"<": "<", ">": ">", "<=": "\\le", ">=": "\\ge"}
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
EXTRA = Fraction(97)
"""What is added to a list: rarely an answer, and left out where it is one."""


def neighbour(form: Form) -> str | None:
    """The text of a wrong answer of the same form; None where there is no certain one."""
    text: str | None
    match form:
        case Number() | Irrational():
            text = shifted(form)
        case Sum():
            text = total([(form.terms[0][0] + 1 or 2, form.terms[0][1]), *form.terms[1:]])
        case Pair():
            text = f"({', '.join([shifted(form.items[0]), *map(scalar, form.items[1:])])})"
        case Collection() | PlusMinus():
            text = with_extra(form) if isinstance(form, Collection) else _other_offset(form)
        case Matrix():
            text = _with_first_entry_shifted(form)
        case Interval() | Union():
            text = _other_interval(form) if isinstance(form, Interval) else _across_a_gap(form)
        case Percent() | Money() | Degrees() | WithUnit():
            text = measured(form, form.number.value + 1)
        case BaseN():
            text = f"{form.digits}1_{{{form.base}}}"
        case Equation():
            text = f"{form.variable}={neighbour(form.right)}"
        case Inequality():
            text = f"{form.variable} {SIGNS[OPPOSITE[form.relation]]} {scalar(form.bound)}"
        case Letter():
            text = other_letter(form.letter)
        case Word():
            text = other_word(form)
    return text


def shifted(form: Scalar) -> str:
    """A number plus one (a proper or improper fraction: one more in its numerator), an irrational with a coefficient
    or a radicand one higher."""
    if isinstance(form, Irrational):
        if form.radicand is not None and form.coefficient == 1:
            return surd(form.coefficient, f"\\sqrt{{{form.radicand + 1}}}")
        moved = replace(form, coefficient=form.coefficient + (1 if form.coefficient != -1 else 3))
        return surd(moved.coefficient, symbol_of(form))
    if form.style == "fraction":
        return f"{'-' if form.value < 0 else ''}\\frac{{{abs(form.value.numerator) + 1}}}{{{form.value.denominator}}}"
    return in_style(form, form.value + 1)


def measured(form: Percent | Money | Degrees | WithUnit, value: Fraction) -> str:
    """Another quantity, with the same unit."""
    amount = amount_of(form.number, value)
    match form:
        case Percent():
            return f"{amount}\\%"
        case Money():
            return f"\\${amount}"
        case Degrees():
            return f"{amount}^\\circ"
        case WithUnit():
            power = "" if form.power == 1 else f"^{form.power}"
            return f"{amount}\\text{{ {form.unit}}}{power}"


def amount_of(number: Number, value: Fraction) -> str:
    """An amount with as many decimals as `number` has."""
    return fixed(value, number.places) if number.style == "decimal" else latex(value)


def other_letter(letter: str) -> str:
    return "A" if letter != "A" else "B"


def other_word(form: Word) -> str | None:
    """Another word where one is known, else the negation of this one; None for a word that is a negation itself."""
    other = OTHER_WORD.get(form.word.lower())
    if other is not None:
        return f"\\text{{{other}}}"
    return None if set(form.word.lower().split()) & NEGATIONS else f"\\text{{not {form.word}}}"


def with_extra(form: Collection) -> str:
    """One value more."""
    extra = next(EXTRA + n for n in range(100) if all(abs(item.approx - float(EXTRA + n)) > 0.5 for item in form.items))
    return collection(form.kind, [*map(scalar, form.items), latex(extra)])


def _with_first_entry_shifted(form: Matrix) -> str:
    (first, *row), *rows = form.rows
    return matrix(form.environment, [[shifted(first), *map(scalar, row)], *(map(scalar, row) for row in rows)])


def _other_offset(form: PlusMinus) -> str:
    middle = f"{scalar(form.middle)} " if form.middle else ""
    return f"{middle}\\pm {moved(form.offset, 1 if form.offset.approx > 0 else -1)}"


def _other_interval(form: Interval) -> str:
    """One that has no point in common, so that neither it nor `one or the other` nor `both` is right."""
    if form.high is None:
        return f"(-\\infty,{moved(form.low, -1)})" if form.low else "\\emptyset"
    low, high = moved(form.high, 1), "\\infty" if form.low is None else moved(form.high, 2)
    return f"[{low},{high})"


def _across_a_gap(form: Union) -> str:
    """All up to the second piece: it has the gap, which is wrong, and lacks that piece, which is right."""
    end, start = form.pieces[0][1:-1].split(",")[1], form.pieces[1][1:-1].split(",")[0]
    a, b = scalar_of(end, end), scalar_of(start, start)
    if a is None or b is None or a.approx < b.approx:
        return f"(-\\infty,{start})"
    return f"(-\\infty,{start}]"  # two open ends meet in a point, and that is the gap


def moved(form: Scalar, steps: int) -> str:
    """The value so many whole steps further up."""
    return latex(form.value + steps) if isinstance(form, Number) else f"{scalar(form)}{steps:+d}"

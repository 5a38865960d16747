"""A wrong answer next to a right one: the same form, another value. Edits and gaming cases are made with it."""

from __future__ import annotations

from fractions import Fraction

from truegold.verifiers.audit.variants.forms import (
    BaseN,
    Collection,
    Congruence,
    Equation,
    Form,
    Inequality,
    Interval,
    Irrational,
    Letter,
    Matrix,
    Measured,
    Pair,
    PlusMinus,
    Rational,
    Scalar,
    Sum,
    TimeOfDay,
    Union,
    Word,
)
from truegold.verifiers.audit.variants.reading_values import scalar_of
from truegold.verifiers.audit.variants.spelling import collection, fraction, latex, matrix, point, root, sign, terms_sum
from truegold.verifiers.audit.variants.words import NEGATIONS

SIGNS = {"<": "<", ">": ">", "<=": "\\le", ">=": "\\ge"}
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
EXTRA = Fraction(97)
"""What is added to a list: rarely an answer, and left out where it is one."""


def neighbour(form: Form) -> str | None:
    """The text of a wrong answer of the same form; None where there is no certain one."""
    text: str | None
    match form:
        case Rational() | Irrational():
            text = shift(form)
        case Sum():
            text = terms_sum([(form.terms[0][0] + 1 or 2, form.terms[0][1]), *form.terms[1:]])
        case Pair():
            text = point([shift(form.entries[0]), *form.entries[1:]], ", ")
        case Collection():
            text = collection(form.kind, [*form.entries, _extra_entry(form)])
        case PlusMinus():
            text = form.with_offset(move(form.offset, 1 if form.offset.approx > 0 else -1))
        case Matrix():
            (first, *row), *rows = form.rows
            text = matrix(form.environment, [[shift(first), *row], *rows])
        case Interval() | Union():
            text = _disjoint_interval(form) if isinstance(form, Interval) else _interval_across_a_gap(form)
        case Measured():
            text = form.attach_unit(form.spell_amount(form.amount.value + 1))
        case BaseN() | TimeOfDay() | Congruence():
            text = form.successor
        case Equation():
            text = f"{form.variable}={neighbour(form.right)}"
        case Inequality():
            text = f"{form.variable} {SIGNS[OPPOSITE[form.relation]]} {form.bound}"
        case Letter() | Word():
            text = _other_word(form)
    return text


def shift(form: Scalar) -> str:
    """A number plus one (a proper or improper fraction: one more in its numerator), an irrational with a coefficient
    or a radicand one higher."""
    if isinstance(form, Irrational):
        if form.radicand is not None and form.coefficient == 1:
            return root(form.radicand + 1)
        coefficient = form.coefficient + (1 if form.coefficient != -1 else 3)
        return str(Irrational("", coefficient, form.radicand))
    if form.kind == "fraction":
        return sign(form.value) + fraction(abs(form.value.numerator) + 1, form.value.denominator)
    return form.spell(form.value + 1)


def move(form: Scalar, steps: int) -> str:
    """The value so many whole steps further up."""
    return latex(form.value + steps) if isinstance(form, Rational) else f"{form}{steps:+d}"


def is_negation(word: str) -> bool:
    """Whether `not` before it would not turn its meaning round."""
    return bool(set(word.lower().split()) & NEGATIONS)


def _extra_entry(form: Collection) -> Fraction:
    extras = (EXTRA + n for n in range(100))
    return next(extra for extra in extras if all(abs(entry.approx - float(extra)) > 0.5 for entry in form.entries))


def _disjoint_interval(form: Interval) -> str:
    """One that has no point in common, so that neither it nor `one or the other` nor `both` is right."""
    if form.high is None:
        return f"(-\\infty,{move(form.low, -1)})" if form.low else "\\emptyset"
    end = "\\infty" if form.low is None else move(form.high, 2)
    return f"[{move(form.high, 1)},{end})"


def _interval_across_a_gap(form: Union) -> str:
    """All up to the second piece: it has the gap, which is wrong, and lacks that piece, which is right."""
    end, start = form.pieces[0][1:-1].split(",")[1], form.pieces[1][1:-1].split(",")[0]
    end_value, start_value = scalar_of(end), scalar_of(start)
    if end_value is None or start_value is None or end_value.approx < start_value.approx:
        return f"(-\\infty,{start})"
    return f"(-\\infty,{start}]"  # Two open ends meet in a point, and that is the gap.


def _other_word(form: Letter | Word) -> str | None:
    """Another letter or word where one is known, else the negation of this word; None for a negation."""
    if isinstance(form, Letter):
        return "A" if form.letter != "A" else "B"
    if form.opposite is not None:
        return f"\\text{{{form.opposite}}}"
    return None if is_negation(form.word) else f"\\text{{not {form.word}}}"

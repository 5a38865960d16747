"""Edits of the parts: one more, one fewer, another order, another bracket, a second candidate, a contradiction."""

from __future__ import annotations

from collections.abc import Iterator

from truegold.verifiers.audit.forms import (
    Collection,
    Equation,
    Inequality,
    Interval,
    Irrational,
    Matrix,
    Number,
    Pair,
    PlusMinus,
    Scalar,
    Sum,
    Union,
)
from truegold.verifiers.audit.reading import CLOSE
from truegold.verifiers.audit.spelling import collection, matrix, scalar, total
from truegold.verifiers.audit.values import SIGNS, moved, neighbour, shifted, with_extra
from truegold.verifiers.audit.variants import EDITS

_rule = EDITS.rule
_ONE = (Number, Irrational, Sum)
_CLOSED = {"(": "[", "[": "(", ")": "]", "]": ")"}


@_rule("hedge or", ("636", "636 \\text{ or } 637"), *_ONE, Pair, Interval, Matrix)
def hedge(form: Number | Irrational | Sum | Pair | Interval | Matrix) -> Iterator[str]:
    """The right answer or a wrong one."""
    if (other := neighbour(form)) is not None:
        yield f"{form.text} \\text{{ or }} {other}"
        yield f"{other} \\text{{ or }} {form.text}"
        yield f"{form.text} or {other}"


@_rule("two candidates", ("680", "680, 681"), *_ONE)
def two_candidates(form: Number | Irrational | Sum) -> Iterator[str]:
    """A list of the right answer and a wrong one."""
    other = neighbour(form)
    yield f"{form.text}, {other}"
    yield f"{other}, {form.text}"
    yield f"{form.text} \\text{{ and }} {other}"
    yield f"\\{{{form.text}, {other}\\}}"


@_rule("contradiction", ("5", "6=5"), *_ONE)
def contradiction(form: Number | Irrational | Sum) -> Iterator[str]:
    """Two different values said to be equal."""
    if isinstance(form, Sum) and form.kind == "polynomial":
        return  # that is an equation
    other = neighbour(form)
    yield f"{other}={form.text}"
    yield f"{form.text}={other}"
    yield f"x={other}={form.text}"


@_rule("two values of x", ("5", "x=5, x=6"), Number, Irrational)
def two_values(form: Scalar) -> Iterator[str]:
    """The unknown given two values."""
    other = neighbour(form)
    yield f"x={form.text}, x={other}"
    yield f"x={other} \\text{{ or }} x={form.text}"


@_rule("plus-minus added", ("5", "\\pm 5"), Number, Irrational)
def plus_minus_added(form: Scalar) -> Iterator[str]:
    """Both signs for a positive value."""
    if form.approx > 0:
        yield f"\\pm {form.text}"


@_rule("bound for a value", ("5", "x \\le 5"), Number, Irrational)
def bound_for_value(form: Scalar) -> Iterator[str]:
    """A condition that the right value meets among others."""
    yield f"x \\le {form.text}"
    yield f"x > {form.text}"


@_rule("range around", ("5", "[4,6]"), Number)
def range_around(form: Number) -> Iterator[str]:
    """An interval that holds the right value."""
    if form.style == "integer":
        yield f"[{form.value - 1},{form.value + 1}]"
        yield f"{form.value - 1} \\text{{ to }} {form.value + 1}"


@_rule("expr constant+1", ("x^4+x^2-24", "x^4+x^2-23"), Sum)
def constant_plus_one(form: Sum) -> Iterator[str]:
    """A constant term one higher, or a new one."""
    constants = [coefficient for coefficient, symbol in form.terms if not symbol]
    others = [(coefficient, symbol) for coefficient, symbol in form.terms if symbol]
    yield total([*others, ((constants[0] if constants else 0) + 1, "")])


@_rule("expr coefficient+1", ("18x^8", "19x^8"), Sum)
def first_coefficient_plus_one(form: Sum) -> Iterator[str]:
    """The first coefficient one higher."""
    (coefficient, symbol), *rest = form.terms
    yield total([(coefficient + 1 or 2, symbol), *rest])


@_rule("expr inner sign", ("1+274i", "1-274i"), Sum)
def inner_sign(form: Sum) -> Iterator[str]:
    """The sign of the last term turned."""
    *most, (coefficient, symbol) = form.terms
    if most:
        yield total([*most, (-coefficient, symbol)])


@_rule("term dropped", ("x^2-5", "x^2"), Sum)
def term_dropped(form: Sum) -> Iterator[str]:
    """The last term left out."""
    if len(form.terms) > 1:
        yield total(form.terms[:-1])


@_rule("set equal to zero", ("x^2-5", "x^2-5=0"), Sum, policy=True)
def set_to_zero(form: Sum) -> Iterator[str]:
    """An equation in the place of an expression."""
    if form.kind == "polynomial":
        yield f"{form.text}=0"


@_rule("tuple order swapped", ("(3,-4)", "(-4, 3)"), Pair)
def order_swapped(form: Pair) -> Iterator[str]:
    """The first two entries exchanged, where they differ."""
    first, second, *rest = form.items
    if _differ(first, second):
        yield f"({', '.join(map(scalar, [second, first, *rest]))})"


@_rule("tuple entry+1", ("(3,-4)", "(4, -4)"), Pair)
def entry_plus_one(form: Pair) -> Iterator[str]:
    """One entry changed."""
    yield f"({', '.join([shifted(form.items[0]), *map(scalar, form.items[1:])])})"
    yield f"({', '.join([*map(scalar, form.items[:-1]), shifted(form.items[-1])])})"


@_rule("tuple entry dropped", ("(1,2,3)", "(1,2)"), Pair)
def entry_dropped(form: Pair) -> Iterator[str]:
    """The last entry left out, or one more added."""
    if len(form.items) > 2:
        yield f"({','.join(map(scalar, form.items[:-1]))})"
    yield f"({','.join(map(scalar, form.items))},0)"


@_rule("open/closed flip left", ("[-2,0]", "(-2,0]"), Interval)
def flip_left(form: Interval) -> Iterator[str]:
    """The left end taken in or left out."""
    if form.low is not None:
        yield _interval(_CLOSED[form.left], form, form.right)


@_rule("open/closed flip right", ("[-3,2]", "[-3,2)"), Interval)
def flip_right(form: Interval) -> Iterator[str]:
    """The right end taken in or left out."""
    if form.high is not None:
        yield _interval(form.left, form, _CLOSED[form.right])


@_rule("open/closed flip of a pair", ("(4,10)", "[4,10)"), Pair)
def flip_pair(form: Pair) -> Iterator[str]:
    """One square bracket for a point or an open interval."""
    if len(form.items) == 2 and form.items[0].approx < form.items[1].approx:
        inner = ",".join(map(scalar, form.items))
        yield f"[{inner})"
        yield f"({inner}]"


@_rule("endpoint", ("[-2,0]", "[-3,0]"), Interval)
def endpoint(form: Interval) -> Iterator[str]:
    """One end moved."""
    high = "\\infty" if form.high is None else scalar(form.high)
    if form.low is not None:
        yield f"{form.left}{moved(form.low, -1)},{high}{form.right}"
    elif form.high is not None:
        yield f"{form.left}-\\infty,{moved(form.high, 1)}{form.right}"


@_rule("another interval", ("[-2,0]", "[1,2)"), Interval, Union)
def another_interval(form: Interval | Union) -> Iterator[str]:
    """One that has nothing in common with it, or that covers a gap of a union."""
    if (other := neighbour(form)) is not None:
        yield other


@_rule("half line", ("[-2,0]", "[-2,\\infty)"), Interval)
def half_line(form: Interval) -> Iterator[str]:
    """The right end at infinity."""
    if form.low is not None and form.high is not None:
        yield f"{form.left}{scalar(form.low)},\\infty)"


@_rule("drop one piece", ("(-\\infty,3)\\cup(3,\\infty)", "(-\\infty,3)"), Union)
def drop_piece(form: Union) -> Iterator[str]:
    """One interval of a union left out."""
    yield " \\cup ".join(form.pieces[:-1])
    yield " \\cup ".join(form.pieces[1:])


@_rule("intersection", ("(-\\infty,3)\\cup(3,\\infty)", "(-\\infty,3) \\cap (3,\\infty)"), Union)
def intersection(form: Union) -> Iterator[str]:
    """The intersection, which is empty, in the place of the union."""
    yield " \\cap ".join(form.pieces)


@_rule("extra element", ("24,-3", "24, -3, 97"), Collection)
def extra_element(form: Collection) -> Iterator[str]:
    """One value more."""
    yield with_extra(form)


@_rule("drop element", ("2, -3, 4", "2, -3"), Collection)
def drop_element(form: Collection) -> Iterator[str]:
    """One value fewer."""
    for items in (form.items[:-1], form.items[1:]):
        yield collection(form.kind, map(scalar, items))


@_rule("element+1", ("1,5", "1, 6"), Collection)
def element_plus_one(form: Collection) -> Iterator[str]:
    """The largest value changed."""
    items = sorted(form.items, key=lambda item: item.approx)
    if items[-1].approx > 0:
        yield collection(form.kind, [*map(scalar, items[:-1]), shifted(items[-1])])


@_rule("one sign only", ("1 \\pm \\sqrt{19}", "1+\\sqrt{19}"), PlusMinus)
def one_sign(form: PlusMinus) -> Iterator[str]:
    """One of the two values."""
    middle = scalar(form.middle) if form.middle else ""
    if form.offset.approx > 0:
        yield f"{middle}{'+' if middle else ''}{scalar(form.offset)}"
        yield f"{middle}-{scalar(form.offset)}"


@_rule("other offset", ("1 \\pm \\sqrt{19}", "1 \\pm \\sqrt{20}"), PlusMinus)
def other_offset(form: PlusMinus) -> Iterator[str]:
    """Another value after the plus-minus sign."""
    if form.offset.approx > 0:
        middle = f"{scalar(form.middle)} " if form.middle else ""
        yield f"{middle}\\pm {shifted(form.offset)}"


@_rule(
    "matrix entry+1", ("\\begin{pmatrix} 7 \\\\ -2 \\end{pmatrix}", "\\begin{pmatrix} 8 \\\\ -2 \\end{pmatrix}"), Matrix
)
def matrix_entry(form: Matrix) -> Iterator[str]:
    """The first entry one higher."""
    if (other := neighbour(form)) is not None:
        yield other


@_rule(
    "matrix rows swapped",
    ("\\begin{pmatrix} 7 \\\\ -2 \\end{pmatrix}", "\\begin{pmatrix} -2 \\\\ 7 \\end{pmatrix}"),
    Matrix,
)
def rows_swapped(form: Matrix) -> Iterator[str]:
    """The first two rows exchanged, where they differ."""
    if len(form.rows) > 1 and any(_differ(a, b) for a, b in zip(form.rows[0], form.rows[1], strict=True)):
        yield matrix(form.environment, [map(scalar, row) for row in (form.rows[1], form.rows[0], *form.rows[2:])])


@_rule(
    "matrix transposed",
    ("\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "\\begin{pmatrix} 1 & 3 \\\\ 2 & 4 \\end{pmatrix}"),
    Matrix,
)
def transposed(form: Matrix) -> Iterator[str]:
    """Rows and columns of a square matrix exchanged, where it is not symmetric."""
    turned = tuple(zip(*form.rows, strict=True))
    if len(turned) == len(form.rows) and any(
        _differ(a, b) for row, other in zip(form.rows, turned, strict=True) for a, b in zip(row, other, strict=True)
    ):
        yield matrix(form.environment, [map(scalar, row) for row in turned])


@_rule("other value", ("x = 3", "x=4"), Equation)
def other_value(form: Equation) -> Iterator[str]:
    """The right side changed."""
    if (other := neighbour(form)) is not None:
        yield other


@_rule("other variable", ("x = 3", "k=3"), Equation, policy=True)
def other_variable(form: Equation) -> Iterator[str]:
    """The same value for another variable."""
    if not isinstance(form.right, Sum):
        yield f"{'k' if form.variable != 'k' else 'x'}={scalar(form.right)}"


@_rule("strict/non-strict", ("x \\ge 3", "x > 3"), Inequality)
def strictness(form: Inequality) -> Iterator[str]:
    """The bound itself taken in or left out."""
    other = form.relation.removesuffix("=") if "=" in form.relation else f"{form.relation}="
    yield f"{form.variable} {SIGNS[other]} {scalar(form.bound)}"


@_rule("inequality reversed", ("x>3", "x < 3"), Inequality)
def reversed_inequality(form: Inequality) -> Iterator[str]:
    """The other side of the bound."""
    other = form.relation.translate(str.maketrans("<>", "><"))
    yield f"{form.variable} {SIGNS[other]} {scalar(form.bound)}"


@_rule("other bound", ("x>3", "x > 4"), Inequality)
def other_bound(form: Inequality) -> Iterator[str]:
    """The bound moved."""
    yield f"{form.variable} {SIGNS[form.relation]} {shifted(form.bound)}"


@_rule("complement", ("x>3", "x \\le 3"), Inequality)
def complement(form: Inequality) -> Iterator[str]:
    """All that the condition leaves out."""
    if (other := neighbour(form)) is not None:
        yield other


@_rule("equality for inequality", ("x \\ge 3", "x=3"), Inequality)
def equality(form: Inequality) -> Iterator[str]:
    """The bound alone."""
    yield f"{form.variable}={scalar(form.bound)}"


def _differ(a: Scalar, b: Scalar) -> bool:
    return abs(a.approx - b.approx) > CLOSE * max(abs(a.approx), abs(b.approx))


def _interval(left: str, form: Interval, right: str) -> str:
    low = "-\\infty" if form.low is None else scalar(form.low)
    high = "\\infty" if form.high is None else scalar(form.high)
    return f"{left}{low},{high}{right}"

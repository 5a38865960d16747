"""Rewrites of sums, tuples, intervals, lists, matrices, equations, letters and words."""

from __future__ import annotations

from collections.abc import Iterator

from truegold.verifiers.audit.forms import (
    Collection,
    Equation,
    Inequality,
    Interval,
    Letter,
    Matrix,
    Number,
    Pair,
    PlusMinus,
    Scalar,
    Sum,
    Union,
    Word,
)
from truegold.verifiers.audit.spelling import ascii_fraction, collection, exact_decimal, matrix, scalar, total
from truegold.verifiers.audit.values import SIGNS
from truegold.verifiers.audit.variants import REWRITES

_rule = REWRITES.rule
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@_rule("term reorder", ("1+274i", "274i+1"), Sum)
def term_reorder(form: Sum) -> Iterator[str]:
    """The terms of a sum from last to first."""
    yield total(form.terms[::-1])
    yield total((*form.terms[1:], form.terms[0]))


@_rule("split coefficient", ("2x^2+3x", "x^2+x^2+3x"), Sum)
def split_coefficient(form: Sum) -> Iterator[str]:
    """One term written as the sum of two."""
    (coefficient, symbol), *rest = form.terms
    if coefficient > 1:
        yield total([(coefficient - 1, symbol), (1, symbol), *rest])


@_rule("common factor", ("2x^2+4x", "2(x^2+2x)"), Sum)
def common_factor(form: Sum) -> Iterator[str]:
    """A common factor of two taken out."""
    if len(form.terms) > 1 and all(coefficient % 2 == 0 for coefficient, _ in form.terms):
        yield f"2({total((coefficient // 2, symbol) for coefficient, symbol in form.terms)})"


@_rule("braced power", ("x^2+1", "x^{2}+1"), Sum)
def braced_power(form: Sum) -> Iterator[str]:
    """Exponents in braces."""
    terms = [(coefficient, symbol.replace("^2", "^{2}").replace("^3", "^{3}")) for coefficient, symbol in form.terms]
    yield total(terms)


@_rule("ascii product", ("2x^2+3x", "2*x**2+3*x"), Sum)
def ascii_product(form: Sum) -> Iterator[str]:
    """Stars for products and powers, as a programming language has them."""
    if form.kind == "polynomial" and all(symbol[1:2] in {"", "^"} and len(symbol) <= 3 for _, symbol in form.terms):
        yield total((c, _starred(c, symbol)) for c, symbol in form.terms)


@_rule("entries respelled", ("(\\frac{1}{2},3)", "(1/2,3)"), Pair)
def entries_respelled(form: Pair) -> Iterator[str]:
    """Fractions in the entries with a slash, or as decimals where they end."""
    yield f"({','.join(_ascii(item) for item in form.items)})"
    decimals = [exact_decimal(item.value) if isinstance(item, Number) else scalar(item) for item in form.items]
    if all(decimals):
        yield f"({', '.join(text for text in decimals if text)})"


@_rule("named entries", ("(3,-4)", "(x,y)=(3,-4)"), Pair)
def named_entries(form: Pair) -> Iterator[str]:
    """The names of the coordinates before it, for what can be no interval."""
    rising = len(form.items) == 2 and form.items[0].approx < form.items[1].approx
    names = None if rising else {2: "(x,y)", 3: "(x,y,z)"}.get(len(form.items))
    if names:
        yield f"{names}={form.text}"
        yield f"{names.replace(',', ', ')} = {form.text}"


@_rule("x in", ("[0,1]", "x \\in [0,1]"), Interval, Union)
def element_of(form: Interval | Union) -> Iterator[str]:
    """The unknown as an element of it."""
    yield f"x \\in {form.text}"
    yield f"x\\in{form.text}" if form.text[0] in "([" else f"x \\in {form.text}"


@_rule("as inequality", ("[1,\\infty)", "x \\ge 1"), Interval)
def as_inequality(form: Interval) -> Iterator[str]:
    """The condition that the interval is."""
    low_sign, high_sign = ("<" if form.left == "(" else "\\le"), ("<" if form.right == ")" else "\\le")
    if form.low is not None and form.high is not None:
        yield f"{scalar(form.low)} {low_sign} x {high_sign} {scalar(form.high)}"
    elif form.low is not None:
        yield _condition(form.left, "low", form.low)
    elif form.high is not None:
        yield _condition(form.right, "high", form.high)


@_rule("union reorder", ("(-\\infty,0)\\cup(1,2)", "(1,2) \\cup (-\\infty,0)"), Union)
def union_reorder(form: Union) -> Iterator[str]:
    """The pieces from last to first."""
    yield " \\cup ".join(form.pieces[::-1])


@_rule("unicode union", ("(-\\infty,0)\\cup(1,2)", "(-∞,0)∪(1,2)"), Union)
def unicode_union(form: Union) -> Iterator[str]:
    """∪ and ∞ as characters."""
    yield "∪".join(piece.replace("\\infty", "∞") for piece in form.pieces)


@_rule("list reorder", ("9,-7", "-7, 9"), Collection)
def list_reorder(form: Collection) -> Iterator[str]:
    """The values from last to first."""
    yield collection(form.kind, map(scalar, form.items[::-1]))


@_rule("as set", ("3, 5, 7", "\\{3, 5, 7\\}"), Collection)
def as_set(form: Collection) -> Iterator[str]:
    """A bare list in set braces, and the other way round."""
    yield collection("set" if form.kind == "list" else "list", map(scalar, form.items))


@_rule("and-joined", ("6, -2", "6 \\text{ and } -2"), Collection)
def and_joined(form: Collection) -> Iterator[str]:
    """`and` before the last value."""
    if form.kind == "list":
        *most, last = [scalar(item) for item in form.items]
        yield f"{', '.join(most)} \\text{{ and }} {last}"
        yield f"{', '.join(most)} and {last}"


@_rule("solutions joined by or", ("1,2", "x=1 \\text{ or } x=2"), Collection)
def solutions(form: Collection) -> Iterator[str]:
    """The unknown named before each value."""
    if form.kind == "list":
        values = [scalar(item) for item in form.items]
        yield " \\text{ or } ".join(f"x={value}" for value in values)
        yield ", ".join(f"x={value}" for value in values)


@_rule("plus-minus expanded", ("1 \\pm \\sqrt{19}", "1+\\sqrt{19}, 1-\\sqrt{19}"), PlusMinus)
def plus_minus_expanded(form: PlusMinus) -> Iterator[str]:
    """Both values written out."""
    if form.offset.approx > 0:
        middle, offset = (scalar(form.middle) if form.middle else ""), scalar(form.offset)
        yield f"{middle}{'+' if middle else ''}{offset}, {middle}-{offset}"
        yield f"{middle}-{offset}, {middle}{'+' if middle else ''}{offset}"


@_rule(
    "bmatrix",
    ("\\begin{pmatrix} 3 & 6 \\\\ 2 & 7 \\end{pmatrix}", "\\begin{bmatrix} 3 & 6 \\\\ 2 & 7 \\end{bmatrix}"),
    Matrix,
)
def other_brackets(form: Matrix) -> Iterator[str]:
    """The other brackets, or brackets set by hand."""
    other = "bmatrix" if form.environment == "pmatrix" else "pmatrix"
    yield form.text.replace(form.environment, other)
    body = form.text.removeprefix(f"\\begin{{{form.environment}}}").removesuffix(f"\\end{{{form.environment}}}")
    yield f"\\left(\\begin{{matrix}}{body}\\end{{matrix}}\\right)"


@_rule(
    "matrix respelled",
    ("\\begin{pmatrix}1/2\\\\3\\end{pmatrix}", "\\begin{pmatrix} \\frac{1}{2} \\\\ 3 \\end{pmatrix}"),
    Matrix,
)
def matrix_respelled(form: Matrix) -> Iterator[str]:
    """Every entry in its ordinary spelling."""
    yield matrix(form.environment, [map(scalar, row) for row in form.rows])


@_rule("left side dropped", ("x = 3", "3"), Equation)
def left_side_dropped(form: Equation) -> Iterator[str]:
    """The value alone."""
    if not isinstance(form.right, Sum):
        yield scalar(form.right)


@_rule("sides swapped", ("x = 3", "3=x"), Equation)
def sides_swapped(form: Equation) -> Iterator[str]:
    """The value on the left."""
    yield f"{_right(form)}={form.variable}"


@_rule("all on one side", ("y = 2x+1", "y-2x-1=0"), Equation)
def one_side(form: Equation) -> Iterator[str]:
    """The equation of a line with 0 on the right."""
    if isinstance(form.right, Sum):
        yield f"{total([(1, form.variable), *((-c, symbol) for c, symbol in form.right.terms)])}=0"


@_rule("inequality turned", ("x>3", "3 < x"), Inequality)
def inequality_turned(form: Inequality) -> Iterator[str]:
    """The bound on the left."""
    yield f"{scalar(form.bound)} {SIGNS[_TURNED[form.relation]]} {form.variable}"


@_rule("inequality spelling", ("x \\ge 3", "x \\geq 3"), Inequality)
def inequality_spelling(form: Inequality) -> Iterator[str]:
    """The other commands and characters for the sign."""
    if form.relation in {"<=", ">="}:
        command, character = ("\\leq", "≤") if form.relation == "<=" else ("\\geq", "≥")
        for sign in (command, character, f"{command}slant"):
            yield f"{form.variable} {sign} {scalar(form.bound)}"


@_rule("as interval", ("x>3", "(3,\\infty)"), Inequality)
def as_interval(form: Inequality) -> Iterator[str]:
    """The set of solutions."""
    bound = scalar(form.bound)
    if form.relation[0] == ">":
        yield f"{'[' if '=' in form.relation else '('}{bound},\\infty)"
    else:
        yield f"(-\\infty,{bound}{']' if '=' in form.relation else ')'}"


@_rule("letter spelling", ("C", "(C)"), Letter)
def letter_spelling(form: Letter) -> Iterator[str]:
    """A choice with parentheses, as text, in bold face, with a full stop."""
    letter = form.letter
    yield from (f"({letter})", f"\\text{{{letter}}}", f"\\text{{({letter})}}", f"\\textbf{{({letter})}}", letter)
    yield f"{letter}."
    yield f"\\mathrm{{{letter}}}"


@_rule("lower-case letter", ("C", "c"), Letter, policy=True)
def lower_case_letter(form: Letter) -> Iterator[str]:
    """A choice in lower case, which may be taken for a variable."""
    yield form.letter.lower()


@_rule("word markup", ("\\text{even}", "\\mathrm{even}"), Word)
def word_markup(form: Word) -> Iterator[str]:
    """A word with other markup or none."""
    yield from (f"\\text{{{form.word}}}", f"\\textbf{{{form.word}}}", form.word, f"\\text{{ {form.word} }}")
    yield f"{form.word}."
    if " " not in form.word:
        yield f"\\mathrm{{{form.word}}}"


@_rule("word case", ("\\text{even}", "Even"), Word)
def word_case(form: Word) -> Iterator[str]:
    """A word with a capital letter, or all in lower case."""
    yield form.word[0].upper() + form.word[1:]
    yield f"\\text{{{form.word.lower()}}}"


def _starred(coefficient: int, symbol: str) -> str:
    power = symbol.replace("^", "**")
    return power if not symbol or abs(coefficient) == 1 else f"*{power}"


def _right(form: Equation) -> str:
    return total(form.right.terms) if isinstance(form.right, Sum) else scalar(form.right)


def _ascii(item: Scalar) -> str:
    return ascii_fraction(item.value) if isinstance(item, Number) else scalar(item)


def _condition(bracket: str, end: str, bound: Scalar) -> str:
    strict, loose = (">", "\\ge") if end == "low" else ("<", "\\le")
    return f"x {strict if bracket in '()' else loose} {scalar(bound)}"

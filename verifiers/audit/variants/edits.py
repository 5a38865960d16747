"""Edits of a gold answer that change its meaning: `edits("5")` yields `6`, `-5`, `5 \\text{ or } 6`, `6=5`, ...

A verifier that accepts one of them has made a false positive. Those marked `policy` are nearly right, and a grader may
fairly accept them, such as 3.46 for 2 sqrt 3. Golds of no certain form (`reading.py`) have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from truegold.verifiers.audit.variants.forms import (
    BaseN,
    Collection,
    Inequality,
    Interval,
    Irrational,
    Matrix,
    Money,
    Pair,
    Rational,
    Scalar,
    Sum,
    WithUnit,
)
from truegold.verifiers.audit.variants.neighbours import SIGNS, is_negation, move, neighbour, shift
from truegold.verifiers.audit.variants.notation import NOTATION_EDITS
from truegold.verifiers.audit.variants.reading import CLOSE, form_of
from truegold.verifiers.audit.variants.rules import Rule, Variant, make_variants, rule
from truegold.verifiers.audit.variants.spelling import (
    collection,
    exact_decimal,
    fixed,
    fraction,
    latex,
    matrix,
    point,
    root,
    sign,
    surd,
    terms_sum,
)
from truegold.verifiers.audit.variants.words import CONVERSIONS

_OTHER_BRACKET = {"(": "[", "[": "(", ")": "]", "]": ")"}
_COLUMN = (r"\begin{pmatrix} 7 \\ -2 \end{pmatrix}", r"\begin{pmatrix} 8 \\ -2 \end{pmatrix}")


def edits(gold: str) -> Iterator[Variant]:
    """Wrong answers close to `gold`, each text once, in a fixed order."""
    return make_variants(EDITS, gold)


def wrong_answer(gold: str) -> str | None:
    """A single, ordinary wrong answer of the same form; None where the form of `gold` is not certain."""
    form = form_of(gold)
    return None if form is None else neighbour(form)


def _differ(a: Scalar, b: Scalar) -> bool:
    return abs(a.approx - b.approx) > CLOSE * max(abs(a.approx), abs(b.approx))


def _with_constant_raised(form: Sum) -> str:
    constants = [coefficient for coefficient, symbol in form.terms if not symbol]
    others = [(coefficient, symbol) for coefficient, symbol in form.terms if symbol]
    return terms_sum([*others, ((constants[0] if constants else 0) + 1, "")])


def _with_last_sign_turned(form: Sum) -> str:
    *most, (coefficient, symbol) = form.terms
    return terms_sum([*most, (-coefficient, symbol)])


def _with_entry_dropped_or_added(form: Pair) -> list[str]:
    dropped = [point(form.entries[:-1])] if len(form.entries) > 2 else []
    return [*dropped, point([*form.entries, 0])]


def _with_an_end_moved(form: Interval) -> str | None:
    if form.low is not None:
        return f"{form.left}{move(form.low, -1)},{form.high_text}{form.right}"
    return None if form.high is None else f"{form.left}-\\infty,{move(form.high, 1)}{form.right}"


def _with_largest_shifted(form: Collection) -> str | None:
    entries = sorted(form.entries, key=lambda entry: entry.approx)
    return collection(form.kind, [*entries[:-1], shift(entries[-1])]) if entries[-1].approx > 0 else None


def _with_rows_swapped(form: Matrix) -> str | None:
    if len(form.rows) > 1 and any(_differ(a, b) for a, b in zip(form.rows[0], form.rows[1], strict=True)):
        return matrix(form.environment, [form.rows[1], form.rows[0], *form.rows[2:]])
    return None


def _transpose(form: Matrix) -> str | None:
    """The transposed matrix, where it is square and not symmetric."""
    columns = list(zip(*form.rows, strict=True))
    if len(columns) != len(form.rows):
        return None
    pairs = [pair for row, column in zip(form.rows, columns, strict=True) for pair in zip(row, column, strict=True)]
    return matrix(form.environment, columns) if any(_differ(a, b) for a, b in pairs) else None


def _relate(form: Inequality, relation: str) -> str:
    return f"{form.variable} {SIGNS[relation]} {form.bound}"


def _negate(form: Rational | Irrational | Sum) -> str | None:
    if isinstance(form, Sum):
        return terms_sum((-coefficient, symbol) for coefficient, symbol in form.terms)
    if isinstance(form, Irrational):
        return surd(-form.coefficient, form.symbol)
    return form.spell(-form.value) if form.value else None


def _swap_digits(form: Rational) -> str | None:
    """The first two digits exchanged, where they differ and no zero comes first."""
    digits = str(abs(form.value))
    if len(digits) < 2 or digits[1] in {"0", digits[0]}:
        return None
    return f"{sign(form.value)}{digits[1]}{digits[0]}{digits[2:]}"


def _multiply_parts(form: Rational) -> str:
    whole, rest = divmod(abs(form.value), 1)
    return f"{sign(form.value)}{whole} \\cdot {latex(rest)}"


def _with_other_unit(form: WithUnit | Money) -> str | None:
    if isinstance(form, Money):
        return f"{form.bare}\\text{{ euros}}"
    return f"{form.bare}\\text{{ {CONVERSIONS[form.unit][0]}}}{form.exponent}" if form.unit in CONVERSIONS else None


def _with_other_last_digit(form: BaseN) -> str | None:
    digit = (int(form.digits[-1]) + 1) % form.base
    if digit >= 10 or (not digit and len(form.digits) == 1):
        return None
    return f"{form.digits[:-1]}{digit}_{{{form.base}}}"


def _approximate(form: Irrational | Sum) -> str | None:
    values = {"": 1.0, "\\pi": math.pi}
    if isinstance(form, Irrational):
        value = form.approx
    else:
        terms = [(size, values.get(symbol) or math.sqrt(int(symbol[6:-1]))) for size, symbol in form.terms]
        value = sum(size * factor for size, factor in terms)
    return f"{value:.2f}" if abs(value) < 1e12 else None


def _with_coarse_pi(form: Irrational) -> str:
    value = form.coefficient * Fraction(314, 100)
    is_short = (value * 10_000).denominator == 1
    return fixed(value, 4).rstrip("0").rstrip(".") if is_short else f"{float(value):.2f}"


# fmt: off
EDITS: tuple[Rule, ...] = (
    # These change the parts: one more, one fewer, another order or bracket, a second candidate, a contradiction.
    rule("hedge or", ("636", r"636 \text{ or } 637"), "scalar, sum, tuple, interval, matrix",
         "The right answer or a wrong one.",
         r"<text> \text{ or } <other>", r"<other> \text{ or } <text>", "<text> or <other>"),
    rule("two candidates", ("680", "680, 681"), "scalar, sum",
         "A list of the right answer and a wrong one.",
         "<text>, <other>", "<other>, <text>", r"<text> \text{ and } <other>", r"\{<text>, <other>\}"),
    # A polynomial that equals another one is an equation and no contradiction.
    rule("contradiction", ("5", "6=5"), "scalar, complex number, sum of constants",
         "Two different values said to be equal.", "<other>=<text>", "<text>=<other>", "x=<other>=<text>"),
    rule("two values of x", ("5", "x=5, x=6"), "scalar",
         "The unknown given two values.", "x=<text>, x=<other>", r"x=<other> \text{ or } x=<text>"),
    rule("plus-minus added", ("5", r"\pm 5"), "scalar",
         "Both signs for a positive value.", r"\pm <text>", when=lambda form: form.approx > 0),
    rule("bound for a value", ("5", r"x \le 5"), "scalar",
         "A condition that the right value meets among others.", r"x \le <text>", "x > <text>"),
    rule("range around", ("5", "[4,6]"), "integer", "An interval that holds the right value.",
         lambda form: [f"[{form.value - 1},{form.value + 1}]", f"{form.value - 1} \\text{{ to }} {form.value + 1}"]),
    rule("expr constant+1", ("x^4+x^2-24", "x^4+x^2-23"), "sum",
         "A constant term one higher, or a new one.", _with_constant_raised),
    rule("expr coefficient+1", ("18x^8", "19x^8"), "sum", "The first coefficient one higher.", "<other>"),
    rule("expr inner sign", ("1+274i", "1-274i"), "sum",
         "The sign of the last term turned.", _with_last_sign_turned, when=lambda form: len(form.terms) > 1),
    rule("term dropped", ("x^2-5", "x^2"), "sum",
         "The last term left out.", lambda form: terms_sum(form.terms[:-1]), when=lambda form: len(form.terms) > 1),
    rule("set equal to zero", ("x^2-5", "x^2-5=0"), "polynomial",
         "An equation in the place of an expression.", "<text>=0", policy=True),
    rule("tuple order swapped", ("(3,-4)", "(-4, 3)"), "tuple", "The first two entries exchanged, where they differ.",
         lambda form: point([form.entries[1], form.entries[0], *form.entries[2:]], ", "),
         when=lambda form: _differ(*form.entries[:2])),
    rule("tuple entry+1", ("(3,-4)", "(4, -4)"), "tuple",
         "One entry changed.", "<other>", lambda form: point([*form.entries[:-1], shift(form.entries[-1])], ", ")),
    rule("tuple entry dropped", ("(1,2,3)", "(1,2)"), "tuple",
         "The last entry left out, or one more added.", _with_entry_dropped_or_added),
    rule("open/closed flip left", ("[-2,0]", "(-2,0]"), "interval", "The left end taken in or left out.",
         lambda form: f"{_OTHER_BRACKET[form.left]}{form.low},{form.high_text}{form.right}",
         when=lambda form: form.low),
    rule("open/closed flip right", ("[-3,2]", "[-3,2)"), "interval", "The right end taken in or left out.",
         lambda form: f"{form.left}{form.low_text},{form.high}{_OTHER_BRACKET[form.right]}",
         when=lambda form: form.high),
    rule("open/closed flip of a pair", ("(4,10)", "[4,10)"), "tuple",
         "One square bracket for a point or an open interval.",
         lambda form: [f"[{point(form.entries)[1:]}", f"{point(form.entries)[:-1]}]"],
         when=lambda form: form.is_rising),
    rule("endpoint", ("[-2,0]", "[-3,0]"), "interval", "One end moved.", _with_an_end_moved),
    rule("another interval", ("[-2,0]", "[1,2)"), "interval, union",
         "One that has nothing in common with it, or that covers a gap of a union.", "<other>"),
    rule("half line", ("[-2,0]", r"[-2,\infty)"), "interval",
         "The right end at infinity.", r"<left><low>,\infty)", when=lambda form: form.high),
    rule("drop one piece", (r"(-\infty,3)\cup(3,\infty)", r"(-\infty,3)"), "union",
         "One interval of a union left out.",
         lambda form: [" \\cup ".join(form.pieces[:-1]), " \\cup ".join(form.pieces[1:])]),
    rule("intersection", (r"(-\infty,3)\cup(3,\infty)", r"(-\infty,3) \cap (3,\infty)"), "union",
         "The intersection, which is empty, in the place of the union.", lambda form: " \\cap ".join(form.pieces)),
    rule("extra element", ("24,-3", "24, -3, 97"), "collection", "One value more.", "<other>"),
    rule("drop element", ("2, -3, 4", "2, -3"), "collection", "One value fewer.",
         lambda form: [collection(form.kind, entries) for entries in (form.entries[:-1], form.entries[1:])]),
    rule("element+1", ("1,5", "1, 6"), "collection", "The largest value changed.", _with_largest_shifted),
    rule("one sign only", (r"1 \pm \sqrt{19}", r"1+\sqrt{19}"), "plus-minus",
         "One of the two values.", "<upper>", "<lower>", when=lambda form: form.offset.approx > 0),
    rule("other offset", (r"1 \pm \sqrt{19}", r"1 \pm \sqrt{20}"), "plus-minus",
         "Another value after the plus-minus sign.",
         lambda form: form.with_offset(shift(form.offset)), when=lambda form: form.offset.approx > 0),
    rule("matrix entry+1", _COLUMN, "matrix", "The first entry one higher.", "<other>"),
    rule("matrix rows swapped", (_COLUMN[0], r"\begin{pmatrix} -2 \\ 7 \end{pmatrix}"), "matrix",
         "The first two rows exchanged, where they differ.", _with_rows_swapped),
    rule("matrix transposed",
         (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}"), "matrix",
         "Rows and columns of a square matrix exchanged, where it is not symmetric.", _transpose),
    rule("other value", ("x = 3", "x=4"), "equation", "The right side changed.", "<other>"),
    rule("other variable", ("x = 3", "k=3"), "equation", "The same value for another variable.",
         lambda form: f"{'k' if form.variable != 'k' else 'x'}={form.right}",
         when=lambda form: not isinstance(form.right, Sum), policy=True),
    rule("strict/non-strict", (r"x \ge 3", "x > 3"), "inequality", "The bound itself taken in or left out.",
         lambda form: _relate(form, form.relation[0] if "=" in form.relation else f"{form.relation}=")),
    rule("inequality reversed", ("x>3", "x < 3"), "inequality", "The other side of the bound.",
         lambda form: _relate(form, form.relation.translate(str.maketrans("<>", "><")))),
    rule("other bound", ("x>3", "x > 4"), "inequality", "The bound moved.",
         lambda form: f"{form.variable} {SIGNS[form.relation]} {shift(form.bound)}"),
    rule("complement", ("x>3", r"x \le 3"), "inequality", "All that the condition leaves out.", "<other>"),
    rule("equality for inequality", (r"x \ge 3", "x=3"), "inequality", "The bound alone.", "<variable>=<bound>"),

    # These change the value: another number, sign, unit, base, letter or word; approximations, which are policy.
    rule("+1", ("46", "47"), "integer, decimal, mixed number",
         "One more, for a number that is no fraction.", "<other>"),
    rule("-1", ("46", "45"), "integer, decimal, mixed number",
         "One less, for a number that is no fraction.", lambda form: form.spell(form.value - 1)),
    rule("+0.5", ("650", "650.5"), "integer, decimal",
         "A half more.", lambda form: exact_decimal(form.value + Fraction(1, 2))),
    rule("last decimal", ("3.14", "3.15"), "decimal", "The last written decimal one higher.",
         lambda form: fixed(form.value + Fraction(1, 10**form.decimals), form.decimals)),
    rule("value+1", (r"18^\circ", r"19^\circ"), "measured", "One more of the same unit.", "<other>"),
    rule("numerator+1", (r"\frac{161}{36}", r"\frac{162}{36}"), "fraction", "A numerator one higher.", "<other>"),
    rule("denominator+1", (r"\frac{1}{3}", r"\frac{1}{4}"), "fraction", "A denominator one higher.",
         lambda form: sign(form.value) + fraction(abs(form.value.numerator), form.value.denominator + 1),
         when=lambda form: form.value),
    rule("inverted", (r"\frac{17}{8}", r"\frac{8}{17}"), "fraction", "Numerator and denominator exchanged.",
         lambda form: latex(1 / form.value), when=lambda form: abs(form.value) not in {0, 1}),
    rule("sign flip", ("-64", "64"), "scalar, sum", "The negative.", _negate),
    rule("x10", ("180", "1800"), "integer, decimal", "Ten times as much: a misplaced decimal point.",
         lambda form: form.spell(form.value * 10), when=lambda form: form.value),
    rule("digits swapped", ("1260", "2160"), "integer",
         "The first two digits exchanged, where they differ.", _swap_digits),
    rule("mixed number as product", (r"1\frac{4}{5}", r"1 \cdot \frac{4}{5}"), "mixed number",
         "The whole part of a mixed number taken for a factor.", _multiply_parts),
    rule("radicand+1", (r"36\sqrt{3}", r"36\sqrt{4}"), "radical",
         "A radicand one higher.", lambda form: surd(form.coefficient, root(form.radicand + 1))),
    rule("root dropped", (r"36\sqrt{3}", "108"), "radical",
         "The radicand taken out of its root.", lambda form: latex(form.coefficient * form.radicand)),
    rule("cube root", (r"\sqrt{70}", r"\sqrt[3]{70}"), "radical", "A cube root for a square root.",
         lambda form: surd(form.coefficient, f"\\sqrt[3]{{{form.radicand}}}")),
    rule("coefficient+1", (r"24\sqrt{2}", r"25\sqrt{2}"), "irrational", "A coefficient one higher.",
         lambda form: surd(form.coefficient + 1, form.symbol), when=lambda form: form.coefficient != -1),
    rule("pi dropped", (r"96\pi", "96"), "multiple of pi",
         "The coefficient of pi alone.", lambda form: latex(form.coefficient)),
    rule("wrong unit", (r"5\text{ cm}", r"5\text{ mm}"), "with unit, money",
         "The same number of another unit of the same quantity, or of another currency.",
         _with_other_unit, when=lambda form: form.amount.value),
    rule("wrong power of the unit", (r"5\text{ cm}^2", r"5\text{ cm}^3"), "with unit",
         "A volume for an area, an area for a length.",
         lambda form: f"{form.bare}\\text{{ {form.unit}}}^{form.power + 1}",
         when=lambda form: form.amount.value and form.unit in CONVERSIONS),
    rule("other base", ("101_2", "101_{3}"), "base n", "The same digits in another base.",
         lambda form: f"{form.digits}_{{{form.base + 1}}}", when=lambda form: len(form.digits) > 1),
    rule("last digit", ("101_2", "100_{2}"), "base n",
         "Another last digit in the same base.", _with_other_last_digit),
    rule("other choice letter", ("C", "A"), "choice letter",
         "Another letter.", "<other>", lambda form: f"({chr(ord(form.letter) + 1)})"),
    rule("several choices", ("C", "C or A"), "choice letter", "The right letter among others.",
         "<letter> or <other>", "<letter>, <other>", "<letter> and <other>", "<letter>/<other>",
         r"\text{<other> or <letter>}"),
    rule("negated", (r"\text{even}", r"\text{not even}"), "word, choice letter", "The answer with `not` before it.",
         r"\text{not <word>}", "not <word>", when=lambda form: not is_negation(form.word)),
    rule("other word", (r"\text{even}", r"\text{odd}"), "word",
         "Another word that would answer the same question.", r"\text{<opposite>}", "<opposite>"),
    rule("either word", (r"\text{even}", r"\text{even or odd}"), "word",
         "The right word and another one.", r"\text{<word> or <opposite>}", r"\text{<opposite>, <word>}"),
    rule("percent of int", ("636", r"636\%"), "integer",
         "A percent sign after a whole number.", r"<text>\%", when=lambda form: form.value, policy=True),
    rule("/100", ("361", r"\frac{361}{100}"), "integer",
         "A hundredth of a whole number, as if it had been meant in percent.",
         lambda form: sign(form.value) + fraction(abs(form.value), 100), when=lambda form: form.value, policy=True),
    rule("rounded to 2 decimals", (r"\frac{6}{23}", "0.26"), "fraction, mixed number",
         "A fraction as a decimal of two places that is not exact.", lambda form: fixed(form.value, 2),
         when=lambda form: (form.value * 100).denominator != 1, policy=True),
    rule("2-decimal approximation", (r"2\sqrt{3}", "3.46"), "irrational, sum of constants",
         "An irrational constant as a decimal of two places.", _approximate, policy=True),
    rule("pi=3.14", (r"10\pi", "31.4"), "multiple of pi",
         "A multiple of pi with 3.14 for pi.", _with_coarse_pi, policy=True),
    *NOTATION_EDITS,
)
# fmt: on

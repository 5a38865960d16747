"""The forms of gold answers whose respellings and edits are certain, how they are written, and a wrong answer for each.

    5    3.5    \\frac{3}{4}    1\\frac{1}{2}      Rational
    24\\sqrt{2}    \\frac{3\\pi}{4}                Irrational
    8+4\\sqrt{3}    1-2i    x^2-7x+12            Sum
    (3,-4)    [0,1)    \\{1,2\\}    1, 2          Pair and its like
    ...

    neighbour(form_of("[0,1)"))      "[2,3)": the same form, another value

`form_reader.py` recognises them. Both share nothing with any verifier's reader, on purpose: an audit must not share the
fault it looks for. Other golds are not covered: they are judged against themselves and no more.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.resources import files
from typing import ClassVar

MAX_DECIMALS = 12
"""An exact decimal of more digits is nothing a person would write."""

WORDS = tomllib.loads(files(__package__).joinpath("gold_words.toml").read_text(encoding="utf-8"))
CONVERSIONS = {unit: (other, Fraction(factor)) for unit, (other, factor) in WORDS["conversions"].items()}
"""A unit, a smaller or larger one for the same quantity, and how many of that make one."""
UNITS = {*WORDS["units"], *CONVERSIONS, *(other for other, _ in CONVERSIONS.values())}
UNLIKE: dict[str, list[str]] = {unit: others for units, others in WORDS["unlike"] for unit in units}
"""A unit, and others: the same number of them is another quantity."""
OTHER_WORD: dict[str, str] = {
    **{word: other for pair in WORDS["opposites"] for word, other in (pair, pair[::-1])},
    **{name.lower(): ring[(index + 1) % len(ring)] for ring in WORDS["rings"] for index, name in enumerate(ring)},
}
"""A word in lower case and another one that would be a wrong answer for it."""
KNOWN_WORDS = {*OTHER_WORD, *WORDS["negations"], *WORDS["other_words"]}
SIGNS = {"<": "<", ">": ">", "<=": "\\le", ">=": "\\ge"}
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
EXTRA = Fraction(97)
"""The value added to a list: rarely an answer. Where it is one, the next number is added."""


def sign(value: Fraction) -> str:
    """A minus sign, or nothing."""
    return "-" if value < 0 else ""


def fraction(top: int | Fraction, bottom: int) -> str:
    """`\\frac{3}{4}`, reduced or not."""
    return f"\\frac{{{top}}}{{{bottom}}}"


def latex(value: Fraction) -> str:
    """5, or -\\frac{3}{4}."""
    if value.denominator == 1:
        return str(value.numerator)
    return sign(value) + fraction(abs(value.numerator), value.denominator)


def exact_decimal(value: Fraction) -> str | None:
    """The whole decimal expansion, or None if it does not end within MAX_DECIMALS digits."""
    lengths = (decimals for decimals in range(MAX_DECIMALS + 1) if (value * 10**decimals).denominator == 1)
    return next((fixed(value, decimals) for decimals in lengths), None)


def fixed(value: Fraction, decimals: int) -> str:
    """Rounded to this many decimals, halves away from zero."""
    scaled = abs(value) * 10**decimals
    digits = str((scaled + Fraction(1, 2)).__floor__()).rjust(decimals + 1, "0")
    minus = sign(value) if digits.strip("0") else ""
    split = len(digits) - decimals
    return f"{minus}{digits[:split]}.{digits[split:]}" if decimals else f"{minus}{digits}"


def repeating(value: Fraction, max_period: int = 6) -> str | None:
    """0.1\\overline{6} for 1/6, or None if it ends or the period is long."""
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


def rows_of(rows: Iterable[Iterable[object]]) -> str:
    """`1 & 2 \\\\ 3 & 4`."""
    return " \\\\ ".join(" & ".join(map(str, row)) for row in rows)


def matrix(environment: str, rows: Iterable[Iterable[object]]) -> str:
    """`\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}`."""
    return f"\\begin{{{environment}}} {rows_of(rows)} \\end{{{environment}}}"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a gold. `str` of a value or a sum is its ordinary LaTeX."""

    text: str
    """The gold."""

    @property
    def kind(self) -> str:
        """The kind of gold, by which rules choose theirs; a class of several kinds has a field for it.

        There `field()` keeps this property from being taken for a default.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Rational(Form):
    """A rational number."""

    value: Fraction
    kind: str = field()
    """integer, decimal, fraction or mixed number"""

    def __str__(self) -> str:
        return latex(self.value)

    @property
    def approx(self) -> float:
        """The value in floating point."""
        return float(self.value)

    @property
    def decimals(self) -> int:
        """The number of digits after the decimal point, as written."""
        return len(self.text.partition(".")[2])

    def spell(self, value: Fraction) -> str:
        """Another value as a decimal where this one is a decimal, else as a fraction."""
        decimal = exact_decimal(value) if self.kind == "decimal" else None
        return decimal or latex(value)


@dataclass(frozen=True, slots=True)
class Irrational(Form):
    """`coefficient` times the square root of `radicand`, which is not a square, or times pi if `radicand` is None."""

    coefficient: Fraction
    radicand: int | None

    def __str__(self) -> str:
        return surd(self.coefficient, self.symbol)

    @property
    def kind(self) -> str:
        """radical or multiple of pi"""
        return "multiple of pi" if self.radicand is None else "radical"

    @property
    def approx(self) -> float:
        """The value in floating point."""
        return float(self.coefficient) * (math.pi if self.radicand is None else math.sqrt(self.radicand))

    @property
    def symbol(self) -> str:
        """Pi or the root, without the coefficient."""
        return "\\pi" if self.radicand is None else root(self.radicand)


Scalar = Rational | Irrational


@dataclass(frozen=True, slots=True)
class Sum(Form):
    """Whole coefficients times symbols: "" for the constant, `i`, `\\pi`, `\\sqrt{3}` or a product of variables."""

    terms: tuple[tuple[int, str], ...]
    kind: str = field()
    """polynomial, complex number or sum of constants"""

    def __str__(self) -> str:
        return terms_sum(self.terms)


@dataclass(frozen=True, slots=True)
class Pair(Form):
    """A point `(a, b, ...)`. With two rising entries it may be an open interval as well, which no rule may rely on."""

    entries: tuple[Scalar, ...]
    kind: ClassVar[str] = "tuple"

    @property
    def is_rising(self) -> bool:
        """Whether it may be an open interval."""
        return len(self.entries) == 2 and self.entries[0].approx < self.entries[1].approx


@dataclass(frozen=True, slots=True)
class Interval(Form):
    """Certainly an interval: a square bracket or an infinite end, and `low` below `high`. None is an infinite end."""

    left: str
    low: Scalar | None
    high: Scalar | None
    right: str
    kind: ClassVar[str] = "interval"

    @property
    def low_text(self) -> str:
        """The lower end as LaTeX."""
        return "-\\infty" if self.low is None else str(self.low)

    @property
    def high_text(self) -> str:
        """The upper end as LaTeX."""
        return "\\infty" if self.high is None else str(self.high)


@dataclass(frozen=True, slots=True)
class Union(Form):
    """Two or more intervals that neither overlap nor touch in a point of both, from left to right."""

    pieces: tuple[str, ...]
    ends: tuple[float, ...]
    """The values of their ends, two for each piece."""
    kind: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True)
class Collection(Form):
    """Several values in no order, no two of them equal: a bare list `1, 2` or a set `\\{1, 2\\}`."""

    entries: tuple[Scalar, ...]
    kind: str = field()
    """list or set"""


@dataclass(frozen=True, slots=True)
class PlusMinus(Form):
    """`a \\pm b`, two values; `a` is None in `\\pm b`."""

    middle: Scalar | None
    offset: Scalar
    kind: ClassVar[str] = "plus-minus"

    @property
    def lower(self) -> str:
        """The value with the minus sign."""
        return f"{self.middle or ''}-{self.offset}"

    @property
    def upper(self) -> str:
        """The value with the plus sign."""
        return f"{self.middle}+{self.offset}" if self.middle else str(self.offset)

    def with_offset(self, offset: str) -> str:
        """Return the same middle with another offset."""
        return f"{self.middle} \\pm {offset}" if self.middle else f"\\pm {offset}"


@dataclass(frozen=True, slots=True)
class MatrixForm(Form):
    """Rows of values; `environment` is pmatrix or bmatrix."""

    environment: str
    rows: tuple[tuple[Scalar, ...], ...]
    kind: ClassVar[str] = "matrix"


@dataclass(frozen=True, slots=True)
class Quantity(Form):
    """A number and what is measured in it."""

    amount: Rational
    kind: str = field()
    """percent, money, degrees or with unit"""
    unit: str = ""
    """The unit, for kinds with a closed list of units."""
    power: int = 1
    """2 or 3 where the unit is squared or cubed."""

    def spell_amount(self, value: Fraction) -> str:
        """Another number with the same number of decimals."""
        return fixed(value, self.amount.decimals) if self.amount.kind == "decimal" else latex(value)

    def attach_unit(self, amount: str) -> str:
        """Return an amount with the unit."""
        signs = {"percent": f"{amount}\\%", "money": f"\\${amount}", "degrees": f"{amount}^\\circ"}
        return signs.get(self.kind, f"{amount}\\text{{ {self.unit}}}{self.exponent}")

    @property
    def bare(self) -> str:
        """The number without its unit."""
        return self.spell_amount(self.amount.value)

    @property
    def exponent(self) -> str:
        """The power as LaTeX, nothing for 1."""
        return "" if self.power == 1 else f"^{self.power}"


@dataclass(frozen=True, slots=True)
class BaseForm(Form):
    """Digits in a base up to 16."""

    digits: str
    base: int
    kind: ClassVar[str] = "base n"

    @property
    def successor(self) -> str:
        """A numeral of one digit more."""
        return f"{self.digits}1_{{{self.base}}}"


@dataclass(frozen=True, slots=True)
class Equation(Form):
    """One variable equals a value, or `y` equals a polynomial in another variable."""

    variable: str
    right: Scalar | Sum
    kind: ClassVar[str] = "equation"


@dataclass(frozen=True, slots=True)
class Inequality(Form):
    """One variable on the left."""

    variable: str
    relation: str
    """<, <=, > or >="""
    bound: Scalar
    kind: ClassVar[str] = "inequality"


@dataclass(frozen=True, slots=True)
class ClockForm(Form):
    """An hour and minutes of one half of the day."""

    hour: int
    """1 to 12"""
    minute: int
    half: str
    """a or p"""
    kind: ClassVar[str] = "time of day"

    def spell(self, hour: int, minute: int, half: str) -> str:
        """Another time in the usual spelling."""
        return f"{hour}:{minute:02}\\text{{ {half}.m.}}"

    @property
    def successor(self) -> str:
        """The time an hour later."""
        return self.spell(self.hour % 12 + 1, self.minute, self.half)

    @property
    def digits(self) -> str:
        """Hour and minutes alone."""
        return f"{self.hour}:{self.minute:02}"


@dataclass(frozen=True, slots=True)
class Congruence(Form):
    """One variable congruent to a residue, which is not below 0 and below the modulus."""

    variable: str
    residue: int
    modulus: int
    kind: ClassVar[str] = "congruence"

    @property
    def successor(self) -> str:
        """The next class."""
        return self.spell((self.residue + 1) % self.modulus, self.modulus)

    def spell(self, residue: int, modulus: int) -> str:
        """Another residue or modulus for the same variable."""
        return f"{self.variable} \\equiv {residue} \\pmod{{{modulus}}}"


@dataclass(frozen=True, slots=True)
class Letter(Form):
    """The letter of a choice."""

    word: str
    kind: ClassVar[str] = "choice letter"


@dataclass(frozen=True, slots=True)
class WordForm(Form):
    """One to three words that are not mathematics."""

    word: str
    kind: ClassVar[str] = "word"

    @property
    def opposite(self) -> str | None:
        """A word that would be a wrong answer in its place, where one is known."""
        return OTHER_WORD.get(self.word.lower())


def neighbour(form: Form) -> str | None:
    """The text of a wrong answer of the same form, or None if there is no certain one."""
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
        case MatrixForm():
            (first, *row), *rows = form.rows
            text = matrix(form.environment, [[shift(first), *row], *rows])
        case Interval() | Union():
            text = _disjoint_interval(form) if isinstance(form, Interval) else _interval_across_a_gap(form)
        case Quantity():
            text = form.attach_unit(form.spell_amount(form.amount.value + 1))
        case BaseForm() | ClockForm() | Congruence():
            text = form.successor
        case Equation():
            text = f"{form.variable}={neighbour(form.right)}"
        case Inequality():
            text = f"{form.variable} {SIGNS[OPPOSITE[form.relation]]} {form.bound}"
        case Letter() | WordForm():
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
    """The value that many whole steps higher."""
    return latex(form.value + steps) if isinstance(form, Rational) else f"{form}{steps:+d}"


def is_negation(word: str) -> bool:
    """Return whether `not` before it would not turn its meaning round."""
    return bool(set(word.lower().split()).intersection(WORDS["negations"]))


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
    start = form.pieces[1][1:-1].split(",")[0]
    # Two open ends may meet in a point, and that is the gap.
    return f"(-\\infty,{start}{')' if form.ends[1] < form.ends[2] else ']'}"


def _other_word(form: Letter | WordForm) -> str | None:
    """Another letter or word where one is known, else the negation of this word; None for a negation."""
    if isinstance(form, Letter):
        return "A" if form.word != "A" else "B"
    if form.opposite is not None:
        return f"\\text{{{form.opposite}}}"
    return None if is_negation(form.word) else f"\\text{{not {form.word}}}"

"""Defines the forms of golds, their LaTeX, and a wrong answer for each form.

A gold has a form only if its value is certain. Rules then change the gold's spelling or its value for an audit.

    golds                                    form
    5    3.5    \\frac{3}{4}    1\\frac{1}{2}      Rational
    24\\sqrt{2}    \\frac{3\\pi}{4}                Irrational
    8+4\\sqrt{3}    1-2i    x^2-7x+12            Sum
    (3,-4)    [0,1)    \\{1,2\\}                   Pair, Interval, Collection
    ...

    neighbour(form_of("[0,1)"))      "[2,3)": the same form, another value

`form_reader.py` recognises the forms. Neither file uses a verifier's reader, since an audit must not share the faults
that it searches for. From a gold without a form, no right or wrong answers are made. An audit only tests that such a
gold passes as an answer to itself, and tries some gaming responses.
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
"""Maximum number of decimals of an exact decimal expansion."""

WORDS = tomllib.loads(files(__package__).joinpath("gold_words.toml").read_text(encoding="utf-8"))
CONVERSIONS = {unit: (other, Fraction(factor)) for unit, (other, factor) in WORDS["conversions"].items()}
"""Maps a unit to a smaller or larger unit, and to its size in that unit: cm -> (mm, 10)."""
UNITS = {*WORDS["units"], *CONVERSIONS, *(other for other, _ in CONVERSIONS.values())}
"""All known units."""
UNLIKE: dict[str, list[str]] = {unit: others for units, others in WORDS["unlike"] for unit in units}
"""Maps a unit to units of other quantities, with which the same number is a wrong answer."""
OTHER_WORD: dict[str, str] = {
    **{word: other for pair in WORDS["opposites"] for word, other in (pair, pair[::-1])},
    **{name.lower(): ring[(index + 1) % len(ring)] for ring in WORDS["rings"] for index, name in enumerate(ring)},
}
"""Maps a word in small letters to a word that is a wrong answer in its place."""
KNOWN_WORDS = {*OTHER_WORD, *WORDS["negations"], *WORDS["other_words"]}
SIGNS = {"<": "<", ">": ">", "<=": "\\le", ">=": "\\ge"}
"""The LaTeX of relations."""
OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
"""The negation of each relation."""
EXTRA = Fraction(97)
"""The value that is added to a list as a wrong entry. If the list contains it, the next integer is added."""


def sign(value: Fraction) -> str:
    """Return a minus sign for a negative value, else an empty text."""
    return "-" if value < 0 else ""


def fraction(top: int | Fraction, bottom: int) -> str:
    """Return `\\frac{3}{4}`, without reducing it."""
    return f"\\frac{{{top}}}{{{bottom}}}"


def latex(value: Fraction) -> str:
    """Return a rational number as LaTeX: `5`, `-\\frac{3}{4}`."""
    if value.denominator == 1:
        return str(value.numerator)
    return sign(value) + fraction(abs(value.numerator), value.denominator)


def exact_decimal(value: Fraction) -> str | None:
    """Return the whole decimal expansion, or None if it has more than MAX_DECIMALS decimals."""
    lengths = (decimals for decimals in range(MAX_DECIMALS + 1) if (value * 10**decimals).denominator == 1)
    return next((fixed(value, decimals) for decimals in lengths), None)


def fixed(value: Fraction, decimals: int) -> str:
    """Return a value rounded to this number of decimals, with halves away from zero."""
    scaled = abs(value) * 10**decimals
    digits = str((scaled + Fraction(1, 2)).__floor__()).rjust(decimals + 1, "0")
    minus = sign(value) if digits.strip("0") else ""
    split = len(digits) - decimals
    return f"{minus}{digits[:split]}.{digits[split:]}" if decimals else f"{minus}{digits}"


def repeating(value: Fraction, max_period: int = 6) -> str | None:
    """Return a repeating decimal, 1/6 -> `0.1\\overline{6}`, or None if it does not repeat or has a long period."""
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
    """Return a rational coefficient times an irrational symbol as LaTeX: `-\\frac{3\\sqrt{2}}{4}`."""
    top, bottom = abs(coefficient.numerator), coefficient.denominator
    product = symbol if top == 1 else f"{top}{symbol}"
    return sign(coefficient) + (product if bottom == 1 else f"\\frac{{{product}}}{{{bottom}}}")


def root(radicand: int) -> str:
    """Return the square root of an integer as LaTeX."""
    return f"\\sqrt{{{radicand}}}"


def terms_sum(terms: Iterable[tuple[int, str]]) -> str:
    """Return a sum as LaTeX, such as `x^2-7x+12`, from coefficients and symbols; terms with 0 are left out."""
    text = ""
    for coefficient, symbol in terms:
        if coefficient:
            size = "" if abs(coefficient) == 1 and symbol else str(abs(coefficient))
            plus = "+" if text else ""
            text += ("-" if coefficient < 0 else plus) + size + symbol
    return text or "0"


def point(entries: Iterable[object], separator: str = ",") -> str:
    """Return a tuple as LaTeX: `(1,2)`."""
    return f"({separator.join(map(str, entries))})"


def collection(kind: str, entries: Iterable[object]) -> str:
    """Return a list `1, 2`, or for the kind "set" a set `\\{1, 2\\}`."""
    inner = ", ".join(map(str, entries))
    return f"\\{{{inner}\\}}" if kind == "set" else inner


def rows_of(rows: Iterable[Iterable[object]]) -> str:
    """Return the inside of a matrix: `1 & 2 \\\\ 3 & 4`."""
    return " \\\\ ".join(" & ".join(map(str, row)) for row in rows)


def matrix(environment: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a matrix: `\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}`."""
    return f"\\begin{{{environment}}} {rows_of(rows)} \\end{{{environment}}}"


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a gold. `str()` of a value or a sum is its usual LaTeX."""

    text: str
    """The gold."""

    @property
    def kind(self) -> str:
        """The kind of gold, by which rules select golds.

        A class whose golds have several kinds overrides this property by a field `kind: str = field()`. Without
        `field()`, the property would become the field's default.
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
        """The number of digits after the decimal point of the written gold."""
        return len(self.text.partition(".")[2])

    def spell(self, value: Fraction) -> str:
        """Return another value in this form: as a decimal if this number is a decimal, else as a fraction."""
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
        """Pi or the root as LaTeX, without the coefficient."""
        return "\\pi" if self.radicand is None else root(self.radicand)


Scalar = Rational | Irrational


@dataclass(frozen=True, slots=True)
class Sum(Form):
    """A sum of integers times symbols. A symbol is "" for the constant term, `i`, `\\pi`, `\\sqrt{3}` or a product of
    variables."""

    terms: tuple[tuple[int, str], ...]
    kind: str = field()
    """polynomial, complex number or sum of constants"""

    def __str__(self) -> str:
        return terms_sum(self.terms)


@dataclass(frozen=True, slots=True)
class Pair(Form):
    """A tuple `(a, b, ...)`. With two rising entries it may also be an open interval; rules must allow for both."""

    entries: tuple[Scalar, ...]
    kind: ClassVar[str] = "tuple"

    @property
    def is_rising(self) -> bool:
        """Whether the tuple may be an open interval."""
        return len(self.entries) == 2 and self.entries[0].approx < self.entries[1].approx


@dataclass(frozen=True, slots=True)
class Interval(Form):
    """An interval with a square bracket or an infinite end, which cannot be a tuple. None is an infinite end."""

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
    """Two or more disjoint intervals, from left to right."""

    pieces: tuple[str, ...]
    """The intervals as LaTeX."""
    ends: tuple[float, ...]
    """The values of the ends, two for each piece."""
    kind: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True)
class Collection(Form):
    """Several distinct values in any order: a list `1, 2` or a set `\\{1, 2\\}`."""

    entries: tuple[Scalar, ...]
    kind: str = field()
    """list or set"""


@dataclass(frozen=True, slots=True)
class PlusMinus(Form):
    """Two values `a \\pm b`; the middle is None in `\\pm b`."""

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
        """Return the text with the same middle and another offset."""
        return f"{self.middle} \\pm {offset}" if self.middle else f"\\pm {offset}"


@dataclass(frozen=True, slots=True)
class MatrixForm(Form):
    """A matrix; `environment` is pmatrix or bmatrix."""

    environment: str
    rows: tuple[tuple[Scalar, ...], ...]
    kind: ClassVar[str] = "matrix"


@dataclass(frozen=True, slots=True)
class Quantity(Form):
    """A number with a unit."""

    amount: Rational
    kind: str = field()
    """percent, money, degrees or with unit"""
    unit: str = ""
    """The unit of the kind "with unit", else an empty text."""
    power: int = 1
    """The power of the unit: 2 if it is squared, 3 if cubed."""

    def spell_amount(self, value: Fraction) -> str:
        """Return another number with the same number of decimals."""
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
        """The power as LaTeX, or an empty text for 1."""
        return "" if self.power == 1 else f"^{self.power}"


@dataclass(frozen=True, slots=True)
class BaseForm(Form):
    """A number in a base up to 16."""

    digits: str
    base: int
    kind: ClassVar[str] = "base n"

    @property
    def successor(self) -> str:
        """A numeral with one more digit."""
        return f"{self.digits}1_{{{self.base}}}"


@dataclass(frozen=True, slots=True)
class Equation(Form):
    """An equation of a variable with a value, or of `y` with a polynomial in another variable."""

    variable: str
    right: Scalar | Sum
    kind: ClassVar[str] = "equation"


@dataclass(frozen=True, slots=True)
class Inequality(Form):
    """An inequality with a variable on the left."""

    variable: str
    relation: str
    """<, <=, > or >="""
    bound: Scalar
    kind: ClassVar[str] = "inequality"


@dataclass(frozen=True, slots=True)
class ClockForm(Form):
    """A time of day, with hour, minutes, and a.m. or p.m."""

    hour: int
    """1 to 12"""
    minute: int
    half: str
    """a or p"""
    kind: ClassVar[str] = "time of day"

    def spell(self, hour: int, minute: int, half: str) -> str:
        """Return another time in the usual spelling."""
        return f"{hour}:{minute:02}\\text{{ {half}.m.}}"

    @property
    def successor(self) -> str:
        """The time an hour later."""
        return self.spell(self.hour % 12 + 1, self.minute, self.half)

    @property
    def digits(self) -> str:
        """The hour and the minutes: 3:05."""
        return f"{self.hour}:{self.minute:02}"


@dataclass(frozen=True, slots=True)
class Congruence(Form):
    """A congruence of a variable with a residue from 0 to below the modulus."""

    variable: str
    residue: int
    modulus: int
    kind: ClassVar[str] = "congruence"

    @property
    def successor(self) -> str:
        """The next residue class."""
        return self.spell((self.residue + 1) % self.modulus, self.modulus)

    def spell(self, residue: int, modulus: int) -> str:
        """Return a congruence of the same variable with another residue or modulus."""
        return f"{self.variable} \\equiv {residue} \\pmod{{{modulus}}}"


@dataclass(frozen=True, slots=True)
class Letter(Form):
    """The letter of an option."""

    word: str
    kind: ClassVar[str] = "choice letter"


@dataclass(frozen=True, slots=True)
class WordForm(Form):
    """One to three words that are not mathematics."""

    word: str
    kind: ClassVar[str] = "word"

    @property
    def opposite(self) -> str | None:
        """A word that is a wrong answer in its place, or None if none is known."""
        return OTHER_WORD.get(self.word.lower())


def neighbour(form: Form) -> str | None:
    """Return a wrong answer of the same form, or None if none is certain."""
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
    """Return another value of the form: 5 -> 6, 3/4 -> 4/4, 2 sqrt 3 -> 3 sqrt 3, sqrt 3 -> sqrt 4."""
    if isinstance(form, Irrational):
        if form.radicand is not None and form.coefficient == 1:
            return root(form.radicand + 1)
        coefficient = form.coefficient + (1 if form.coefficient != -1 else 3)
        return str(Irrational("", coefficient, form.radicand))
    if form.kind == "fraction":
        return sign(form.value) + fraction(abs(form.value.numerator) + 1, form.value.denominator)
    return form.spell(form.value + 1)


def move(form: Scalar, steps: int) -> str:
    """Return the value plus an integer."""
    return latex(form.value + steps) if isinstance(form, Rational) else f"{form}{steps:+d}"


def is_negation(word: str) -> bool:
    """Return whether a word is itself a negation. `not` before such a word may leave the meaning unchanged."""
    return bool(set(word.lower().split()).intersection(WORDS["negations"]))


def _extra_entry(form: Collection) -> Fraction:
    extras = (EXTRA + n for n in range(100))
    return next(extra for extra in extras if all(abs(entry.approx - float(extra)) > 0.5 for entry in form.entries))


def _disjoint_interval(form: Interval) -> str:
    """Return an interval that is disjoint from gold, so that a response with both intervals is wrong too."""
    if form.high is None:
        return f"(-\\infty,{move(form.low, -1)})" if form.low else "\\emptyset"
    end = "\\infty" if form.low is None else move(form.high, 2)
    return f"[{move(form.high, 1)},{end})"


def _interval_across_a_gap(form: Union) -> str:
    """Return the interval up to the start of the second piece. It contains the gap and lacks the second piece."""
    start = form.pieces[1][1:-1].split(",")[0]
    # If two open ends are equal, the gap is this single point.
    return f"(-\\infty,{start}{')' if form.ends[1] < form.ends[2] else ']'}"


def _other_word(form: Letter | WordForm) -> str | None:
    """Return another letter or word, else the negation of the word, or None for a word that is a negation."""
    if isinstance(form, Letter):
        return "A" if form.word != "A" else "B"
    if form.opposite is not None:
        return f"\\text{{{form.opposite}}}"
    return None if is_negation(form.word) else f"\\text{{not {form.word}}}"

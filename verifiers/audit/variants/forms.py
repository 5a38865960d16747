"""What a gold answer is: the few forms whose respellings and edits are certain.

    5    3.5    \\frac{3}{4}    1\\frac{1}{2}      Rational
    24\\sqrt{2}    \\frac{3\\pi}{4}                Irrational
    8+4\\sqrt{3}    1-2i    x^2-7x+12            Sum
    (3,-4)    [0,1)    \\{1,2\\}    1, 2          Pair and its like
    ...

`reading.py` recognises them. Both share nothing with any verifier's parser: an audit must not share the fault it looks
for. Other golds are not covered, on purpose: they are judged against themselves and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from truegold.verifiers.audit.variants.spelling import exact_decimal, fixed, latex, root, surd, terms_sum
from truegold.verifiers.audit.variants.words import OTHER_WORD


@dataclass(frozen=True, slots=True)
class Form:
    """What a gold is; `str` of a value or a sum is its ordinary LaTeX."""

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
    """`coefficient` times the square root of `radicand`, which is no square, or times pi where `radicand` is None."""

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
        """The same middle with another offset."""
        return f"{self.middle} \\pm {offset}" if self.middle else f"\\pm {offset}"


@dataclass(frozen=True, slots=True)
class Matrix(Form):
    """Rows of values; `environment` is pmatrix or bmatrix."""

    environment: str
    rows: tuple[tuple[Scalar, ...], ...]
    kind: ClassVar[str] = "matrix"


@dataclass(frozen=True, slots=True)
class Measured(Form):
    """A number and what is measured in it; the subclasses say which sort of unit."""

    amount: Rational
    layout: ClassVar[str]
    """Where the unit stands beside `<amount>`."""

    def spell_amount(self, value: Fraction) -> str:
        """Another number with as many decimals as this one has."""
        return fixed(value, self.amount.decimals) if self.amount.kind == "decimal" else latex(value)

    def attach_unit(self, amount: str) -> str:
        """That many of the unit."""
        return self.layout.replace("<amount>", amount)

    @property
    def bare(self) -> str:
        """The number without its unit."""
        return self.spell_amount(self.amount.value)


@dataclass(frozen=True, slots=True)
class Percent(Measured):
    """A percentage."""

    kind: ClassVar[str] = "percent"
    layout: ClassVar[str] = "<amount>\\%"


@dataclass(frozen=True, slots=True)
class Money(Measured):
    """Dollars."""

    kind: ClassVar[str] = "money"
    layout: ClassVar[str] = "\\$<amount>"


@dataclass(frozen=True, slots=True)
class Degrees(Measured):
    """An angle in degrees."""

    kind: ClassVar[str] = "degrees"
    layout: ClassVar[str] = "<amount>^\\circ"


@dataclass(frozen=True, slots=True)
class WithUnit(Measured):
    """A number and a unit of a closed list."""

    unit: str
    power: int
    """1, or 2 or 3 where the unit is squared or cubed"""
    kind: ClassVar[str] = "with unit"

    @property
    def exponent(self) -> str:
        """The power as LaTeX, nothing for 1."""
        return "" if self.power == 1 else f"^{self.power}"

    def attach_unit(self, amount: str) -> str:
        """That many of the unit."""
        return f"{amount}\\text{{ {self.unit}}}{self.exponent}"


@dataclass(frozen=True, slots=True)
class BaseN(Form):
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
class TimeOfDay(Form):
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

    letter: str
    kind: ClassVar[str] = "choice letter"

    @property
    def word(self) -> str:
        """The letter, where it is read as a word."""
        return self.letter


@dataclass(frozen=True, slots=True)
class Word(Form):
    """One to three words that are no mathematics."""

    word: str
    kind: ClassVar[str] = "word"

    @property
    def opposite(self) -> str | None:
        """A word that would be a wrong answer in its place, where one is known."""
        return OTHER_WORD.get(self.word.lower())

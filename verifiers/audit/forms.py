"""What a gold answer is: the few forms whose respellings and edits are certain.

    5    3.5    \\frac{3}{4}    1\\frac{1}{2}      Number
    24\\sqrt{2}    \\frac{3\\pi}{4}                Irrational
    8+4\\sqrt{3}    1-2i    x^2-7x+12            Sum
    (3,-4)    [0,1)    \\{1,2\\}    1, 2          Pair and its like
    ...

`reading.py` recognises them. Both share nothing with any verifier's parser: an audit must not share the fault it looks
for. Not covered: everything else, on purpose. A gold of another form is judged against itself and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Number:
    """A rational number. `style`: integer, decimal, fraction or mixed number."""

    text: str
    value: Fraction
    style: str

    @property
    def kind(self) -> str:
        return self.style

    @property
    def approx(self) -> float:
        return float(self.value)

    @property
    def places(self) -> int:
        """Digits after the decimal point, as written."""
        return len(self.text.partition(".")[2])


@dataclass(frozen=True, slots=True)
class Irrational:
    """`coefficient` times the square root of `radicand`, which is no square, or times pi where `radicand` is None."""

    text: str
    coefficient: Fraction
    radicand: int | None

    @property
    def kind(self) -> str:
        return "multiple of pi" if self.radicand is None else "radical"

    @property
    def approx(self) -> float:
        return float(self.coefficient) * (math.pi if self.radicand is None else math.sqrt(self.radicand))


Scalar = Number | Irrational


@dataclass(frozen=True, slots=True)
class Sum:
    """Whole coefficients times symbols: "" for the constant, `i`, `\\pi`, `\\sqrt{3}` or a product of variables."""

    text: str
    terms: tuple[tuple[int, str], ...]
    kind: str
    """polynomial, complex number or sum of constants"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A point `(a, b, ...)`. With two rising entries it may be an open interval as well, which no rule may rely on."""

    text: str
    items: tuple[Scalar, ...]
    kind: ClassVar[str] = "tuple"


@dataclass(frozen=True, slots=True)
class Interval:
    """Certainly an interval: a square bracket or an infinite end, and `low` below `high`. None is an infinite end."""

    text: str
    left: str
    low: Scalar | None
    high: Scalar | None
    right: str
    kind: ClassVar[str] = "interval"


@dataclass(frozen=True, slots=True)
class Union:
    """Two or more intervals that neither overlap nor touch in a point of both, from left to right."""

    text: str
    pieces: tuple[str, ...]
    kind: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values in no order, no two of them equal: a bare list `1, 2` or a set `\\{1, 2\\}`."""

    text: str
    items: tuple[Scalar, ...]
    kind: str
    """list or set"""


@dataclass(frozen=True, slots=True)
class PlusMinus:
    """`a \\pm b`, two values; `a` is None in `\\pm b`."""

    text: str
    middle: Scalar | None
    offset: Scalar
    kind: ClassVar[str] = "plus-minus"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of values; `environment` is pmatrix or bmatrix."""

    text: str
    environment: str
    rows: tuple[tuple[Scalar, ...], ...]
    kind: ClassVar[str] = "matrix"


@dataclass(frozen=True, slots=True)
class Percent:
    text: str
    number: Number
    kind: ClassVar[str] = "percent"


@dataclass(frozen=True, slots=True)
class Money:
    """Dollars."""

    text: str
    number: Number
    kind: ClassVar[str] = "money"


@dataclass(frozen=True, slots=True)
class Degrees:
    text: str
    number: Number
    kind: ClassVar[str] = "degrees"


@dataclass(frozen=True, slots=True)
class WithUnit:
    """A number and a unit of a closed list; `power` is 1, or 2 or 3 where the unit is squared or cubed."""

    text: str
    number: Number
    unit: str
    power: int
    kind: ClassVar[str] = "with unit"


@dataclass(frozen=True, slots=True)
class BaseN:
    text: str
    digits: str
    base: int
    kind: ClassVar[str] = "base n"


@dataclass(frozen=True, slots=True)
class Equation:
    """One variable equals a value, or `y` equals a polynomial in another variable."""

    text: str
    variable: str
    right: Scalar | Sum
    kind: ClassVar[str] = "equation"


@dataclass(frozen=True, slots=True)
class Inequality:
    """One variable on the left; `relation` is <, <=, > or >=."""

    text: str
    variable: str
    relation: str
    bound: Scalar
    kind: ClassVar[str] = "inequality"


@dataclass(frozen=True, slots=True)
class Letter:
    """The letter of a choice."""

    text: str
    letter: str
    kind: ClassVar[str] = "choice letter"


@dataclass(frozen=True, slots=True)
class Word:
    """One to three words that are no mathematics."""

    text: str
    word: str
    kind: ClassVar[str] = "word"


Measured = Percent | Money | Degrees | WithUnit
Form = (
    Number
    | Irrational
    | Sum
    | Pair
    | Interval
    | Union
    | Collection
    | PlusMinus
    | Matrix
    | Measured
    | BaseN
    | Equation
    | Inequality
    | Letter
    | Word
)

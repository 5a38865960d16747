"""Knows units of measure (`units.txt`): their spellings, and which convert into each other.

`5 cm`, `5 centimetres` and `50 mm` are the same length; `5 cm` and `5 m` are not, nor `5 cm` and `5 cm^2`. A noun that
is no unit (`5 apples`) is a label. It says what is counted, or it is a unit that nobody knows here: `5 apples` answers
a gold of 5, and nothing is concluded of `5 apples` and `5 pears`. Not covered: temperatures are not converted, and
neither are currencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from gmpy2 import mpq

from truegold.verifiers.math.vocabulary import WORDS

MAX_POWER = 12
"""The highest power of one unit. Stops `m^999999999`."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure, or a label: a noun that says what is counted."""

    factor: mpq
    """How many of the base units the unit is."""
    dimension: tuple[tuple[str, int], ...]
    """The base units with their powers, as in (("m", 1), ("s", -1)); a label has none."""
    label: str = ""
    """The nouns that are no unit that this table knows, in the singular; empty for `units`, which may be any."""

    @property
    def is_label(self) -> bool:
        """The unit says only what is counted."""
        return not self.dimension

    @property
    def is_money(self) -> bool:
        """The unit is a currency."""
        return len(self.dimension) == 1 and self.dimension[0][0] in CURRENCIES

    def __str__(self) -> str:
        if self.is_label:
            return self.label or "units"
        return "*".join(name if power == 1 else f"{name}^{power}" for name, power in self.dimension)


CURRENCIES = frozenset({"dollar", "euro", "sterling", "yuan", "yen", "rupee", "ruble", "won"})
"""The base units that are money."""
LETTER_UNITS = frozenset({"m", "g", "s", "h", "L", "l", "N", "J", "W", "V", "A"})
"""The single letters that are units; without a text command they may as well be variables."""

MULTIPLIERS: dict[str, int] = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "百": 10**2, "千": 10**3, "万": 10**4, "亿": 10**8,
}  # fmt: skip


def _parse_dimension(text: str) -> tuple[tuple[str, int], ...]:
    parts = (part.partition("^") for part in text.split("*"))
    return tuple(sorted((name, int(power or 1)) for name, _, power in parts))


UNITS: dict[str, Unit] = {}
for _line in files(__package__).joinpath("units.txt").read_text(encoding="utf-8").splitlines()[1:]:
    _base, _factor, *_names = _line.split()
    for _name in _names:
        UNITS[_name] = Unit(mpq(_factor), _parse_dimension(_base))

DEGREE, RADIAN, PERCENT, INCH = UNITS["degree"], UNITS["radian"], UNITS["percent"], UNITS["inch"]
LABEL = Unit(mpq(1), ())

_IDLE_NOUNS = WORDS["idle_nouns"]
"""Words behind a number that are no unit, known or unknown."""

_MEASURE_WORDS = WORDS["measure_words"]
"""Chinese words between a number and what it counts, each of which may stand for another."""


def label_unit(word: str) -> Unit:
    """Return the label that a noun is, in the singular."""
    lower = word.lower()
    if lower in _IDLE_NOUNS:
        return LABEL
    if not lower.isascii():
        return Unit(mpq(1), (), "".join(c for c in lower if c not in _MEASURE_WORDS))
    for ending, singular in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", "")):
        if lower.endswith(ending) and len(lower) > len(ending) + 1 and not lower.endswith("ss"):
            return Unit(mpq(1), (), lower.removesuffix(ending) + singular)
    return Unit(mpq(1), (), lower)


def may_count_the_same(a: Unit, b: Unit) -> bool:
    """Tell whether two units, at least one of them a label, may be the same: whether they share a noun."""
    if not (a.label and b.label):
        return (a.is_label and not a.label) or (b.is_label and not b.label)
    shared = set(a.label.split()) & set(b.label.split())
    return bool(shared) or (not a.label.isascii() and bool(set(a.label) & set(b.label)))


def unit_of(word: str) -> Unit | None:
    """Return the unit that `word` spells, or None; `M` is no metre, but `Meters` are."""
    if (unit := UNITS.get(word)) is None and len(word) > 2:
        unit = UNITS.get(word.lower())
    return unit


def raise_unit(unit: Unit, exponent: int) -> Unit | None:
    """Return a power of the unit, or None for an exponent that no unit has."""
    if not 1 <= abs(exponent) <= MAX_POWER:
        return None
    if unit.is_label:
        return unit
    return Unit(unit.factor**exponent, tuple((name, p * exponent) for name, p in unit.dimension))


def multiply_units(a: Unit, b: Unit) -> Unit:
    """Return the product of two units; of a unit and a label, the unit."""
    if a.is_label and b.is_label:
        return Unit(a.factor, (), f"{a.label} {b.label}".strip())
    if a.is_label or b.is_label:
        return b if a.is_label else a
    powers: dict[str, int] = {}
    for name, p in (*a.dimension, *b.dimension):
        powers[name] = powers.get(name, 0) + p
    dimension = tuple(sorted((name, p) for name, p in powers.items() if p))
    return Unit(a.factor * b.factor, dimension) if dimension else LABEL

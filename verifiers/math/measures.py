"""Looks up the unit that a word spells (`units.toml`, `currencies`), and converts between units.

    5 cm, 5 centimetres, 50 mm      the same length
    N m, J                          the same unit: all units are products of base units
    20 °C, 293.15 K                 the same temperature
    5 cm, 5 m                       different
    5 apples                        a label: a noun that is not a unit of the table

`5 apples` answers a gold of 5. Whether `5 apples` and `5 pears` are the same is left open, since a label may be an
unknown unit. Currencies and decibels are not converted, nor are months and years into days.
"""

from __future__ import annotations

import tomllib
import unicodedata
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.currencies import CURRENCIES
from truegold.verifiers.math.vocabulary import WORDS

MAX_POWER = 12
"""The highest power of a unit. Stops `m^999999999`."""
MAX_UNIT_CHARS = 30
"""Maximum number of characters in a unit. Stops 立方立方立方..., whose prefixes are removed one by one."""
REMEMBERED_WORDS = 4_096
"""The number of words whose units are cached."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measure, or a label: a noun that says what is counted."""

    factor: mpq
    """The size of the unit in base units: 1000 for a kilometre."""
    dimension: tuple[tuple[str, int], ...]
    """The base units with their powers, as in (("m", 1), ("s", -1)). Empty for a label."""
    label: str = ""
    """The noun of a label in the singular: `apple`. Empty for units of measure, and for words such as `units`."""
    zero: mpq = field(default_factory=mpq)
    """The offset of a temperature scale, which is added before multiplying by `factor`: 273.15 for degrees Celsius."""
    per: str = field(default="", compare=False)
    """The noun after `per` that is not a unit: `share` in `dollars per share`."""

    @property
    def is_label(self) -> bool:
        """Whether the unit is a noun that says what is counted."""
        return not self.dimension

    @property
    def is_money(self) -> bool:
        """Whether the unit is a currency."""
        return len(self.dimension) == 1 and self.currency is not None

    @property
    def currency(self) -> str | None:
        """The currency of an amount or a price, such as `$5` or `$5 per hour`. None for other units."""
        return next((name for name, power in self.dimension if name in CURRENCIES and power == 1), None)

    def __str__(self) -> str:
        if self.is_label:
            return self.label or "units"
        if self.zero:
            return "celsius" if self.factor == 1 else "fahrenheit"
        base = "*".join(name if power == 1 else f"{name}^{power}" for name, power in self.dimension)
        return base if self.factor == 1 else f"({float(self.factor):.6g} {base})"


class Conversion(NamedTuple):
    """The factor of a conversion: `factor` times pi to the power of `pi_power`."""

    factor: mpq
    pi_power: int = 0


class _MetricUnit(NamedTuple):
    unit: Unit
    prefixes: frozenset[str]
    """The prefixes that may precede a symbol of the unit."""


LETTER_UNITS = frozenset({"m", "g", "s", "h", "L", "l", "N", "J", "W", "V", "A"})
"""Single letters that are units. Outside of a text command they may also be variables."""

MULTIPLIERS: dict[str, int] = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "百": 10**2, "千": 10**3, "万": 10**4, "亿": 10**8, "億": 10**8, "兆": 10**12, "만": 10**4, "억": 10**8,
}  # fmt: skip
"""Maps a word that multiplies the number before it to its value."""

_TABLES = tomllib.loads(files(__package__).joinpath("units.toml").read_text(encoding="utf-8"))
_PREFIXES: dict[str, tuple[str, mpq]] = {}
"""Maps each symbol of a prefix to its main symbol and its factor: `µ` to `u` and 10^-6."""
_PREFIX_WORDS: dict[str, mpq] = {}
"""Maps the name of a prefix to its factor: `kilo` to 1000."""
for _power, (_symbols, _names) in _TABLES["prefixes"].items():
    _factor = mpq(10) ** int(_power)
    _PREFIXES |= dict.fromkeys(_symbols.split(), (_symbols.split()[0], _factor))
    _PREFIX_WORDS |= dict.fromkeys(_names.split(), _factor)
PER_WORDS = frozenset(_TABLES["words"]["per"].split())
"""Words before a divisor: `per`, `pro`, `par`."""
POWERS_BEFORE, POWERS_BEHIND = (
    {word: power for power, words in enumerate(_TABLES["words"][side], 2) for word in words.split()}
    for side in ("before", "behind")
)
"""Two maps from a word to a power: words before the unit (`square` to 2) and words after it (`squared` to 2)."""
_ANGLES = {"radian": (mpq(1), 0), "cycle": (mpq(2), 1), "degree": (mpq(1, 180), 1)}
"""Maps a unit of angle to its size in radians, as a factor and a power of pi: a cycle is 2π."""
_IDLE_DIMENSIONS = frozenset({*_ANGLES, "decay", "absorbed", "equivalent", "pound"})
"""Base units that may be left out but not replaced by another: 1/s may be rad/s or Hz, but Hz is not rad/s."""
_STANDARD_GRAVITY = Unit(mpq("9.80665"), (("m", 1), ("s", -2)))
_METRIC: dict[str, _MetricUnit] = {}
"""Maps the symbol of a metric unit to the unit: `m`."""
_METRIC_WORDS: dict[str, Unit] = {}
"""Maps the name of a metric unit to the unit: `metre`."""
_EXACT: dict[str, Unit] = {}
"""Maps a spelling to a unit that takes no prefixes."""


def without_accents(word: str) -> str:
    """Return `metres` for `mètres`."""
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


def raise_unit(unit: Unit, exponent: int) -> Unit | None:
    """Return a power of the unit, or None if the exponent is 0 or too large."""
    if not 1 <= abs(exponent) <= MAX_POWER:
        return None
    if unit.is_label or exponent == 1:
        return unit
    return Unit(unit.factor**exponent, tuple((name, p * exponent) for name, p in unit.dimension))


def multiply_units(a: Unit, b: Unit) -> Unit:
    """Return the product of two units. The product of a unit and a label is the unit."""
    if a.is_label and b.is_label:
        return Unit(a.factor, (), f"{a.label} {b.label}".strip())
    if a.is_label or b.is_label:
        return b if a.is_label else a
    powers: dict[str, int] = dict(a.dimension)
    for name, p in b.dimension:
        powers[name] = powers.get(name, 0) + p
    dimension = tuple(sorted((name, p) for name, p in powers.items() if p and name != "ratio"))
    # `m/cm` must not become a label, because a label may be left out.
    return Unit(a.factor * b.factor, dimension or (("ratio", 1),))


def _defined(text: str) -> Unit:
    """Return the unit of a definition such as `0.001 kg` or `5/18 m s^-1`. An unknown name becomes a base unit."""
    unit = LABEL
    for part in text.split():
        if part[0].isdigit():
            above, _, below = part.partition("/")
            unit = Unit(mpq(Fraction(above) / Fraction(below or 1)), ())
            continue
        name, _, power = part.partition("^")
        known = _unit_of_symbol(name) or Unit(mpq(1), ((name, 1),))
        raised = raise_unit(known, int(power or 1)) or known
        unit = Unit(unit.factor * raised.factor, multiply_units(unit, raised).dimension)
    return unit


def _unit_of_symbol(word: str) -> Unit | None:
    """Return the unit of a symbol, with or without a prefix: `min`, `N`, `mN`."""
    if (exact := _EXACT.get(word)) is not None:
        return exact
    if (metric := _METRIC.get(word)) is not None:
        return metric.unit
    for length in (1, 2):
        prefix, metric = _PREFIXES.get(word[:length]), _METRIC.get(word[length:])
        if prefix is not None and metric is not None and prefix[0] in metric.prefixes:
            return Unit(metric.unit.factor * prefix[1], metric.unit.dimension)
    return None


LABEL = Unit(mpq(1), ())
"""The unit of plain numbers, and of numbers before a general noun such as `units`."""
for _definition, _symbols, _taken, _names in _TABLES["metric"].values():
    _unit = _defined(_definition)
    _METRIC |= dict.fromkeys(_symbols.split(), _MetricUnit(_unit, frozenset(_taken.split())))
    _METRIC_WORDS |= dict.fromkeys(map(without_accents, _names.split()), _unit)
for _definition, _names in (
    *((name, " ".join(names)) for name, names in CURRENCIES.items()),
    *_TABLES["exact"].items(),
):
    _spellings = _names.split()
    _EXACT |= dict.fromkeys(
        (*_spellings, *map(without_accents, filter(str.islower, _spellings))), _defined(_definition)
    )
for _degree, _zero, _names in _TABLES["scales"].values():
    _EXACT |= dict.fromkeys(_names.split(), Unit(mpq(Fraction(_degree)), (("K", 1),), zero=mpq(Fraction(_zero))))

DEGREE, PERCENT, INCH, POUND, STERLING = (_EXACT[name] for name in ("degree", "percent", "inch", "pound", "£"))
TIME = _EXACT["min"].dimension
"""The dimension of times."""
BARE_UNITS = frozenset(_TABLES["bare"]["runs"].split())
"""Runs of letters that are units in formulas, too, where other letters are variables: `cm`."""
PHRASES = frozenset(name for name in (*_EXACT, *_METRIC_WORDS) if "_" in name)
"""Units of several words, with `_` between the words. (LaTeX's siunitx writes them as one word.)"""
_EXACT |= {name.replace("_", ""): _EXACT.get(name) or _METRIC_WORDS[name] for name in PHRASES}
PHRASE_BEGINNINGS = frozenset(name.partition("_")[0] for name in PHRASES)
"""The first words of `PHRASES`."""
HAN_UNITS = frozenset(
    head + word for word in (*_EXACT, *_METRIC_WORDS) if not word.isascii() for head in ("", *_PREFIX_WORDS)
)
"""Units in Chinese, with all prefixes."""
_IDLE_NOUNS = WORDS["idle_nouns"]
"""Words after a number that are neither a known unit nor a label."""

_MEASURE_WORDS = WORDS["measure_words"]
"""Chinese measure words, which are left out of labels."""


def label_unit(word: str) -> Unit:
    """Return the label of a noun, in the singular. Words such as `more` or `total` give the empty label."""
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
    """Tell whether two units, at least one of which is a label, may be the same.

    They may if they share a noun, or if one is the empty label.
    """
    if not (a.label and b.label):
        return (a.is_label and not a.label) or (b.is_label and not b.label)
    shared = set(a.label.split()) & set(b.label.split())
    return bool(shared) or (not a.label.isascii() and bool(set(a.label) & set(b.label)))


@lru_cache(maxsize=REMEMBERED_WORDS)
def unit_of(word: str) -> Unit | None:
    """Return the unit that `word` spells, or None. Symbols are case-sensitive (`M` is not a metre), names are not."""
    if (unit := _unit_of_symbol(word)) is not None or (len(word) < 3 and word.isascii()) or len(word) > MAX_UNIT_CHARS:
        return unit
    lower = without_accents(word.lower())
    return _EXACT.get(lower) or _METRIC_WORDS.get(lower) or _prefixed_unit(lower) or _compound_unit(lower)


def _prefixed_unit(word: str) -> Unit | None:
    """Return the unit of `kilometres`, `centimetros` and 千瓦."""
    for length in range(1, min(7, len(word))):
        factor, unit = _PREFIX_WORDS.get(word[:length]), _METRIC_WORDS.get(word[length:])
        if factor is not None and unit is not None:
            return Unit(unit.factor * factor, unit.dimension)
    return None


def _compound_unit(word: str) -> Unit | None:
    """Return the unit of 平方千米, `Quadratmeter` and 千米每小时."""
    above, per, below = word.partition("每")
    if per and (numerator := unit_of(above)) is not None and (denominator := unit_of(below)) is not None:
        inverse = raise_unit(denominator, -1)
        return None if inverse is None else multiply_units(numerator, inverse)
    head = next(
        (head for head in POWERS_BEFORE if word.startswith(head) and len(word) > len(head) + 3 * word.isascii()), None
    )
    unit = unit_of(word[len(head) :]) if head is not None else None
    return None if unit is None or head is None else raise_unit(unit, POWERS_BEFORE[head])


@lru_cache(maxsize=REMEMBERED_WORDS)
def symbols_side_by_side(word: str, most: int = 3) -> tuple[str, ...]:
    """Return the symbols in `Nm`, `kgm` or `Pas`, at most `most` of them. The tuple is empty for other words."""
    if word not in _EXACT and _unit_of_symbol(word) is not None:
        return (word,)
    for length in range(len(word) - 1, 0, -1) if most > 1 else ():
        first, rest = symbols_side_by_side(word[:length], 1), symbols_side_by_side(word[length:], most - 1)
        if first and rest:
            return (*first, *rest)
    return ()


def conversion(target: Unit, source: Unit) -> Conversion | None:
    """Return the conversion from `source` to `target`, or None if the units measure different things."""
    if target.dimension == source.dimension:
        return Conversion(source.factor / target.factor)
    target_kind, target_idle = _split_dimension(target)
    source_kind, source_idle = _split_dimension(source)
    if target_kind != source_kind:
        return _conversion_of_weight(target, source, target_idle.get("pound", 0), source_idle.get("pound", 0))
    target_idle.pop("pound", None)
    source_idle.pop("pound", None)
    factor, pi_power = source.factor / target.factor, 0
    if target_idle and source_idle and target_idle != source_idle:
        if not (target_idle.keys() | source_idle.keys()) <= _ANGLES.keys() or len(target_idle) + len(source_idle) != 2:
            return None
        if sum(target_idle.values()) != sum(source_idle.values()):
            return None
    elif target_idle == source_idle or not {"degree"} & (target_idle.keys() | source_idle.keys()):
        return Conversion(factor)
    for powers, sign in ((source_idle, 1), (target_idle, -1)):
        for name, power in powers.items():
            turn, pi = _ANGLES[name]
            factor, pi_power = factor * turn ** (sign * power), pi_power + sign * pi * power
    return Conversion(factor, pi_power)


def _split_dimension(unit: Unit) -> tuple[dict[str, int], dict[str, int]]:
    """Split the base units of a unit into those that must be written and those that may not be (`_IDLE_DIMENSIONS`)."""
    kind = {name: power for name, power in unit.dimension if name not in _IDLE_DIMENSIONS}
    return kind, {name: power for name, power in unit.dimension if name in _IDLE_DIMENSIONS}


def _conversion_of_weight(target: Unit, source: Unit, target_pounds: int, source_pounds: int) -> Conversion | None:
    """Return the conversion with pounds read as weights, as in `lb/in^2` and `ft lb`, or None if there is none."""
    as_weights = (
        _with_weight(unit, pounds) if pounds else unit
        for unit, pounds in ((target, target_pounds), (source, source_pounds))
    )
    target_weight, source_weight = as_weights
    if target_pounds == source_pounds or _split_dimension(target_weight)[0] != _split_dimension(source_weight)[0]:
        return None
    return Conversion(source_weight.factor / target_weight.factor)


def _with_weight(unit: Unit, pounds: int) -> Unit:
    weight = raise_unit(_STANDARD_GRAVITY, pounds)
    return unit if weight is None else multiply_units(unit, weight)

"""Units of measure: which words are units, and which convert into each other.

`5 cm`, `5 centimetres` and `50 mm` are the same length; `5 cm` and `5 m` are not, nor `5 cm` and `5 cm^2`. A noun that
is no unit (`5 apples`) is a label. It says what is counted, or it is a unit that nobody knows here: `5 apples` answers
a gold of 5, and nothing is concluded of `5 apples` and `5 pears`. Not covered: temperatures are not converted, and
neither are currencies.
"""

from __future__ import annotations

from dataclasses import dataclass

from gmpy2 import mpq

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

    def __str__(self) -> str:
        if self.is_label:
            return self.label or "units"
        return "*".join(name if power == 1 else f"{name}^{power}" for name, power in self.dimension)


_TABLE = """
m       1             m meter meters metre metres 米 公尺
m       1/1000        mm millimeter millimeters millimetre millimetres 毫米
m       1/100         cm centimeter centimeters centimetre centimetres 厘米 公分
m       1/10          dm decimeter decimeters decimetre decimetres 分米
m       1000          km kilometer kilometers kilometre kilometres 千米 公里
m       1/1000000     micrometer micrometers micron microns µm μm
m       1/1000000000  nm nanometer nanometers
m       127/5000      inch inches in. in 英寸
m       381/1250      foot feet ft ft. 英尺
m       1143/1250     yard yards yd yds
m       201168/125    mile miles mi 英里
kg      1             kg kgs kilogram kilograms kilogramme kilogrammes kilo kilos 千克 公斤
kg      1/1000        g gram grams gramme grammes gm gms 克
kg      1/1000000     mg milligram milligrams 毫克
m       1143/625      fathom fathoms
m       25146/125     furlong furlongs
m       1852          nmi
m       9460730472580800      lightyear lightyears ly 光年
m       149597870700  AU
kg      1/1000000000  microgram micrograms μg mcg
kg      1/2           斤
kg      1/20          两
kg      317514659/50000000    stone stones
kg      1/5000        carat carats
kg      1000          ton tons tonne tonnes 吨
kg      45359237/100000000    lb lbs pound pounds
kg      45359237/1600000000   oz ounce ounces
s       1             s sec secs second seconds 秒 秒钟
s       1/1000        ms millisecond milliseconds
s       60            min mins minute minutes 分钟
s       3600          h hr hrs hour hours 小时
s       86400         day days 天 日
s       604800        week weeks 周 星期
month   1             month months 月 个月
month   12            year years yr yrs 年
m^3     1/1000        L l liter liters litre litres 升
m^3     1/1000000     mL ml milliliter milliliters millilitre millilitres cc 毫升
gallon  1             gallon gallons gal
gallon  1/4           quart quarts qt
gallon  1/8           pint pints
gallon  1/16          cup cups
gallon  1/128         floz
gallon  1/256         tablespoon tablespoons tbsp
gallon  1/768         teaspoon teaspoons tsp
m^2     10000         hectare hectares 公顷
m^2     1             平方米 ㎡
m^2     1/10000       平方厘米
m^2     1000000       平方千米 平方公里
m^3     1             立方米
m^3     1/1000000     立方厘米
acre    1             acre acres
degree  1             degree degrees deg degs ° 度
degree  1/60          arcmin arcminute arcminutes
degree  1/3600        arcsec arcsecond arcseconds
radian  1             radian radians rad rads 弧度
dollar  1             dollar dollars usd USD $ 美元
dollar  1/100         cent cents ¢
euro    1             euro euros eur EUR € 欧元
sterling  1           £ GBP gbp 英镑
yuan    1             ¥ yuan rmb RMB CNY 元 块 块钱 元钱 人民币
yuan    1/10          角
yuan    1/100         分
yen     1             yen JPY 円 日元
rupee   1             ₹ rupee rupees Rs Rs. INR
ruble   1             ruble rubles rouble roubles ₽ руб рублей
won     1             won ₩ 원
percent 1             % percent percents percentage pct ％
K       1             kelvin kelvins
celsius 1             °C celsius 摄氏度 ℃
fahrenheit 1          °F fahrenheit ℉
kg*m*s^-2     1       N newton newtons 牛
kg*m^2*s^-2   1       J joule joules 焦
kg*m^2*s^-2   1000    kJ kilojoule kilojoules
kg*m^2*s^-3   1       W watt watts 瓦
kg*m^2*s^-3   1000    kW kilowatt kilowatts
kg*m^2*s^-3   1000000 MW megawatt megawatts
kg*m^2*s^-2   1000000 MJ megajoule megajoules
kg*m^2*s^-2   3600000 kWh
kg*m^2*s^-2   801088317/5000000000000000000000000000   eV electronvolt electronvolts
kg*m^2*s^-2   801088317/5000000000000000000000000  keV
kg*m^2*s^-2   801088317/5000000000000000000000  MeV
kg*m^2*s^-2   801088317/5000000000000000000  GeV
kg*m^2*s^-2   523/125 cal calorie calories
kg*m^2*s^-2   4184    kcal kilocalorie kilocalories
kg*m*s^-2     1000    kN kilonewton kilonewtons
ampere  1             A amp amps ampere amperes
ampere  1/1000        mA milliampere milliamperes milliamp milliamps
ampere*s      1       coulomb coulombs
volt    1             V volt volts
volt    1/1000        mV millivolt millivolts
volt    1000          kV kilovolt kilovolts
ohm     1             ohm ohms Ω
ohm     1000          kΩ kilohm kilohms
farad   1             farad farads
farad   1/1000        mF
farad   1/1000000     μF microfarad microfarads
henry   1             henry henries henrys
tesla   1             tesla teslas
tesla   1/10000       gauss
s^-1    1             Hz hertz
s^-1    1000          kHz kilohertz
s^-1    1000000       MHz megahertz
s^-1    1000000000    GHz gigahertz
kg*m^-1*s^-2  1       Pa pascal pascals
kg*m^-1*s^-2  1000    kPa kilopascal kilopascals
kg*m^-1*s^-2  1000000 MPa megapascal megapascals
kg*m^-1*s^-2  101325  atm atmosphere atmospheres
kg*m^-1*s^-2  100000  bar bars
mol     1             mol mole moles
m*s^-1  44704/100000  mph
m*s^-1  5/18          kph kmh kmph
m*s^-1  463/900       knot knots kn kt kts 节
bit     1             bit bits
bit     8             byte bytes
bit     8000          kB kilobyte kilobytes
bit     8000000       MB megabyte megabytes
bit     8000000000    GB gigabyte gigabytes
m^2     2000/3        亩
"""
"""On each line the base units, how many of them the unit is, and its spellings."""

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
for _line in _TABLE.strip().splitlines():
    _base, _factor, *_names = _line.split()
    for _name in _names:
        UNITS[_name] = Unit(mpq(_factor), _parse_dimension(_base))

DEGREE, RADIAN, PERCENT, INCH = UNITS["degree"], UNITS["radian"], UNITS["percent"], UNITS["inch"]
LABEL = Unit(mpq(1), ())

_IDLE_NOUNS = frozenset({
    "total", "left", "each", "altogether", "long", "wide", "tall", "high", "deep", "old", "of", "the", "a", "an", "in",
    "all", "about", "remaining", "different", "possible", "only", "away", "per", "apart", "exactly", "distinct", "more",
    "unit", "units", "time", "times", "way", "ways", "value", "values", "number", "numbers", "ago", "later", "from",
    "by", "for", "is", "are", "on", "s", "it", "such", "them", "these", "this", "that", "after", "before", "with",
})  # fmt: skip
"""Words behind a number that are no unit, known or unknown."""

_MEASURE_WORDS = frozenset(
    "个只本名人块张条件台辆支枝朵棵头匹套双对组次种位间层页颗粒瓶杯盒箱袋筐桶根把面艘架座所家班排行户份道题的多"
)
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
    unit = UNITS.get(word)
    if unit is None and len(word) > 2:
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

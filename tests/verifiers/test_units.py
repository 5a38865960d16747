"""Units: each in many spellings, conversions in both directions, wrong units, and letters that are variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import constants
from tables import rows

from truegold.verifiers import MathVerifier, equivalent
from truegold.verifiers.answers.gold_types import gold_note
from truegold.verifiers.math.measures import unit_of
from truegold.verifiers.math.reading.answers import read_gold
from truegold.verifiers.verdict import Reason

UNITS = r"""
m|meters|\metre
cm|centimetres|\centi\metre
km|kilometers|\kilo\metre
mm|millimeters|\milli\metre
nm|nanometers|\nano\metre
\mu m|micrometers|\micro\metre
kg|kilograms|\kilogram
g|grams|\gram
mg|milligrams|\milligram
\mu g|micrograms|\micro\gram
s|seconds|\second
ms|milliseconds|\milli\second
min|minutes|\minute
h|hours|\hour
A|amperes|\ampere
mA|milliamperes|\milli\ampere
K|kelvin|\kelvin
mol|moles|\mole
cd|candela|\candela
Hz|hertz|\hertz
kHz|kilohertz|\kilo\hertz
MHz|megahertz|\mega\hertz
N|newtons|\newton
kN|kilonewtons|\kilo\newton
mN|millinewtons|\milli\newton
J|joules|\joule
kJ|kilojoules|\kilo\joule
mJ|millijoules|\milli\joule
W|watts|\watt
mW|milliwatts|\milli\watt
MW|megawatts|\mega\watt
Pa|pascals|\pascal
kPa|kilopascals|\kilo\pascal
C|coulombs|\coulomb
nC|nanocoulombs|\nano\coulomb
V|volts|\volt
kV|kilovolts|\kilo\volt
\Omega|ohms|\ohm
k\Omega|kilohms|\kilo\ohm
F|farads|\farad
\mu F|microfarads|\micro\farad
pF|picofarads|\pico\farad
H|henries|\henry
mH|millihenries|\milli\henry
Wb|webers|\weber
T|teslas|\tesla
mT|milliteslas|\milli\tesla
S|siemens|\siemens
lm|lumens|\lumen
lx|lux|\lux
Bq|becquerels|\becquerel
Gy|grays|\gray
Sv|sieverts|\sievert
L|liters|\litre
mL|milliliters|\milli\litre
eV|electronvolts|\electronvolt
MeV|megaelectronvolts|\mega\electronvolt
u|atomic mass units|\atomicmassunit
Da|daltons|\dalton
\AA|angstroms|\angstrom
AU|astronomical units|\astronomicalunit
pc|parsecs|\parsec
ly|light years|\lightyear
dB|decibels|\decibel
atm|atmospheres|\atm
bar|bars|\bar
rpm|rpm|\rpm
psi|pounds per square inch|\psi
kWh|kilowatt-hours|\kWh
hp|horsepower|\hp
ppm|parts per million|\ppm
m/s|meters per second|\metre\per\second
km/h|kilometers per hour|\kilo\metre\per\hour
m/s^2|meters per second squared|\metre\per\second\squared
N/C|newtons per coulomb|\newton\per\coulomb
""".strip().splitlines()
"""Symbol, words and commands of siunitx."""
WITH_SCIPY = {
    "inch": constants.inch, "ft": constants.foot, "yd": constants.yard, "mi": constants.mile,
    "nmi": constants.nautical_mile, "AU": constants.au, "ly": constants.light_year, "pc": constants.parsec,
    "Å": constants.angstrom, "micron": constants.micron, "lb": constants.lb, "oz": constants.oz,
    "stone": constants.stone, "slug": constants.slug, "carat": constants.carat, "tonne": constants.metric_ton,
    "u": constants.u, "min": constants.minute, "h": constants.hour, "day": constants.day,
    "week": constants.week, "atm": constants.atm, "bar": constants.bar, "torr": constants.torr,
    "mmHg": constants.mmHg, "psi": constants.psi, "hectare": constants.hectare, "acre": constants.acre,
    "L": constants.liter, "gal": constants.gallon, "fl_oz": constants.fluid_ounce, "kph": constants.kmh,
    "mph": constants.mph, "knot": constants.knot, "eV": constants.eV, "cal": constants.calorie,
    "erg": constants.erg, "Btu": constants.Btu_IT, "hp": constants.hp, "dyn": constants.dyn,
    "lbf": constants.lbf, "kgf": constants.kgf, "c": constants.c, "kWh": 1000 * constants.hour,
    "short_ton": constants.short_ton, "long_ton": constants.long_ton, "MeV": 1e6 * constants.eV,
    "km": constants.kilo, "μm": constants.micro, "TeV": 1e12 * constants.eV,
    "rankine": constants.degree_Fahrenheit, "pF": constants.pico,
}  # fmt: skip
OPTIONS = ({}, {"units": "strict"}, {"rounding": "measured"})
PAIRS = [
    (line[0], *line[2:].split(" | "))
    for line in (Path(__file__).parent / "unit_pairs.txt").read_text(encoding="utf8").splitlines()
    if line[0] in "=!>"
]


def spellings(line: str) -> list[str]:
    symbol, words, command = line.split("|")
    plain = symbol.replace("\\mu ", "µ").replace("\\Omega", "Ω").replace("\\AA", "Å")
    return [
        f"5 {symbol}", f"5{symbol}", f"5\\,\\mathrm{{{symbol}}}", f"5~\\mathrm{{{symbol}}}", f"5\\ {{\\rm {symbol}}}",
        f"5\\text{{ {plain}}}", f"5 {plain}", f"5 {words}", f"$5$ {words}", f"5\\text{{ {words}}}",
        f"\\SI{{5}}{{{command}}}", f"\\qty{{5}}{{{symbol}}}",
    ]  # fmt: skip


@rows("line", UNITS)
def test_all_spellings_of_a_unit_are_one(line: str) -> None:
    written = spellings(line)
    for gold in (written[0], written[2], written[7]):
        assert [text for text in written if equivalent(text, gold=gold, units="strict").score != 1.0] == []
        assert equivalent("5", gold=gold).score == 1.0
        assert equivalent("5", gold=gold, units="strict").score == 0.0
        assert [text for text in written if equivalent(text.replace("5", "6"), gold=gold).score == 1.0] == []


@rows("name", WITH_SCIPY)
def test_the_table_agrees_with_scipy(name: str) -> None:
    unit = unit_of(name)
    assert unit is not None
    # A calorie and a mmHg have several definitions, which differ in the eighth figure.
    assert abs(float(unit.factor) / WITH_SCIPY[name] - 1) < 2e-7


@rows("mark, gold, answer", PAIRS)
def test_pair(mark: str, gold: str, answer: str) -> None:
    is_said_twice = "(" in answer or " or " in answer or "=" in answer
    directions = [(gold, answer)] if is_said_twice or mark == ">" else [(gold, answer), (answer, gold)]
    for one, other in directions:
        scores = [equivalent(other, gold=one, **options).score for options in OPTIONS]
        assert all((score == 1.0) == (mark == "=") for score in scores), (one, other, scores)


def test_there_are_pairs_enough() -> None:
    marks = [mark for mark, _, _ in PAIRS]
    assert len(UNITS) >= 60 and marks.count("=") >= 120 and marks.count("!") >= 200


@rows(
    "problem, gold, answer, expected",
    [
        ("Find the period in terms of $T$.", "5T", "5", False),
        ("Find the period in terms of $T$.", "5T", "5T", True),
        ("What is the field in tesla?", "5T", "5", True),
        ("What is the field in tesla?", "5T", "5000 mT", True),
        ("A box of mass $m$ slides. Find the distance in terms of $m$.", "5 m", "5", False),
        ("How far does a box of 3 kg slide?", "5m", "5", True),
        ("The radius is r and the period T. How far?", "2T", "2", False),
        ("How hot is it?", "300 K", "300", True),
        ("Find the voltage in V.", "49.3 V", "49.3", True),
        ("Find the power (in W) of each lamp.", "17.2 W", "17.2\\text{ W}", True),
        ("Find the power in W.", "17.2 W", "0.0172 kW", True),
        ("Find the power in W.", "17.2 W", "17.2 J", False),
        ("The voltage V across it is constant. Find it.", "49.3 V", "49.3\\text{ V}", True),
        ("The voltage V across it is constant. Find it.", "49.3 V", "49.3", False),
        ("Find x in T and R.", "5 T", "5", False),
        ("Solve for x in T.", "5T", "5", False),
    ],
)
def test_letters_are_units_where_the_problem_has_no_such_variable(
    problem: str, gold: str, answer: str, expected: bool
) -> None:
    verdict = MathVerifier()(f"\\boxed{{{answer}}}", gold, problem=problem)
    assert (verdict.score == 1.0) == expected


@pytest.mark.parametrize(
    "text",
    ["5 " + "立方" * 900 + "米", "每" * 2000, "5 " + "light " * 500, "5 " + "kilo" * 900, "5 " + "\\frac{m}{s}" * 150],
    ids=lambda text: text[:8],
)
def test_a_heap_of_units_is_no_crash_and_never_paid(text: str) -> None:
    verdict = equivalent(text, gold="5 kg m/s^2")
    assert verdict.score != 1.0 and verdict.reason is not Reason.VERIFIER_ERROR


@rows(
    "text",
    [
        "5 m^n",
        "5 m^{n}",
        "5 m^{-n}",
        "5 m**n",
        "5 m-n",
        "5 s^#",
        "5 km ^ N",
        "5 m n",
        r"P(x) = c x^n \text{ avec } n \geq 0",
    ],
)
def test_a_letter_behind_a_unit_is_no_exponent_and_no_crash(text: str) -> None:
    assert gold_note(text, "math") is not None
    verdict = equivalent("7", gold=text)
    assert verdict.score != 1.0 and verdict.reason is not Reason.VERIFIER_ERROR


@given(st.lists(st.sampled_from("5 m s n ^ ** { } - 2 12 345 / \\text{m} \\mu # kg".split()), min_size=1, max_size=9))
def test_units_and_exponents_in_any_order_are_read_or_unread(parts: list[str]) -> None:
    read_gold("5 " + " ".join(parts), "sum")
    read_gold("5" + "".join(parts), "sum")

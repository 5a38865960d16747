"""Reads what the amounts of a problem measure, and finds amounts that measure different things in two problems.

    problem                             its amounts                         same problem as the first?
    "A force of 20 lb over 200 ft"      20 mass or force, 200 length
    "A force of 200 N over 20 m"        200 force, 20 length                no: 200 is a length and a force
    "A force of 20 lb over 200 m"       20 mass or force, 200 length        maybe

Problems with lengths in different units may be the same problem (`differences`). They are not if the story changed, too
(`units_differ`).
"""

from __future__ import annotations

import re
from functools import lru_cache

_UNITS = {
    "length": "mm cm m km ft yd mi inch inches foot feet yard yards mile miles meter meters metre metres centimeter"
    " centimeters centimetre centimetres kilometer kilometers kilometre kilometres millimeter millimeters"
    " 米 厘米 千米 分米 公里",
    "mass": "g kg mg gram grams kilogram kilograms ton tons ounce ounces oz 克 千克 公斤 吨",
    "mass or force": "lb lbs pound pounds",
    "force": "newton newtons",
    "time": "second seconds minute minutes hour hours day days week weeks month months year years 秒 分钟 小时 天 年",
    "money": "dollar dollars cent cents euro euros 元 角",
    "volume": "liter liters litre litres gallon gallons quart quarts pint pints cup cups ml 升 毫升",
}
_LENGTHS = (
    "mm millimeter millimetre,cm centimeter centimetre,m meter metre,km kilometer kilometre,in inch inche,ft foot feet"
    ",yd yard,mi mile"
)
_LENGTH = {word: names.split()[0] for names in _LENGTHS.split(",") for word in names.split()}
"""The short form of each unit of length, without a plural s: `metre` -> `m`."""
_DIMENSION = {word: frozenset(name.split(" or ")) for name, words in _UNITS.items() for word in words.split()}
"""The dimensions of each unit: `lb` -> mass and force."""
_CHINESE = "|".join(sorted((word for word in _DIMENSION if not word.isascii()), key=len, reverse=True))
_AMOUNT = re.compile(
    rf"(?<![A-Za-z\d.,/])(\d[\d,]*(?:\.\d+)?)[\s-]{{0,2}}(?:(?:(?:cubic|square)\s)?([A-Za-z]+)|({_CHINESE}))"
)
"""An amount and the word after it: "200 ft", "3-mile", "5千克"."""


@lru_cache(2**14)
def read_dimensions(text: str) -> dict[str, frozenset[str]]:
    """Return the dimension of each amount in a text: "20 lb" gives `{"20": {"mass", "force"}}`.

    An amount that occurs with units of different dimensions is left out.
    """
    measured: dict[str, set[frozenset[str]]] = {}
    for match in _AMOUNT.finditer(text):
        dimension = _DIMENSION.get(match[3] or match[2].lower())
        if match[2] == "N":
            dimension = frozenset(["force"])
        if dimension is not None:
            measured.setdefault(match[1].replace(",", ""), set()).add(dimension)
    return {amount: next(iter(dimensions)) for amount, dimensions in measured.items() if len(dimensions) == 1}


def dimensions_differ(left: dict[str, frozenset[str]], right: dict[str, frozenset[str]]) -> bool:
    """Return whether an amount measures different things in the two texts."""
    return any(amount in right and not dimension & right[amount] for amount, dimension in left.items())


def units_differ(left: str, right: str) -> bool:
    """Return whether both texts have the same amount in different units: 5 cm and 5 ft, 5 square cm and 5 square ft."""
    here, there = (
        {(match[1].replace(",", ""), unit) for match in _AMOUNT.finditer(text) if (unit := _length(match[2]))}
        for text in (left, right)
    )
    amounts = {amount for amount, _ in here} & {amount for amount, _ in there}
    return any(all((amount, unit) not in there for other, unit in here if other == amount) for amount in amounts)


def _length(word: str | None) -> str | None:
    return _LENGTH.get((word or "").lower().removesuffix("s"))

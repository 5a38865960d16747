"""Units that may stand behind a number: a closed list, because an unknown word may change the value (`5 dozen`).

`cm`, `centimetres` and `cm^2`, `square centimeters` come out as `cm` and `cm^2`. Not covered: conversion (100 cm is not
1 m here), products of units.
"""

from __future__ import annotations

import re

from truegold.verifiers.math.clean import DOLLAR, TEXT_MARK

_SPELLINGS = """
mm millimeter millimetre
cm centimeter centimetre
dm decimeter decimetre
m meter metre
km kilometer kilometre
inch inches in
foot feet ft
yard yd
mile mi
g gram gramme
kg kilogram kilogramme kilo
mg milligram
lb lbs pound
oz ounce
ton tonne
L l liter litre
mL ml milliliter millilitre
gallon gal
s second sec
min minute
h hour hr
day
week
month
year yr
degree deg °
radian rad
dollar $ usd
cent ¢
euro €
pound-sterling £
yen-or-yuan ¥ yuan rmb 元 円 yen
rupee ₹
unit
person people
student
child children
man men
woman women
boy
girl
way
time
point
piece
item
step
mph
kph
"""

_UNIT_OF: dict[str, str] = {}
for _line in _SPELLINGS.split("\n"):
    for _spelling in _line.split():
        _UNIT_OF[_spelling] = _line.split()[0]
        if len(_spelling) > 2 and _spelling.isascii() and _spelling.isalpha():
            _UNIT_OF.setdefault(f"{_spelling}s", _line.split()[0])

_SYMBOLS = frozenset("°$¢€£¥₹元円")
_POWERS = {"square": "2", "sq": "2", "cubic": "3"}
_ONE = re.compile(r"(?:(square|sq|cubic)\.?\s+)?([A-Za-z]+|[°$¢€£¥₹元円])\.?(?:\^\{?([23])\}?)?(?:\s+(squared|cubed))?")
_PER = re.compile(r"\s*(?:/|\bper\b)\s*")


def read_unit(text: str, loose: bool) -> str | None:
    """The unit that `text` (what follows a number) spells, or None.

    A unit of one letter may as well be a variable. `loose` takes it for a unit when a blank stands before it, otherwise
    it must have been set as text.
    """
    marked = TEXT_MARK in text
    spaced = text[:1].isspace()
    plain = " ".join(text.replace(TEXT_MARK, " ").replace(DOLLAR, "$").split())
    parts = [_read_one(part.strip()) for part in _PER.split(plain, maxsplit=2)]
    if len(parts) > 2 or None in parts:
        return None
    if len(plain) == 1 and plain not in _SYMBOLS and not (marked or (loose and spaced)):
        return None
    return "/".join(part for part in parts if part)


def _read_one(text: str) -> str | None:
    match = _ONE.fullmatch(text)
    if match is None:
        return None
    before, word, exponent, after = match.groups()
    base = _UNIT_OF.get(word) or _UNIT_OF.get(word.lower() if len(word) > 2 else word)
    if base is None:
        return None
    powers = [p for p in (_POWERS.get(before or ""), exponent, {"squared": "2", "cubed": "3"}.get(after or "")) if p]
    if len(powers) > 1:
        return None
    return f"{base}^{powers[0]}" if powers else base

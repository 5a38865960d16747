"""A rule that compares the kind of answer asked for with the kind that gold is.

"How many minutes ...?"  gold "3 hours"      unit_mismatch
"How many minutes ...?"  gold "180"          nothing
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.numbers import MAX_CHARS
from truegold.pipeline.text.prose import sentences

_UNITS = {
    "time": r"seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?",
    "length": r"(?:milli|centi|kilo)?met(?:er|re)s?|mm|cm|km|m|inch(?:es)?|feet|foot|ft|yards?|miles?",
    "mass": r"(?:milli|kilo)?grams?|kg|g|mg|pounds?|lbs?|ounces?|oz|tons?|tonnes?",
    "volume": r"(?:milli)?lit(?:er|re)s?|ml|l|gallons?|quarts?|pints?|cups?",
    "money": r"dollars?|cents?|euros?",
}
_UNIT = re.compile("|".join(f"(?P<{kind}>{names})" for kind, names in _UNITS.items()), re.IGNORECASE)
_ASKED_UNIT = re.compile(r"\bhow\s+many\s+(?:more\s+|total\s+|whole\s+)?([a-z]+)\b", re.IGNORECASE)
_GOLD_UNIT = re.compile(r"^[\s$]*-?[\d.,/\s]+(?:\\text\s*\{|\\mathrm\s*\{)?\s*([A-Za-z]+)\b[^\d]*$")
_SINGULAR = {
    "feet": "foot",
    "inches": "inch",
    "mins": "minute",
    "min": "minute",
    "secs": "second",
    "hrs": "hour",
    "hr": "hour",
    "kg": "kilogram",
    "g": "gram",
    "mg": "milligram",
    "km": "kilometer",
    "m": "meter",
    "cm": "centimeter",
    "mm": "millimeter",
    "l": "liter",
    "ml": "milliliter",
    "ft": "foot",
    "lbs": "pound",
    "lb": "pound",
    "oz": "ounce",
}


@detector("unit_mismatch", version="2")
def unit_mismatch(row: Row) -> list[Finding]:
    """The question asks for a number of one unit, and gold is given in another."""
    text = row["gold"] or ""
    gold = _GOLD_UNIT.match(text) if len(text) <= MAX_CHARS else None
    if gold is None or not _UNIT.fullmatch(gold[1]):
        return []
    for sentence in reversed(sentences(row["prompt"])):
        asked = _ASKED_UNIT.search(sentence)
        if asked and (unit := _UNIT.fullmatch(asked[1])):
            if _singular(unit[0]) == _singular(gold[1]):
                return []
            return [Finding("unit_mismatch", evidence={"asks": asked[0], "gold": row["gold"]})]
    return []


def _singular(unit: str) -> str:
    lowered = unit.lower()
    return _SINGULAR.get(lowered, lowered.replace("metre", "meter").replace("litre", "liter").removesuffix("s"))

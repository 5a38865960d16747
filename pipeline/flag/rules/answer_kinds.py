"""Rules that compare the kind of answer asked for with the kind that gold is.

Some rows and their findings:

    "How many minutes ...?"  gold "3 hours"                                   unit_mismatch
    "Solve x^2 = 9."  solution "... x = 3 or x = -3"  gold "3"                several_solutions
    "Solve x^2 = 9 for positive x."  gold "3"                                 nothing
"""

from __future__ import annotations

import re

from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.numbers import MAX_CHARS, read_number
from truegold.pipeline.flag.rules.prose import excerpt, sentences
from truegold.pipeline.rows import Row

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
}


@detector("unit_mismatch", version="1")
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
            return [Finding("unit_mismatch", 0.7, {"asks": asked[0], "gold": row["gold"]})]
    return []


def _singular(unit: str) -> str:
    lowered = unit.lower()
    return _SINGULAR.get(lowered, lowered.removesuffix("s"))


_VALUE = r"(?:[-−+]?\s*\d+(?:\.\d+)?|[-−]?\s*\\[dt]?frac\{-?\d+\}\{\d+\})"
_TWO_SOLUTIONS = re.compile(
    rf"(?P<name>\b[a-zA-Z])\s*=\s*(?P<first>{_VALUE})\$?\s*(?:,|\bor\b|\band\b|\\text\{{\s*or\s*\}}|\\quad)\s*(?:or\s*)?\$?"
    rf"(?P=name)\s*=\s*(?P<second>{_VALUE})"
)
_ALL_ASKED = re.compile(
    r"\b(?:all|sum|product|number\s+of|how\s+many|positive|negative|larg\w+|small\w+|great\w+|least|both)\b",
    re.IGNORECASE,
)
TAIL_CHARS = 200
"""Two values that are the answer stand near the solution's end."""


@detector("several_solutions", version="1")
def several_solutions(row: Row) -> list[Finding]:
    """The solution ends in two values of one unknown, gold is one of them, and the prompt does not say which."""
    solution, gold = row["solution"], read_number(row["gold"])
    if not solution or gold is None or _ALL_ASKED.search(row["prompt"]):
        return []
    match = _TWO_SOLUTIONS.search(solution[-TAIL_CHARS:])
    if match is None:
        return []
    values = [read_number(match[name].replace(" ", "")) for name in ("first", "second")]
    if None in values or gold.value not in {value.value for value in values if value is not None}:
        return []
    return [Finding("several_solutions", 0.6, {"ends": excerpt(solution), "gold": row["gold"]}, blocks=False)]

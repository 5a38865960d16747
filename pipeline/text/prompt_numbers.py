"""The numbers that a problem states, in digits and in words, and those that its words imply.

    stated_numbers("Half of the twenty-five boxes hold 1,200 nails")    ->  1200, 25, 2, 50, 3/2, ...
    implied_numbers("per week")                                         ->  5, 7, 14, 28, 4, 52

Both are generous, because they serve rules that report a number as coming from nowhere.
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.verifiers.written_numbers import BELOW_HUNDRED, ORDINALS, PARTS, SCALES

# Where such a word stands in the prompt or the solution, each number beside it may be used.
_CONSTANTS = (
    (r"week|daily|every\s+day|each\s+day|per\s+day|a\s+day|monday|sunday|weekend", (5, 7, 14, 28, 4, 52)),
    (
        r"month|january|february|march|april|may|june|july|august|september|october|november|december",
        (4, 12, 28, 29, 30, 31),
    ),
    (r"year|annual|anniversary|age", (12, 52, 365, 366, 4, 30)),
    (r"hour|minute|second|clock|[ap]\.?m\b|\btime\b|mph", (60, 3600, 24, 12)),
    (r"\bdays?\b", (24, 7)),
    (r"dozen", (12, 6)),
    (r"\bfeet|\bfoot|inch|yard", (12, 3, 36, 144, 9)),
    (r"mile", (5280, 1760)),
    (r"pound|ounce|\bton", (16, 2000)),
    (r"gallon|quart|pint|cup\b|cups\b", (4, 8, 16, 128, 32, 3)),
    (r"quarter|dime|nickel|penn|cent|coin|dollar|\$", (25, 5, 4, 20)),
    (r"kilo|centi|milli|\bc?m\b|\bkm\b|\bkg\b|lit(?:er|re)|met(?:er|re)", (1000, 100, 10_000, 1_000_000)),
    (r"degree|angle|°", (180, 360, 90)),
    (r"triangle|tricycle|triplet", (3, 60, 180)),
    (
        r"square|rectang|quadrilateral|room|wall|perimeter|legs?\b|wheel|car|quadrupl|dog|cat|horse|cow|chair|table|corner",
        (4, 360),
    ),
    (r"cube|die\b|dice|hexagon|insect|ant\b", (6, 8, 12)),
    (r"spider|octopus|octagon", (8,)),
    (r"average|mean\b|arithmetic", (3, 4, 5, 6)),
    (r"tripl|third|thrice|three", (3,)),
    (r"decade|century|centur", (10, 100)),
    (r"alphabet|letters", (26,)),
    (r"cards|deck", (52, 13)),
    (r"million|billion", (1_000_000,)),
)
_CONSTANT_PATTERNS = tuple((re.compile(pattern), values) for pattern, values in _CONSTANTS)
_WORD_NUMBER = re.compile(
    rf"\b({'|'.join(BELOW_HUNDRED)})\b(?:[\s-]+(one|two|three|four|five|six|seven|eight|nine)\b)?(?:[\s-]+(hundred|thousand)\b)?",
    re.IGNORECASE,
)
_SCALES = {word: SCALES[word] for word in ("million", "thousand", "hundred")}
_PARTS = {word: value for word, value in (PARTS | ORDINALS).items() if value < 10 and not word.endswith("s")}
_MIXED = re.compile(r"\b(\d{1,6})(?:\s+and)?\s+(\d{1,4})/([1-9]\d{0,3})\b")
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")


def implied_numbers(text: str) -> set[Fraction]:
    """Return the numbers that the words of a text imply: the days of a week, the minutes of an hour, a dog's legs."""
    text = text.lower()
    return {Fraction(value) for pattern, values in _CONSTANT_PATTERNS if pattern.search(text) for value in values}


def stated_numbers(prompt: str) -> set[Fraction]:
    """Return the numbers that a prompt states, in digits and in words, and the parts of "half", "a third", ..."""
    values = {Fraction(text.replace(",", "")) for text in _DIGITS.findall(prompt) if len(text) <= 15}
    values |= {int(whole) + Fraction(int(top), int(below)) for whole, top, below in _MIXED.findall(prompt)}
    for tens, units, scale in _WORD_NUMBER.findall(prompt):
        value = BELOW_HUNDRED[tens.lower()] + (BELOW_HUNDRED[units.lower()] if units else 0)
        values |= {Fraction(value), Fraction(value * _SCALES.get(scale.lower(), 1))}
    lowered = prompt.lower()
    if "half" in lowered:
        values |= {value + Fraction(1, 2) for value in values} | {Fraction(50), Fraction(3, 2)}
    return values | {Fraction(value) for word, value in (_PARTS | _SCALES).items() if word in lowered}

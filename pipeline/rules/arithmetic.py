"""Rules that recompute a worked solution.

Some rows, and what is said of them:

    solution "5 * 7 = 36 apples ... #### 36"                                       arithmetic_error, shows 5 * 7 = 35
    solution "10 / 3 = 3.33"  gold "3.33"  and no word on rounding in the prompt   precision_not_stated
    "Tom buys eggs and eats 3. ..."  solution "12 - 3 = 9"                         number_from_nowhere: 12
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.pipeline.rows import Row
from truegold.pipeline.rules.calculation import Calculation, calculations
from truegold.pipeline.rules.detector import Finding, detector
from truegold.pipeline.rules.numbers import read_number
from truegold.pipeline.rules.prose import excerpt

MAX_SHOWN = 5


@detector("arithmetic_error", version="1")
def arithmetic_error(row: Row) -> list[Finding]:
    """A calculation in the solution is wrong. Whether the answer is wrong too is a reviewer's to see."""
    if not row["solution"] or row["domain"] != "math":
        return []
    wrong = [found for found in calculations(row["solution"]) if not found.holds]
    if not wrong:
        return []
    shown = [f"{found.left} = {_plain(found.result)} (it is {_plain(found.value)})" for found in wrong[:MAX_SHOWN]]
    return [Finding("arithmetic_error", 0.6, {"wrong": shown}, blocks=False)]


_ROUNDING = re.compile(
    r"\bround|\bnearest|\bdecimal|\bapproximat|\babout\b|\bestimat|\bsignificant\b|\bwhole\s+number|\bplaces\b|≈|约|四舍五入|保留"
    r"|\bpercent|%|[$£€¥]|\bdollars?\b|\bcents?\b|\bprice\b|\bcosts?\b|π|\bpi\b",
    re.IGNORECASE,
)
"""Money has two decimals by custom, and so much is said about a percentage or a price."""


@detector("precision_not_stated", version="1")
def precision_not_stated(row: Row) -> list[Finding]:
    """Gold is a rounded number, and the prompt does not say to which place: other roundings are as right."""
    gold = read_number(row["gold"])
    if gold is None or not row["solution"] or _ROUNDING.search(row["prompt"]):
        return []
    last: Calculation | None = None
    for found in calculations(row["solution"]):
        if found.result == gold.value:
            last = found
    if last is None or last.value == gold.value or not last.holds:
        return []
    evidence = {"gold": row["gold"], "exact": f"{last.left} = {float(last.value):.6g}..."}
    return [Finding("precision_not_stated", 0.7, evidence, blocks=False)]


_CONSTANTS = frozenset(
    # one, halves and doubles, percent; days, weeks, months and years; minutes and seconds; dozens; inches, feet and yards;
    # ounces and pounds; the metric prefixes; degrees
    map(Fraction, (0, 1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 16, 20, 24, 28, 29, 30, 31, 36, 50, 52, 60, 90, 100, 144, 180, 360))
) | frozenset(map(Fraction, (365, 366, 1000, 3600, 1440, 168, 5280, 1760, 2000, 25, 48, 128, 32, 64, 1_000_000)))
_WORDS = {
    word: value
    for value, words in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen".split()
    )
    for word in [words]
} | {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_WORD_NUMBER = re.compile(
    r"\b(" + "|".join(_WORDS) + r")(?:[\s-]+(one|two|three|four|five|six|seven|eight|nine)\b)?(?:[\s-]+(hundred|thousand))?",
    re.IGNORECASE,
)
_PARTS = {"half": 2, "third": 3, "fourth": 4, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9}
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
MAX_GIVEN = 40
"""Prompts with more numbers are tables, where anything can be computed from something."""


@detector("number_from_nowhere", version="1")
def number_from_nowhere(row: Row) -> list[Finding]:
    """The solution computes with a number that neither the prompt gives nor an earlier step makes: a premise is missing."""
    if not row["solution"] or row["domain"] != "math":
        return []
    given = _given(row["prompt"])
    if not given or len(given) > MAX_GIVEN:
        return []
    known = given | _CONSTANTS
    known |= {Fraction(len(given)), *(one + other for one in given for other in given)}
    strange: list[Fraction] = []
    steps = 0
    for found in calculations(row["solution"]):
        steps += 1
        strange.extend(value for value in found.operands if not _follows(value, known))
        known |= {found.result, *found.operands}
    if not steps or not strange:
        return []
    shown = [_plain(value) for value in dict.fromkeys(strange)]
    confidence = 0.6
    return [Finding("number_from_nowhere", confidence, {"numbers": shown[:MAX_SHOWN], "ends": excerpt(row["solution"])}, blocks=False)]


def _given(prompt: str) -> set[Fraction]:
    """The numbers a prompt gives, in digits and in words, and the parts of "half", "a third", ..."""
    values = {Fraction(text.replace(",", "")) for text in _DIGITS.findall(prompt) if len(text) <= 15}
    for tens, units, scale in _WORD_NUMBER.findall(prompt):
        value = _WORDS[tens.lower()] + (_WORDS[units.lower()] if units else 0)
        values |= {Fraction(value), Fraction(value * {"hundred": 100, "thousand": 1000}.get(scale.lower(), 1))}
    lowered = prompt.lower()
    values |= {Fraction(value) for word, value in _PARTS.items() if word in lowered}
    values |= {Fraction(value) for word, value in (("million", 10**6), ("thousand", 1000), ("hundred", 100)) if word in lowered}
    return values


def _follows(value: Fraction, known: set[Fraction]) -> bool:
    """Known, or a known number as a percentage, its complement, or its inverse."""
    candidates = (value, value * 100, 100 - value, value - 1, (1 - value) * 100, (value - 1) * 100, value - 100, value + 1)
    if any(candidate in known for candidate in candidates):
        return True
    return value != 0 and 1 / value in known


def _plain(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"

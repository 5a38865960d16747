"""A rule that asks whether gold can be computed from the question's numbers at all.

    "Dan had 4 dollars and has 3 left. How many bottle caps did Danny have at first?"  gold "91"     gold_out_of_reach
    "Dan had 4 dollars and has 3 left. What did the candy cost?"                       gold "1"      nothing: 4 - 3

Every value that up to three of the numbers give with + - * / is compared with gold; a number may be used twice, and
the ones that words bring along (a week's 7) count too. Rows whose solution computes are left to `number_from_nowhere`.
"""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.rules.calculation import calculations
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.given import given_numbers, implied_numbers
from truegold.pipeline.flag.rules.numbers import read_number
from truegold.pipeline.flag.rules.prose import FORMULA, PUZZLE, without_formulas
from truegold.pipeline.rows import Row

Array = NDArray[np.float64]

MAX_GIVEN = 3
"""More numbers reach nearly everything."""
MAX_NUMBERS = 25
"""With those that words bring along; bounds the table of pairs."""
_ALWAYS = (1.0, 2.0)
_ASKS_NUMBER = re.compile(r"\bhow\s+(?:many|much|long|far|old|tall|fast|big|heavy)\b", re.IGNORECASE)
_REUSED = re.compile(r"\bthan\b|\btimes\b|\btwice\b|\bthrice\b|\bdouble|\btripl|\bas\s+many\b", re.IGNORECASE)
"""Quantities made of others: a total of them uses the same number again and again."""
_TOLERANCE = 1e-6


@detector("gold_out_of_reach", version="1")
def gold_out_of_reach(row: Row) -> list[Finding]:
    """No few steps lead from the story's numbers to gold: a premise is missing, or gold belongs to another question."""
    prompt, gold = row["prompt"], read_number(row["gold"])
    if gold is None or gold.value <= 0 or row["domain"] != "math" or not _ASKS_NUMBER.search(prompt):
        return []
    if PUZZLE.search(prompt) or _REUSED.search(prompt) or FORMULA in without_formulas(prompt):
        return []
    if row["solution"] and calculations(row["solution"]):
        return []
    given = {value for value in given_numbers(prompt) if value > 0}
    numbers = np.array(
        sorted({*map(float, given | _shares(given, prompt) | implied_numbers(prompt)), *_ALWAYS} - {0.0})
    )
    if not 1 <= len(given) <= MAX_GIVEN or len(numbers) > MAX_NUMBERS:
        return []
    if _reached(float(gold.value), numbers):
        return []
    evidence = {"gold": row["gold"], "numbers": [f"{float(value):g}" for value in sorted(given)]}
    return [Finding("gold_out_of_reach", 0.6, evidence, blocks=False)]


def _shares(given: set[Fraction], prompt: str) -> set[Fraction]:
    """The numbers as percentages, and what they leave, where the prompt speaks of percent."""
    if "%" not in prompt and "percent" not in prompt.lower():
        return set()
    return {share for value in given for share in (value / 100, abs(100 - value) / 100)} | {Fraction(100)}


def _reached(target: float, numbers: Array) -> bool:
    """Whether an expression of at most three of the numbers is the target; nothing on the way is below 0."""
    if bool(np.isclose(numbers, target, rtol=_TOLERANCE).any()):
        return True
    pairs = _pairs(numbers)
    return bool(np.isclose(pairs, target, rtol=_TOLERANCE).any()) or _meet(target, pairs, numbers)


def _pairs(numbers: Array) -> Array:
    """Every value of two of the numbers, ascending."""
    one, other = numbers[:, None], numbers[None, :]
    values = np.concatenate(
        [(one + other).ravel(), (one - other).ravel(), (one * other).ravel(), (one / other).ravel()]
    )
    return np.unique(values[values > 0])


def _meet(target: float, one: Array, other: Array) -> bool:
    """Whether a value of `one` and a value of `other` (ascending) give the target by + - * /."""
    wanted = _partners(target, one)
    place = np.searchsorted(other, wanted)
    near = np.minimum(
        np.abs(other[np.minimum(place, len(other) - 1)] - wanted), np.abs(other[np.maximum(place - 1, 0)] - wanted)
    )
    return bool((near <= _TOLERANCE * np.maximum(1.0, wanted)).any())


def _partners(target: float, values: Array) -> Array:
    """What must be put together with each value (all above 0) to make the target; positive ones only."""
    wanted = np.concatenate(
        [target - values, values - target, target + values, target / values, values / target, target * values]
    )
    return wanted[wanted > 0]

"""A rule that asks whether gold can be computed from the question's numbers at all.

    "Dan had 4 dollars and has 3 left. How many bottle caps did Danny have at first?"  gold "91"     gold_out_of_reach
    "Dan had 4 dollars and has 3 left. What did the candy cost?"                       gold "1"      nothing: 4 - 3

Every value that up to three of the numbers give with + - * / is compared with gold; a number may be used twice, and
those that words imply (a week's 7) count too. Rows whose solution computes are left to `number_from_nowhere`.
"""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from truegold.pipeline.flag.rules.calculation import calculations
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.numbers import read_number
from truegold.pipeline.flag.rules.prompt_numbers import implied_numbers, stated_numbers
from truegold.pipeline.flag.rules.prose import FORMULA, PUZZLE, without_formulas
from truegold.pipeline.rows import Row

Array = NDArray[np.float64]

MAX_STATED = 3
"""A prompt with more numbers reaches nearly every gold."""
MAX_NUMBERS = 25
"""The limit with the implied numbers included, which bounds the table of pairs."""
_ALWAYS = (1.0, 2.0)
_ASKS_NUMBER = re.compile(r"\bhow\s+(?:many|much|long|far|old|tall|fast|big|heavy)\b", re.IGNORECASE)
_REUSED = re.compile(r"\bthan\b|\btimes\b|\btwice\b|\bthrice\b|\bdouble|\btripl|\bas\s+many\b", re.IGNORECASE)
"""With such words one quantity is made of another, and a total uses the same number again and again."""
_TOLERANCE = 1e-6


@detector("gold_out_of_reach", version="1")
def gold_out_of_reach(row: Row) -> list[Finding]:
    """No two steps lead from the story's numbers to gold: a premise is missing, or gold answers another question."""
    prompt, gold = row["prompt"], read_number(row["gold"])
    if gold is None or gold.value <= 0 or row["domain"] != "math" or not _ASKS_NUMBER.search(prompt):
        return []
    if PUZZLE.search(prompt) or _REUSED.search(prompt) or FORMULA in without_formulas(prompt):
        return []
    if row["solution"] and calculations(row["solution"]):
        return []
    stated = {value for value in stated_numbers(prompt) if value > 0}
    usable = {*map(float, stated | _percentages(stated, prompt) | implied_numbers(prompt)), *_ALWAYS} - {0.0}
    if not 1 <= len(stated) <= MAX_STATED or len(usable) > MAX_NUMBERS:
        return []
    if _is_reached(float(gold.value), np.array(sorted(usable))):
        return []
    evidence = {"gold": row["gold"], "numbers": [f"{float(value):g}" for value in sorted(stated)]}
    return [Finding("gold_out_of_reach", 0.6, evidence, blocks=False)]


def _percentages(stated: set[Fraction], prompt: str) -> set[Fraction]:
    """Return the numbers as percentages, and their complements, where the prompt speaks of percent."""
    if "%" not in prompt and "percent" not in prompt.lower():
        return set()
    return {share for value in stated for share in (value / 100, abs(100 - value) / 100)} | {Fraction(100)}


def _is_reached(target: float, numbers: Array) -> bool:
    """Whether an expression of at most three of the numbers is the target; no step on the way is below 0."""
    if bool(np.isclose(numbers, target, rtol=_TOLERANCE).any()):
        return True
    pairs = _values_of_pairs(numbers)
    return bool(np.isclose(pairs, target, rtol=_TOLERANCE).any()) or _combine_to(target, pairs, numbers)


def _values_of_pairs(numbers: Array) -> Array:
    """Return every positive value that two of the numbers give by + - * /, ascending."""
    left, right = numbers[:, None], numbers[None, :]
    values = np.concatenate([table.ravel() for table in (left + right, left - right, left * right, left / right)])
    return np.unique(values[values > 0])


def _combine_to(target: float, pairs: Array, numbers: Array) -> bool:
    """Whether a value of `pairs` and one of `numbers` (ascending) give the target by + - * /."""
    partners = _partners(target, pairs)
    index = np.searchsorted(numbers, partners)
    above, below = numbers[np.minimum(index, len(numbers) - 1)], numbers[np.maximum(index - 1, 0)]
    distance = np.minimum(np.abs(above - partners), np.abs(below - partners))
    return bool((distance <= _TOLERANCE * np.maximum(1.0, partners)).any())


def _partners(target: float, values: Array) -> Array:
    """Return the positive numbers that combine with one of the values, all above 0, to the target."""
    partners = np.concatenate(
        [target - values, values - target, target + values, target / values, values / target, target * values]
    )
    return partners[partners > 0]

"""Rules that recompute a worked solution.

Some rows and their findings:

    solution "5 * 7 = 36 apples ... #### 36"                                       arithmetic_error, shows 5 * 7 = 35
    "Tom buys eggs and eats 3. ..."  solution "12 - 3 = 9"                         number_from_nowhere: 12
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from truegold.pipeline.flag.rules.calculation import MAX_CHARS, Calculation, calculations, numbers_after_equals
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.prompt_numbers import implied_numbers, stated_numbers
from truegold.pipeline.text.prose import ending

MAX_SHOWN = 5


_OTHER_BASE = re.compile(r"\b(?:in|what|which|some|to|from)\s+base\b|\bbase[-\s]\$?\d", re.IGNORECASE)
"""Where a problem speaks of bases, `44 * 55 = 3506` may be true."""


@detector("arithmetic_error", version="3")
def arithmetic_error(row: Row) -> list[Finding]:
    """A calculation in the solution is wrong. Whether the answer is wrong too is for a reviewer to see."""
    if not row["solution"] or row["domain"] != "math":
        return []
    if _OTHER_BASE.search(row["prompt"]):
        return []
    wrong = [calculation for calculation in calculations(row["solution"]) if not calculation.holds]
    if not wrong:
        return []
    shown = [f"{step.left} = {_format(step.result)} (it is {_format(step.value)})" for step in wrong[:MAX_SHOWN]]
    return [Finding("arithmetic_error", evidence={"wrong": shown})]


_ALWAYS = frozenset(map(Fraction, (0, 1, 2, 10, 100, 1000)))
_COUNTED = re.compile(r"\b(?:all|together|total|altogether|combined|everyone|each|every|and)\b", re.IGNORECASE)
"""People or things that are named one by one may be counted."""
MENTAL_OPERANDS = 6
"""A sum or difference of two among this many latest numbers may have been worked out without being written."""
MAX_STATED = 40
"""Prompts with more numbers are tables, where anything can be computed from something."""


@detector("number_from_nowhere", version="1")
def number_from_nowhere(row: Row) -> list[Finding]:
    """The solution computes with a number that neither prompt nor an earlier step gives: a premise is missing.

    It finds a quarter of removed premises, and is wrong about nearly all intact rows that it flags: off by default.
    """
    if not row["solution"] or row["domain"] != "math":
        return []
    stated = stated_numbers(row["prompt"])
    if not stated or len(stated) > MAX_STATED:
        return []
    steps = calculations(row["solution"])
    known = stated | _ALWAYS
    if _COUNTED.search(row["prompt"]):
        known |= set(map(Fraction, range(len(stated) + 2)))
    # An operand may also be the result of a step with words in it, which `calculations` does not read.
    known |= set(numbers_after_equals(row["solution"]))
    unexplained = _unexplained_operands(steps, known)
    if unexplained:  # Looking up what words imply is slow, and seldom needed.
        known |= implied_numbers(row["prompt"] + " " + row["solution"][:MAX_CHARS])
        unexplained = _unexplained_operands(steps, known)
    if not unexplained:
        return []
    shown = [_format(value) for value in dict.fromkeys(unexplained)]
    evidence = {"numbers": shown[:MAX_SHOWN], "ends": ending(row["solution"])}
    return [Finding("number_from_nowhere", evidence=evidence)]


def _unexplained_operands(steps: Sequence[Calculation], known: set[Fraction]) -> list[Fraction]:
    """Return the operands that follow neither from the known numbers nor from the steps before."""
    known = set(known)
    unexplained: list[Fraction] = []
    recent: list[Fraction] = []
    for step in steps:
        unknown = [value for value in step.operands if value not in known and not _is_derived(value, known)]
        if unknown:
            latest = recent[-MENTAL_OPERANDS:]
            mental = {sign * first + second for first in latest for second in latest for sign in (1, -1)}
            unexplained.extend(value for value in unknown if value not in mental)
        known |= {step.result, *step.operands}
        recent += [*step.operands, step.result]
    return unexplained


def _is_derived(value: Fraction, known: set[Fraction]) -> bool:
    """Whether the value is a known number, or one as a percentage, its complement, or its inverse."""
    candidates = (
        value,
        value * 100,
        100 - value,
        value - 1,
        (1 - value) * 100,
        (value - 1) * 100,
        value - 100,
        value + 1,
    )
    if any(candidate in known for candidate in candidates):
        return True
    return value != 0 and 1 / value in known


def _format(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"

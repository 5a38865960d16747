"""Rules that recompute a worked solution.

Some rows and their findings:

    solution "5 * 7 = 36 apples ... #### 36"                                       arithmetic_error, shows 5 * 7 = 35
    "Tom buys eggs and eats 3. ..."  solution "12 - 3 = 9"                         number_from_nowhere: 12
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from truegold.pipeline.flag.rules.calculation import MAX_CHARS, Calculation, calculations, numbers_after_equals
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.flag.rules.prompt_numbers import implied_numbers, stated_numbers
from truegold.pipeline.flag.rules.prose import FORMULA, PUZZLE, excerpt, without_formulas
from truegold.pipeline.rows import Row

MAX_SHOWN = 5


@detector("arithmetic_error", version="2")
def arithmetic_error(row: Row) -> list[Finding]:
    """A calculation in the solution is wrong. Whether the answer is wrong too is for a reviewer to see."""
    if not row["solution"] or row["domain"] != "math":
        return []
    wrong = [calculation for calculation in calculations(row["solution"]) if not calculation.holds]
    if not wrong:
        return []
    shown = [f"{step.left} = {_format(step.result)} (it is {_format(step.value)})" for step in wrong[:MAX_SHOWN]]
    return [Finding("arithmetic_error", evidence={"wrong": shown})]


_ALWAYS = frozenset(map(Fraction, (0, 1, 2, 10, 100, 1000)))
MAX_STATED = 25
"""Prompts with more numbers are tables, where anything can be computed from something."""


@detector("number_from_nowhere", version="2")
def number_from_nowhere(row: Row) -> list[Finding]:
    """The solution of a story computes with a number that neither prompt nor an earlier step gives."""
    prompt, solution = row["prompt"], row["solution"]
    if not solution or row["domain"] != "math" or FORMULA in without_formulas(prompt) or PUZZLE.search(prompt):
        return []
    stated = stated_numbers(prompt)
    if not stated or len(stated) > MAX_STATED:
        return []
    steps = calculations(solution)
    known = stated | _ALWAYS | set(numbers_after_equals(solution))
    # Looking up what words imply is slow, and seldom needed.
    if not _unexplained_operands(steps, known):
        return []
    known |= implied_numbers(prompt + " " + solution[:MAX_CHARS])
    unexplained = _unexplained_operands(steps, known)
    if not unexplained:
        return []
    shown = [_format(value) for value in dict.fromkeys(unexplained)]
    return [Finding("number_from_nowhere", evidence={"numbers": shown[:MAX_SHOWN], "ends": excerpt(solution)})]


def _unexplained_operands(steps: Sequence[Calculation], known: set[Fraction]) -> list[Fraction]:
    """Return the operands that follow neither from the known numbers nor from the steps before."""
    known = set(known)
    unexplained: list[Fraction] = []
    for step in steps:
        # Decimals are rounded or converted more often than they come from nowhere.
        whole = [value for value in step.operands if value.denominator == 1 and value not in known]
        unexplained += [value for value in whole if not _is_derived(value, known)]
        known |= {step.result, *step.operands}
    return unexplained


def _is_derived(value: Fraction, known: set[Fraction]) -> bool:
    """Whether one step that nobody writes down leads to the value: a sum, a multiple, a percentage, a unit's factor."""
    return any(
        value - other in known
        or value + other in known
        or (other and value / other in known)
        or value in (other / 100, other * 100, 100 - other, 100 + other, 1 - other / 100, 1 + other / 100)
        or value in (other * 60, other / 60, other * 12, other / 2, other * 1000, other * 100 - 100)
        or (other and value == 1 / other)
        for other in known
    )


def _format(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"

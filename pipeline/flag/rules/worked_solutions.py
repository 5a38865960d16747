r"""Rules that recompute a row's worked solution, and hold it against its gold.

Some rows and their findings:

    solution "5 * 7 = 36 apples ... #### 36"                                    arithmetic_error, shows 5 * 7 = 35
    solution "... <<8*9=72>>72 clips\n#### 27"  gold "27"                        gold_slip: 72

The calculations of a solution are read by `calculations`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.pipeline.flag.rules.calculations import calculations
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.quantities import read_number

MAX_SHOWN = 5
"""The wrong calculations that the evidence names."""

_OTHER_BASE = re.compile(r"\b(?:in|what|which|some|to|from)\s+base\b|\bbase[-\s]\$?\d", re.IGNORECASE)
"""Where a problem speaks of bases, `44 * 55 = 3506` may be true."""

_FINAL_MARK = "####"
"""What stands before the final answer of a solution of GSM8K."""
_DIGITS = re.compile(r"\d+(?:\.\d+)?")


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


def _format(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.6g}"


@detector("gold_slip", version="2")
def gold_slip(row: Row) -> list[Finding]:
    """Gold is a slip away from the last result of its solution, and stands nowhere in it but as the final answer."""
    before, mark, _ = (row["solution"] or "").rpartition(_FINAL_MARK)
    gold = read_number(row["gold"])
    # A last step without its result has gold for it.
    if gold is None or not mark or before.rstrip().rstrip("$").endswith("="):
        return []
    steps = calculations(before)
    if not steps or steps[-1].result == gold.value or not steps[-1].holds:
        return []
    if gold.value in {Fraction(text) for text in _DIGITS.findall(before.replace(",", ""))}:
        return []
    last = steps[-1].result
    if not _is_slip(gold.value, last):
        return []
    return [Finding("gold_slip", evidence={"gold": row["gold"], "last_step": f"{steps[-1].left} = {float(last):g}"})]


def _is_slip(gold: Fraction, last: Fraction) -> bool:
    """Whether the two differ by 1, by the sign, by a shifted point, or by the order of their digits."""
    if gold == -last or abs(gold - last) == 1 or (last and gold / last in (10, Fraction(1, 10))):
        return True
    digits = [sorted(str(abs(value).numerator)) for value in (gold, last)]
    return gold.denominator == last.denominator == 1 and digits[0] == digits[1] and len(digits[0]) > 1

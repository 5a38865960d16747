r"""Rules that hold a row's worked solution against its prompt and its gold.

Some rows and their findings:

    "How many cars has Tom? ..."  solution "The triangle's sides are ..."                solution_of_another_problem
    "Tom runs 60 each sprint."  solution "He runs 3*60=180 meters"                       lost_unit: meters
    solution "... <<8*9=72>>72 clips\n#### 27"  gold "27"                                gold_slip: 72
"""

from __future__ import annotations

import re
from fractions import Fraction

from truegold.pipeline.flag.rules.calculation import calculations
from truegold.pipeline.flag.rules.detector import Finding, detector
from truegold.pipeline.tables.rows import Row
from truegold.pipeline.text.numbers import read_number
from truegold.pipeline.text.prose import CHINESE, FORMULA, ending, without_formulas

MAX_CHARS = 10_000
"""The part of a text that is read."""

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_MATH = re.compile(r"\$[^$]+\$|\\\[.+?\\\]", re.DOTALL)
_WORD = re.compile(r"[a-z]{4,}")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_SQUEEZED = re.compile(r"[\s{}$\\,.;!]")
_COMMON = frozenset(
    "this that there then their they them have with from will would which what when where were been each"
    " many much more less than total number amount left after before answer need find value into also both"
    " some other thus since therefore hence gives first second must only equal equals solution because"
    " using these those such here does over same time times note know simply means result right side sides"
    " multiply divide subtract adding".split()
)
STEM = 5
GRAM = 6
MIN_WORDS = 4
"""A text with fewer content words is a formula, and shares none with its solution as often as not."""
MANY_WORDS = 8
"""Of two texts with so many words one may be shared by chance."""
MAX_SHARED_NUMBERS = 0.34


@detector("solution_of_another_problem", version="1")
def solution_of_another_problem(row: Row) -> list[Finding]:
    """The worked solution shares neither words nor numbers nor formulas with the prompt."""
    prompt, solution = row["prompt"][:MAX_CHARS], (row["solution"] or "")[:MAX_CHARS]
    if not solution or row["domain"] != "math" or CHINESE.search(prompt + solution):
        return []
    prompt, solution = (_COMMAND.sub(" ", _DRAWING.sub(" ", text)) for text in (prompt, solution))
    if _symbols(prompt) & _symbols(solution):
        return []
    here, there = _stems(prompt), _stems(solution)
    numbers, used = _numbers(prompt), _numbers(solution)
    fewest = min(len(here), len(there))
    if fewest < MIN_WORDS or not numbers or len(numbers & used) > MAX_SHARED_NUMBERS * len(numbers):
        return []
    allowed = int(fewest >= MANY_WORDS)
    if len(here & there) > allowed or len(_grams(prompt) & _grams(solution)) > 3 * allowed:
        return []
    return [Finding("solution_of_another_problem", evidence={"solution": ending(solution), "prompt": ending(prompt)})]


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(text.lower()) if word not in _COMMON}


def _symbols(text: str) -> set[str]:
    """Return the letters of formulas, and the names of points such as `ABC`."""
    formulas = " ".join(_MATH.findall(text))
    return {*re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", formulas), *"".join(re.findall(r"[A-Z]{2,}", formulas))}


def _numbers(text: str) -> set[str]:
    return set(_DIGITS.findall(text.replace(",", ""))) - {"0", "1", "2"}


def _grams(text: str) -> set[str]:
    text = _SQUEEZED.sub("", text).lower()
    return {text[start : start + GRAM] for start in range(len(text) - GRAM + 1)}


_UNIT = (
    r"(?:hours?|minutes?|seconds?|days?|weeks?|months?|years?|miles?|feet|foot|inch(?:es)?|yards?"
    r"|(?:kilo|centi|milli)?met(?:er|re)s?"
    r"|(?:kilo|milli)?grams?|pounds?|ounces?|tons?|(?:milli)?lit(?:er|re)s?|gallons?|cups?|quarts?|pints?|percent)"
)
_WITH_UNIT = re.compile(rf"(?<![\d.,$])(\d+(?:\.\d+)?)\s+({_UNIT})\b", re.IGNORECASE)
_BARE_AFTER = (
    r"(?=\s+(?:each|per|every|and|but|on|in|at|to|from|for|with|of|long|away|wide|tall|high|deep|apart|more|less|a|an|the|than)\b"
    r"|\s*[.?](?:\s|$))"
)


@detector("lost_unit", version="1")
def lost_unit(row: Row) -> list[Finding]:
    """The solution has a unit behind a number that stands bare in the prompt, and the prompt never names that unit."""
    prompt, solution = row["prompt"][:MAX_CHARS], (row["solution"] or "")[:MAX_CHARS]
    if not solution or row["domain"] != "math":
        return []
    lowered = prompt.lower()
    if FORMULA in without_formulas(prompt):
        return []
    for amount, unit in _WITH_UNIT.findall(solution):
        stem = unit.lower().rstrip("s")[:4]
        bare = re.search(rf"(?<![\d.,$])\b{re.escape(amount)}{_BARE_AFTER}", prompt)
        if bare and stem not in lowered and len(amount) > 1:
            return [
                Finding(
                    "lost_unit",
                    evidence={"solution": f"{amount} {unit}", "prompt": ending(prompt[: bare.end() + 20], 60)},
                )
            ]
    return []


_FINAL = "####"


@detector("gold_slip", version="2")
def gold_slip(row: Row) -> list[Finding]:
    """Gold is a slip away from the last result of its solution, and stands nowhere in it but as the final answer."""
    before, mark, _ = (row["solution"] or "").rpartition(_FINAL)
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

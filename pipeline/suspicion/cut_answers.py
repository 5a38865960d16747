"""Answers that are a part of gold, as an extraction leaves them that stops at a comma, a point or a unit.

    gold "1,800" or "1800"      answers "1", "800"      a group of thousands
    gold "2.75"                 answers "2", "75"       before or after the point
    gold "3/4", "7:30", "2:5"   answers "3", "30"       one number of several
    gold "5 feet 3 inches"      answers "5", "3"

They are no votes against the label: whoever gave them may have agreed with it. The reverse, a gold that is a part of
the answers, stays a vote: there the label was cut. A digit less ("180" and "18") is an error like others.
"""

from __future__ import annotations

import re

MAX_CHARS = 200
"""Longer texts are no final answers, and not looked at."""

_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+|\d+")
_PLAIN = re.compile(r"[-+−]?\$?(\d[\d,]*)(?:\.0*)?")


def is_cut_short(answer: str, gold: str) -> bool:
    """Whether the answer is a whole number that gold begins or ends with, gold having more than that."""
    plain = _PLAIN.fullmatch(answer.strip().strip("$").strip()) if len(answer) <= MAX_CHARS else None
    if plain is None or len(gold) > MAX_CHARS:
        return False
    digits = plain[1].replace(",", "")
    numbers = [match.replace(",", "") for match in _GROUPED.findall(gold)]
    if not numbers:
        return False
    fraction = re.search(r"\.(\d+)", gold)
    if len(numbers) == 2 and fraction and not fraction[1].strip("0"):
        numbers = numbers[:1]  # "1800.00" is a whole number.
    if len(numbers) > 1:
        return digits in (numbers[0], numbers[-1])
    whole = numbers[0]
    return any(digits in (whole[:cut], whole[cut:]) for cut in range(len(whole) - 3, 0, -3))

"""Tells whether a problem in Chinese may be one in another language: no word says so, the numbers and the question do.

    "Paul has 52 marbles. His friend gave him 28. Then he lost 1/4 of them. How many are left?"
    "保罗有52颗弹珠，朋友又给了他28颗，后来他丢了四分之一。还剩多少颗？"     a translation
    "... 他丢了多少颗？"                            undecided: what is asked for may be another amount
    "保罗有52颗弹珠，朋友又给了他38颗 ..."           none: another number

An encoder proposes the pairs (`near.embedding`). Not covered: pairs of two languages that are both written in letters.
"""

from __future__ import annotations

import re

from truegold.pipeline.near.reading.text import ReadText, Sort

MIN_COMMON_NUMBERS = 2
"""Fewer numbers in common are met by accident."""
MAX_ONE_SIDED = 1
"""So many numbers may be words on one side: `twice`, 一共."""

_QUESTION = re.compile(r"[^.!?。！？]*[?？]|[^.!?。！？]+[.。]?\s*$")

_DECISIVE = {
    "share": (r"percent|fraction|what part", r"百分|几分之几"),
    "mean": (r"average|\bmean\b", r"平均"),
    "area": (r"\barea\b", r"面积"),
    "perimeter": (r"perimeter|circumference", r"周长"),
    "volume": (r"\bvolume\b", r"体积|容积"),
    "probability": (r"probability", r"概率"),
    "difference": (
        r"how (?:many|much) (?:more|less|fewer)|how (?:many|much) \w+ (?:more|less|fewer)|difference",
        r"比.*(?:多|少|大|小|高|长|贵)|相差|差多少|多多少|少多少",
    ),
    "time": (
        r"how long|how many (?:hours|minutes|seconds|days|weeks|months|years)|what time",
        r"多长时间|多久|多少(?:小时|分钟|秒|天|周|个?星期|个月|年)|几(?:个?小时|分钟|秒|天|周|个?星期|个月|年|点)",
    ),
}
"""What may be asked for, in English and in Chinese: where only one question asks for it, the problems differ."""
_SOFT = {
    "left": (r"\bleft\b|remain", r"剩|余"),
    "total": (r"total|altogether|in all\b|combined", r"一共|总共|共有|总"),
    "profit": (r"profit", r"利润|盈利|净赚"),
}
"""The same, where a translator may well leave it out."""


def is_translation(left: ReadText, right: ReadText, left_text: str, right_text: str) -> bool | None:
    """Tell whether one text translates the other; None where their numbers say so and their questions do not."""
    if left.is_chinese == right.is_chinese:
        return False
    here, there = left.forms.get(Sort.QUANTITY, set()), right.forms.get(Sort.QUANTITY, set())
    one_sided = len(here - there), len(there - here)
    if len(here & there) < MIN_COMMON_NUMBERS or min(one_sided) > 0 or max(one_sided) > MAX_ONE_SIDED:
        return False
    if _asked(left_text, _DECISIVE) != _asked(right_text, _DECISIVE):
        return False
    return True if _asked(left_text, _SOFT) == _asked(right_text, _SOFT) and max(one_sided) == 0 else None


def _asked(text: str, kinds: dict[str, tuple[str, str]]) -> set[str]:
    """Return what the last question of a text asks for."""
    sentences = _QUESTION.findall(text)
    # What an earlier clause compares, as in 米娅比艾玛小, is no question.
    question = re.split(r"[，；]", sentences[-1] if sentences else text)[-1].lower()
    return {kind for kind, patterns in kinds.items() if any(re.search(pattern, question) for pattern in patterns)}

r"""The commonest answers, read without a detour: 7, -0.5, 3/4, \frac{3}{4}, 1,234, 1{,}234."""

from __future__ import annotations

import re
from functools import lru_cache

from gmpy2 import mpq

from truegold.verifiers.math.tree import Num

_SIMPLE = re.compile(
    r"(-?)(?:(\d{1,200})(?:\.(\d{1,60})|/(\d{1,60}))?|\\[dt]?frac\{(-?\d{1,60})\}\{(\d{1,60})\}"
    r"|([1-9]\d{0,2}(?:(?:,|\{,\}|,\\!|\\,)\d{3}){1,20}))",
    re.ASCII,
)

REMEMBERED_TEXTS = 4_096
"""So many texts are remembered: the ladder asks for a number before the reader does."""


@lru_cache(maxsize=REMEMBERED_TEXTS)
def simple_number(text: str) -> Num | None:
    """Return the number that a normal text is as a whole; None for all other texts and for a division by zero."""
    match = _SIMPLE.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, divisor, above, below, grouped = match.groups()
    if grouped is not None:
        whole = "".join(filter(str.isdigit, grouped))
    if decimals is not None:
        value = mpq(int(whole + decimals), 10 ** len(decimals))
        return Num(-value if sign else value, len(decimals))
    numerator, denominator = int(whole or above), int(divisor or below or 1)
    if denominator == 0:
        return None
    return Num(mpq(-numerator if sign else numerator, denominator))

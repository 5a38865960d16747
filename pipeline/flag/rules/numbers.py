"""Reading one number from a gold answer or a final value, exactly: `"$1{,}250 \\text{ apples}$"` is 1250.

`read_number` gives None for whatever is not plainly one number: an expression, a list, a variable, prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_CHARS = 80
"""A longer text is no plain number; this also bounds the digits that `Fraction` is given."""

_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|,|!|;|:| )|\\(?:text|mathrm|textbf|mathbf)\s*\{[^{}]*\}|\^\s*\{?\\circ\}?|\\circ|°"
    r"|\\?\$|[£€¥￥]|\\[()\[\]]|\\boxed\s*(?=\{)"
)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(-?[\d.]+)\s*\}\s*\{\s*([\d.]+)\s*\}|\\[dt]?frac\s*(\d)\s*(\d)")
_GROUPED = re.compile(r"(?<=\d)(?:,|\{,\}|，)(?=\d{3}(?!\d))")
_NUMBER = re.compile(
    r"(?P<sign>[-+−–]?)\s*"
    r"(?:(?P<whole>\d+)\s+(?P<mixed_top>\d+)\s*/\s*(?P<mixed_bottom>\d+)"
    r"|(?P<top>\d+(?:\.\d+)?)\s*/\s*(?P<bottom>\d+(?:\.\d+)?)"
    r"|(?P<decimal>\d+(?:\.\d*)?|\.\d+))"
    r"\s*(?P<percent>\\?%|percent\b|per cent\b)?"
    # A unit says nothing about the value; these words do.
    r"\s*(?!(?:pi|sqrt|e|dozen|hundred|thousand|million|billion|or|and)\b|[十百千万亿π])"
    r"(?P<unit>(?:[A-Za-z]{2,}|[一-鿿]{1,6})(?:\s+[A-Za-z]{2,}){0,3})?\s*\.?"
)


@dataclass(frozen=True)
class Number:
    """A number as it was written: its value, the digits after its point (None: written exactly), a percent sign."""

    value: Fraction
    decimals: int | None
    percent: bool

    @property
    def is_whole(self) -> bool:
        return self.value.denominator == 1

    def same_as(self, other: Number) -> bool:
        """Equal, or equal but for rounding to the digits shown, or for how a percentage is written."""
        pairs = [(self.value, other.value)]
        if self.percent or other.percent:
            pairs += [(self.value * 100, other.value), (self.value, other.value * 100)]
        return any(left == right or self._rounds(left, right, other) for left, right in pairs)

    def _rounds(self, left: Fraction, right: Fraction, other: Number) -> bool:
        shown = [digits for digits in (self.decimals, other.decimals) if digits is not None]
        return bool(shown) and abs(left - right) <= Fraction(1, 10 ** min(shown))


def read_number(text: str | None) -> Number | None:
    """The number a text is, or None where it is not plainly one."""
    if text is None or len(text) > MAX_CHARS:
        return None
    text = _FRACTION.sub(lambda m: f" {m[1] or m[3]}/{m[2] or m[4]}", _DROPPED.sub("", text))
    text = _GROUPED.sub("", text.replace("{,}", ",")).replace("{", " ").replace("}", " ").strip()
    match = _NUMBER.fullmatch(text)
    return None if match is None else _from_match(match)


def _from_match(match: re.Match[str]) -> Number | None:
    decimals = None
    if match["whole"] is not None:
        bottom = int(match["mixed_bottom"])
        value = Fraction(int(match["whole"])) + Fraction(int(match["mixed_top"]), bottom) if bottom else None
    elif match["top"] is not None:
        over = Fraction(match["bottom"])
        value = Fraction(match["top"]) / over if over else None
    else:
        value = Fraction(match["decimal"])
        digits = match["decimal"].partition(".")[2]
        decimals = len(digits) if digits else None
    if value is None:
        return None
    return Number(-value if match["sign"] in ("-", "−", "–") else value, decimals, match["percent"] is not None)


def plain(number: Number) -> str:
    """The number as a gold answer: 16, 4.5, 10/3."""
    value = number.value
    sign = "%" if number.percent else ""
    if value.denominator == 1:
        return f"{value.numerator}{sign}"
    if number.decimals is not None:
        return f"{float(value):.{number.decimals}f}{sign}"
    return f"{value.numerator}/{value.denominator}{sign}"

"""Reads one number from a gold answer or a final value, exactly: `"$1{,}250 \\text{ apples}$"` is 1250.

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
_PLAIN_NUMBER = re.compile(
    r"(?P<sign>[-+−–]?)\s*"
    r"(?:(?P<whole>\d+)\s+(?P<mixed_top>\d+)\s*/\s*(?P<mixed_bottom>\d+)"
    r"|(?P<top>\d+(?:\.\d+)?)\s*/\s*(?P<bottom>\d+(?:\.\d+)?)"
    r"|(?P<decimal>\d+(?:\.\d*)?|\.\d+))"
    r"\s*(?P<percent>\\?%|percent\b|per cent\b)?"
    # A unit does not change the value, but these words do.
    r"\s*(?!(?:pi|sqrt|e|dozen|hundred|thousand|million|billion|or|and)\b|[十百千万亿π])"
    r"(?P<unit>(?:[A-Za-z]{2,}|[一-鿿]{1,6})(?:\s+[A-Za-z]{2,}){0,3})?\s*\.?"
)


@dataclass(frozen=True)
class WrittenNumber:
    """A number as it was written."""

    value: Fraction
    """The exact value; a percent sign does not change it."""
    decimals: int | None
    """The digits after the point; None where there is none, and the number is exact."""
    percent: bool
    """Whether a percent sign follows."""

    @property
    def is_whole(self) -> bool:
        """Whether the value is an integer."""
        return self.value.denominator == 1

    def same_as(self, other: WrittenNumber) -> bool:
        """Whether both are equal, but for rounding to the digits shown or for how a percentage is written."""
        pairs = [(self.value, other.value)]
        if self.percent or other.percent:
            pairs += [(self.value * 100, other.value), (self.value, other.value * 100)]
        shown = [digits for digits in (self.decimals, other.decimals) if digits is not None]
        margin = Fraction(1, 10 ** min(shown)) if shown else 0
        return any(abs(left - right) <= margin for left, right in pairs)


def read_number(text: str | None) -> WrittenNumber | None:
    """Return the number that a text is, or None where it is not plainly one."""
    if text is None or len(text) > MAX_CHARS:
        return None
    text = _FRACTION.sub(lambda m: f" {m[1] or m[3]}/{m[2] or m[4]}", _DROPPED.sub("", text))
    text = _GROUPED.sub("", text.replace("{,}", ",")).replace("{", " ").replace("}", " ").strip()
    match = _PLAIN_NUMBER.fullmatch(text)
    return None if match is None else _from_match(match)


def _from_match(match: re.Match[str]) -> WrittenNumber | None:
    decimals = None
    if match["whole"] is not None:
        bottom = int(match["mixed_bottom"])
        value = Fraction(int(match["whole"])) + Fraction(int(match["mixed_top"]), bottom) if bottom else None
    elif match["top"] is not None:
        divisor = Fraction(match["bottom"])
        value = Fraction(match["top"]) / divisor if divisor else None
    else:
        value = Fraction(match["decimal"])
        digits = match["decimal"].partition(".")[2]
        decimals = len(digits) if digits else None
    if value is None:
        return None
    is_negative = match["sign"] in ("-", "−", "–")
    return WrittenNumber(-value if is_negative else value, decimals, match["percent"] is not None)


def format_number(written: WrittenNumber) -> str:
    """Return the number as a gold answer: 16, 4.5, 10/3."""
    sign = "%" if written.percent else ""
    if written.decimals is not None and not written.is_whole:
        return f"{float(written.value):.{written.decimals}f}{sign}"
    return f"{written.value}{sign}"

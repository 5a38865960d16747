r"""Reads the quantities of a problem: in digits, in words, as fractions and percentages, and in Chinese.

    "1,250"  -> 1250      "twenty-five" -> 25       "3/4"      -> 3/4      "two thirds" -> 2/3
    "40%"    -> 40        "two dozen"   -> 24       "twice"    -> 2        "三分之二"    -> 2/3
    "5th"    -> 5 (weak)  "four five"   -> 4 and 5  "一"       -> 1 (weak) "百分之二十"  -> 20

Each quantity has a weight in (0, 1]: the confidence that the problem depends on it. The weight depends on the value and
not on its spelling, because a rewording may write "1/4" for "a quarter". Units are not read, so "$5" equals "5
dollars". A percentage is read as its number, because rewordings keep percentages. The exceptions are 50% (a half) and
25% (a quarter).

`read_number` reads a gold answer or a final value that is a single number: `"$1{,}250 \\text{ apples}$"` is 1250. For
an expression, a list, a variable or prose it returns None.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from truegold.verifiers.written_numbers import CHINESE_SCALES, COMMON_PERCENTAGES, SCALES, chinese_decimal, read_run

MAX_DIGITS = 40
"""The maximum number of digits of a quantity. Longer strings of digits are data, and are compared as text."""
TELLING_WEIGHT = 1.0
"""The weight of most values."""
COMMON_WEIGHTS = {Fraction(1): 0.2, Fraction(2): 0.8, Fraction(1, 2): 0.6, Fraction(1, 3): 0.8, Fraction(1, 4): 0.8}
"""The lower weights of values that depend on the wording. "one" is mostly a pronoun, and "half" may be reworded."""
ORDINAL_WEIGHT = 0.2
"""The weight of an ordinal, such as "5th"."""
ARTICLE_WEIGHT = 0.05
"""The weight of the Chinese 一 (one), which precedes most counted things."""
SPELLING_MARGIN = 0.16
"""A bound on the difference between the weights of two spellings of a number, such as "1" and 一."""

Quantity = tuple[str, float]
"""The value as a canonical text (`"2/3"`, `"25"`) and its weight."""

_DIGITS = re.compile(
    r"(?:(?P<whole>\d+)\s+(?=\d+/))?(?P<top>\d[\d,]*(?:\.\d+)?|\.\d+)(?:/(?P<bottom>\d+))?(?P<ordinal>st|nd|rd|th)?"
    r"\s*(?P<percent>\\?%|％|percent)?\s*(?P<scale>dozen|hundred|thousand|million|billion|trillion)?"
    r"(?P<chinese>[十百千万亿]*)"
)
"""A number in digits: "3 1/2", "1,250", "5th", "40%", "2 dozen", "3万"."""
MAX_NUMBER_CHARS = 80
"""The maximum number of characters of a number that `read_number` reads. It also bounds the size of the `Fraction`."""
_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|,|!|;|:| )|\\(?:text|mathrm|textbf|mathbf)\s*\{[^{}]*\}|\^\s*\{?\\circ\}?|\\circ|°"
    r"|\\?\$|[£€¥￥]|\\[()\[\]]|\\boxed\s*(?=\{)"
)
r"""Parts that do not change a number: layout, a unit in `\text{}`, degrees, signs of money."""
_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(-?[\d.]+)\s*\}\s*\{\s*([\d.]+)\s*\}|\\[dt]?frac\s*(\d)\s*(\d)")
r"""A LaTeX fraction of numbers: `\frac{3}{4}`, `\frac34`."""
_GROUPING_COMMA = re.compile(r"(?<=\d)(?:,|\{,\}|，)(?=\d{3}(?!\d))")
"""The comma of 1,000 and of 1{,}000."""
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
"""A number with its unit: "1 1/2 cups", "-3/4", "12.5 percent"."""


def digits_quantity(text: str) -> list[Quantity]:
    """Return the quantity of a token that starts with a digit. The value of an overlong token is its text."""
    match = _DIGITS.fullmatch(text)
    if match is None or len(text) > MAX_DIGITS:
        return [(text[:MAX_DIGITS], TELLING_WEIGHT)]
    value = Fraction(match["top"].replace(",", ""))
    if match["bottom"]:
        if not int(match["bottom"]):
            return [(text, TELLING_WEIGHT)]
        value /= int(match["bottom"])
    if match["whole"]:
        value += int(match["whole"])
    value *= SCALES.get(match["scale"] or "", 1)
    for char in match["chinese"] or "":
        value *= CHINESE_SCALES[char]
    if match["percent"]:
        value = COMMON_PERCENTAGES.get(value, value)
    return [(str(value), _weigh(value, is_ordinal=bool(match["ordinal"])))]


def _weigh(value: Fraction, is_ordinal: bool = False) -> float:
    """Return the weight of a value. The spelling of the value has no effect."""
    return ORDINAL_WEIGHT if is_ordinal else COMMON_WEIGHTS.get(value, TELLING_WEIGHT)


def words_quantities(text: str) -> list[Quantity]:
    """Return the quantities in a run of English number words: "two hundred and five", "three quarters"."""
    return [(str(value), _weigh(value, is_ordinal)) for value, is_ordinal in read_run(text)]


def chinese_quantities(text: str) -> list[Quantity]:
    """Return the quantity in a run of Chinese numerals, such as "二十五", "三点五", "三分之二", "百分之二十"."""
    bottom, parted, top = text.rpartition("分之")
    value = _read_chinese(top)
    if value is None:
        return []
    if parted and bottom == "百":
        value = COMMON_PERCENTAGES.get(value, value)
    elif parted:
        divisor = _read_chinese(bottom)
        if not divisor:
            return []
        value /= divisor
    elif value in (0, 1):
        return [(str(value), ARTICLE_WEIGHT)]
    return [(str(value), _weigh(value))]


def _read_chinese(text: str) -> Fraction | None:
    if text.isascii():
        return Fraction(int(text)) if text.isdigit() and len(text) < MAX_DIGITS else None
    return chinese_decimal(text, positional=False)


class WrittenNumber(NamedTuple):
    """A number that was read from a text."""

    value: Fraction
    """The exact value, without regard to a percent sign."""
    percent: bool
    """Whether a percent sign follows."""


def read_number(text: str | None) -> WrittenNumber | None:
    """Return the number of a text, or None if the text is not a single plain number."""
    if text is None or len(text) > MAX_NUMBER_CHARS:
        return None
    text = _FRACTION.sub(lambda m: f" {m[1] or m[3]}/{m[2] or m[4]}", _DROPPED.sub("", text))
    text = _GROUPING_COMMA.sub("", text.replace("{,}", ",")).replace("{", " ").replace("}", " ").strip()
    match = _PLAIN_NUMBER.fullmatch(text)
    bottom = Fraction(match["mixed_bottom"] or match["bottom"] or 1) if match else 0
    if match is None or not bottom:
        return None
    value = Fraction(match["whole"] or 0) + Fraction(match["mixed_top"] or match["top"] or match["decimal"]) / bottom
    return WrittenNumber(-value if match["sign"] in ("-", "−", "–") else value, match["percent"] is not None)

"""Reads the calculations in a worked solution, and checks each exactly.

    calculations("She pays 20% of $50 = $10. Then 50-10=40.")
      ->  [Calculation("20% of 50", 10), Calculation("50-10", 40)]
    "3*12 = <<3*12=36>>36 eggs"      one calculation, 3*12 = 36

Numbers, + - * / x × ÷ ·, brackets, percent signs and the word "of" are read. Equations with anything else (letters,
powers, functions) are skipped. Nothing is evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice

MAX_CALCULATIONS = 200
"""The largest number of calculations that are read in one solution."""
MAX_TERMS = 40
"""The largest number of terms in an expression. It bounds nesting and the size of exact results."""
MAX_CHARS = 20_000
"""The number of characters of a solution that are read."""

_CALCULATOR = re.compile(r"<<[^<>]{0,300}>>")
"""A calculator's mark in GSM8K's solutions: the `<<...>>` of "3*12 = <<3*12=36>>36 eggs"."""
_NUMBER_PATTERN = r"(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?|\.\d{1,15}"
_MONEY_AND_LAYOUT = re.compile(r"\\?[$£€¥]|\\left|\\right|\\[,!; ]")
_LATEX = (
    (r"\\times|\\cdot|×|·|(?<=[\d)%])\s*[xX](?=\s*[\d(.])", "*"),
    (r"\\div|÷", "/"),
    (r"[−–]", "-"),
    (r"\\%", "%"),
)
"""Signs of LaTeX and Unicode, with the sign that replaces them."""
_SIDE = r"[\d(.](?:[\d \t.,()+\-*/%]|\bof\b)*[\d)%]|\d"
_EQUATION = re.compile(
    rf"(?<![\w.,\d^_=<>}})\]|])(?P<left>-?(?:{_SIDE}))\s*=\s*(?P<right>-?\s*(?:{_NUMBER_PATTERN}))(?:\s?%)?"
    r"(?![\d^!A-Za-z\\{:.]\S|[\d^!:]|\s*[-+*/(^!]|[,{ ]{1,3}\d{3}|\{?,|\s?[A-Za-z]\b)"
)
"""An equation without a letter, a power or another equals sign before it. Its right side must be complete, so "2 + 3 =
5x" and "= 5 * 2" do not match."""
_CUT_OFF = re.compile(
    r"(?:[-+*/(^&}\])]|\^\{?\d+\}?|\\[a-z]+|\.\.|\bof|\btimes|\bby|[\d)]\s*[a-z/ ]{1,30}?[-+*/x])\s*$", re.IGNORECASE
)
"""The end of a longer left side, before the part that was read: the `6 boxes *` of `6 boxes * 1/4 = 15`."""
_FRACTION_LAST = re.compile(r"/\s*(\d+\s*/\s*\d+)(?!\s*/)")
"""The "1/3" of "25 / 1/3". It is often meant as one number."""
_CLOCK = re.compile(r"(?<![\d.,])0\d")
"""The minutes of a time such as "10:05"."""
_TOKEN = re.compile(rf"\s*(?:(?P<number>{_NUMBER_PATTERN})|(?P<sign>[-+*/()%])|(?P<of>of\b))")

_SCALES = tuple(Fraction(10) ** exponent for exponent in (0, 2, -2, 3, -3, 6, -6))
"""Factors of results that are written as a percentage, in thousands or in millions."""
_SHARE = re.compile(r"\d+\s*/\s*\d+")


@dataclass(frozen=True, slots=True)
class Calculation:
    """A calculation in a worked solution, with its correct value."""

    left: str
    """The left side, as written."""
    value: Fraction
    """The exact value of the left side, where 20% is 1/5."""
    result: Fraction
    """The number on the right side."""
    decimals: int
    """The number of digits after the result's decimal point."""

    @property
    def holds(self) -> bool:
        """True if both sides agree, allowing for rounding, percentages, and scales such as "thousand"."""
        if self._is_share:
            return True
        for value in (self.value * scale for scale in _SCALES):
            # The result may be rounded to the digits shown, and a large one to three significant digits.
            margin = 0 if value.denominator == 1 else max(Fraction(1, 10**self.decimals), abs(value) / 1000)
            if abs(value - self.result) <= margin:
                return True
        return False

    @property
    def _is_share(self) -> bool:
        """True if the left side is a proper fraction. It may be a part of something: `1/4 = 15 minutes`."""
        return _SHARE.fullmatch(self.left) is not None and self.value < 1


@lru_cache(maxsize=16)
def calculations(solution: str) -> tuple[Calculation, ...]:
    """Return the calculations of a solution, in order. Those that a calculator's mark repeats are left out."""
    return tuple(_read_calculations(solution))


def _read_calculations(solution: str) -> Iterator[Calculation]:
    text = _MONEY_AND_LAYOUT.sub("", _CALCULATOR.sub("", solution[:MAX_CHARS]))
    for pattern, sign in _LATEX:
        text = re.sub(pattern, sign, text)
    for match in islice(_EQUATION.finditer(text), MAX_CALCULATIONS):
        left = match["left"]
        if _CUT_OFF.search(text[max(0, match.start() - 40) : match.start()]) or _CLOCK.search(left):
            continue
        if not 2 <= len(re.findall(_NUMBER_PATTERN, left)) <= MAX_TERMS or (value := _evaluate(left)) is None:
            continue
        right = match["right"].replace(" ", "")
        result = _fraction(right.lstrip("-")) * (-1 if right.startswith("-") else 1)
        if _evaluate(_FRACTION_LAST.sub(r"/(\1)", left)) == result:
            value = result
        yield Calculation(left.strip(), value, result, decimals=len(right.partition(".")[2]))


def _evaluate(text: str) -> Fraction | None:
    matches = list(_TOKEN.finditer(text.strip()))
    if "".join(match[0] for match in matches) != text.strip() or len(matches) > 4 * MAX_TERMS:
        return None
    tokens = ["*" if match["of"] else match["number"] or match["sign"] for match in reversed(matches)]
    try:
        value = _read_sum(tokens, 0)
    except (_NoExpression, ZeroDivisionError):
        return None
    return None if tokens else value


class _NoExpression(Exception):
    """Tokens that are not an expression; caught in `_evaluate`."""


# The tokens are in reverse order: each reader pops its tokens from the end of the list.


def _read_sum(tokens: list[str], depth: int) -> Fraction:
    value = _read_product(tokens, depth)
    while tokens and tokens[-1] in "+-":
        sign, term = tokens.pop(), _read_product(tokens, depth)
        value = value + term if sign == "+" else value - term
    return value


def _read_product(tokens: list[str], depth: int) -> Fraction:
    value = _read_factor(tokens, depth)
    while tokens and tokens[-1] in "*/(":
        # A bracket right after a factor multiplies: "2(3+4)".
        sign = "*" if tokens[-1] == "(" else tokens.pop()
        factor = _read_factor(tokens, depth)
        value = value / factor if sign == "/" else value * factor
    return value


def _read_factor(tokens: list[str], depth: int) -> Fraction:
    token = tokens.pop() if tokens and depth <= MAX_TERMS else ""
    if token == "-":
        return -_read_factor(tokens, depth + 1)
    if token == "(":
        value = _read_sum(tokens, depth + 1)
        if not tokens or tokens.pop() != ")":
            raise _NoExpression
    elif token[:1].isdigit() or token[:1] == ".":
        value = _fraction(token)
    else:
        raise _NoExpression
    if tokens and tokens[-1] == "%":
        tokens.pop()
        value /= 100
    return value


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))

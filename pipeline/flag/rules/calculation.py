r"""Reads the calculations in a worked solution, exactly: `"3*12 = <<3*12=36>>36 eggs"` is one, 3*12 = 36.

    calculations("She pays 20% of $50 = $10, so 50-10=40")
      ->  [Calculation("20% of $50", 10), Calculation("50-10", 40)]     with operands (20, 50) and (50, 10)

Numbers, + - * / x × ÷ ·, brackets, percent signs and the word "of" are read; a side that holds anything else (letters,
powers, functions) is left alone. Nothing is evaluated as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

MAX_CALCULATIONS = 200
"""Calculations read of one solution."""
MAX_TERMS = 40
"""Longer ones are left alone; bounds nesting and the size of exact results."""
MAX_DIGITS = 15
MAX_CHARS = 20_000

_CALCULATOR = re.compile(r"<<[^<>]{0,300}>>")
NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?|\.\d{1,15}"
_MONEY = re.compile(r"\\?[$£€¥]|\\left|\\right|\\[,!; ]")
_LATEX = (
    (r"\\times|\\cdot|×|·|(?<=[\d)%])\s*[xX](?=\s*[\d(.])", "*"),
    (r"\\div|÷", "/"),
    (r"[−–]", "-"),
    (r"\\%", "%"),
)
_SIDE = r"[\d(.](?:[\d\s.,()+\-*/%]|\bof\b)*[\d)%]|\d"
_EQUATION = re.compile(
    rf"(?<![\w.\d^_=<>])(?P<left>-?(?:{_SIDE}))\s*=\s*(?P<right>-?\s*(?:{NUMBER}))(?P<sign>\s?%)?(?![\d^]|\s*[-+*/(])"
)
_CUT = re.compile(r"(?:[-+*/(]|\bof|\btimes|\bby|[\d)]\s*[a-z/ ]{1,30}?[-+*/x])\s*$", re.IGNORECASE)
"""What stands before a side that is only the end of a longer one: `6 boxes * 1/4 = 15`."""
_FRACTION_LAST = re.compile(r"/\s*(\d+\s*/\s*\d+)(?!\s*/)")
_CLOCK = re.compile(r"(?<![\d.,])0\d")
_RESULT = re.compile(rf"=\s*({NUMBER})")
_TOKEN = re.compile(rf"\s*(?:(?P<number>{NUMBER})|(?P<sign>[-+*/()%])|(?P<of>of\b))")


@dataclass(frozen=True, slots=True)
class Calculation:
    """left: as written. value: what the left side is, exactly, percent as hundredths. result: what was written.

    decimals: digits after the result's point. operands: the numbers of the left side, as written.
    """

    left: str
    value: Fraction
    result: Fraction
    decimals: int
    operands: tuple[Fraction, ...]

    @property
    def holds(self) -> bool:
        """Equal but for rounding to the digits shown, or for percent signs read as plain numbers."""
        return any(abs(value - self.result) <= self._margin(value) for value in (self.value, *self._other_readings()))

    def _margin(self, value: Fraction) -> Fraction:
        # a result cut or rounded to the digits shown; three significant digits are enough for a large one
        return max(Fraction(1, 10**self.decimals), abs(value) / 1000) if value.denominator != 1 else Fraction(0)

    def _other_readings(self) -> tuple[Fraction, ...]:
        return (self.value * 100, self.value / 100) if "%" in self.left or self.result <= 1 else ()


@lru_cache(maxsize=16)  # several rules ask for those of one row
def calculations(solution: str) -> tuple[Calculation, ...]:
    """The calculations of a solution, in order. Those that a calculator's mark repeats are read once."""
    return tuple(_calculations(solution))


def _calculations(solution: str) -> Iterator[Calculation]:
    text = _CALCULATOR.sub("", solution[:MAX_CHARS])
    text = _MONEY.sub("", text)
    for pattern, sign in _LATEX:
        text = re.sub(pattern, sign, text)
    for number, match in enumerate(_EQUATION.finditer(text)):
        if number >= MAX_CALCULATIONS:
            return
        if _CUT.search(text[max(0, match.start() - 40) : match.start()]) or _CLOCK.search(match["left"]):
            continue
        operands = tuple(_fraction(found) for found in re.findall(NUMBER, match["left"]))
        if len(operands) < 2 or len(operands) > MAX_TERMS:
            continue
        value = evaluate(match["left"])
        if value is None:
            continue
        other = evaluate(_FRACTION_LAST.sub(r"/(\1)", match["left"]))  # 25 / 1/3 is often meant as 25 / (1/3)
        right = match["right"].replace(" ", "")
        decimals = len(right.partition(".")[2])
        result = _fraction(right.lstrip("-")) * (-1 if right.startswith("-") else 1)
        if other == result:
            value = other
        yield Calculation(match["left"].strip(), value, result, decimals, operands)


def results(solution: str) -> Iterator[tuple[int, Fraction]]:
    """Every number right after an equals sign, with its place: also the results of calculations with words in them."""
    text = _MONEY.sub("", _CALCULATOR.sub("", solution[:MAX_CHARS]))
    for match in _RESULT.finditer(text):
        yield match.start(), _fraction(match[1])


def evaluate(text: str) -> Fraction | None:
    """The value of an expression of numbers, or None where it is none."""
    tokens: list[str] = []
    place = 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return None
        tokens.append("*" if match["of"] else match["number"] or match["sign"])
        place = match.end()
    if len(tokens) > 4 * MAX_TERMS:
        return None
    try:
        value, rest = _sum(tokens, 0, 0)
    except (_NoExpression, ZeroDivisionError):
        return None
    return value if rest == len(tokens) else None


class _NoExpression(Exception):
    """The tokens make no expression; caught in `evaluate`."""


def _sum(tokens: list[str], place: int, depth: int) -> tuple[Fraction, int]:
    value, place = _product(tokens, place, depth)
    while place < len(tokens) and tokens[place] in "+-":
        other, after = _product(tokens, place + 1, depth)
        value = value + other if tokens[place] == "+" else value - other
        place = after
    return value, place


def _product(tokens: list[str], place: int, depth: int) -> tuple[Fraction, int]:
    value, place = _factor(tokens, place, depth)
    while place < len(tokens) and (tokens[place] in "*/" or tokens[place] == "("):
        implied = tokens[place] == "("
        other, after = _factor(tokens, place if implied else place + 1, depth)
        value = value / other if tokens[place] == "/" else value * other
        place = after
    return value, place


def _factor(tokens: list[str], place: int, depth: int) -> tuple[Fraction, int]:
    if place >= len(tokens) or depth > MAX_TERMS:
        raise _NoExpression
    token = tokens[place]
    if token == "-":
        value, place = _factor(tokens, place + 1, depth + 1)
        return -value, place
    if token == "(":
        value, place = _sum(tokens, place + 1, depth + 1)
        if place >= len(tokens) or tokens[place] != ")":
            raise _NoExpression
        place += 1
    elif token[0].isdigit() or token[0] == ".":
        value, place = _fraction(token), place + 1
    else:
        raise _NoExpression
    if place < len(tokens) and tokens[place] == "%":
        return value / 100, place + 1
    return value, place


def _fraction(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))

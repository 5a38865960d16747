r"""Exact reading of one number, with its percent sign, multiplier and unit.

    1,234.50   1{,}234   1\,234   3/4   \frac{3}{4}   2\frac12   2 1/2   -0.75   50\%   1.2\times 10^{5}   $3 million

Values are fractions: nothing is rounded, and a percentage is its value (`50%` is 1/2). What needs arithmetic (`2^3`,
`\sqrt{4}`, `10-3`) or a convention (`3,5`, `1 234`) is not read, and None says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from truegold.verifiers.math.clean import DOLLAR, TEXT_MARK, THIN
from truegold.verifiers.math.units import read_unit

MAX_EXPONENT = 3_000
"""Powers of ten beyond this are refused unread. Stops `1e999999999`, which is a gigabyte of digits."""

_BLANK = rf"[\s{THIN}{TEXT_MARK}]{{0,8}}"
_INTEGER = rf"(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d{{1,3}}(?:{THIN}\d{{3}})+(?!\d)|\d+)"
_DECIMAL = rf"(?:{_INTEGER}(?:\.\d*)?|\.\d+)"
_SIGNED = rf"[+-]?{_BLANK}{_DECIMAL}"
_TEN_TO = r"10\^\{?\s{0,4}([+-]?\d+)\s{0,4}\}?"

_OPENING = re.compile(rf"(?P<sign>[+-]?){_BLANK}(?P<currency>[{DOLLAR}€£¥₹]?){_BLANK}(?P<late_sign>[+-]?){_BLANK}")
_CURRENCY = {DOLLAR: "dollar", "€": "euro", "£": "pound-sterling", "¥": "yen-or-yuan", "₹": "rupee"}

_BODIES: list[tuple[str, re.Pattern[str]]] = [
    ("mixed", re.compile(rf"(\d+){_BLANK}\\frac\{{(\d+)\}}\{{(\d+)\}}")),
    ("mixed", re.compile(r"(\d+) (\d+)/(\d+)(?![\d.])")),
    ("fraction", re.compile(rf"\\frac\{{({_SIGNED})\}}\{{({_SIGNED})\}}")),
    ("fraction", re.compile(rf"({_DECIMAL}){_BLANK}/{_BLANK}({_DECIMAL})(?![\d.])")),
    (
        "scientific",
        re.compile(rf"({_DECIMAL}){_BLANK}(?:\\times(?![A-Za-z])|\\cdot(?![A-Za-z])|\*|x){_BLANK}{_TEN_TO}"),
    ),
    ("scientific", re.compile(rf"({_DECIMAL})[eE]([+-]?\d+)(?![\d.])")),
    ("power_of_ten", re.compile(_TEN_TO)),
    ("decimal", re.compile(_DECIMAL)),
]
_MULTIPLIER = re.compile(rf"{_BLANK}(hundred|thousand|million|billion|trillion)(?![A-Za-z])")
_MULTIPLIERS = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PERCENT = re.compile(rf"{_BLANK}(?:%|percent|per cent){_BLANK}")


class NumberTooLarge(Exception):
    """The text is a number, and working it out would cost more than it is worth."""


@dataclass(frozen=True, slots=True)
class Quantity:
    value: Fraction
    unit: str | None = None
    form: str = "decimal"

    def __str__(self) -> str:
        return f"{self.value} {self.unit}" if self.unit else str(self.value)


def read_quantity(text: str, *, loose: bool = False) -> Quantity | None:
    """The number that cleaned `text` is, as a whole; `loose` as in `read_unit`."""
    text = _without_braces(text.strip(f" {TEXT_MARK}"))
    opening = _OPENING.match(text)
    if opening is None or (opening["sign"] and opening["late_sign"]):
        return None
    for form, pattern in _BODIES:
        body = pattern.match(text, opening.end())
        if body is None or (tail := _read_tail(text[body.end() :], loose)) is None:
            continue
        magnitude = _magnitude(form, body)
        if magnitude is None:
            continue
        factor, unit = tail
        if opening["currency"] and unit is not None:
            return None
        sign = -1 if "-" in (opening["sign"], opening["late_sign"]) else 1
        return Quantity(sign * magnitude * factor, _CURRENCY.get(opening["currency"], unit), form)
    return None


def _magnitude(form: str, match: re.Match[str]) -> Fraction | None:
    groups = match.groups()
    if form == "decimal":
        return _decimal(match.group())
    if form == "power_of_ten":
        return _power_of_ten(groups[0])
    if form == "scientific":
        return _decimal(groups[0]) * _power_of_ten(groups[1])
    if form == "fraction":
        below = _decimal(groups[1])
        return _decimal(groups[0]) / below if below else None
    whole, above, below_one = (int(group) for group in groups)
    # 2\frac{5}{3} is no mixed number; it may be a product.
    return whole + Fraction(above, below_one) if 0 < above < below_one else None


def _read_tail(rest: str, loose: bool) -> tuple[Fraction, str | None] | None:
    """What the number is multiplied by, and its unit; None where something else follows."""
    factor = Fraction(1)
    if multiplier := _MULTIPLIER.match(rest):
        factor *= _MULTIPLIERS[multiplier.group(1)]
        rest = rest[multiplier.end() :]
    if _PERCENT.fullmatch(rest):
        return factor / 100, None
    if not rest.strip(f" {THIN}{TEXT_MARK}"):
        return factor, None
    unit = read_unit(rest, loose)
    return None if unit is None else (factor, unit)


def _decimal(text: str) -> Fraction:
    digits = "".join(c for c in text if c in "+-.0123456789")
    return Fraction(digits.rstrip(".") or "0")


def _power_of_ten(exponent: str) -> Fraction:
    if len(exponent) > len(str(MAX_EXPONENT)) + 1 or abs(int(exponent)) > MAX_EXPONENT:
        raise NumberTooLarge(f"power of ten {exponent[:20]}, the limit is {MAX_EXPONENT}")
    return Fraction(10) ** int(exponent)


def _without_braces(text: str) -> str:
    """`{5}` is 5, as LaTeX has it."""
    while len(text) > 2 and text[0] == "{" and text[-1] == "}" and "{" not in text[1:-1]:
        text = text[1:-1].strip()
    return text

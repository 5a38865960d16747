r"""Tokens of a text, how they nest, and the readings of what is ambiguous.

From number literals to tokens: `1,234`, `12 345`, `0.1\overline{6}`, `0.1666...`, `1.5e10`.

A comma between groups of three digits groups them. Not covered: what a comma means directly inside brackets, which the
lexer decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.math.policy import TooLarge

MAX_DEPTH = 40
"""How deep brackets and commands may be nested. Stops `((((...`, whose reading would exhaust the stack."""

OPENING = frozenset({"open", "brace", "begin"})
CLOSING = frozenset({"close", "unbrace", "end"})
"""The kinds of tokens that nest."""


class Token(NamedTuple):
    """One sign of the text, or several that belong together."""

    kind: str
    """One of num, name, const, func, cmd, big, word, money; op, rel, sep, gap, cell, row, bar; and those that nest."""
    text: str
    spaced: bool
    """A blank stands before the token."""
    value: mpq = mpq(0)
    """What a number is worth; 0 for any other token."""
    decimals: int | None = None
    """How many digits stood behind the point of a number."""


kind_of: Callable[[Token], str] = itemgetter(0)
text_of: Callable[[Token], str] = itemgetter(1)
"""These two are mapped over tokens, which takes a fraction of what a comprehension does."""

plain_token: Callable[[str, str, bool], Token] = lru_cache(maxsize=4_096)(Token)
"""Returns the token of a kind, a text and whether a blank stands before it; equal ones are one, since most recur."""

NESTING = {**dict.fromkeys(OPENING, 1), **dict.fromkeys(CLOSING, -1)}
"""What a token of a kind adds to how deep the ones behind it stand; other kinds add nothing."""


def nesting(token: Token) -> int:
    """Return 1 where a bracket opens, -1 where one closes, and 0 for any other token."""
    return NESTING.get(token[0], 0)


def split_at(tokens: list[Token], mark: str) -> list[list[Token]]:
    """Return the parts between separators `mark` that stand outside of all brackets; empty ones are left out."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += NESTING.get(token[0], 0)
        if depth <= 0 and token[0] == "sep" and token[1] == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


@dataclass(frozen=True, slots=True)
class Notation:
    """One reading of all that is ambiguous; the defaults are the usual one."""

    group_digits: bool = True
    """`1,234` is one number rather than a list of two."""
    tight_products: bool = False
    """`1/2x` is 1/(2x) rather than x/2."""
    letter_units: bool = False
    """`5m` is five metres rather than a product."""
    mixed_numbers: bool = True
    """`2\\frac13` is two and a third rather than two thirds."""


USUAL = Notation()


MAX_DIGITS = 1_000
"""The longest number. Stops arithmetic on numbers as long as the text allows."""

MAX_SCIENTIFIC = 3_000
"""The largest power of ten that a literal such as 1e10 may have. Stops `1e999999999`."""

_SMALL_SPACE = r",|\{,\}|,\s?\\!\s?|\\!\s?,|\\[,;: ]\s?|~|\u2009|\\thinspace\s?"
_GROUPED = (
    rf"(?!0,)\d{{1,3}}(?:(?:{_SMALL_SPACE})\d{{3}})+(?!\d)|\d{{1,3}}(?: \d{{3}})+(?![\d.])"
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)"
)
_MARKED_BLOCK = r"\d*\.\d*\\(?:overline|bar|dot|overset\{\.\})\s?\{?\s?\d+\s?\}?(?:\d*\\dot\s?\{?\s?\d\s?\}?)?"
_REPEATED_DIGIT = r"\d{0,40}\.\d{0,30}?(?P<again>\d)(?P=again){2,40}(?:\.\.\.|\\ldots|\\dots|\\cdots)"

REPEATING = rf"(?P<repeating>{_MARKED_BLOCK}|{_REPEATED_DIGIT})"
NUMERAL = (
    rf"(?P<number>(?:{_GROUPED}|\d+)(?:\.\d+|\.(?![\d.]))?|\.\d+)"
    r"(?P<exponent>[eE](?:[+-]?\d{1,9}|\{[+-]?\d{1,9}\})(?![\d.A-Za-z]))?"
)
"""Patterns for the lexer; the groups `number` and `exponent` are read by `number_token`."""

INTEGER = re.compile(r"\d+(?![\d.~\u2009]|,\d|,\s?\\!|\\[!,;: t]|\{,| \d|[eE][-+\d{])")
"""An integer that nothing behind it can make longer, which most numbers are."""

_DIGITS = re.compile(r"\d+")


@lru_cache(maxsize=2_048)
def integer_token(digits: str, spaced: bool) -> Token:
    """Return the token of a whole number; the small ones recur. Raises TooLarge."""
    if len(digits) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(digits)} digits, the limit is {MAX_DIGITS}")
    return Token("num", digits, spaced, mpq(int(digits)))


def number_token(match: re.Match[str], spaced: bool, separates: bool) -> tuple[Token, int]:
    """Return the token and where it ends, which with `separates` is before its first comma. Raises TooLarge."""
    text, end = match.group("number"), match.end()
    if (exponent := match.group("exponent")) is None and text.isdigit():
        return integer_token(text, spaced), end
    is_grouped = ("," in text or " " in text) and "{,}" not in text and "\\!" not in text
    if separates and is_grouped and (head := _DIGITS.match(text)) is not None and head.end() < len(text):
        return Token("num", head.group(), spaced, mpq(int(head.group()))), match.start() + head.end()
    digits = "".join(c for c in text if c in ".0123456789")
    if len(digits) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(digits)} digits, the limit is {MAX_DIGITS}")
    whole, _, fraction = digits.partition(".")
    value = mpq(int(whole + fraction or "0"), 10 ** len(fraction))
    if exponent is None:
        return Token("num", digits, spaced, value, len(fraction) or None), end
    power = int(exponent[1:].strip("{}"))
    if abs(power) > MAX_SCIENTIFIC:
        raise TooLarge(f"the power of ten {power}, the limit is {MAX_SCIENTIFIC}")
    return Token("num", digits, spaced, value * mpq(10) ** power), end


def repeating_token(text: str, spaced: bool) -> Token:
    r"""Return 1/6 for 0.1\overline{6} and 0.1666...; two digits with dots bound the block. Raises TooLarge."""
    whole, _, rest = text.partition(".")
    if "\\" in rest and not rest.rstrip("\\ldotsc").isdigit():
        fixed, _, block = rest.partition("\\")
        block = "".join(_DIGITS.findall(block))
    else:
        digits = "".join(_DIGITS.findall(rest))
        block = digits[-1]
        fixed = digits.rstrip(block)
    if len(whole) + len(fixed) + len(block) > MAX_DIGITS:
        raise TooLarge(f"a repeating decimal of more than {MAX_DIGITS} digits")
    scale = 10 ** len(fixed)
    value = mpq(int(whole + fixed or "0"), scale) + mpq(int(block), scale * (10 ** len(block) - 1))
    return Token("num", text, spaced, value)

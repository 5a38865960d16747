r"""Defines the tokens that `lexer` makes of a text, and reads number literals: `1,234`, `1.5e10`, `0.1\overline{6}`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from gmpy2 import mpq

from truegold.verifiers.math.policy import TooLarge

OPENING = frozenset({"open", "brace", "begin"})
"""Kinds of tokens that open a bracket, a group or an environment."""
CLOSING = frozenset({"close", "unbrace", "end"})
"""Kinds of tokens that close a bracket, a group or an environment."""
kind_of: Callable[[Lexeme], str] = itemgetter(0)
text_of: Callable[[Lexeme], str] = itemgetter(1)
"""`kind_of` and `text_of` return the kind and the text of a token. `map(kind_of, tokens)` is fast."""
NESTING = {**dict.fromkeys(OPENING, 1), **dict.fromkeys(CLOSING, -1)}
"""Maps a kind of token to its change of the nesting depth. Kinds that are not listed change nothing."""
MAX_DIGITS = 1_000
"""Maximum number of digits in a number. Stops arithmetic on numbers that fill the whole text."""
MAX_SCIENTIFIC = 3_000
"""The largest power of ten in a literal such as 1e10. Stops `1e999999999`."""
_DIGITS = re.compile(r"\d+")


class Lexeme(NamedTuple):
    """A token: one sign of the text, or several that belong together."""

    kind: str
    """The kind: num, name, const, func, cmd, accent, big, word, money, op, logic, rel, sep, gap, cell, row, bar, or a
    bracket."""
    text: str
    spaced: bool
    """Whether there is a blank before the token."""
    value: mpq = mpq(0)
    """The value of a number; 0 for any other token."""
    decimals: int | None = None
    """The number of digits after the point of a number."""
    last_power: int | None = None
    """The power of ten of the last digit: 22 for `5.99e24`."""


plain_token: Callable[[str, str, bool], Lexeme] = lru_cache(maxsize=4_096)(Lexeme)
"""Return the token of a kind and text, with or without a blank before it. Equal tokens are the same object."""


def nesting(token: Lexeme) -> int:
    """Return 1 for a token that opens a bracket, -1 for one that closes a bracket, and 0 for any other token."""
    return NESTING.get(token[0], 0)


def split_at(tokens: list[Lexeme], mark: str) -> list[list[Lexeme]]:
    """Split the tokens at the separators `mark` outside of all brackets, and return the parts that are not empty."""
    parts: list[list[Lexeme]] = [[]]
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
    """A reading of ambiguous notation. The defaults are the usual reading."""

    group_digits: bool = True
    """`1,234` is one number rather than a list of two."""
    tight_products: bool = False
    """`1/2x` is 1/(2x) rather than x/2."""
    letter_units: bool = False
    """`5m` is five metres rather than a product."""
    mixed_numbers: bool = True
    """`2\\frac13` is two and a third rather than two thirds."""


USUAL = Notation()


@lru_cache(maxsize=2_048)
def integer_token(digits: str, spaced: bool) -> Lexeme:
    """Return the token of a whole number. Raises TooLarge. Tokens are cached, because small numbers recur."""
    if len(digits) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(digits)} digits, the limit is {MAX_DIGITS}")
    return Lexeme("num", digits, spaced, mpq(int(digits)))


def number_token(match: re.Match[str], spaced: bool, separates: bool) -> tuple[Lexeme, int]:
    """Return the token of a number, and its end in the text. Raises TooLarge.

    separates: a comma ends the number, as in the pair `(1,234)`.
    """
    text, end = match.group("number"), match.end()
    if (exponent := match.group("exponent")) is None and text.isdigit():
        return integer_token(text, spaced), end
    is_grouped = ("," in text or " " in text) and "{,}" not in text and "\\!" not in text
    if separates and is_grouped and (head := _DIGITS.match(text)) is not None and head.end() < len(text):
        return Lexeme("num", head.group(), spaced, mpq(int(head.group()))), match.start() + head.end()
    digits = "".join(c for c in text if c in ".0123456789")
    if len(digits) > MAX_DIGITS:
        raise TooLarge(f"a number of {len(digits)} digits, the limit is {MAX_DIGITS}")
    whole, _, fraction = digits.partition(".")
    value = mpq(int(whole + fraction or "0"), 10 ** len(fraction))
    if exponent is None:
        return Lexeme("num", digits, spaced, value, len(fraction) or None), end
    power = int(exponent[1:].strip("{}"))
    if abs(power) > MAX_SCIENTIFIC:
        raise TooLarge(f"the power of ten {power}, the limit is {MAX_SCIENTIFIC}")
    return Lexeme("num", digits, spaced, value * mpq(10) ** power, last_power=power - len(fraction)), end


def repeating_token(text: str, spaced: bool) -> Lexeme:
    r"""Return the token of a repeating decimal: 1/6 for 0.1\overline{6} and 0.1666... Raises TooLarge.

    In 0.\dot{1}2\dot{3} the dots mark the first and the last digit of the repeating block.
    """
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
    return Lexeme("num", text, spaced, value)

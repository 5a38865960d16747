"""What the reader works on: tokens and how they nest."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

from gmpy2 import mpq

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

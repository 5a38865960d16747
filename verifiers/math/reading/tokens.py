"""What the reader works on: tokens and how they nest."""

from __future__ import annotations

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


def nesting(token: Token) -> int:
    """Return 1 where a bracket opens, -1 where one closes, and 0 for any other token."""
    return (token.kind in OPENING) - (token.kind in CLOSING)


def split_at(tokens: list[Token], mark: str) -> list[list[Token]]:
    """Return the parts between separators `mark` that stand outside of all brackets; empty ones are left out."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += nesting(token)
        if depth <= 0 and token.kind == "sep" and token.text == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]

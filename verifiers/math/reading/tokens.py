"""What the reader works on: tokens, how they nest, and the two ways in which a text is refused."""

from __future__ import annotations

from typing import NamedTuple

from gmpy2 import mpq

MAX_DEPTH = 40
"""Brackets and commands inside each other. Stops `((((...`, whose reading would exhaust the stack."""

OPENING = frozenset({"open", "brace", "begin"})
CLOSING = frozenset({"close", "unbrace", "end"})
"""The kinds of tokens that nest."""


class Token(NamedTuple):
    kind: str
    """num, name, const, func, cmd, big, word, money; op, rel, sep, gap, cell, row, bar; and those that nest."""
    text: str
    spaced: bool
    """Whether a blank stands before it."""
    value: mpq | None = None
    decimals: int | None = None


def nesting(token: Token) -> int:
    """1 where a bracket opens, -1 where one closes."""
    return (token.kind in OPENING) - (token.kind in CLOSING)


def split_at(tokens: list[Token], mark: str) -> list[list[Token]]:
    """The parts between separators `mark` outside of all brackets, empty ones left out."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += nesting(token)
        if depth <= 0 and token.kind == "sep" and token.text == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]

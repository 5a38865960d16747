"""A position in a list of tokens, and what may be asked there.

An environment may hold a list, and a list environments. So a cursor is handed the reader of whole answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.reading.notation import Notation
from truegold.verifiers.math.reading.tokens import MAX_DEPTH, Token
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import Node

ReadAnswer: TypeAlias = Callable[[list[Token], Notation, int], Node]
"""Reads tokens as an answer, which may be a list, at a depth within another answer."""

_STEPS_A_TOKEN = 4
"""What it costs to read a token, whether or not the reading succeeds."""

END = Token("stop", "", False)
_PADDING = (END,) * 5
"""So many tokens behind the last one let the grammar look ahead without a bound."""


class Cursor:
    """Reads off a list of tokens, from `position` on."""

    __slots__ = ("bars", "depth", "in_brackets", "in_set", "notation", "position", "read_answer", "tokens")

    def __init__(self, tokens: list[Token], notation: Notation, depth: int, read_answer: ReadAnswer) -> None:
        charge(_STEPS_A_TOKEN * len(tokens))
        self.tokens = [*tokens, *_PADDING]
        self.position = 0
        self.notation = notation
        self.depth = depth
        self.read_answer = read_answer
        self.bars = 0
        """How many bars are open: where one is, the next bar closes it."""
        self.in_brackets = 0
        """How many brackets are open."""
        self.in_set = False
        """The element of a set is read, and a colon separates it from its condition."""

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or one behind it."""
        return self.tokens[self.position + ahead]

    def take(self) -> Token:
        """Return the next token and go on; at the end, the end stays."""
        token = self.tokens[self.position]
        if token is not END:
            self.position += 1
        return token

    def next_is(self, kind: str, text: str | None = None) -> bool:
        """Tell whether the next token is of this kind and text."""
        token = self.tokens[self.position]
        return token[0] == kind and (text is None or token[1] == text)

    def take_if(self, kind: str, text: str | None = None) -> bool:
        """Take the next token if it is of this kind and text; tell whether it was."""
        token = self.tokens[self.position]
        if token[0] != kind or (text is not None and token[1] != text):
            return False
        self.position += 1
        return True

    def expect(self, kind: str, text: str | None = None) -> None:
        """Take the next token. Raises Unreadable where it is another one."""
        if not self.take_if(kind, text):
            raise Unreadable(f"expected {text or kind}, found {self.peek().text or self.peek().kind!r}")

    def enter(self) -> None:
        """Go one level deeper; whoever enters takes the level off again. Raises TooLarge."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")

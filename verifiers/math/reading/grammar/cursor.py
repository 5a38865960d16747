"""A place in a list of tokens, and what the parts of the grammar may ask of each other there.

`Grammar` breaks the circle: an atom may hold a relation, and a relation ends in atoms. The parts are functions that
take a `Grammar`; `Reader` is the one there is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from truegold.verifiers.math.reading.notation import USUAL, Notation
from truegold.verifiers.math.reading.tokens import MAX_DEPTH, Token
from truegold.verifiers.math.refusals import TooLarge, Unreadable
from truegold.verifiers.math.tree import Node

END = Token("stop", "", False)
_PADDING = (END,) * 5
"""So that looking ahead needs no bound."""


class Cursor:
    """Reads off a list of tokens, from `position` on."""

    __slots__ = ("bars", "depth", "in_brackets", "notation", "position", "tokens")

    def __init__(self, tokens: list[Token], notation: Notation = USUAL, depth: int = 0) -> None:
        self.tokens = [*tokens, *_PADDING]
        self.position = 0
        self.notation = notation
        self.depth = depth
        self.bars = 0
        """How many bars are open: the next one closes."""
        self.in_brackets = 0

    def peek(self, ahead: int = 0) -> Token:
        return self.tokens[self.position + ahead]

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token is not END:
            self.position += 1
        return token

    def at(self, kind: str, text: str | None = None) -> bool:
        token = self.tokens[self.position]
        return token[0] == kind and (text is None or token[1] == text)

    def took(self, kind: str, text: str | None = None) -> bool:
        """Take the next token if it is this one."""
        token = self.tokens[self.position]
        if token[0] != kind or (text is not None and token[1] != text):
            return False
        self.position += 1
        return True

    def expect(self, kind: str, text: str | None = None) -> None:
        """Raises Unreadable where the next token is another."""
        if not self.took(kind, text):
            raise Unreadable(f"expected {text or kind}, found {self.peek().text or self.peek().kind!r}")

    def enter(self) -> None:
        """One level deeper; who enters takes the level off again. Raises TooLarge."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} deep")


class Grammar(Cursor, ABC):
    """The levels of the grammar. Each reads as much as belongs to it; all raise Unreadable and TooLarge."""

    __slots__ = ()

    @abstractmethod
    def relation(self) -> Node: ...

    @abstractmethod
    def sum(self) -> Node: ...

    @abstractmethod
    def product(self) -> Node: ...

    @abstractmethod
    def signed(self) -> Node: ...

    @abstractmethod
    def power(self) -> Node: ...

    @abstractmethod
    def atom(self) -> Node: ...

    @abstractmethod
    def script(self) -> Node:
        """What stands after ^ or _: a group in braces, or one atom with its sign."""

    @abstractmethod
    def at_operand(self) -> bool: ...

    @abstractmethod
    def apart(self, tokens: list[Token], depth: int) -> Node:
        """Other tokens as one relation, with nothing left over."""

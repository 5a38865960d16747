"""What a comparison finds out, and what its parts may ask of the whole."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gmpy2 import mpq

from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import Node, Num

MINUS_ONE = Num(mpq(-1))
ZERO = Num(mpq(0))


class Outcome(NamedTuple):
    """same: None where it cannot be said. rung: what decided. hedged: the answer holds gold among others."""

    same: bool | None
    rung: str
    hedged: bool = False


SAME_NUMBER = Outcome(True, "exact")
SAME_STRUCTURE = Outcome(True, "structure")
OTHER_STRUCTURE = Outcome(False, "structure")
UNDECIDED = Outcome(None, "structure")


class Comparer(Protocol):
    """One policy's way through two trees. Shapes hold shapes: their parts come back to `same`."""

    @property
    def policy(self) -> Policy: ...

    def same(self, gold: Node, answer: Node) -> Outcome:
        """Raises TooLarge where a value is beyond the budgets."""

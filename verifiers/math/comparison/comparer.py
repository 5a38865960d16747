"""What the parts of a comparison may ask of the whole."""

from __future__ import annotations

from typing import Protocol

from truegold.verifiers.math.outcome import Outcome
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import Node


class Comparer(Protocol):
    """Compares two trees under one policy. Shapes hold shapes, so their parts come back to `same`."""

    @property
    def policy(self) -> Policy:
        """What counts as the same answer."""

    def same(self, gold: Node, answer: Node) -> Outcome:
        """Compare two trees. Raises TooLarge where a value is beyond the budgets."""

r"""Expands the signs ± and ∓ of a tree to lists of values.

    1\pm\sqrt2     -> 1+\sqrt2, 1-\sqrt2
    \pm a, \mp b   -> a, -a, -b, b: the signs of different items are independent
    \pm 1 \pm 2    -> 3, -3 if both signs are the same; 3, -1, 1, -3 if they are independent

If one value has several signs, they may be the same or independent. Both readings are returned, and the one that
matches the other side counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from truegold.verifiers.math.tree import MINUS_ONE, PLUS_ONE, BareList, Chain, Group, Node, Sign, facts, mapped

MAX_SIGNS = 4
"""Maximum number of signs in an answer. Stops 2^20 combinations."""


def sign_readings(node: Node) -> list[Node]:
    """Return a list of values for each reading of the tree: all signs the same, and all signs independent."""
    if not (count := facts(node).sign_count):
        return [node]
    if count > MAX_SIGNS:
        return []
    signs_together = _expanded(node, [(True,) * count, (False,) * count])
    if count == 1:
        return [signs_together]
    return [signs_together, _expanded(node, list(itertools.product((True, False), repeat=count)))]


def _expanded(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    """Return the values of the tree for all `choices` of its signs, as a list or as a set."""
    if isinstance(node, Chain) and any(isinstance(part, (BareList, Group)) for part in node.parts):
        return Chain(tuple(_expanded(part, choices) for part in node.parts), node.operators)
    if isinstance(node, (BareList, Group)) and (isinstance(node, BareList) or node.opening == "{"):
        elements: list[Node] = []
        for element in node.elements:
            count = facts(element).sign_count
            element_choices = dict.fromkeys(choice[:count] for choice in choices)
            elements.extend(_with_signs_chosen(element, iter(choice)) for choice in element_choices)
        return BareList(tuple(elements)) if isinstance(node, BareList) else Group("{", "}", tuple(elements))
    return BareList(tuple(_with_signs_chosen(node, iter(choice)) for choice in choices))


def _with_signs_chosen(node: Node, plus: Iterator[bool]) -> Node:
    """Return the tree with 1 or -1 for each sign. `plus` yields True where the upper part of the sign is meant."""

    def chosen(part: Node) -> Node:
        if isinstance(part, Sign):
            return PLUS_ONE if next(plus) != part.flipped else MINUS_ONE
        return part

    return mapped(node, chosen)

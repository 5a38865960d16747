r"""What `\pm` stands for: two values, or more where several signs are free.

`1\pm\sqrt2` is `1+\sqrt2, 1-\sqrt2`. In `(\pm a, \pm b)` the signs may go together or each on its own: both readings
are offered, and the other side decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gmpy2 import mpq

from truegold.verifiers.math.substitute import mapped
from truegold.verifiers.math.tree import BareList, Chain, Group, Node, Num, Sign, facts

MAX_SIGNS = 4
"""Free signs in one answer. Stops 2^20 combinations."""

_PLUS, _MINUS = Num(mpq(1)), Num(mpq(-1))


def has_signs(node: Node) -> bool:
    return type(node) is not Num and facts(node).sign_count > 0


def readings(node: Node) -> list[Node]:
    """`node` without signs: as one list for each reading of how the signs go together."""
    count = facts(node).sign_count
    if not count:
        return [node]
    if count > MAX_SIGNS:
        return []
    together = _expanded(node, [(True,) * count, (False,) * count])
    if count == 1:
        return [together]
    return [together, _expanded(node, list(itertools.product((True, False), repeat=count)))]


def _expanded(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    if isinstance(node, Chain) and any(isinstance(part, (BareList, Group)) for part in node.parts):
        return Chain(tuple(_expanded(part, choices) for part in node.parts), node.operators)
    if isinstance(node, (BareList, Group)) and (isinstance(node, BareList) or node.opening == "{"):
        items: list[Node] = []
        for item in node.elements:
            count = facts(item).sign_count
            own = dict.fromkeys(choice[:count] for choice in choices)
            items.extend(_chosen(item, iter(choice)) for choice in own)
        return BareList(tuple(items)) if isinstance(node, BareList) else Group("{", "}", tuple(items))
    return BareList(tuple(_chosen(node, iter(choice)) for choice in choices))


def _chosen(node: Node, plus: Iterator[bool]) -> Node:
    def choose(part: Node) -> Node:
        if isinstance(part, Sign):
            return _PLUS if next(plus) != part.flipped else _MINUS
        return part

    return mapped(node, choose)

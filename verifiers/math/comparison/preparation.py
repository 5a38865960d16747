r"""What is done to two trees before they are compared.

1\pm\sqrt2                   1+\sqrt2, 1-\sqrt2. In `(\pm a, \pm b)` the signs may go together or each for itself:
                             there are two readings, and the other side decides
e = 5                        a variable, where e is else a constant
\sqrt3/3 \approx 0.577       gold that says its value twice: the exact form is what counts
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from truegold.verifiers.math.comparison.relations import is_repeated_list
from truegold.verifiers.math.substitute import mapped
from truegold.verifiers.math.tree import (
    MINUS_ONE,
    PLUS_ONE,
    BareList,
    Chain,
    Const,
    Group,
    Node,
    Num,
    Sign,
    Sym,
    facts,
)

_RELATED = frozenset({Chain, BareList, Group})
"""Only these hold relations that give a letter its value."""

MAX_SIGNS = 4
"""The most free signs in one answer. Stops 2^20 combinations."""


def with_unknown_letters(gold: Node, answer: Node) -> tuple[Node, Node]:
    """Return both trees with e and i as variables where one side says what they are worth: `e = 5`."""
    if type(gold) not in _RELATED and type(answer) not in _RELATED:
        return gold, answer
    names = _valued_constants(gold) | _valued_constants(answer)
    if not names:
        return gold, answer

    def as_variable(part: Node) -> Node:
        return Sym(part.name) if isinstance(part, Const) and part.name in names else part

    return mapped(gold, as_variable), mapped(answer, as_variable)


def _valued_constants(node: Node) -> set[str]:
    elements = node.elements if isinstance(node, (BareList, Group)) else (node,)
    names: set[str] = set()
    for element in elements:
        if isinstance(element, Chain) and element.operators[0] == "=":
            first = element.parts[0]
            letters = first.elements if isinstance(first, (BareList, Group)) else (first,)
            names |= {letter.name for letter in letters if isinstance(letter, Const) and letter.name in ("e", "i")}
    return names


def without_repetition(gold: Chain) -> Node:
    """Return the exact form of `\\sqrt3/3 \\approx 0.577` and the first of `{1, 2} = {2, 1}`; else gold itself."""
    if "~" in gold.operators and set(gold.operators) <= {"=", "~"}:
        index = gold.operators.index("~")
        if index:
            return Chain(gold.parts[: index + 1], gold.operators[:index])
        return gold.parts[1] if isinstance(gold.parts[0], Sym) else gold.parts[0]
    return gold.parts[0] if is_repeated_list(gold) else gold


def has_signs(node: Node) -> bool:
    """Tell whether ± or ∓ stands in the tree."""
    return type(node) is not Num and facts(node).sign_count > 0


def sign_readings(node: Node) -> list[Node]:
    """Return the tree without signs: one list of values for each reading of how the signs go together."""
    count = facts(node).sign_count
    if not count:
        return [node]
    if count > MAX_SIGNS:
        return []
    signs_together = _expanded(node, [(True,) * count, (False,) * count])
    if count == 1:
        return [signs_together]
    return [signs_together, _expanded(node, list(itertools.product((True, False), repeat=count)))]


def _expanded(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    """Return the values that the tree has under all choices of its signs, as a list or as a set."""
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
    def choose(part: Node) -> Node:
        if isinstance(part, Sign):
            return PLUS_ONE if next(plus) != part.flipped else MINUS_ONE
        return part

    return mapped(node, choose)

r"""What is done to two trees before they are compared.

1\pm\sqrt2                   1+\sqrt2, 1-\sqrt2. In `(\pm a, \pm b)` the signs may go together or each for itself:
                             there are two readings, and the other side decides
k\pi and n\pi                the same, where both letters stand for any integer
\sqrt3/3 \approx 0.577       gold that says its value twice: the exact form is what counts
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from truegold.verifiers.math.comparison.comparer import Comparer
from truegold.verifiers.math.comparison.relations import is_repeated_list
from truegold.verifiers.math.substitute import mapped, renamed
from truegold.verifiers.math.tree import (
    MINUS_ONE,
    PLUS_ONE,
    BareList,
    Chain,
    Family,
    Group,
    Node,
    Num,
    Sign,
    Sym,
    facts,
    symbols,
)

MAX_SIGNS = 4
"""The most free signs in one answer. Stops 2^20 combinations."""


def conditions_agree(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare what both sides say of their letters; what only one side says is understood."""
    if not isinstance(gold, Family) or not isinstance(answer, Family):
        return True
    if not gold.conditions or len(gold.conditions) != len(answer.conditions):
        return True
    return comparer.same(BareList(gold.conditions), BareList(answer.conditions)).same is not False


def without_parameters(gold: Node, answer: Node, *, rename: bool) -> tuple[Node, Node]:
    """Return the bodies of both sides; with `rename`, their integer parameters get the same names."""
    gold_names: frozenset[str] = frozenset()
    answer_names: frozenset[str] = frozenset()
    if isinstance(gold, Family):
        gold_names, gold = gold.parameters, gold.body
    if isinstance(answer, Family):
        answer_names, answer = answer.parameters, answer.body
    if rename and (gold_names or answer_names):
        gold_letters = sorted((gold_names or symbols(gold)) & symbols(gold))
        answer_letters = sorted((answer_names or symbols(answer)) & symbols(answer))
        different = gold_letters != answer_letters and len(gold_letters) == len(answer_letters)
        if different and not set(answer_letters) & symbols(gold):
            answer = renamed(answer, dict(zip(answer_letters, gold_letters, strict=True)))
    return gold, answer


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

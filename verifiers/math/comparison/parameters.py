"""What an answer says of its letters: integer parameters, whose names do not matter, and conditions."""

from __future__ import annotations

from truegold.verifiers.math.comparison.outcome import Comparer
from truegold.verifiers.math.substitute import renamed
from truegold.verifiers.math.tree import BareList, Family, Node, symbols


def conditions_agree(within: Comparer, gold: Node, answer: Node) -> bool:
    """What only one side says of its letters is understood."""
    if not isinstance(gold, Family) or not isinstance(answer, Family):
        return True
    if not gold.conditions or len(gold.conditions) != len(answer.conditions):
        return True
    return within.same(BareList(gold.conditions), BareList(answer.conditions)).same is not False


def without_parameters(gold: Node, answer: Node, *, rename: bool) -> tuple[Node, Node]:
    """The bodies of both sides; with `rename`, their integer parameters by the same names."""
    gold_names: frozenset[str] = frozenset()
    answer_names: frozenset[str] = frozenset()
    if isinstance(gold, Family):
        gold_names, gold = gold.parameters, gold.body
    if isinstance(answer, Family):
        answer_names, answer = answer.parameters, answer.body
    if rename and (gold_names or answer_names):
        wanted = sorted((gold_names or symbols(gold)) & symbols(gold))
        offered = sorted((answer_names or symbols(answer)) & symbols(answer))
        if wanted != offered and len(wanted) == len(offered) and not set(offered) & symbols(gold):
            answer = renamed(answer, dict(zip(offered, wanted, strict=True)))
    return gold, answer

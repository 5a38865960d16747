"""Sets of numbers and conditions: by their normal form where they have one, else as they are written."""

from __future__ import annotations

from truegold.verifiers.math.comparison.intervals import NoSet, same_set
from truegold.verifiers.math.comparison.lists import elementwise, matched, same_ordered
from truegold.verifiers.math.comparison.outcome import OTHER_STRUCTURE, UNDECIDED, Comparer, Outcome
from truegold.verifiers.math.comparison.real_sets import pieces_of
from truegold.verifiers.math.comparison.relations import COORDINATES, same_relation
from truegold.verifiers.math.comparison.values import same_values
from truegold.verifiers.math.tree import VALUES, BareList, Chain, Group, Node, SetOf, SetOps, Sym


def same_sets(within: Comparer, gold: Node, answer: Node) -> Outcome:
    answer_set = Group("{", "}", (answer,)) if isinstance(answer, VALUES) else answer
    try:
        wanted, offered = pieces_of(gold), pieces_of(answer_set)
    except NoSet:
        return _same_as_written(within, gold, answer)
    if not _subjects_agree(gold, answer):
        return OTHER_STRUCTURE
    same = same_set(wanted, offered, lambda a, b: same_values(a, b, within.policy).same is True)
    return Outcome(same, "structure")


def _subjects_agree(gold: Node, answer: Node) -> bool:
    """x > 3 is not y > 3."""
    wanted, offered = _coordinate(gold), _coordinate(answer)
    return wanted is None or offered is None or wanted == offered


def _coordinate(node: Node) -> str | None:
    if not isinstance(node, Chain):
        return None
    names = [part.name for part in node.parts if isinstance(part, Sym)]
    return names[0] if len(names) == 1 and names[0] in COORDINATES else None


def _same_as_written(within: Comparer, gold: Node, answer: Node) -> Outcome:  # noqa: PLR0911, one for each shape
    if isinstance(gold, SetOps) and isinstance(answer, SetOps) and gold.operator == answer.operator:
        if len(gold.parts) != len(answer.parts):
            return UNDECIDED
        join = elementwise if gold.operator == "minus" else matched
        return join(within, list(gold.parts), list(answer.parts))
    if isinstance(gold, SetOf) and isinstance(answer, SetOf):
        return elementwise(within, [gold.element, gold.condition], [answer.element, answer.condition])
    if isinstance(gold, Chain) or isinstance(answer, Chain):
        return _same_conditions(within, gold, answer)
    if isinstance(gold, Group) and isinstance(answer, Group):
        alike = (gold.opening, gold.closing) == (answer.opening, answer.closing)
        return same_ordered(within, gold, answer) if alike else OTHER_STRUCTURE
    if isinstance(gold, BareList) and isinstance(answer, BareList) and len(gold.elements) == len(answer.elements):
        return matched(within, list(gold.elements), list(answer.elements))
    return OTHER_STRUCTURE


def _same_conditions(within: Comparer, gold: Node, answer: Node) -> Outcome:
    """Relations; and of `x \\in S` against a set, the S."""
    if not (isinstance(gold, Chain) and isinstance(answer, Chain)):
        if isinstance(gold, Chain) and gold.operators == ("in",):
            return within.same(gold.parts[1], answer)
        if isinstance(answer, Chain) and answer.operators == ("in",):
            return within.same(gold, answer.parts[1])
    return same_relation(within, gold, answer)

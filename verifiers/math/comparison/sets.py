"""Sets of numbers and conditions: compared by their normal form where they have one, else as they are written."""

from __future__ import annotations

from truegold.verifiers.math.comparison.comparer import Comparer
from truegold.verifiers.math.comparison.intervals import NoSet, same_pieces
from truegold.verifiers.math.comparison.lists import elementwise, matched, same_ordered
from truegold.verifiers.math.comparison.real_sets import pieces_of
from truegold.verifiers.math.comparison.relations import same_relations
from truegold.verifiers.math.comparison.values import same_values
from truegold.verifiers.math.labels import COORDINATES
from truegold.verifiers.math.outcome import OTHER_STRUCTURE, UNDECIDED, Outcome
from truegold.verifiers.math.tree import VALUES, BareList, Chain, Group, Node, SetOf, SetOps, Sym


def same_sets(comparer: Comparer, gold: Node, answer: Node) -> Outcome:
    """Compare two sides of which at least one is a set of numbers or a condition. Raises TooLarge."""
    answer_set = Group("{", "}", (answer,)) if isinstance(answer, VALUES) else answer
    try:
        gold_pieces, answer_pieces = pieces_of(gold), pieces_of(answer_set)
    except NoSet:
        return _same_as_written(comparer, gold, answer)
    if not _subjects_agree(gold, answer):
        return OTHER_STRUCTURE
    same = same_pieces(gold_pieces, answer_pieces, lambda a, b: same_values(a, b, comparer.policy).same is True)
    return Outcome(same, "structure")


def _subjects_agree(gold: Node, answer: Node) -> bool:
    """Tell whether two conditions are about the same letter; x > 3 is not y > 3."""
    gold_coordinate, answer_coordinate = _coordinate(gold), _coordinate(answer)
    return gold_coordinate is None or answer_coordinate is None or gold_coordinate == answer_coordinate


def _coordinate(node: Node) -> str | None:
    if not isinstance(node, Chain):
        return None
    names = [part.name for part in node.parts if isinstance(part, Sym)]
    return names[0] if len(names) == 1 and names[0] in COORDINATES else None


def _same_as_written(comparer: Comparer, gold: Node, answer: Node) -> Outcome:  # noqa: PLR0911, one for each shape
    if isinstance(gold, SetOps) and isinstance(answer, SetOps) and gold.operator == answer.operator:
        if len(gold.parts) != len(answer.parts):
            return UNDECIDED
        join = elementwise if gold.operator == "minus" else matched
        return join(comparer, gold.parts, answer.parts)
    if isinstance(gold, SetOf) and isinstance(answer, SetOf):
        return elementwise(comparer, [gold.element, gold.condition], [answer.element, answer.condition])
    if isinstance(gold, Chain) or isinstance(answer, Chain):
        return _same_conditions(comparer, gold, answer)
    if isinstance(gold, Group) and isinstance(answer, Group):
        same_brackets = (gold.opening, gold.closing) == (answer.opening, answer.closing)
        return same_ordered(comparer, gold, answer) if same_brackets else OTHER_STRUCTURE
    if isinstance(gold, BareList) and isinstance(answer, BareList) and len(gold.elements) == len(answer.elements):
        return matched(comparer, gold.elements, answer.elements)
    return OTHER_STRUCTURE


def _same_conditions(comparer: Comparer, gold: Node, answer: Node) -> Outcome:
    """Compare relations; of `x \\in S` against a set, compare the S."""
    if not (isinstance(gold, Chain) and isinstance(answer, Chain)):
        if isinstance(gold, Chain) and gold.operators == ("in",):
            return comparer.same(gold.parts[1], answer)
        if isinstance(answer, Chain) and answer.operators == ("in",):
            return comparer.same(gold, answer.parts[1])
    return same_relations(comparer, gold, answer)

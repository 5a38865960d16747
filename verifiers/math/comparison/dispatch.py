"""The way through two trees: which shape they have decides who compares them."""

from __future__ import annotations

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.comparison.calendar import same_clocks, same_days
from truegold.verifiers.math.comparison.forms import (
    same_names,
    same_numerals,
    same_ratios,
    same_texts,
)
from truegold.verifiers.math.comparison.lists import is_list, same_lists, same_ordered
from truegold.verifiers.math.comparison.parameters import conditions_agree, renamings, without_parameters
from truegold.verifiers.math.comparison.preparation import (
    has_signs,
    sign_readings,
    with_unknown_letters,
    without_repetition,
)
from truegold.verifiers.math.comparison.real_sets import looks_like_set
from truegold.verifiers.math.comparison.relations import is_repeated_list, same_relations, same_throughout
from truegold.verifiers.math.comparison.residues import same_residues, with_residues_joined
from truegold.verifiers.math.comparison.sets import same_sets
from truegold.verifiers.math.comparison.values import same_amounts, same_values
from truegold.verifiers.math.comparison.vectors import as_array_beside, with_vector_worked_out, worked_out
from truegold.verifiers.math.labels import label_of
from truegold.verifiers.math.outcome import OTHER_STRUCTURE, SAME_NUMBER, Outcome
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.quantities import as_measure
from truegold.verifiers.math.tree import (
    VALUE_TYPES,
    BareList,
    BaseN,
    Call,
    Chain,
    Clock,
    Day,
    Family,
    Group,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Ratio,
    Residues,
    Sym,
    Text,
)


def compare(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Compare two trees. Raises TooLarge where a value is beyond the budgets."""
    if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
        return SAME_NUMBER
    comparison = Comparison(policy)
    if type(gold) is Family or type(answer) is Family:
        if not conditions_agree(comparison, gold, answer):
            return OTHER_STRUCTURE
        gold, answer = without_parameters(gold, answer, rename=policy.parameters == "rename")
    gold, answer = with_unknown_letters(gold, answer)
    if isinstance(gold, Chain):
        gold = without_repetition(gold)
    outcome = _compare_signs(comparison, gold, answer)
    has_letters = type(gold) is not Num and type(answer) is not Num
    if not outcome.same and has_letters and policy.parameters == "rename":
        for other_answer in renamings(gold, answer):
            other_outcome = _compare_signs(comparison, gold, other_answer)
            if other_outcome.same:
                return other_outcome
    return outcome


def _compare_signs(comparison: Comparison, gold: Node, answer: Node) -> Outcome:
    """Compare two trees; where ± stands in them, all their readings."""
    if not (has_signs(gold) or has_signs(answer)):
        return comparison.same(gold, answer)
    undecided = OTHER_STRUCTURE
    for gold_reading in sign_readings(gold):
        for answer_reading in sign_readings(answer):
            outcome = comparison.same(gold_reading, answer_reading)
            if outcome.same:
                return outcome
            if outcome.same is None:
                undecided = outcome
    return undecided


_PAIR_STEPS = 2
"""What it costs to find out which shape two sides have."""


class Comparison:
    """Compares two trees under one policy; it is the `Comparer` of the parts."""

    __slots__ = ("policy",)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def same(self, gold: Node, answer: Node) -> Outcome:
        """Compare values, quantities and words; other shapes go on to `_same_shape`. Raises TooLarge."""
        charge(_PAIR_STEPS)
        if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
            return SAME_NUMBER
        gold, answer = worked_out(as_measure(gold)), worked_out(as_measure(answer))
        if type(gold) in VALUE_TYPES and type(answer) in VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        gold, answer = _plain(gold), _plain(answer)
        gold, answer = as_array_beside(gold, answer), as_array_beside(answer, gold)
        kinds = {type(gold), type(answer)}
        if kinds <= VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        if Text in kinds:
            return same_texts(gold, answer)
        if Measure in kinds and kinds <= _AMOUNT_TYPES:
            return same_amounts(gold, answer, self.policy)
        return self._same_shape(gold, answer, kinds)

    def _same_shape(self, gold: Node, answer: Node, kinds: set[type[Node]]) -> Outcome:  # noqa: PLR0911, one a shape
        if Residues in kinds:
            return same_residues(gold, answer)
        if isinstance(answer, Chain) and not isinstance(gold, Chain) and is_repeated_list(answer):
            return same_throughout(self, gold, answer)
        if is_list(gold) or is_list(answer):
            outcome = same_lists(self, gold, answer)
            if outcome is not None:
                return outcome
        if looks_like_set(gold) or looks_like_set(answer):
            return same_sets(self, gold, answer)
        if Chain in kinds:
            return same_relations(self, gold, answer)
        if Group in kinds or Matrix in kinds:
            return same_ordered(self, gold, answer)
        if Clock in kinds:
            return same_clocks(gold, answer)
        if Ratio in kinds:
            return same_ratios(gold, answer, self.policy)
        if BaseN in kinds:
            return same_numerals(gold, answer, self.policy)
        if Day in kinds:
            return same_days(gold, answer)
        return same_names(gold, answer) if Named in kinds else OTHER_STRUCTURE


_AMOUNT_TYPES = VALUE_TYPES | {Measure}


def _plain(node: Node) -> Node:
    """Return the point (2, 3) for A(2, 3), 11 for the [11] that programs print, and one congruence for several."""
    if isinstance(node, Chain):
        return with_vector_worked_out(node)
    if isinstance(node, Group) and node.opening == "[" and node.closing == "]" and len(node.elements) == 1:
        return node.elements[0]
    if isinstance(node, Group) and len(node.elements) > 1 and all(map(label_of, node.elements)):
        # The brackets of [x=1, y=2] say nothing.
        return BareList(node.elements)
    if isinstance(node, Mul) and len(node.factors) == 2:
        name, point = node.factors
        if isinstance(name, Sym) and isinstance(point, Group) and len(point.elements) > 1 and point.opening == "(":
            return point
    if isinstance(node, Call) and node.applied and len(node.args) > 1:
        return Group("(", ")", node.args)
    return with_residues_joined(node)

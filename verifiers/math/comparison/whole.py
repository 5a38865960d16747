"""The way through two trees: which shape they have decides who compares them."""

from __future__ import annotations

from truegold.verifiers.math.comparison.amounts import same_amounts
from truegold.verifiers.math.comparison.forms import same_clocks, same_numerals, same_ratios
from truegold.verifiers.math.comparison.lists import is_list, same_lists, same_ordered
from truegold.verifiers.math.comparison.outcome import OTHER_STRUCTURE, SAME_NUMBER, Outcome
from truegold.verifiers.math.comparison.parameters import conditions_agree, without_parameters
from truegold.verifiers.math.comparison.real_sets import looks_like_set
from truegold.verifiers.math.comparison.relations import is_repeated_list, same_relation, same_throughout
from truegold.verifiers.math.comparison.sets import same_sets
from truegold.verifiers.math.comparison.signs import has_signs, readings
from truegold.verifiers.math.comparison.values import same_values
from truegold.verifiers.math.comparison.words import same_name, same_text
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.reading.quantities import as_measure
from truegold.verifiers.math.tree import (
    VALUE_TYPES,
    BaseN,
    Call,
    Chain,
    Clock,
    Family,
    Group,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Ratio,
    Sym,
    Text,
)


def compare(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Raises TooLarge where a value is beyond the budgets."""
    comparison = Comparison(policy)
    if type(gold) is Family or type(answer) is Family:
        if not conditions_agree(comparison, gold, answer):
            return OTHER_STRUCTURE
        gold, answer = without_parameters(gold, answer, rename=policy.parameters == "rename")
    if isinstance(gold, Chain):
        gold = _settled(gold)
    if not (has_signs(gold) or has_signs(answer)):
        return comparison.same(gold, answer)
    found = OTHER_STRUCTURE
    for wanted in readings(gold):
        for offered in readings(answer):
            outcome = comparison.same(wanted, offered)
            if outcome.same:
                return outcome
            found = outcome if outcome.same is None else found
    return found


def _settled(gold: Chain) -> Node:
    """Gold that says its value twice: the exact form of `\\sqrt3/3 \\approx 0.577`, the first of `{1, 2} = {2, 1}`."""
    if "~" in gold.operators and set(gold.operators) <= {"=", "~"}:
        at = gold.operators.index("~")
        if at:
            return Chain(gold.parts[: at + 1], gold.operators[:at])
        return gold.parts[1] if isinstance(gold.parts[0], Sym) else gold.parts[0]
    return gold.parts[0] if is_repeated_list(gold) else gold


class Comparison:
    """One policy's way through two trees (the `Comparer` of the parts)."""

    __slots__ = ("policy",)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def same(self, gold: Node, answer: Node) -> Outcome:
        """Values, quantities and words; shapes go on to `_same_shape`. Raises TooLarge."""
        if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
            return SAME_NUMBER
        gold, answer = as_measure(gold), as_measure(answer)
        if type(gold) in VALUE_TYPES and type(answer) in VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        gold, answer = _plain(gold), _plain(answer)
        kinds = {type(gold), type(answer)}
        if kinds <= VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        if Text in kinds:
            return same_text(gold, answer)
        if Measure in kinds and kinds <= _AMOUNT_TYPES:
            return same_amounts(gold, answer, self.policy)
        return self._same_shape(gold, answer, kinds)

    def _same_shape(self, gold: Node, answer: Node, kinds: set[type[Node]]) -> Outcome:  # noqa: PLR0911, one a shape
        if isinstance(answer, Chain) and not isinstance(gold, Chain) and is_repeated_list(answer):
            return same_throughout(self, gold, answer)
        if is_list(gold) or is_list(answer):
            outcome = same_lists(self, gold, answer)
            if outcome is not None:
                return outcome
        if looks_like_set(gold) or looks_like_set(answer):
            return same_sets(self, gold, answer)
        if Chain in kinds:
            return same_relation(self, gold, answer)
        if Group in kinds or Matrix in kinds:
            return same_ordered(self, gold, answer)
        if Ratio in kinds:
            return same_ratios(gold, answer)
        if BaseN in kinds:
            return same_numerals(gold, answer, self.policy)
        if Clock in kinds:
            return same_clocks(gold, answer)
        return same_name(gold, answer) if Named in kinds else OTHER_STRUCTURE


_AMOUNT_TYPES = VALUE_TYPES | {Measure}


def _plain(node: Node) -> Node:
    """A(2, 3) is the point (2, 3) with its name; [11] is 11, as programs print it."""
    if isinstance(node, Group) and node.opening == "[" and node.closing == "]" and len(node.elements) == 1:
        return node.elements[0]
    if isinstance(node, Mul) and len(node.factors) == 2:
        name, place = node.factors
        if isinstance(name, Sym) and isinstance(place, Group) and len(place.elements) > 1 and place.opening == "(":
            return place
    if isinstance(node, Call) and node.applied and len(node.args) > 1:
        return Group("(", ")", node.args)
    return node

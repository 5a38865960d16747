r"""Compares two trees, with the module for their kind:

    Gold        Answer           Module
    1/2         0.5              `single_values` and `identity`, for values
    \{1, 2\}    x=2 or x=1       `lists`
    x \le 3     (-\infty, 3]     `sets`
    y = 2x      2x - y = 0       `relations`

First, `signs` expands ±, `arrays` computes vectors and matrices, and `free_letters` renames letters. If gold states its
value twice, as in `\sqrt3/3 \approx 0.577`, the exact form is used.
"""

from __future__ import annotations

from truegold.verifiers.math.comparison.arrays import as_array_beside, worked_out
from truegold.verifiers.math.comparison.constants import arbitrary_names, same_but_constants
from truegold.verifiers.math.comparison.free_letters import (
    conditions_agree,
    renamings,
    with_constants_as_variables,
    without_parameters,
)
from truegold.verifiers.math.comparison.lines import same_lines
from truegold.verifiers.math.comparison.lists import is_list, is_repeated_list, looks_like_set, same_lists, same_ordered
from truegold.verifiers.math.comparison.progressions import INTEGER_LETTERS, same_progressions
from truegold.verifiers.math.comparison.relations import same_relations, same_throughout
from truegold.verifiers.math.comparison.sets import same_sets
from truegold.verifiers.math.comparison.signs import sign_readings
from truegold.verifiers.math.comparison.single_values import (
    is_prose,
    same_amounts,
    same_clocks,
    same_days,
    same_names,
    same_numerals,
    same_ratios,
    same_residues,
    same_texts,
    same_values,
)
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import same_growth
from truegold.verifiers.math.policy import OTHER_STRUCTURE, SAME_NUMBER, SAME_STRUCTURE, Policy, Sameness, charge
from truegold.verifiers.math.tree import (
    VALUE_TYPES,
    VALUES,
    Add,
    BareList,
    BaseN,
    Chain,
    Day,
    Family,
    FunctionCall,
    Group,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    Residues,
    Sym,
    Text,
    TimeOfDay,
    as_measure,
    facts,
    label_of,
    symbols,
    with_given_value,
)

_PAIR_STEPS = 2
"""Cost of finding the shapes of two sides, in steps of the verdict's budget (`policy`)."""
_MAY_HOLD_RELATIONS = frozenset({Chain, BareList, Group})
"""Types of nodes with relations that may give a letter its value."""
_AMOUNT_TYPES = VALUE_TYPES | {Measure}
"""Types of values and quantities."""
_ARRAY_TYPES = frozenset({Matrix, Group})
_COMPOSED_TYPES = frozenset({Add, Mul, Pow, FunctionCall})
"""Types of values that may contain arrays."""


def compare(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two trees. Raises TooLarge if a value exceeds a limit."""
    if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
        return SAME_NUMBER
    comparison = _TreeComparison(policy)
    whole_gold, whole_answer = gold, answer
    if type(gold) is Family or type(answer) is Family:
        if not conditions_agree(comparison, gold, answer):
            return OTHER_STRUCTURE
        gold, answer = without_parameters(gold, answer, rename=policy.parameters == "rename")
    if _may_name_variable(gold) or _may_name_variable(answer):
        gold, answer = with_constants_as_variables(gold, answer)
    if isinstance(gold, Chain):
        gold = _without_repetition(with_given_value(gold), policy)
    outcome = _compare_signs(comparison, gold, answer)
    has_letters = type(gold) is not Num and type(answer) is not Num
    if not outcome.same and has_letters and policy.parameters == "rename":
        for other_answer in renamings(gold, answer):
            other_outcome = _compare_signs(comparison, gold, other_answer)
            if other_outcome.same:
                return other_outcome
    is_open = has_letters and not outcome.same
    if is_open and (same_family := _same_families(whole_gold, whole_answer, gold, answer, policy)) is not None:
        return same_family
    return Sameness(None, "words") if outcome.same is False and is_prose(gold) else outcome


def _same_families(whole_gold: Node, whole_answer: Node, gold: Node, answer: Node, policy: Policy) -> Sameness | None:
    """Compare trees with many equal forms: periodic solutions, growth, lines, arbitrary constants.

    Return None if no form is the same.
    """
    letters = symbols(gold)
    if letters and policy.parameters == "rename" and symbols(answer):
        may_repeat = type(whole_gold) is Family or not letters.isdisjoint(INTEGER_LETTERS)
        if may_repeat and same_progressions(whole_gold, whole_answer):
            return SAME_STRUCTURE
        if same_growth(gold, answer) or same_lines(gold, answer):
            return SAME_STRUCTURE
    may_be_open = bool(arbitrary_names(letters))
    is_same = may_be_open and same_but_constants(gold, answer, optional=policy.constant == "optional")
    return Sameness(True, "sampled") if is_same else None


def _compare_signs(comparison: _TreeComparison, gold: Node, answer: Node) -> Sameness:
    """Compare two trees. If they have ±, compare all readings of the signs."""
    if not (_has_signs(gold) or _has_signs(answer)):
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


def _may_name_variable(node: Node) -> bool:
    """Tell whether the node may use e or i as a variable, as in `e = 5`."""
    return type(node) in _MAY_HOLD_RELATIONS and facts(node).has_letter_constant


def _without_repetition(gold: Chain, policy: Policy) -> Node:
    """Return one form of a gold that states its value twice.

    \\sqrt3/3 \\approx 0.577     \\sqrt3/3, the exact form
    {1, 2} = {2, 1}            {1, 2}
    10/2 = 5                   5
    other golds                unchanged
    """
    *parts, last = gold.parts
    if set(gold.operators) == {"="} and not symbols(gold) and all(compare(part, last, policy).same for part in parts):
        return last
    if "~" in gold.operators and set(gold.operators) <= {"=", "~"}:
        if index := gold.operators.index("~"):
            return Chain(gold.parts[: index + 1], gold.operators[:index])
        return gold.parts[1] if isinstance(gold.parts[0], Sym) else gold.parts[0]
    return gold.parts[0] if is_repeated_list(gold) else gold


def _has_signs(node: Node) -> bool:
    """Tell whether the tree has ± or ∓."""
    return type(node) is not Num and facts(node).sign_count > 0


class _TreeComparison:
    """Compares two trees under one policy. Implements the protocol `lists.Comparison`."""

    __slots__ = ("policy",)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def same(self, gold: Node, answer: Node) -> Sameness:
        """Compare values, quantities and words here, and other shapes by `_same_shape`. Raises TooLarge."""
        charge(_PAIR_STEPS)
        if type(gold) is Num and type(answer) is Num and gold.value == answer.value:
            return SAME_NUMBER
        gold, answer = _with_arrays_worked_out(as_measure(gold)), _with_arrays_worked_out(as_measure(answer))
        if type(gold) in VALUE_TYPES and type(answer) in VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        gold, answer = _in_usual_shape(gold), _in_usual_shape(answer)
        kinds = {type(gold), type(answer)}
        if Matrix in kinds or (Group in kinds and kinds & VALUE_TYPES):
            gold, answer = as_array_beside(gold, answer), as_array_beside(answer, gold)
            kinds = {type(gold), type(answer)}
        if kinds <= VALUE_TYPES:
            return same_values(gold, answer, self.policy)
        if Text in kinds:
            return same_texts(gold, answer)
        if Measure in kinds and kinds <= _AMOUNT_TYPES:
            return same_amounts(gold, answer, self.policy)
        return self._same_shape(gold, answer, kinds)

    def _same_shape(self, gold: Node, answer: Node, kinds: set[type[Node]]) -> Sameness:  # noqa: PLR0911, one a shape
        """Compare lists, sets, relations and other shapes, with the module for the shape."""
        if Family in kinds:
            return self._same_pieces(gold, answer)
        if Residues in kinds:
            return same_residues(gold, answer)
        if isinstance(answer, Chain) and not isinstance(gold, Chain) and is_repeated_list(answer):
            return same_throughout(self, gold, answer)
        if BareList in kinds and (once := self._same_as_one(gold, answer)) is not None:
            return once
        if (is_list(gold) or is_list(answer)) and (outcome := same_lists(self, gold, answer)) is not None:
            return outcome
        if looks_like_set(gold) or looks_like_set(answer):
            return same_sets(self, gold, answer)
        if Chain in kinds:
            return same_relations(self, gold, answer)
        if Group in kinds or Matrix in kinds:
            return same_ordered(self, gold, answer)
        if TimeOfDay in kinds:
            return same_clocks(gold, answer)
        if Ratio in kinds:
            return same_ratios(gold, answer, self.policy)
        if BaseN in kinds:
            return same_numerals(gold, answer, self.policy)
        if Day in kinds:
            return same_days(gold, answer)
        return same_names(gold, answer) if Named in kinds else OTHER_STRUCTURE

    def _same_pieces(self, gold: Node, answer: Node) -> Sameness:
        """Compare two items of a list with their conditions."""
        if not conditions_agree(self, gold, answer):
            return OTHER_STRUCTURE
        return self.same(*(side.body if isinstance(side, Family) else side for side in (gold, answer)))

    def _same_as_one(self, gold: Node, answer: Node) -> Sameness | None:
        """Compare a value with a list of several forms of one value. Return None if neither side is such a list."""
        if isinstance(answer, BareList) and not is_list(gold) and self._says_once(answer):
            outcomes = [self.same(gold, part) for part in answer.elements]
        elif isinstance(gold, BareList) and not is_list(answer) and self._is_said_again(gold):
            outcomes = [self.same(part, answer) for part in gold.elements]
        else:
            return None
        return next((outcome for outcome in outcomes if outcome.same), outcomes[0])

    def _says_once(self, node: BareList) -> bool:
        """Tell whether a list is one value in several forms: `0.144 or 14.4%`, `$0.4 billion, or $400 million`."""
        first, *others = node.elements
        return node.joined == "or" and all(self.same(first, other).same for other in others)

    def _is_said_again(self, gold: BareList) -> bool:
        r"""Tell whether gold is one value in several units, such as `\frac14; 25\%`. `2; 2` may be two values."""
        first, *others = map(as_measure, gold.elements)
        units = {part.unit if isinstance(part, Measure) else None for part in (first, *others)}
        return len(units) == len(gold.elements) and all(self.same(first, other).same for other in others)


def _with_arrays_worked_out(node: Node) -> Node:
    return worked_out(node) if _holds_array(node) else node


def _holds_array(node: Node) -> bool:
    """Tell whether there is an array in sums and products. This is faster than the cached `facts` of a node."""
    if (kind := type(node)) is Mul:
        parts = node.factors  # type: ignore[attr-defined]
    elif kind is Add:
        parts = node.terms  # type: ignore[attr-defined]
    elif kind is Pow:
        parts = (node.base,)  # type: ignore[attr-defined]
    elif kind is FunctionCall:
        return node.name == "diag" or any(type(arg) in _ARRAY_TYPES for arg in node.args)  # type: ignore[attr-defined]
    else:
        return False
    for part in parts:
        kind = type(part)
        if kind in _ARRAY_TYPES or (kind in _COMPOSED_TYPES and _holds_array(part)):
            return True
    return False


def _in_usual_shape(node: Node) -> Node:
    """Return the usual form of a node: the point (2, 3) for A(2, 3), 11 for [11], one congruence for several."""
    if isinstance(node, Chain):
        return _with_vector_worked_out(with_given_value(node))
    if isinstance(node, Group):
        return _without_idle_brackets(node)
    if isinstance(node, Mul):
        return _point_of(node)
    if isinstance(node, FunctionCall) and node.applied and len(node.args) > 1:
        return Group("(", ")", node.args)
    return _with_residues_joined(node) if isinstance(node, BareList) else node


def _with_vector_worked_out(node: Chain) -> Chain:
    """Return (x, y) = (1+3t, 2+t) for (x, y) = (1, 2) + t(3, 1)."""
    if node.operators != ("=",) or not isinstance(node.parts[1], (Add, Mul)):
        return node
    return Chain((node.parts[0], _with_arrays_worked_out(node.parts[1])), node.operators)


def _without_idle_brackets(node: Group) -> Node:
    """Return a node without superfluous brackets: 11 for [11], a list for [x=1, y=2].

    [n/2] keeps its brackets, because it may be the whole part of n/2.
    """
    lone = node.elements[0] if len(node.elements) == 1 and (node.opening, node.closing) == ("[", "]") else None
    if lone is not None and not (isinstance(lone, VALUES) and symbols(lone)):
        return lone
    is_list_of_labels = len(node.elements) > 1 and all(map(label_of, node.elements))
    return BareList(node.elements) if is_list_of_labels else node


def _point_of(node: Mul) -> Node:
    """Return (2, 3) for A(2, 3), which is read as a product."""
    if len(node.factors) != 2:
        return node
    name, point = node.factors
    is_point = isinstance(point, Group) and len(point.elements) > 1 and point.opening == "("
    return point if isinstance(name, Sym) and is_point else node


def _with_residues_joined(node: BareList) -> Node:
    """Return x \\equiv 1, 5 \\pmod 6 for x \\equiv 1 \\pmod 6, x \\equiv 5 \\pmod 6."""
    parts = [element for element in node.elements if isinstance(element, Residues)]
    moduli = {rational(part.modulus) for part in parts}
    is_one_congruence = len(moduli) == 1 and None not in moduli and len({part.label for part in parts}) == 1
    if len(parts) < len(node.elements) or not is_one_congruence:
        return node
    return Residues(parts[0].label, tuple(r for part in parts for r in part.remainders), parts[0].modulus)

"""Two sides that each stand for one value, bare or with a unit.

Values are equal, equal when rounded, or equal but for `+ C`. The policies say what a missing unit, a convertible one, a
percent sign and an angle mean.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.comparison.rounding import agrees_when_rounded
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.labels import symbols_of
from truegold.verifiers.math.measures import DEGREE, PERCENT, may_count_the_same
from truegold.verifiers.math.outcome import Outcome
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.substitute import renamed, substituted
from truegold.verifiers.math.tree import ZERO, Add, Call, Measure, Mul, Node, Num, Sym, symbols

OTHER_UNIT = Outcome(False, "units")
UNKNOWN_UNIT = Outcome(None, "units")

_INTEGRATION_LETTERS = "CcKk"


def same_values(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """Compare two values under a policy. Raises TooLarge."""
    outcome = same_value(gold, answer)
    if outcome.same:
        return outcome
    if agrees_when_rounded(gold, answer, policy):
        return Outcome(True, "rounding")
    if outcome.same is False and isinstance(gold, Add):
        if policy.constant == "optional" and _same_but_constant(gold, answer):
            return Outcome(True, outcome.rung)
        renamed_answer = _with_constant_of_gold(gold, answer)
        if renamed_answer is not None:
            return same_values(gold, renamed_answer, policy)
    return outcome


def _with_constant_of_gold(gold: Node, answer: Node) -> Node | None:
    """Return x^2+C for x^2+K where gold's name for the constant of integration is C."""
    gold_constant, answer_constant = _added_constant(gold), _added_constant(answer)
    if gold_constant is None or answer_constant is None:
        return None
    if gold_constant == answer_constant or answer_constant in symbols(gold):
        return None
    return renamed(answer, {answer_constant: gold_constant})


def _same_but_constant(gold: Node, answer: Node) -> bool:
    name = _added_constant(gold)
    if name is None or _added_constant(answer) is not None:
        return False
    return same_value(substituted(gold, {name: ZERO}), answer).same is True


def _added_constant(node: Node) -> str | None:
    """Return the C of x^2 + C."""
    if not isinstance(node, Add):
        return None
    names = [term.name for term in node.terms if isinstance(term, Sym) and term.name[0] in _INTEGRATION_LETTERS]
    if len(names) != 1:
        return None
    other_names = symbols_of(term for term in node.terms if not (isinstance(term, Sym) and term.name == names[0]))
    return None if names[0] in other_names else names[0]


def same_amounts(gold: Node, answer: Node, policy: Policy) -> Outcome:  # noqa: PLR0911, one for each kind of unit
    """Compare two values of which at least one has a unit. Raises TooLarge."""
    gold_value, gold_unit = (gold.value, gold.unit) if isinstance(gold, Measure) else (gold, None)
    answer_value, answer_unit = (answer.value, answer.unit) if isinstance(answer, Measure) else (answer, None)
    if policy.units == "strict" and gold_unit is not None and not gold_unit.is_label and answer_unit is None:
        return OTHER_UNIT
    if PERCENT in (gold_unit, answer_unit):
        other = answer_unit if gold_unit == PERCENT else gold_unit
        if other not in (None, PERCENT) and policy.units != "ignore":
            return UNKNOWN_UNIT if other is not None and other.is_label else OTHER_UNIT
        return _same_percentages(gold_value, gold_unit == PERCENT, answer_value, answer_unit == PERCENT, policy)
    has_degrees = DEGREE in (gold_unit, answer_unit) and gold_unit != answer_unit and policy.degrees == "convert"
    if has_degrees and _same_angles(gold_value, gold_unit == DEGREE, answer_value, answer_unit == DEGREE):
        return Outcome(True, "units")
    if policy.units == "ignore" or gold_unit is None or answer_unit is None:
        return same_values(gold_value, answer_value, policy)
    if gold_unit.is_label or answer_unit.is_label:
        outcome = same_values(gold_value, answer_value, policy)
        # Nobody here knows what a frob is, nor whether these apples are that fruit.
        return outcome if may_count_the_same(gold_unit, answer_unit) or not outcome.same else UNKNOWN_UNIT
    if gold_unit.dimension != answer_unit.dimension:
        return OTHER_UNIT
    if gold_unit.factor != answer_unit.factor:
        answer_value = Mul((Num(answer_unit.factor / gold_unit.factor), answer_value))
    return same_values(gold_value, answer_value, policy)


def _same_percentages(gold: Node, gold_has_sign: bool, answer: Node, answer_has_sign: bool, policy: Policy) -> Outcome:
    if gold_has_sign == answer_has_sign:
        return same_values(gold, answer, policy)
    if gold_has_sign:
        as_written = same_values(gold, answer, policy)
        return as_written if as_written.same else same_values(_hundredth(gold), answer, policy)
    as_value = same_values(gold, _hundredth(answer), policy)
    if as_value.same or policy.percent == "value":
        return as_value
    return same_values(gold, answer, policy)


def _hundredth(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(node.value / 100, None if node.decimals is None else node.decimals + 2)
    return Mul((Num(mpq(1, 100)), node))


def _same_angles(gold: Node, gold_in_degrees: bool, answer: Node, answer_in_degrees: bool) -> bool:
    """Compare degrees with radians."""
    gold_angle = Call("degree", (gold,)) if gold_in_degrees else gold
    answer_angle = Call("degree", (answer,)) if answer_in_degrees else answer
    return bool(same_value(gold_angle, answer_angle).same)

"""Values with units: what a missing unit means, what converts into what, percents and angles."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.comparison.outcome import Outcome
from truegold.verifiers.math.comparison.values import same_values
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.measures import DEGREE, PERCENT
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import Call, Measure, Mul, Node, Num

OTHER_UNIT = Outcome(False, "units")


def same_amounts(gold: Node, answer: Node, policy: Policy) -> Outcome:
    value, unit = (gold.value, gold.unit) if isinstance(gold, Measure) else (gold, None)
    offered, other = (answer.value, answer.unit) if isinstance(answer, Measure) else (answer, None)
    if policy.units == "strict" and unit is not None and not unit.is_label and other is None:
        return OTHER_UNIT
    if PERCENT in (unit, other):
        return _same_percentages(value, unit == PERCENT, offered, other == PERCENT, policy)
    one_angle = DEGREE in (unit, other) and unit != other and policy.degrees == "convert"
    if one_angle and _same_angles(value, unit == DEGREE, offered, other == DEGREE):
        return Outcome(True, "units")
    if policy.units != "ignore" and unit is not None and other is not None and not (unit.is_label or other.is_label):
        if unit.dimension != other.dimension:
            return OTHER_UNIT
        if unit.factor != other.factor:
            offered = Mul((Num(other.factor / unit.factor), offered))
    return same_values(value, offered, policy)


def _same_percentages(gold: Node, gold_is: bool, answer: Node, answer_is: bool, policy: Policy) -> Outcome:
    if gold_is == answer_is:
        return same_values(gold, answer, policy)
    if gold_is:
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


def _same_angles(gold: Node, gold_is: bool, answer: Node, answer_is: bool) -> bool:
    """30 degrees are as many radians as the other side says."""
    wanted = Call("degree", (gold,)) if gold_is else gold
    offered = Call("degree", (answer,)) if answer_is else answer
    return bool(same_value(wanted, offered).same)

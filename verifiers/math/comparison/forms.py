"""Values in a form of their own: ratios (2:3), numerals of another base (101_2), times of day."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.comparison.outcome import OTHER_STRUCTURE, Outcome
from truegold.verifiers.math.evaluation.exact import base_value, rational
from truegold.verifiers.math.evaluation.identity import same_value
from truegold.verifiers.math.labels import labelled
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import VALUES, BaseN, Chain, Clock, Mul, Node, Num, Ratio

_HALF_DAY = 12 * 60


def same_ratios(gold: Node, answer: Node) -> Outcome:
    """At least one side is a Ratio; a value is its ratio to 1."""
    wanted, offered = _ratio_parts(gold), _ratio_parts(answer)
    if wanted is None or offered is None or len(wanted) != len(offered):
        return OTHER_STRUCTURE
    rung = "exact"
    for one, other in zip(wanted[1:], offered[1:], strict=True):
        found = same_value(Mul((wanted[0], other)), Mul((one, offered[0])))
        rung = found.rung
        if not found.same:
            return Outcome(found.same, rung)
    return Outcome(True, rung)


def _ratio_parts(node: Node) -> tuple[Node, ...] | None:
    if isinstance(node, Ratio):
        return node.parts
    if isinstance(node, Chain):
        value = labelled(node)[1]
        return _ratio_parts(value) if value is not None and not isinstance(value, Chain) else None
    return (node, Num(mpq(1))) if isinstance(node, VALUES) else None


def same_numerals(gold: Node, answer: Node, policy: Policy) -> Outcome:
    """At least one side is a BaseN: the digits and the base; what a bare number says is the policy's."""
    if isinstance(gold, BaseN):
        if isinstance(answer, BaseN):
            same = gold.base == answer.base and gold.digits.lstrip("0") == answer.digits.lstrip("0")
            return Outcome(same, "structure")
        number = _whole(answer)
        if number is None:
            return OTHER_STRUCTURE
        if policy.base == "value" and number == base_value(gold):
            return Outcome(True, "exact")
        return Outcome(policy.base != "required" and str(number) == gold.digits, "structure")
    assert isinstance(answer, BaseN)
    number = _whole(gold)
    same = number is not None and number == base_value(answer)
    return Outcome(same, "exact" if same else "structure")


def _whole(node: Node) -> int | None:
    value = rational(node) if isinstance(node, VALUES) else None
    return int(value) if value is not None and value.denominator == 1 else None


def same_clocks(gold: Node, answer: Node) -> Outcome:
    """At least one side is a Clock; 4:30 and, on the hour, 4 may be either half of the day."""
    if isinstance(gold, Clock) and isinstance(answer, Clock):
        return Outcome(gold.minutes == answer.minutes, "structure")
    clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
    assert isinstance(clock, Clock)
    minutes = clock.minutes % _HALF_DAY
    if isinstance(other, Ratio) and len(other.parts) == 2:
        hour, minute = rational(other.parts[0]), rational(other.parts[1])
        if hour is not None and minute is not None:
            return Outcome(hour * 60 + minute in (clock.minutes, minutes, minutes + _HALF_DAY), "structure")
    if isinstance(other, Num) and clock.minutes % 60 == 0:
        return Outcome(other.value * 60 in (minutes, minutes + _HALF_DAY), "structure")
    return OTHER_STRUCTURE

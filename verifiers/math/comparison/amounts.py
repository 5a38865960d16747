r"""Compares two sides that each stand for one value, bare or with a unit.

Values are equal, equal when rounded, or equal but for `+ C`. The policies say what a missing unit, a convertible one, a
percent sign and an angle mean.

The rounding policies say when a decimal stands for a value that it is not equal to:

    gold 21.93, answer 21\frac{13}{14} = 21.9285...    same: it rounds to gold
    gold 6.01, answer 6\frac{1}{64} = 6.0156...        same: it is cut to gold
    gold 326.5, answer 326.53                          different: the answer may be no more exact than gold
    gold 1/3, answer 0.333                             different: gold is exact
"""

from __future__ import annotations

import gmpy2
from gmpy2 import mpq

from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import approximate, same_value
from truegold.verifiers.math.measures import DEGREE, PERCENT, may_count_the_same
from truegold.verifiers.math.policy import Policy, Sameness
from truegold.verifiers.math.tree import (
    ZERO,
    Add,
    FunctionCall,
    Measure,
    Mul,
    Node,
    Num,
    Sym,
    renamed,
    substituted,
    symbols,
    symbols_of,
)

MAX_APPROXIMATION = 5
"""An approximation is off by less than one part in so many."""

MIN_DECIMALS = 2
MIN_DIGITS = 3
"""A gold with fewer decimals and fewer digits is no rounded value."""

EXTRA_DECIMALS = 2
"""A decimal answer needs so many decimals more than gold before it can be taken for the exact value."""

OTHER_UNIT = Sameness(False, "units")
UNKNOWN_UNIT = Sameness(None, "units")
_INTEGRATION_LETTERS = "CcKk"


def agrees_when_rounded(gold: Node, answer: Node, policy: Policy) -> bool:
    """Tell whether two values that are not equal count as the same under the policy."""
    if policy.decimals is not None or policy.tolerance is not None:
        return _is_near(gold, answer, policy)
    if policy.answer_digits is not None and _has_enough_digits(gold, answer, policy.answer_digits):
        return True
    return policy.rounding and _rounds_to(gold, answer)


def is_approximately(exact: Node, written: Node) -> bool | None:
    """Tell whether `exact \\approx written` holds to the last digit that is written; None for what has no value.

    A whole number is near another one only where it ends in zeros: 314 is about 100\\pi, and 300 about 314.
    """
    if isinstance(written, Measure) and written.unit == PERCENT and isinstance(written.value, Num):
        share = written.value
        written = Num(share.value / 100, (share.decimals or 0) + 2)
    exact_value, written_value = _real_value(exact), _real_value(written)
    if exact_value is None or written_value is None:
        return None
    decimals = written.decimals if isinstance(written, Num) else None
    unit = mpq(1, 10**decimals) if decimals is not None else mpq(1)
    if decimals is None and written_value.denominator == 1 and written_value:
        digits = str(abs(written_value.numerator))
        unit = mpq(10 ** (len(digits) - len(digits.rstrip("0"))))
    distance = abs(exact_value - written_value)
    return bool(distance < unit and distance * MAX_APPROXIMATION <= abs(exact_value))


def _is_near(gold: Node, answer: Node, policy: Policy) -> bool:
    gold_value, answer_value = _real_value(gold), _real_value(answer)
    if gold_value is None or answer_value is None:
        return False
    distance = abs(gold_value - answer_value)
    if policy.decimals is not None and distance <= mpq(1, 2 * 10**policy.decimals):
        return True
    return policy.tolerance is not None and distance <= mpq(policy.tolerance) * abs(gold_value)


def _has_enough_digits(gold: Node, answer: Node, digits: int) -> bool:
    decimal = _as_number(answer)
    gold_number = _as_number(gold)
    if decimal is None or decimal.decimals is None or (gold_number is not None and gold_number.decimals is not None):
        return False
    significant = len(str(abs(decimal.value.numerator * 10**decimal.decimals // decimal.value.denominator)))
    return significant >= digits and _fits(decimal, gold)


def _rounds_to(gold: Node, answer: Node) -> bool:
    if (decimal := _as_number(gold)) is None or decimal.decimals is None:
        return False
    digits = len(str(abs(int(decimal.value * 10**decimal.decimals))))
    if decimal.decimals < MIN_DECIMALS and digits < MIN_DIGITS:
        return False
    if (answer_number := _as_number(answer)) is None:
        return _fits(decimal, answer, cut=True)
    if answer_number.decimals is None:
        # A whole number is no more exact than gold.
        return answer_number.value.denominator != 1 and _fits(decimal, answer, cut=True)
    return answer_number.decimals >= decimal.decimals + EXTRA_DECIMALS and _fits(decimal, answer)


def _fits(decimal: Num, value: Node, *, cut: bool = False) -> bool:
    """Tell whether `value` becomes `decimal` when it is rounded, or with `cut` also when cut, to as many digits."""
    if (exact := _real_value(value)) is None or decimal.decimals is None:
        return False
    unit = mpq(1, 10**decimal.decimals)
    if abs(exact - decimal.value) <= unit / 2:
        return True
    return cut and abs(exact) >= abs(decimal.value) and abs(exact - decimal.value) < unit and exact * decimal.value > 0


def _as_number(node: Node) -> Num | None:
    if isinstance(node, Measure):
        node = node.value
    return node if isinstance(node, Num) else None


def _real_value(node: Node) -> mpq | None:
    if (exact := rational(node)) is not None:
        return exact
    approximation = approximate(node)
    return mpq(approximation) if approximation is not None and gmpy2.is_finite(approximation) else None


def same_values(gold: Node, answer: Node, policy: Policy) -> Sameness:
    """Compare two values under a policy. Raises TooLarge."""
    outcome = same_value(gold, answer)
    if outcome.same:
        return outcome
    if agrees_when_rounded(gold, answer, policy):
        return Sameness(True, "rounding")
    if outcome.same is False and isinstance(gold, Add):
        if policy.constant == "optional" and _same_but_constant(gold, answer):
            return Sameness(True, outcome.rung)
        if (renamed_answer := _with_constant_of_gold(gold, answer)) is not None:
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
    if (name := _added_constant(gold)) is None or _added_constant(answer) is not None:
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


def same_amounts(gold: Node, answer: Node, policy: Policy) -> Sameness:  # noqa: PLR0911, one for each kind of unit
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
        return Sameness(True, "units")
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


def _same_percentages(gold: Node, gold_has_sign: bool, answer: Node, answer_has_sign: bool, policy: Policy) -> Sameness:
    if gold_has_sign == answer_has_sign:
        return same_values(gold, answer, policy)
    if gold_has_sign:
        as_written = same_values(gold, answer, policy)
        return as_written if as_written.same else same_values(_hundredth(gold), answer, policy)
    as_value = same_values(gold, _hundredth(answer), policy)
    return as_value if as_value.same or policy.percent == "value" else same_values(gold, answer, policy)


def _hundredth(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(node.value / 100, None if node.decimals is None else node.decimals + 2)
    return Mul((Num(mpq(1, 100)), node))


def _same_angles(gold: Node, gold_in_degrees: bool, answer: Node, answer_in_degrees: bool) -> bool:
    """Compare degrees with radians."""
    gold_angle = FunctionCall("degree", (gold,)) if gold_in_degrees else gold
    answer_angle = FunctionCall("degree", (answer,)) if answer_in_degrees else answer
    return bool(same_value(gold_angle, answer_angle).same)

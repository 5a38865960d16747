"""The rounding policies: when a decimal stands for a value that it is not equal to.

gold 21.93, answer 21\\frac{13}{14} = 21.9285...    same: it rounds to gold
gold 6.01, answer 6\\frac{1}{64} = 6.0156...        same: it is cut to gold
gold 326.5, answer 326.53                          different: the answer may be no more exact than gold
gold 1/3, answer 0.333                             different: gold is exact
"""

from __future__ import annotations

import gmpy2
from gmpy2 import mpq

from truegold.verifiers.math.evaluation.exact import rational
from truegold.verifiers.math.evaluation.identity import approximate
from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import Measure, Node, Num

MAX_APPROXIMATION = 5
"""An approximation is off by less than one part in so many."""

MIN_DECIMALS = 2
MIN_DIGITS = 3
"""A gold with fewer decimals and fewer digits is no rounded value."""

EXTRA_DECIMALS = 2
"""A decimal answer needs so many decimals more than gold before it can be taken for the exact value."""


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
    decimal = _as_number(gold)
    if decimal is None or decimal.decimals is None:
        return False
    digits = len(str(abs(int(decimal.value * 10**decimal.decimals))))
    if decimal.decimals < MIN_DECIMALS and digits < MIN_DIGITS:
        return False
    answer_number = _as_number(answer)
    if answer_number is None:
        return _fits(decimal, answer, cut=True)
    if answer_number.decimals is None:
        # A whole number is no more exact than gold.
        return answer_number.value.denominator != 1 and _fits(decimal, answer, cut=True)
    return answer_number.decimals >= decimal.decimals + EXTRA_DECIMALS and _fits(decimal, answer)


def _fits(decimal: Num, value: Node, *, cut: bool = False) -> bool:
    """Tell whether `value` becomes `decimal` when it is rounded, or with `cut` also when cut, to as many digits."""
    exact = _real_value(value)
    if exact is None or decimal.decimals is None:
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
    exact = rational(node)
    if exact is not None:
        return exact
    approximation = approximate(node)
    return mpq(approximation) if approximation is not None and gmpy2.is_finite(approximation) else None

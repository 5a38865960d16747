"""When a decimal stands for a value that it is not equal to: the rounding policies.

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
from truegold.verifiers.math.policy import Policy
from truegold.verifiers.math.tree import Measure, Node, Num

MIN_DECIMALS = 2
MIN_DIGITS = 3
EXTRA_DECIMALS = 2
"""A decimal answer must be so many places more exact than gold before it can be taken for the exact value."""


def agrees_when_rounded(gold: Node, answer: Node, policy: Policy) -> bool:
    if policy.decimals is not None or policy.tolerance is not None:
        return _within(gold, answer, policy)
    if policy.answer_digits is not None and _as_long_as_asked(gold, answer, policy.answer_digits):
        return True
    return policy.rounding and _rounds_to(gold, answer)


def _within(gold: Node, answer: Node, policy: Policy) -> bool:
    wanted, offered = _number(gold), _number(answer)
    if wanted is None or offered is None:
        return False
    distance = abs(wanted - offered)
    if policy.decimals is not None and distance <= mpq(1, 2 * 10**policy.decimals):
        return True
    return policy.tolerance is not None and distance <= mpq(policy.tolerance) * abs(wanted)


def _as_long_as_asked(gold: Node, answer: Node, digits: int) -> bool:
    decimal = _decimal(answer)
    wanted = _decimal(gold)
    if decimal is None or decimal.decimals is None or (wanted is not None and wanted.decimals is not None):
        return False
    significant = len(str(abs(decimal.value.numerator * 10**decimal.decimals // decimal.value.denominator)))
    return significant >= digits and _fits(decimal, gold)


def _rounds_to(gold: Node, answer: Node) -> bool:
    decimal = _decimal(gold)
    if decimal is None or decimal.decimals is None:
        return False
    digits = len(str(abs(int(decimal.value * 10**decimal.decimals))))
    if decimal.decimals < MIN_DECIMALS and digits < MIN_DIGITS:
        return False
    offered = _decimal(answer)
    if offered is not None and offered.decimals is not None and offered.decimals < decimal.decimals + EXTRA_DECIMALS:
        return False
    exact = offered is None or offered.decimals is None
    if offered is not None and offered.value.denominator == 1 and exact:  # a whole number is no more exact than gold
        return False
    return _fits(decimal, answer, cut=exact)


def _fits(decimal: Num, value: Node, *, cut: bool = False) -> bool:
    """Does `value` become `decimal` when rounded (or cut) to its places?"""
    exact = _number(value)
    if exact is None or decimal.decimals is None:
        return False
    unit = mpq(1, 10**decimal.decimals)
    if abs(exact - decimal.value) <= unit / 2:
        return True
    return cut and abs(exact) >= abs(decimal.value) and abs(exact - decimal.value) < unit and exact * decimal.value > 0


def _decimal(node: Node) -> Num | None:
    if isinstance(node, Measure):
        node = node.value
    return node if isinstance(node, Num) else None


def _number(node: Node) -> mpq | None:
    exact = rational(node)
    if exact is not None:
        return exact
    number = approximate(node)
    return mpq(number) if number is not None and gmpy2.is_finite(number) else None

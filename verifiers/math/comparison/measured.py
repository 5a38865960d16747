r"""Compares measured numbers for the option `rounding: measured`: within 1 %, with enough significant digits.

gold 0.85, answer 0.849                      same
gold 6.0\times 10^{24}, answer 5.99e24       same
gold 0.506\lambda/a, answer 0.5067\lambda/a  same: coefficients are compared
gold 138, answer 138.2                       same: the answer rounds to gold
gold 138, answer 137                         different: gold has neither point nor unit, and may be a count
gold 5.02, answer 5                          different: one digit is not precise enough
gold 0.995, answer 1.00                      different: a power of ten may be a guess
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import gmpy2
from gmpy2 import mpq

from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import approximate, same_value
from truegold.verifiers.math.tree import PLUS_ONE, Add, Mul, Node, Num, Pow, symbols

NEAR, NEARER = mpq(1, 100), mpq(1, 400)
"""The largest relative difference from gold: `NEAR` for a measured gold, `NEARER` for a precise one.

A gold is precise if it has `MANY_FIGURES`, or is a whole number with a unit to which the answer does not round."""
EXACT = 100
"""An answer with two decimals more than gold only has to round to gold: 0.1429c matches 0.14c. EXACT is the ratio of
the places of their last digits, 0.01 to 0.0001."""
MANY_FIGURES = 6
"""Minimum number of significant digits in a precise gold."""
MIN_FIGURES = 2
"""Minimum number of significant digits in an answer, and in a measured gold to which the answer only rounds."""
MIN_WHOLE_FIGURES = 3
"""Minimum number of significant digits in a decimal answer to an exact gold, such as a fraction. A whole gold without a
unit needs as many digits, if a decimal answer only rounds to it."""
MAX_TERMS = 4
"""Maximum number of terms in a sum whose coefficients are compared."""


class Spelled(NamedTuple):
    """A number with the precision that its spelling shows."""

    value: mpq
    last: mpq
    """The value of 1 in the place of the last digit: 0.01 for 0.85. 0 for an exact value, such as a fraction."""
    whole: bool
    """Whether the number is written without a point and without a power of ten."""
    measured: bool
    """Whether the number has a point, a power of ten or a unit."""

    @property
    def figures(self) -> int:
        """The number of significant digits. Final zeros of a whole number count only before a unit."""
        return len(str(int(abs(self.value) / self.last)))


def agree_as_measured(gold: Node, answer: Node) -> bool:
    """Tell whether two unequal values agree as measured numbers. For sums of letters, their coefficients must agree."""
    gold_terms, answer_terms = _terms(gold), _terms(answer)
    if len(gold_terms) != len(answer_terms) or len(gold_terms) > MAX_TERMS:
        return False
    return any(
        all(_agree_in_term(*pair) for pair in zip(gold_terms, order, strict=True))
        for order in permutations(answer_terms)
    )


def real_value(node: Node) -> mpq | None:
    """Return the value of a real constant, exact or to many digits, or None for other expressions."""
    if (exact := rational(node)) is not None:
        return exact
    approximation = approximate(node)
    return mpq(approximation) if approximation is not None and gmpy2.is_finite(approximation) else None


def _terms(node: Node) -> tuple[Node, ...]:
    return node.terms if isinstance(node, Add) and symbols(node) else (node,)


def _agree_in_term(gold: Node, answer: Node) -> bool:
    (gold_number, gold_rest), (answer_number, answer_rest) = _coefficient(gold), _coefficient(answer)
    if (gold_rest is None) != (answer_rest is None):
        return False
    if gold_rest is not None and answer_rest is not None and not same_value(gold_rest, answer_rest).same:
        return False
    gold_written, answer_written = written(gold_number), written(answer_number)
    return gold_written is not None and answer_written is not None and _agree(gold_written, answer_written)


def _coefficient(term: Node) -> tuple[Node, Node | None]:
    """Return the number and the letters of a product: 0.506 and \\lambda/a of 0.506\\lambda/a."""
    if not symbols(term):
        return term, None
    factors = list(_factors(term))
    numbers = tuple(factor for factor in factors if not symbols(factor))
    letters = Mul(tuple(factor for factor in factors if symbols(factor)))
    return (Mul(numbers) if len(numbers) > 1 else next(iter(numbers), PLUS_ONE)), letters


def _factors(node: Node) -> Iterator[Node]:
    """Yield the factors of a product, also inside nested products and divisors."""
    if isinstance(node, Mul):
        for factor in node.factors:
            yield from _factors(factor)
    elif isinstance(node, Pow) and isinstance(node.base, Mul):
        yield from (Pow(factor, node.exponent) for factor in node.base.factors)
    else:
        yield node


def written(node: Node) -> Spelled | None:
    """Return a number and its precision, or None for 0 and for expressions without a value."""
    if (value := real_value(node)) is None or not value:
        return None
    factors = list(_factors(node))
    plain = [factor for factor in factors if isinstance(factor, Num) and factor.value]
    pointed = [part for part in plain if part.decimals is not None or part.last_power is not None]
    if len(pointed) == 1:
        (spelled,) = pointed
        power = spelled.last_power if spelled.last_power is not None else -(spelled.decimals or 0)
        last = mpq(10) ** power * abs(value / spelled.value)
        return Spelled(value, last, whole=spelled.decimals == 0, measured=True)
    # The last number is the written one, because a factor of a conversion stands before it.
    is_whole = bool(plain) and plain[-1].value.denominator == 1
    if is_whole and not pointed and all(isinstance(part, Num) or _scales(part) for part in factors):
        digits = str(abs(plain[-1].value.numerator))
        zeros = len(digits) - len(digits.rstrip("0"))
        last = mpq(10) ** zeros * abs(value / plain[-1].value)
        in_powers = any(map(_scales, factors))
        return Spelled(value, last, whole=not in_powers, measured=in_powers)
    return Spelled(value, mpq(0), whole=False, measured=False)


def _scales(node: Node) -> bool:
    """Tell whether a factor is a power of ten."""
    return isinstance(node, Pow) and isinstance(node.base, Num) and node.base.value == 10


def _agree(gold: Spelled, answer: Spelled) -> bool:
    """Tell whether an answer is close enough to gold, and has enough significant digits."""
    distance = abs(gold.value - answer.value)
    if not gold.last:
        is_rounded = answer.measured and not answer.whole and answer.figures >= MIN_WHOLE_FIGURES
        return not distance or bool(is_rounded and distance <= answer.last / 2)
    rounds = bool(distance < mpq(1, 2) if gold.whole else distance <= gold.last / 2)
    if not distance or (gold.whole and answer.whole):
        return not distance
    if gold.measured and answer.last:
        return _is_near(gold, answer, rounds=rounds)
    return rounds and gold.figures >= (MIN_FIGURES if gold.measured else MIN_WHOLE_FIGURES)


def _is_near(gold: Spelled, answer: Spelled, *, rounds: bool) -> bool:
    """Tell whether two measured numbers are close. rounds: whether the answer rounds to gold."""
    distance = abs(gold.value - answer.value)
    if answer.figures < MIN_FIGURES or _is_power_of_ten(answer.value):
        return False
    if rounds and gold.figures >= MIN_FIGURES and answer.last * EXACT <= gold.last:
        return True
    if answer.figures == MIN_FIGURES < gold.figures and distance > answer.last / 2:
        return False
    is_exact = gold.figures >= MANY_FIGURES or (gold.whole and not (rounds and gold.figures >= MIN_FIGURES))
    return bool(distance <= (NEARER if is_exact else NEAR) * abs(gold.value))


def _is_power_of_ten(value: mpq) -> bool:
    return {str(abs(part)).rstrip("0") for part in (value.numerator, value.denominator)} == {"1"}

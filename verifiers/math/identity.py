r"""Decides whether two expressions are equal for all values of their variables, by one of three comparisons:

    exact       rational numbers, or rational functions that agree modulo a large prime at a random point
    numeric     constants that agree to 320 bits, within the bounds on their errors
    sampled     expressions that agree at pseudorandom real points, or at complex points if too few real ones work

One point of disagreement shows that they differ. If too few points can be evaluated, the result is open (None).
Points at which only one side is defined are skipped, so `2\ln x` equals `\ln x^2`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeAlias, TypeVar

from gmpy2 import mpc, mpfr, mpq, mpz

from truegold.verifiers.math.balls import Ball, Evaluator, NeedsComplex, Unsupported, exponent_of
from truegold.verifiers.math.exact import NotArithmetic, Undefined, point_for, rational, residue, unit_interval
from truegold.verifiers.math.policy import OTHER_NUMBER, SAME_NUMBER, Sameness, TooLarge, charge, remembered
from truegold.verifiers.math.tree import (
    HALF,
    ZERO,
    Big,
    Const,
    FunctionCall,
    Mul,
    Node,
    Num,
    Pow,
    Sym,
    facts,
    substituted,
    symbols,
    walk,
)

CONSTANT_BITS = 320
"""The precision in bits for constants: 95 digits, which do not agree by chance."""

POINT_BITS = 128
"""The precision in bits for expressions, which are compared at several points."""

MAX_BITS = 1_600
"""The precision in bits for a second comparison, if the first one lost too many bits by cancellation."""

AGREEING_POINTS = 2
"""Minimum number of agreeing points that show equality, if no more points can be evaluated."""

ENOUGH_POINTS = 4
"""The number of agreeing points after which no more are tried."""

MAX_VARIABLES = 12
"""Maximum number of variables of expressions that are sampled."""

CACHED_VALUES = 1_024
"""The number of constants whose values are cached, with their trees. The whole cache takes megabytes at worst."""

_REGIONS = ((0.2, 0.9), (-3.0, -1.2), (1.2, 3.0), (-0.9, -0.2), (0.05, 0.5), (-3.0, 3.0), (0.5, 0.95), (0.2, 6.0))
"""The ranges of coordinates, one for each point."""

_WIDE_REGIONS = (
    (2.0, 9.0), (10.0, 50.0), (-40.0, -3.0), (90.0, 900.0), (1e3, 9e3), (0.2, 6.0), (-900.0, -50.0), (2e4, 9e4),
)  # fmt: skip
"""The ranges for expressions with a floor or ceiling. Near zero, many different expressions of this kind are equal."""

_OF_WHOLE_NUMBERS = frozenset({"factorial", "factorial2", "binom", "perm", "gcd", "lcm"})
"""Functions whose variables are whole numbers."""
_PARTS_OF_COMPLEX = frozenset({"Re", "Im", "conj"})
"""Functions whose variables are complex numbers."""
_COMPLEX_LETTERS = frozenset("zw")
"""Letters of complex variables."""
_GROWTH_MARKS = frozenset({"O", "o", "Theta", "Omega", "omega"})
"""Names of growth, as in O(n^2)."""
_FREQUENCIES, _SIZE_LETTERS = frozenset({"omega", "Omega"}), frozenset({"n", "m", "N"})
"""omega and Omega may also be frequencies. They stand for growth only if all variables are `_SIZE_LETTERS`."""
_SIZES = (10**5, 10**9)
"""The values of n at which growth is compared."""
_SAME_GROWTH = 0.06
"""The largest relative change of the ratio of two terms from the first size to the second.

(n log n + n)/(n log n) changes by 4 %, and log log n by 24 %."""
_PAIR_STEPS = 10
"""Cost of comparing two values, in steps of the verdict's budget (`policy`). Their evaluation costs more steps."""

_COORDINATE_STEPS = 6
"""Cost of choosing one coordinate of a point, in steps of the budget."""

_LOCAL = threading.local()
"""The evaluators of each thread."""

Point: TypeAlias = dict[str, mpq | complex]
"""Maps each variable to its value."""
Calculated = TypeVar("Calculated")


def _evaluator(bits: int, complex_: bool) -> Evaluator:
    """Return an evaluator of this thread. Threads do not share evaluators, because MPFR contexts keep flags."""
    known: dict[tuple[int, bool], Evaluator] | None = getattr(_LOCAL, "evaluators", None)
    if known is None:
        known = _LOCAL.evaluators = {}
    if (bits, complex_) not in known:
        known[bits, complex_] = Evaluator(bits, complex_)
    return known[bits, complex_]


def same_value(gold: Node, answer: Node) -> Sameness:
    """Tell whether two expressions are equal for all values of their variables. Raises TooLarge."""
    charge(_PAIR_STEPS)
    a = gold.value if type(gold) is Num else _rational(gold)
    b = answer.value if type(answer) is Num else _rational(answer)
    if a is not None and b is not None:
        return SAME_NUMBER if a == b else OTHER_NUMBER
    if (infinities := _same_infinities(gold, answer)) is not None:
        return infinities
    if not (names := symbols(gold) | symbols(answer)):
        return _same_numbers(gold, answer)
    if (same_residue := _same_residue(gold, answer, names)) is not None:
        return Sameness(same_residue, "exact")
    return Sameness(_same_at_points(gold, answer, names), "sampled")


def _same_numbers(gold: Node, answer: Node) -> Sameness:
    """Compare constants by their leading digits. If the digits agree or are too many, also compare modulo a prime."""
    try:
        same = _in_reals_or_complex(lambda complex_: _agree_at(gold, answer, {}, complex_, CONSTANT_BITS))
    except TooLarge:
        if (same_residue := _same_residue(gold, answer, frozenset())) is None:
            raise
        return Sameness(same_residue, "exact")
    same_residue = _same_residue(gold, answer, frozenset()) if same else None
    return Sameness(same, "numeric") if same_residue is None else Sameness(same_residue, "exact")


def proportional(gold: Node, answer: Node) -> Sameness:
    """Tell whether the ratio of two expressions is a constant other than zero, as for two forms of one equation."""
    if not (names := symbols(gold) | symbols(answer)):
        return Sameness(_is_zero(gold) == _is_zero(answer), "exact")
    ratios: list[Ball] = []
    for evaluator, a, b in _evaluations(gold, answer, names):
        if evaluator.is_zero(a) or evaluator.is_zero(b):
            if evaluator.is_zero(a) != evaluator.is_zero(b):
                return Sameness(False, "sampled")
            continue
        ratios.append(evaluator.divide(a, b))
        if len(ratios) > 1 and not evaluator.is_zero(evaluator.subtract(ratios[0], ratios[-1])):
            return Sameness(False, "sampled")
        if len(ratios) == ENOUGH_POINTS:
            break
    return Sameness(True if len(ratios) > AGREEING_POINTS else None, "sampled")


def same_growth(gold: Node, answer: Node) -> bool:
    """Tell whether two terms grow equally fast, such as \\Theta(n^2) and \\Theta(n^2+n): their ratio hardly changes."""
    if not (isinstance(gold, Mul) and isinstance(answer, Mul) and len(gold.factors) == len(answer.factors) == 2):
        return False
    (mark, gold_term), (answer_mark, answer_term) = gold.factors, answer.factors
    if not (isinstance(mark, Sym) and isinstance(answer_mark, Sym) and mark.name == answer_mark.name in _GROWTH_MARKS):
        return False
    names = symbols(gold_term)
    if mark.name in _FREQUENCIES and not names <= _SIZE_LETTERS:
        return False  # \\omega t and \\omega/9 are products.
    ratios: list[mpfr] = []
    for size in _SIZES:
        point = {name: Num(mpq(size)) for name in names}
        try:
            above, below = approximate(substituted(gold_term, point)), approximate(substituted(answer_term, point))
        except TooLarge:
            return False
        if above is None or below is None or above <= 0 or below <= 0:
            return False
        ratios.append(above / below)
    return len(names) == 1 and abs(ratios[1] / ratios[0] - 1) < _SAME_GROWTH


def sign_of_ratio(gold: Node, answer: Node) -> int | None:
    """Return the sign of the ratio of two proportional expressions, or None if it cannot be computed."""
    for evaluator, a, b in _evaluations(gold, answer, symbols(gold) | symbols(answer)):
        if not evaluator.is_zero(a) and not evaluator.is_zero(b):
            return 1 if evaluator.divide(a, b).midpoint.real > 0 else -1
    return None


def approximate(node: Node) -> mpfr | None:
    """Return the value of a real constant to CONSTANT_BITS, or None for other expressions."""
    if symbols(node):
        return None
    try:
        midpoint = _constant(node, CONSTANT_BITS, False).midpoint
    except (Undefined, NeedsComplex, Unsupported):
        return None
    return midpoint if isinstance(midpoint, mpfr) else None


def value_at_point(node: Node, names: frozenset[str]) -> mpc | None:
    """Return the value of an expression at a fixed pseudorandom point, or None if it is undefined there."""
    evaluator = _evaluator(POINT_BITS, True)
    try:
        return mpc(evaluator.value(node, _as_balls(next(_points(names, _NO_KINDS)), evaluator)).midpoint)
    except (Undefined, Unsupported):
        return None


def _is_zero(node: Node) -> bool:
    return same_value(node, ZERO).same is True


def _same_residue(gold: Node, answer: Node, names: frozenset[str]) -> bool | None:
    """Compare modulo a prime at a point. Return None if that is not possible."""
    for salt in range(3):
        point = point_for(names, salt)
        try:
            return bool(residue(gold, point) == residue(answer, point))
        except Undefined:
            continue
        except (NotArithmetic, ZeroDivisionError):
            return None
    return None


def _in_reals_or_complex(calculate: Callable[[bool], Calculated]) -> Calculated | None:
    """Return the result of `calculate` over the reals, or over the complex numbers if it needs them.

    Return None if there is no value, or if the error has no known bound.
    """
    for complex_ in (False, True):
        try:
            return calculate(complex_)
        except NeedsComplex:
            continue
        except (Undefined, Unsupported):
            return None
    return None


_rational = remembered(CACHED_VALUES)(rational)


@remembered(CACHED_VALUES)
def _constant(node: Node, bits: int, complex_: bool) -> Ball:
    """Return the value of a constant. Cached, because each item of a list is compared with every item of another."""
    return _evaluator(bits, complex_).value(node, {})


def _agree_at(gold: Node, answer: Node, point: Point, complex_: bool, bits: int) -> bool:
    """Compare at one point with a precision of `bits`, and with MAX_BITS if cancellation loses too many bits."""
    for precision in (bits, MAX_BITS):
        evaluator = _evaluator(precision, complex_)
        if point:
            balls = _as_balls(point, evaluator)
            a, b = evaluator.value(gold, balls), evaluator.value(answer, balls)
        else:
            a, b = _constant(gold, precision, complex_), _constant(answer, precision, complex_)
        difference = evaluator.subtract(a, b)
        if not evaluator.is_zero(difference):
            return False
        size = max(exponent_of(a.midpoint), exponent_of(b.midpoint))
        both_zero = size <= difference.error_exponent + 1
        if difference.error_exponent - (0 if both_zero else size) < -precision * 2 // 5:
            return True
    return False


def _as_balls(point: Point, evaluator: Evaluator) -> dict[str, Ball]:
    return {
        name: evaluator.from_rational(x) if isinstance(x, mpq) else evaluator.from_complex(x)
        for name, x in point.items()
    }


def _evaluations(gold: Node, answer: Node, names: frozenset[str]) -> Iterator[tuple[Evaluator, Ball, Ball]]:
    """Yield the evaluator and both values at each point where both are defined."""

    def evaluate(point: Point, complex_: bool) -> tuple[Evaluator, Ball, Ball]:
        evaluator = _evaluator(POINT_BITS, complex_)
        balls = _as_balls(point, evaluator)
        return evaluator, evaluator.value(gold, balls), evaluator.value(answer, balls)

    for point in _points(names, _kinds_of_names(gold, answer)):
        if (evaluation := _in_reals_or_complex(partial(evaluate, point))) is not None:
            yield evaluation


def _same_at_points(gold: Node, answer: Node, names: frozenset[str]) -> bool | None:
    """Compare at points until ENOUGH_POINTS agree or one disagrees. Return None if too few can be evaluated."""
    if len(names) > MAX_VARIABLES:
        return None
    kinds = _kinds_of_names(gold, answer)
    for complex_ in (True,) if kinds.complex else (False, True):
        agreeing = 0
        for point in _points(names, kinds):
            try:
                if not _agree_at(gold, answer, point, complex_, POINT_BITS):
                    return False
            except (NeedsComplex, Undefined):
                continue
            except Unsupported:
                return None
            agreeing += 1
            if agreeing == ENOUGH_POINTS:
                return True
        if agreeing >= AGREEING_POINTS:
            return True
    return None


class _Kinds(NamedTuple):
    """The kinds of values that the variables of the two sides get."""

    whole: frozenset[str]
    """Variables in factorials, in bounds of sums, or in powers of negative numbers."""
    complex: frozenset[str]
    """Variables in real parts, imaginary parts and conjugates."""
    positive: frozenset[str]
    """Variables in a root of gold, such as L and g in \\sqrt{L/g}."""
    has_steps: bool
    """Whether a side has a floor or a ceiling."""


_NO_KINDS = _Kinds(frozenset(), frozenset(), frozenset(), False)


def _points(names: frozenset[str], kinds: _Kinds) -> Iterator[Point]:
    """Yield one point of each region. Whole variables are from 2 to 7 in all regions.

    For expressions with a floor or a ceiling, every second point is whole. Only there, \\lceil x \\rceil and
    \\lfloor x \\rfloor + 1 differ.
    """
    for salt, (low, high) in enumerate(_WIDE_REGIONS if kinds.has_steps else _REGIONS):
        charge(_COORDINATE_STEPS * (1 + len(names)))
        point: Point = {}
        for name in names:
            t = unit_interval(name, salt)
            if name in kinds.whole:
                point[name] = mpq(2 + int(t * 5) + salt % 2)
            elif name in kinds.complex:
                point[name] = complex(low + (high - low) * t, unit_interval(name, -1 - salt))
            else:
                is_whole = kinds.has_steps and salt % 2
                coordinate = mpq(mpz((low + (high - low) * t) * 2**20), 2**20)
                coordinate = mpq(int(coordinate)) if is_whole else coordinate
                point[name] = abs(coordinate) if name in kinds.positive else coordinate
        yield point


def _kinds_of_names(gold: Node, answer: Node) -> _Kinds:
    """Return the kinds of values for the variables of both sides."""
    whole: set[str] = set()
    has_complex: set[str] = set()
    has_steps = is_complex = False
    for part in chain(walk(gold), walk(answer)):
        charge(2)
        if isinstance(part, FunctionCall):
            if part.name in _OF_WHOLE_NUMBERS:
                whole.update(*map(symbols, part.args))
            elif part.name in _PARTS_OF_COMPLEX:
                is_complex = True
                has_complex.update(arg.name for arg in part.args if isinstance(arg, Sym))
            has_steps |= part.name in ("floor", "ceil")
        elif isinstance(part, Big):
            whole.update(*(symbols(bound) for bound in (part.low, part.high) if bound is not None))
        elif isinstance(part, Pow) and (base := rational(part.base)) is not None and base < 0:
            whole |= symbols(part.exponent)
    if is_complex:
        names = symbols(gold) | symbols(answer)
        has_complex |= {name for name in names if name[0] in _COMPLEX_LETTERS}
    roots = (part.base for part in walk(gold) if type(part) is Pow and part.exponent is HALF)
    positive = {name for inside in roots for name in _odd_factors(inside)}
    return _Kinds(frozenset(whole), frozenset(has_complex), frozenset(positive), has_steps)


def _odd_factors(node: Node) -> Iterator[str]:
    """Yield the letters with an odd power in a product: L and g of L/g, but not x of x^2 y."""
    for factor in node.factors if isinstance(node, Mul) else ():
        base, exponent = (factor.base, rational(factor.exponent)) if isinstance(factor, Pow) else (factor, mpq(1))
        if isinstance(base, Mul):
            yield from _odd_factors(base)
        elif isinstance(base, Sym) and exponent is not None and exponent.denominator == 1 and exponent % 2:
            yield base.name


def _same_infinities(gold: Node, answer: Node) -> Sameness | None:
    if not (facts(gold).has_infinity or facts(answer).has_infinity):
        return None
    signs = infinity_sign(gold), infinity_sign(answer)
    return Sameness(None, "numeric") if signs == (0, 0) else Sameness(signs[0] == signs[1], "exact")


def infinity_sign(node: Node) -> int:
    """Return 1 for infinity, -1 for its opposite, and 0 for anything else."""
    if isinstance(node, Const) and node.name == "inf":
        return 1
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Num):
        return (1 if node.factors[0].value > 0 else -1) * infinity_sign(node.factors[1])
    return 0

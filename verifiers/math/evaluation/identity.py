"""Do two expressions stand for the same value, for all values of their variables?

    exact       both are rational, or rational functions that agree modulo a large prime at a random point
    numeric     constants that agree to 320 bits, each within its own error
    sampled     expressions that agree at random real points (complex ones, where there are too few real ones)

Each rung fails closed: one point of disagreement is enough, and where too few points can be evaluated nothing is
concluded. Points at which only one side is defined are skipped: `2\\ln x` passes for `\\ln x^2`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gmpy2 import mpfr, mpq, mpz

from truegold.verifiers.math.evaluation.balls import NeedsComplex, Unsupported, Value, exponent_of
from truegold.verifiers.math.evaluation.evaluator import Evaluator
from truegold.verifiers.math.evaluation.exact import (
    NotArithmetic,
    Undefined,
    point_for,
    rational,
    residue,
    unit_interval,
)
from truegold.verifiers.math.refusals import TooLarge
from truegold.verifiers.math.tree import Big, Call, Const, Mul, Node, Num, Pow, facts, symbols, walk

CONSTANT_BITS = 320
"""Two constants are compared once, to so many bits: what agrees by chance to 95 digits does not occur."""

POINT_BITS = 128
"""Expressions are compared at several points, each to so many bits."""

MAX_BITS = 1_600
"""Where a difference is lost in rounding, it is looked at once more."""

AGREEING_POINTS = 2
"""Fewer points than this, and nothing is concluded."""

ENOUGH_POINTS = 4
"""Points that agree, of different signs and sizes, after which no more are tried."""

MAX_VARIABLES = 12
"""Stops sampling an expression of hundreds of variables."""

_REGIONS = ((0.2, 0.9), (-3.0, -1.2), (1.2, 3.0), (-0.9, -0.2), (0.05, 0.5), (-3.0, 3.0), (0.5, 0.95), (0.2, 6.0))
_LOCAL = threading.local()


@dataclass(frozen=True, slots=True)
class Finding:
    """same: None where nothing could be concluded. rung: what decided."""

    same: bool | None
    rung: str


SAME_NUMBER, OTHER_NUMBER = Finding(True, "exact"), Finding(False, "exact")


def evaluator(bits: int, complex_: bool) -> Evaluator:
    """The thread's own evaluator: contexts keep flags, so threads do not share them."""
    known: dict[tuple[int, bool], Evaluator] | None = getattr(_LOCAL, "evaluators", None)
    if known is None:
        known = _LOCAL.evaluators = {}
    if (bits, complex_) not in known:
        known[bits, complex_] = Evaluator(bits, complex_)
    return known[bits, complex_]


def same_value(gold: Node, answer: Node) -> Finding:
    """Raises TooLarge where a value is too large to be told from its neighbours."""
    a, b = _rational(gold), _rational(answer)
    if a is not None and b is not None:
        return SAME_NUMBER if a == b else OTHER_NUMBER
    infinite = _infinities(gold, answer)
    if infinite is not None:
        return infinite
    names = symbols(gold) | symbols(answer)
    if not names:
        return _same_numbers(gold, answer)
    found = _same_residue(gold, answer, names)
    if found is not None:
        return Finding(found, "exact")
    return Finding(_same_at_points(gold, answer, names), "sampled")


def _same_numbers(gold: Node, answer: Node) -> Finding:
    """By their leading digits; numbers whose leading digits agree, or that have too many, modulo a prime as well."""
    try:
        same = _same_constant(gold, answer)
    except TooLarge:
        found = _same_residue(gold, answer, frozenset())
        if found is None:
            raise
        return Finding(found, "exact")
    found = _same_residue(gold, answer, frozenset()) if same else None
    return Finding(same, "numeric") if found is None else Finding(found, "exact")


def is_zero(node: Node) -> bool:
    return same_value(node, Num(mpq(0))).same is True


def proportional(gold: Node, answer: Node) -> Finding:
    """Is one a constant multiple of the other, the constant not zero? What two forms of one equation have in common."""
    names = symbols(gold) | symbols(answer)
    if not names:
        return Finding(is_zero(gold) == is_zero(answer), "exact")
    ratios: list[Value] = []
    for numbers in _points(names, _whole_names(gold, answer)):
        pair = _pair_at(gold, answer, numbers, POINT_BITS)
        if pair is None:
            continue
        e, a, b = pair
        if e.is_zero(a) or e.is_zero(b):
            if e.is_zero(a) != e.is_zero(b):
                return Finding(False, "sampled")
            continue
        ratios.append(e.multiply(a, e.inverse(b)))
        if len(ratios) > 1 and not e.is_zero(e.subtract(ratios[0], ratios[-1])):
            return Finding(False, "sampled")
        if len(ratios) == ENOUGH_POINTS:
            break
    return Finding(True if len(ratios) > AGREEING_POINTS else None, "sampled")


def sign_of_ratio(gold: Node, answer: Node) -> int | None:
    """The sign of the constant by which two proportional expressions differ."""
    names = symbols(gold) | symbols(answer)
    for numbers in _points(names, _whole_names(gold, answer)):
        pair = _pair_at(gold, answer, numbers, POINT_BITS)
        if pair is not None and not pair[0].is_zero(pair[1]) and not pair[0].is_zero(pair[2]):
            ratio = pair[0].multiply(pair[1], pair[0].inverse(pair[2])).number
            return 1 if ratio.real > 0 else -1
    return None


def approximate(node: Node) -> mpfr | None:
    """A real constant's value to 128 bits; None for everything else."""
    if symbols(node):
        return None
    try:
        number = _constant(node, CONSTANT_BITS, False).number
    except (Undefined, NeedsComplex, Unsupported):
        return None
    return number if isinstance(number, mpfr) else None


def _same_residue(gold: Node, answer: Node, names: frozenset[str]) -> bool | None:
    for salt in range(3):
        point = point_for(names, salt)
        try:
            return bool(residue(gold, point) == residue(answer, point))
        except Undefined:
            continue
        except (NotArithmetic, ZeroDivisionError):
            return None
    return None


def _same_constant(gold: Node, answer: Node) -> bool | None:
    for complex_ in (False, True):
        try:
            return _agree_at(gold, answer, {}, complex_)
        except NeedsComplex:
            continue
        except (Undefined, Unsupported):
            return None
    return None


@lru_cache(maxsize=4_096)
def _rational(node: Node) -> mpq | None:
    return rational(node)


@lru_cache(maxsize=4_096)
def _constant(node: Node, bits: int, complex_: bool) -> Value:
    """Remembered: an item of a list is compared with every item of the other."""
    return evaluator(bits, complex_).value(node, {})


def _agree_at(gold: Node, answer: Node, numbers: dict[str, mpq], complex_: bool, bits: int = CONSTANT_BITS) -> bool:
    """At one point: to `bits`, and beyond where too much of them is lost in rounding."""
    for precision in (bits, MAX_BITS):
        e = evaluator(precision, complex_)
        if numbers:
            point = {name: e.of(value) for name, value in numbers.items()}
            a, b = e.value(gold, point), e.value(answer, point)
        else:
            a, b = _constant(gold, precision, complex_), _constant(answer, precision, complex_)
        difference = e.subtract(a, b)
        if not e.is_zero(difference):
            return False
        size = max(exponent_of(a.number), exponent_of(b.number))
        both_zero = size <= difference.error + 1
        if difference.error - (0 if both_zero else size) < -precision // 2:
            return True
    return False


def _pair_at(gold: Node, answer: Node, numbers: dict[str, mpq], bits: int) -> tuple[Evaluator, Value, Value] | None:
    for complex_ in (False, True):
        e = evaluator(bits, complex_)
        point = {name: e.of(value) for name, value in numbers.items()}
        try:
            return e, e.value(gold, point), e.value(answer, point)
        except NeedsComplex:
            continue
        except (Undefined, Unsupported):
            return None
    return None


def _same_at_points(gold: Node, answer: Node, names: frozenset[str]) -> bool | None:
    if len(names) > MAX_VARIABLES:
        return None
    whole = _whole_names(gold, answer)
    for complex_ in (False, True):
        agreeing = 0
        for numbers in _points(names, whole):
            try:
                if not _agree_at(gold, answer, numbers, complex_, POINT_BITS):
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


def _points(names: frozenset[str], whole: frozenset[str]) -> Iterator[dict[str, mpq]]:
    for salt, (low, high) in enumerate(_REGIONS):
        point = {}
        for name in names:
            t = unit_interval(name, salt)
            point[name] = (
                mpq(2 + int(t * 5) + salt % 2) if name in whole else mpq(mpz((low + (high - low) * t) * 2**20), 2**20)
            )
        yield point


def _whole_names(*nodes: Node) -> frozenset[str]:
    """Variables that only whole numbers make sense for: in factorials, bounds of sums, powers of negative numbers."""
    names: set[str] = set()
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Call) and part.name in ("factorial", "factorial2", "binom", "perm", "gcd", "lcm"):
                for arg in part.args:
                    names |= symbols(arg)
            elif isinstance(part, Big):
                for bound in (part.low, part.high):
                    if bound is not None:
                        names |= symbols(bound)
            elif isinstance(part, Pow):
                base = rational(part.base)
                if base is not None and base < 0:
                    names |= symbols(part.exponent)
    return frozenset(names)


def _infinities(gold: Node, answer: Node) -> Finding | None:
    if not (facts(gold).has_infinity or facts(answer).has_infinity):
        return None
    signs = infinity_sign(gold), infinity_sign(answer)
    if signs == (0, 0):
        return Finding(None, "numeric")
    return Finding(signs[0] == signs[1], "exact")


def infinity_sign(node: Node) -> int:
    """1 for infinity, -1 for its opposite, 0 for anything else."""
    if isinstance(node, Const) and node.name == "inf":
        return 1
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Num):
        return (1 if node.factors[0].value > 0 else -1) * infinity_sign(node.factors[1])
    return 0

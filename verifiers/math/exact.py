"""Exact values: rationals within a budget, and residues modulo a prime where a number would be too large to write out.

Nothing here is ever larger than MAX_BITS: a power is refused by the length it would have, before it is taken. Two
numbers that are equal modulo 2^127 - 1 at a point that neither chose are equal, but for odds of about 1 in 10^38
(Schwartz 1980, Zippel 1979).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import gmpy2
from gmpy2 import mpq, mpz

from truegold.verifiers.math.tree import Add, BaseN, Call, Const, Measure, Mul, Node, Num, Pow, Sym

MAX_BITS = 20_000
"""Of a numerator or denominator. Stops 9^9^9 and 100000!, each of which would fill megabytes."""

MAX_FACTORIAL = 2_000
MAX_FACTORIAL_MODULO = 20_000
PRIME = mpz(2) ** 127 - 1


class NotArithmetic(Exception):
    """The expression is more than sums, products and whole powers."""


class Undefined(Exception):
    """The expression has no value at this point."""


def rational(node: Node) -> mpq | None:  # noqa: PLR0911, PLR0912
    """The exact value of a constant expression, or None where it is irrational, undefined or over the budget."""
    if isinstance(node, Num):
        return node.value
    if isinstance(node, Add):
        total = mpq(0)
        for term in node.terms:
            value = rational(term)
            if value is None:
                return None
            total += value
        return total if _fits(total) else None
    if isinstance(node, Mul):
        total = mpq(1)
        for factor in node.factors:
            value = rational(factor)
            if value is None:
                return None
            total *= value
            if not _fits(total):
                return None
        return total
    if isinstance(node, Pow):
        base = rational(node.base)
        if base is None:
            return None
        exponent = rational(node.exponent)
        return None if exponent is None else _power(base, exponent)
    if isinstance(node, Call):
        return _call(node)
    if isinstance(node, Measure) and str(node.unit) == "percent":
        value = rational(node.value)
        return None if value is None else value / 100
    return None


def base_value(node: BaseN) -> int | None:
    """The value of a numeral, or None where a digit is not one of its base."""
    try:
        return int(node.digits, node.base)
    except ValueError:
        return None


def residue(node: Node, point: Mapping[str, mpz]) -> mpz:
    """The value modulo PRIME, with `point` for the variables. Raises NotArithmetic or Undefined."""
    if isinstance(node, Num):
        return _quotient(node.value.numerator, node.value.denominator)
    if isinstance(node, Sym):
        return point[node.name]
    if isinstance(node, Add):
        return sum((residue(term, point) for term in node.terms), mpz(0)) % PRIME
    if isinstance(node, Mul):
        total = mpz(1)
        for factor in node.factors:
            total = total * residue(factor, point) % PRIME
        return total
    if isinstance(node, Pow):
        exponent = rational(node.exponent)
        if exponent is None or exponent.denominator != 1:
            raise NotArithmetic
        base = residue(node.base, point)
        if exponent < 0 and base == 0:
            raise Undefined
        return gmpy2.powmod(base, exponent.numerator, PRIME)
    if isinstance(node, Call) and node.name == "factorial":
        return _factorial_residue(node)
    raise NotArithmetic


def point_for(names: frozenset[str], salt: int) -> dict[str, mpz]:
    """A point that looks random and is the same every time."""
    return {name: mpz(int.from_bytes(_digest(f"{salt}:{name}")[:15], "big")) % PRIME for name in names}


def unit_interval(name: str, salt: int) -> float:
    """A number in (0, 1) that looks random and is the same every time."""
    return (int.from_bytes(_digest(f"{salt}/{name}")[:6], "big") + 1) / (2**48 + 2)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _power(base: mpq, exponent: mpq) -> mpq | None:
    if exponent.denominator != 1:
        return _rational_root(base, exponent)
    power = int(exponent)
    if power == 0:
        return mpq(1) if base else None
    if base in (0, 1, -1):
        if base == 0 and power < 0:
            return None
        return base if power % 2 else base * base
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(power) > MAX_BITS:
        return None
    return base**power


def _rational_root(base: mpq, exponent: mpq) -> mpq | None:
    """4^{1/2} is 2; None where the root is irrational."""
    degree = int(exponent.denominator)
    if base < 0 or degree > 64 or not base:
        return mpq(0) if not base and exponent > 0 else None
    above, exact_above = gmpy2.iroot(base.numerator, degree)
    below, exact_below = gmpy2.iroot(base.denominator, degree)
    return _power(mpq(above, below), mpq(exponent.numerator)) if exact_above and exact_below else None


def _call(node: Call) -> mpq | None:  # noqa: PLR0911
    values = [rational(arg) for arg in node.args]
    if any(value is None for value in values) or not values:
        return None
    known = [value for value in values if value is not None]
    first = known[0]
    name = node.name
    if name == "abs":
        return abs(first)
    if name == "floor":
        return mpq(gmpy2.f_div(first.numerator, first.denominator))
    if name == "ceil":
        return mpq(gmpy2.c_div(first.numerator, first.denominator))
    if name == "factorial":
        return mpq(gmpy2.fac(int(first))) if _is_count(first, MAX_FACTORIAL) else None
    if name == "factorial2":
        return mpq(gmpy2.double_fac(int(first))) if _is_count(first, MAX_FACTORIAL) else None
    if name in ("max", "min"):
        return max(known) if name == "max" else min(known)
    if name == "sgn":
        return mpq((first > 0) - (first < 0))
    if len(known) == 2:
        return _call_of_two(name, first, known[1])
    return None


def _call_of_two(name: str, first: mpq, second: mpq) -> mpq | None:
    if name == "root" and second.denominator == 1 and second > 0:
        if first < 0 and second % 2 == 1:
            root = _rational_root(-first, 1 / second)
            return None if root is None else -root
        return _power(first, 1 / second)
    if first.denominator != 1 or second.denominator != 1:
        return None
    a, b = first.numerator, second.numerator
    if name == "binom" and _is_count(first, MAX_FACTORIAL) and 0 <= b:
        return mpq(gmpy2.comb(int(a), int(b)))
    if name == "perm" and _is_count(first, MAX_FACTORIAL) and 0 <= b <= a:
        return mpq(gmpy2.fac(int(a)) // gmpy2.fac(int(a - b)))
    if name == "gcd":
        return mpq(gmpy2.gcd(a, b))
    if name == "lcm":
        return mpq(gmpy2.lcm(a, b))
    return None


def _is_count(value: mpq, most: int) -> bool:
    return bool(value.denominator == 1 and 0 <= value <= most)


def _fits(value: mpq) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= MAX_BITS


def _quotient(above: mpz, below: mpz) -> mpz:
    if below == 1:
        return above % PRIME
    return above * gmpy2.invert(below, PRIME) % PRIME


def _factorial_residue(node: Call) -> mpz:
    count = rational(node.args[0])
    if count is None or not _is_count(count, MAX_FACTORIAL_MODULO):
        raise NotArithmetic
    total = mpz(1)
    for factor in range(2, int(count) + 1):
        total = total * factor % PRIME
    return total


def is_constant_name(node: Node, name: str) -> bool:
    return isinstance(node, Const) and node.name == name

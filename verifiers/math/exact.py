"""Computes exact values of constants: rationals of limited size, and residues modulo a prime for larger numbers.

No rational is larger than MAX_BITS: the length of a power is computed before the power. Expressions that are equal
modulo 2^127 - 1 at a random point count as equal. The probability of an error is about 1 in 10^38 (Schwartz 1980,
Zippel 1979).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import gmpy2
from gmpy2 import mpq, mpz

from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.policy import charge, digit_steps
from truegold.verifiers.math.tree import Add, BaseN, FunctionCall, Measure, Mul, Node, Num, Pow, Sym

MAX_BITS = 20_000
"""Maximum number of bits in a numerator or denominator. Stops 9^9^9 and 100000!, which would fill megabytes."""

MAX_FACTORIAL = 2_000
"""The largest n of which n! is computed."""
MAX_FACTORIAL_MODULO = 20_000
"""The largest n of which n! is computed modulo PRIME, factor by factor. Stops 10^9!."""

MAX_FACTORED = 10**8
"""The largest number that is factored, for functions such as Euler's phi."""

PRIME = mpz(2) ** 127 - 1
"""The modulus of residues, a Mersenne prime."""

_POWER_STEPS = 5
_CALL_STEPS = 5
_BITS_A_STEP = 60
"""Number of bits of the exponent that cost one step of the budget, in a power modulo PRIME."""

_FACTORS_A_STEP = 8
"""Number of factors modulo PRIME that cost one step of the budget (`policy`)."""


class NotArithmetic(Exception):
    """The expression does not consist of sums, products, whole powers and factorials."""


class Undefined(Exception):
    """The expression has no value at this point."""


def rational(node: Node) -> mpq | None:  # noqa: PLR0911, some for each kind of node
    """Return the exact value of a constant expression, or None if it is irrational, undefined or too large."""
    if isinstance(node, Num):
        return node.value
    if isinstance(node, (Add, Mul)):
        is_sum = isinstance(node, Add)
        parts = node.terms if isinstance(node, Add) else node.factors
        charge(len(parts))
        total, bits = mpq(0 if is_sum else 1), 1
        for part in parts:
            if (value := part.value if type(part) is Num else rational(part)) is None:
                return None
            charge(digit_steps(bits + _bits(value)))
            total = total + value if is_sum else total * value
            if (bits := _bits(total)) > MAX_BITS:
                return None
        return total
    if isinstance(node, Pow):
        charge(_POWER_STEPS)
        if (base := rational(node.base)) is None:
            return None
        exponent = rational(node.exponent)
        return None if exponent is None else _power(base, exponent)
    if isinstance(node, FunctionCall):
        return _call(node)
    if isinstance(node, Measure) and node.unit == PERCENT:
        value = rational(node.value)
        return None if value is None else value / 100
    return None


def base_value(node: BaseN) -> int | None:
    """Return the value of a numeral, or None if it has a digit that its base lacks."""
    try:
        return int(node.digits, node.base)
    except ValueError:
        return None


def residue(node: Node, point: Mapping[str, mpz]) -> mpz:
    """Return the value modulo PRIME, with the values in `point` for the variables.

    Raises NotArithmetic and Undefined.
    """
    if isinstance(node, Num):
        return _quotient_residue(node.value.numerator, node.value.denominator)
    if isinstance(node, Sym):
        return point[node.name]
    charge(1)
    if isinstance(node, Add):
        return sum((residue(term, point) for term in node.terms), mpz(0)) % PRIME
    if isinstance(node, Mul):
        return _product_residue(residue(factor, point) for factor in node.factors)
    if isinstance(node, Pow):
        if (exponent := rational(node.exponent)) is None or exponent.denominator != 1:
            raise NotArithmetic
        base = residue(node.base, point)
        if exponent < 0 and base == 0:
            raise Undefined
        charge(1 + exponent.numerator.bit_length() // _BITS_A_STEP)
        return gmpy2.powmod(base, exponent.numerator, PRIME)
    if isinstance(node, FunctionCall) and node.name == "factorial":
        return _factorial_residue(node)
    raise NotArithmetic


@lru_cache(maxsize=1_024)
def point_for(names: frozenset[str], salt: int) -> Mapping[str, mpz]:
    """Return a pseudorandom point, which depends only on the arguments."""
    return {name: mpz(int.from_bytes(_digest(f"{salt}:{name}")[:15], "big")) % PRIME for name in names}


def unit_interval(name: str, salt: int) -> float:
    """Return a pseudorandom number in (0, 1), which depends only on the arguments."""
    return (int.from_bytes(_digest(f"{salt}/{name}")[:6], "big") + 1) / (2**48 + 2)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _power(base: mpq, exponent: mpq) -> mpq | None:
    """Return a power, or None if it is undefined, irrational or too large."""
    if exponent.denominator != 1:
        return _rational_root(base, exponent)
    power = int(exponent)
    if power == 0:
        return mpq(1) if base else None
    if base in (0, 1, -1):
        if base == 0 and power < 0:
            return None
        return base if power % 2 else base * base
    bits = _bits(base)
    return None if bits * abs(power) > MAX_BITS else base**power


def _rational_root(base: mpq, exponent: mpq) -> mpq | None:
    """Return 2 for 4^{1/2}, or None if the root is irrational."""
    degree = int(exponent.denominator)
    if base < 0 or degree > 64 or not base:
        return mpq(0) if not base and exponent > 0 else None
    numerator, numerator_is_exact = gmpy2.iroot(base.numerator, degree)
    denominator, denominator_is_exact = gmpy2.iroot(base.denominator, degree)
    if not (numerator_is_exact and denominator_is_exact):
        return None
    return _power(mpq(numerator, denominator), mpq(exponent.numerator))


def _call(node: FunctionCall) -> mpq | None:
    """Return the exact value of a function, or None if it has none."""
    charge(_CALL_STEPS)
    args: list[mpq] = []
    for arg in node.args:
        if (value := rational(arg)) is None:
            return None
        args.append(value)
    if not args:
        return None
    if node.name in _ONE_ARGUMENT:
        return _ONE_ARGUMENT[node.name](args[0])
    if node.name in ("max", "min"):
        return max(args) if node.name == "max" else min(args)
    return _call_with_two(node.name, args[0], args[1]) if len(args) == 2 else None


def _over_primes(value: mpq, part: Callable[[int, int], int]) -> mpq | None:
    """Return the value of a multiplicative function at a whole number.

    part: returns the value at the power of a prime, given the prime and the exponent.
    """
    if not _is_count(value, MAX_FACTORED) or value == 0:
        return None
    rest, total, prime = int(value), 1, 2
    charge(int(gmpy2.isqrt(rest)) // _FACTORS_A_STEP)
    while rest > 1:
        if prime * prime > rest:
            prime = rest
        exponent = 0
        while rest % prime == 0:
            rest, exponent = rest // prime, exponent + 1
        total *= part(prime, exponent) if exponent else 1
        prime += 1
    return mpq(total)


_ONE_ARGUMENT: dict[str, Callable[[mpq], mpq | None]] = {
    "abs": abs,
    "floor": lambda value: mpq(gmpy2.f_div(value.numerator, value.denominator)),
    "ceil": lambda value: mpq(gmpy2.c_div(value.numerator, value.denominator)),
    "sgn": lambda value: mpq((value > 0) - (value < 0)),
    "factorial": lambda value: mpq(gmpy2.fac(int(value))) if _is_count(value, MAX_FACTORIAL) else None,
    "factorial2": lambda value: mpq(gmpy2.double_fac(int(value))) if _is_count(value, MAX_FACTORIAL) else None,
    "Gamma": lambda value: mpq(gmpy2.fac(int(value) - 1)) if value >= 1 and _is_count(value, MAX_FACTORIAL) else None,
    "phi": lambda value: _over_primes(value, lambda p, k: p ** (k - 1) * (p - 1)),
    "sigma": lambda value: _over_primes(value, lambda p, k: (p ** (k + 1) - 1) // (p - 1)),
    "tau": lambda value: _over_primes(value, lambda _, k: k + 1),
}
"""Maps a function of one argument to its exact value, which is None if it is too large or irrational."""


def _call_with_two(name: str, first: mpq, second: mpq) -> mpq | None:
    if name == "root" and second.denominator == 1 and second > 0:
        return _whole_root(first, second)
    if first.denominator != 1 or second.denominator != 1 or name not in _TWO_ARGUMENTS:
        return None
    return _TWO_ARGUMENTS[name](first.numerator, second.numerator)


def _whole_root(value: mpq, degree: mpq) -> mpq | None:
    if value < 0 and degree % 2 == 1:
        root = _rational_root(-value, 1 / degree)
        return None if root is None else -root
    return _power(value, 1 / degree)


def _binomial(n: mpz, k: mpz) -> mpq | None:
    if not _is_count(mpq(n), MAX_FACTORIAL) or k < 0:
        return None
    # A k above n may be too large for `gmpy2.comb`.
    return mpq(gmpy2.comb(int(n), int(k))) if k <= n else mpq(0)


def _permutations(n: mpz, k: mpz) -> mpq | None:
    if not _is_count(mpq(n), MAX_FACTORIAL) or not 0 <= k <= n:
        return None
    return mpq(gmpy2.fac(int(n)) // gmpy2.fac(int(n - k)))


_TWO_ARGUMENTS: dict[str, Callable[[mpz, mpz], mpq | None]] = {
    "binom": _binomial,
    "perm": _permutations,
    "gcd": lambda a, b: mpq(gmpy2.gcd(a, b)),
    "lcm": lambda a, b: mpq(gmpy2.lcm(a, b)),
}
"""Maps a function of two whole numbers to its exact value."""


def _is_count(value: mpq, most: int) -> bool:
    return bool(value.denominator == 1 and 0 <= value <= most)


def _bits(value: mpq) -> int:
    numerator: int = value.numerator.bit_length()
    denominator: int = value.denominator.bit_length()
    return numerator if numerator > denominator else denominator


def _quotient_residue(numerator: mpz, denominator: mpz) -> mpz:
    return numerator % PRIME if denominator == 1 else numerator * gmpy2.invert(denominator, PRIME) % PRIME


def _factorial_residue(node: FunctionCall) -> mpz:
    if (count := rational(node.args[0])) is None or not _is_count(count, MAX_FACTORIAL_MODULO):
        raise NotArithmetic
    charge(int(count) // _FACTORS_A_STEP)
    return _product_residue(range(2, int(count) + 1))


def _product_residue(factors: Iterable[mpz | int]) -> mpz:
    total = mpz(1)
    for factor in factors:
        total = total * factor % PRIME
    return total

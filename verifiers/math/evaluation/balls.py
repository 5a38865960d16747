"""Ball arithmetic: numbers to any precision, each with a bound on its error.

MPFR and MPC calculate at a fixed precision; beside each number goes the binary exponent of a running bound on its error
(as in Higham, Accuracy and Stability of Numerical Algorithms, section 3.3, kept to powers of two). So a difference that
is not zero can be told from rounding, and `10^{-200}` from 0. Arguments that would make a library function slow are
refused before it is called.

There is no global state: every operation names its context. The operations raise Undefined where there is no value,
NeedsComplex where there is no real one, TooLarge beyond the budgets, and Unsupported for what they cannot bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gmpy2
from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.evaluation.exact import Undefined
from truegold.verifiers.math.refusals import TooLarge

EXACT = -(10**12)
"""The error exponent of a number without error."""

MAX_EXPONENT = 1 << 40
"""The largest intermediate value, in bits. Above it a tower of powers has left what can be told apart."""

MAX_REDUCED_BITS = 4_000
"""The largest argument of an angle or of a whole part, in bits. Stops sin(10^10^5), for which pi is needed."""

MAX_GAMMA = 1e6
"""The largest argument of a factorial. Stops that of a number with a million digits."""


MAX_KNOWN_RATIONALS = 512
"""So many small rationals are remembered for each precision."""


class NeedsComplex(Exception):
    """The expression has no real value."""


class Unsupported(Exception):
    """No numerical value is known for this kind of node."""


class Ball(NamedTuple):
    """All numbers that are less than 2**error_exponent away from a midpoint."""

    midpoint: Any
    """An mpfr or mpc number."""
    error_exponent: int
    """The binary exponent of the bound on the error."""


def exponent_of(scalar: Any) -> int:
    """Return the least e with |scalar| < 2**e; of a complex number, that of its larger part."""
    if isinstance(scalar, mpc):
        return max(exponent_of(scalar.real), exponent_of(scalar.imag))
    return gmpy2.get_exp(scalar) if scalar else EXACT


class Arithmetic:
    """Calculates with balls at one precision, over the reals or the complex numbers."""

    def __init__(self, bits: int, complex_: bool = False) -> None:
        self.bits = bits
        self.complex = complex_
        self.node_steps = 2 + bits // 300
        """The price of one sum or product."""
        self.function_steps = bits // (6 if complex_ else 12)
        """The price of one power, root or known function."""
        self.context = gmpy2.context(
            precision=bits, emin=gmpy2.get_emin_min(), emax=gmpy2.get_emax_max(), allow_complex=complex_
        )
        self._rationals: dict[mpq, Ball] = {}
        self.pi = self.context.const_pi()
        self.e = self.context.exp(mpfr(1, bits))

    def from_rational(self, value: mpq) -> Ball:
        """Return the ball of a rational number; the small ones recur."""
        ball = self._rationals.get(value)
        if ball is None:
            midpoint = mpfr(value, self.bits)
            exact = value.denominator == 1 and value.numerator.bit_length() <= self.bits
            ball = Ball(midpoint, EXACT if exact else exponent_of(midpoint) - self.bits)
            is_small = abs(value.numerator) < MAX_KNOWN_RATIONALS and value.denominator < MAX_KNOWN_RATIONALS
            if is_small and len(self._rationals) < MAX_KNOWN_RATIONALS:
                self._rationals[value] = ball
        return ball

    def add(self, a: Ball, b: Ball) -> Ball:
        """Return a + b."""
        return self._rounded(self.context.add(a.midpoint, b.midpoint), max(a.error_exponent, b.error_exponent) + 1)

    def subtract(self, a: Ball, b: Ball) -> Ball:
        """Return a - b."""
        return self._rounded(self.context.sub(a.midpoint, b.midpoint), max(a.error_exponent, b.error_exponent) + 1)

    def multiply(self, a: Ball, b: Ball) -> Ball:
        """Return a * b."""
        by_b, by_a = exponent_of(a.midpoint) + b.error_exponent, exponent_of(b.midpoint) + a.error_exponent
        error_exponent = max(by_b, by_a, a.error_exponent + b.error_exponent) + 2
        return self._rounded(self.context.mul(a.midpoint, b.midpoint), error_exponent)

    def inverse(self, a: Ball) -> Ball:
        """Return 1 / a."""
        size = exponent_of(a.midpoint)
        if size <= a.error_exponent + 1:
            raise Undefined
        midpoint = self.context.div(mpfr(1, self.bits), a.midpoint)
        return self._rounded(midpoint, exponent_of(midpoint) + a.error_exponent - size + 3)

    def divide(self, a: Ball, b: Ball) -> Ball:
        """Return a / b."""
        return self.multiply(a, self.inverse(b))

    def is_zero(self, a: Ball) -> bool:
        """Tell whether the ball cannot be told from zero."""
        return exponent_of(a.midpoint) <= a.error_exponent + 1

    def _rounded(self, midpoint: Any, error_exponent: int) -> Ball:
        """Return the ball of a rounded outcome. Raises TooLarge."""
        size = exponent_of(midpoint)
        if size > MAX_EXPONENT or not gmpy2.is_finite(midpoint):
            raise TooLarge("a number of astronomical size")
        return Ball(midpoint, max(error_exponent, size - self.bits, EXACT))

    def whole_power(self, base: Ball, power: int) -> Ball:
        """Return a power with a whole exponent."""
        if power < 0:
            return self.inverse(self.whole_power(base, -power))
        if power == 0:
            if self.is_zero(base):
                raise Undefined
            return self.from_rational(mpq(1))
        size = exponent_of(base.midpoint)
        if max(size, 1) * power > MAX_EXPONENT:
            raise TooLarge("a power of astronomical size")
        midpoint = self.context.pow(base.midpoint, power)
        relative = max(base.error_exponent - size, -self.bits) + power.bit_length() + 2
        return self._rounded(midpoint, exponent_of(midpoint) + relative)

    def sqrt(self, base: Ball) -> Ball:
        """Return the square root."""
        if not self.complex and base.midpoint < 0:
            if not self.is_zero(base):
                raise NeedsComplex
            return Ball(mpfr(0, self.bits), base.error_exponent // 2 + 1)
        midpoint = self.context.sqrt(base.midpoint)
        if self.is_zero(base):
            return Ball(midpoint, max(base.error_exponent // 2 + 2, EXACT))
        return self._rounded(midpoint, exponent_of(midpoint) + base.error_exponent - exponent_of(base.midpoint) + 2)

    def general_power(self, base: Ball, exponent: Ball) -> Ball:
        """Return a power with any exponent."""
        if self.is_zero(base):
            if base.midpoint == 0 and base.error_exponent == EXACT and exponent.midpoint.real > 0:
                return base
            raise Undefined
        if not self.complex and base.midpoint < 0:
            raise NeedsComplex
        size = exponent_of(base.midpoint)
        exponent_size = exponent_of(exponent.midpoint)
        if exponent_size > 60 or abs(size) << max(exponent_size, 0) > MAX_EXPONENT:
            raise TooLarge("a power of astronomical size")
        midpoint = self.context.pow(base.midpoint, exponent.midpoint)
        by_base = max(base.error_exponent - size, -self.bits) + max(exponent_size, 0)
        by_exponent = exponent.error_exponent + max(size.bit_length(), 1)
        return self._rounded(midpoint, exponent_of(midpoint) + max(by_base, by_exponent) + 3)

    def trigonometric(self, name: str, a: Ball) -> Ball:
        """Return the sine or cosine, by its name in gmpy2."""
        if exponent_of(a.midpoint) > MAX_REDUCED_BITS:
            raise TooLarge("an angle of astronomical size")
        midpoint = getattr(self.context, name)(a.midpoint)
        grown = exponent_of(midpoint) if isinstance(midpoint, mpc) else 0
        return self._rounded(midpoint, max(a.error_exponent, -self.bits) + 1 + max(grown, 0))

    def log(self, a: Ball) -> Ball:
        """Return the natural logarithm."""
        size = exponent_of(a.midpoint)
        if size <= a.error_exponent + 1:
            raise Undefined
        if not self.complex and a.midpoint < 0:
            raise NeedsComplex
        return self._rounded(self.context.log(a.midpoint), max(a.error_exponent - size, -self.bits) + 3)

    def inverse_sine(self, name: str, a: Ball) -> Ball:
        """Return the arcsine or arccosine, by its name in gmpy2."""
        unit = mpfr(1, self.bits)
        left = self.context.sub(unit, self.context.mul(a.midpoint, a.midpoint))
        room = exponent_of(left)
        is_near_one = room <= max(a.error_exponent, -self.bits) + 3
        if not self.complex and (a.midpoint > 1 or a.midpoint < -1):
            if not is_near_one:
                raise NeedsComplex
            a = Ball(unit if a.midpoint > 0 else -unit, a.error_exponent)
        midpoint = getattr(self.context, name)(a.midpoint)
        relative = max(a.error_exponent, -self.bits)
        return self._rounded(midpoint, relative // 2 + 3 if is_near_one else relative - min(room, 0) // 2 + 3)

    def smooth(self, name: str, a: Ball) -> Ball:
        """Return a function, by its name in gmpy2, whose slope is at most about its size."""
        if exponent_of(a.midpoint) > 36 and name in ("sinh", "cosh"):
            raise TooLarge("a hyperbolic function of astronomical size")
        midpoint = getattr(self.context, name)(a.midpoint)
        return self._rounded(midpoint, max(a.error_exponent, -self.bits) + max(exponent_of(midpoint), 0) + 3)

    def round_to_whole(self, name: str, a: Ball) -> Ball:
        """Return the floor or ceiling, by its name in gmpy2."""
        if isinstance(a.midpoint, mpc):
            raise Unsupported(name)
        if exponent_of(a.midpoint) > MAX_REDUCED_BITS:
            raise TooLarge("a whole part of astronomical size")
        nearest = self.context.rint(a.midpoint)
        if a.error_exponent >= 0 or abs(a.midpoint - nearest) <= 2.0 ** max(a.error_exponent + 1, -1000):
            raise Undefined
        return self.from_rational(mpq(gmpy2.mpz(getattr(self.context, name)(a.midpoint))))

    def absolute(self, a: Ball) -> Ball:
        """Return the absolute value."""
        if isinstance(a.midpoint, mpc):
            return Ball(self.context.sqrt(self.context.norm(a.midpoint)), a.error_exponent + 2)
        return Ball(self.context.abs(a.midpoint), a.error_exponent)

    def factorial(self, a: Ball) -> Ball:
        """Return the factorial, gamma(a + 1)."""
        if isinstance(a.midpoint, mpc) or abs(a.midpoint) > MAX_GAMMA:
            raise TooLarge("a factorial of astronomical size")
        if a.midpoint < 0 and a.midpoint == self.context.rint(a.midpoint):
            raise Undefined
        midpoint = self.context.gamma(self.context.add(a.midpoint, 1))
        return self._rounded(midpoint, exponent_of(midpoint) + max(a.error_exponent, -self.bits) + 20)

"""Numbers to any precision, each with a bound on its error.

MPFR and MPC calculate at a fixed precision; beside each number goes the binary exponent of a running bound on its error
(as in Higham, Accuracy and Stability of Numerical Algorithms, section 3.3, kept to powers of two). So a difference that
is not zero can be told from rounding, and `10^{-200}` from 0. Arguments that would make a library function slow are
refused before it is called.

No global state: every operation names its context. The operations raise Undefined where there is no value, NeedsComplex
where there is no real one, TooLarge beyond the budgets, and Unsupported for what they cannot bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gmpy2
from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.evaluation.exact import Undefined
from truegold.verifiers.math.refusals import TooLarge

EXACT = -(10**12)
"""The error's exponent of a value without error."""

MAX_EXPONENT = 1 << 40
"""Of an intermediate value, in bits. Above it a tower of powers has left what can be told apart."""

MAX_REDUCED_BITS = 4_000
"""Of a trigonometric argument. Stops sin(10^10^5), for which pi is needed to as many digits."""

MAX_GAMMA = 1e6
"""Stops the factorial of a number with a million digits."""


class NeedsComplex(Exception):
    """The expression has no real value."""


class Unsupported(Exception):
    """No numerical value is known for this kind of node."""


class Value(NamedTuple):
    number: Any
    """mpfr or mpc"""
    error: int
    """The number is off by less than 2**error."""


def exponent_of(number: Any) -> int:
    """The least e with |number| < 2**e, as far as one part tells."""
    if isinstance(number, mpc):
        return max(exponent_of(number.real), exponent_of(number.imag))
    return gmpy2.get_exp(number) if number else EXACT


class Arithmetic:
    """Calculates at one precision, over the reals or the complex numbers."""

    def __init__(self, bits: int, complex_: bool = False) -> None:
        self.bits = bits
        self.complex = complex_
        self.context = gmpy2.context(
            precision=bits, emin=gmpy2.get_emin_min(), emax=gmpy2.get_emax_max(), allow_complex=complex_
        )
        self.pi = self.context.const_pi()
        self.e = self.context.exp(mpfr(1, bits))

    def of(self, value: mpq) -> Value:
        number = mpfr(value, self.bits)
        exact = value.denominator == 1 and value.numerator.bit_length() <= self.bits
        return Value(number, EXACT if exact else exponent_of(number) - self.bits)

    def add(self, a: Value, b: Value) -> Value:
        return self._rounded(self.context.add(a.number, b.number), max(a.error, b.error) + 1)

    def subtract(self, a: Value, b: Value) -> Value:
        return self._rounded(self.context.sub(a.number, b.number), max(a.error, b.error) + 1)

    def multiply(self, a: Value, b: Value) -> Value:
        error = max(exponent_of(a.number) + b.error, exponent_of(b.number) + a.error, a.error + b.error) + 2
        return self._rounded(self.context.mul(a.number, b.number), error)

    def inverse(self, a: Value) -> Value:
        size = exponent_of(a.number)
        if size <= a.error + 1:
            raise Undefined
        number = self.context.div(mpfr(1, self.bits), a.number)
        return self._rounded(number, exponent_of(number) + a.error - size + 3)

    def is_zero(self, a: Value) -> bool:
        """Cannot be told from zero."""
        return exponent_of(a.number) <= a.error + 1

    def _rounded(self, number: Any, error: int) -> Value:
        size = exponent_of(number)
        if size > MAX_EXPONENT or not gmpy2.is_finite(number):
            raise TooLarge("a number of astronomical size")
        return Value(number, max(error, size - self.bits, EXACT))

    # -- powers

    def whole_power(self, base: Value, power: int) -> Value:
        if power < 0:
            return self.inverse(self.whole_power(base, -power))
        if power == 0:
            if self.is_zero(base):
                raise Undefined
            return self.of(mpq(1))
        size = exponent_of(base.number)
        if max(size, 1) * power > MAX_EXPONENT:
            raise TooLarge("a power of astronomical size")
        number = self.context.pow(base.number, power)
        relative = max(base.error - size, -self.bits) + power.bit_length() + 2
        return self._rounded(number, exponent_of(number) + relative)

    def sqrt(self, base: Value) -> Value:
        if not self.complex and base.number < 0:
            if not self.is_zero(base):
                raise NeedsComplex
            return Value(mpfr(0, self.bits), base.error // 2 + 1)
        number = self.context.sqrt(base.number)
        if self.is_zero(base):
            return Value(number, max(base.error // 2 + 2, EXACT))
        return self._rounded(number, exponent_of(number) + base.error - exponent_of(base.number) + 2)

    def power(self, base: Value, exponent: Value) -> Value:
        if self.is_zero(base):
            if base.number == 0 and base.error == EXACT and exponent.number.real > 0:
                return base
            raise Undefined
        if not self.complex and base.number < 0:
            raise NeedsComplex
        size = exponent_of(base.number)
        if exponent_of(exponent.number) > 60 or abs(size) << max(exponent_of(exponent.number), 0) > MAX_EXPONENT:
            raise TooLarge("a power of astronomical size")
        number = self.context.pow(base.number, exponent.number)
        spread = max(base.error - size, -self.bits) + max(exponent_of(exponent.number), 0)
        by_exponent = exponent.error + max(size.bit_length(), 1)
        return self._rounded(number, exponent_of(number) + max(spread, by_exponent) + 3)

    # -- functions

    def trigonometric(self, name: str, a: Value) -> Value:
        if exponent_of(a.number) > MAX_REDUCED_BITS:
            raise TooLarge("an angle of astronomical size")
        number = getattr(self.context, name)(a.number)
        grown = exponent_of(number) if isinstance(number, mpc) else 0
        return self._rounded(number, max(a.error, -self.bits) + 1 + max(grown, 0))

    def log(self, a: Value) -> Value:
        size = exponent_of(a.number)
        if size <= a.error + 1:
            raise Undefined
        if not self.complex and a.number < 0:
            raise NeedsComplex
        return self._rounded(self.context.log(a.number), max(a.error - size, -self.bits) + 3)

    def inverse_sine(self, name: str, a: Value) -> Value:
        one = mpfr(1, self.bits)
        left = self.context.sub(one, self.context.mul(a.number, a.number))
        room = exponent_of(left)
        near = room <= max(a.error, -self.bits) + 3
        if not self.complex and (a.number > 1 or a.number < -1):
            if not near:
                raise NeedsComplex
            a = Value(one if a.number > 0 else -one, a.error)
        number = getattr(self.context, name)(a.number)
        error = max(a.error, -self.bits)
        return self._rounded(number, error // 2 + 3 if near else error - min(room, 0) // 2 + 3)

    def smooth(self, name: str, a: Value) -> Value:
        """A function whose slope is at most about its size."""
        if exponent_of(a.number) > 36 and name in ("sinh", "cosh"):
            raise TooLarge("a hyperbolic function of astronomical size")
        number = getattr(self.context, name)(a.number)
        return self._rounded(number, max(a.error, -self.bits) + max(exponent_of(number), 0) + 3)

    def rounding(self, name: str, a: Value) -> Value:
        if isinstance(a.number, mpc):
            raise Unsupported(name)
        nearest = self.context.rint(a.number)
        if abs(a.number - nearest) <= 2.0 ** max(a.error + 1, -1000):
            raise Undefined
        return self.of(mpq(gmpy2.mpz(getattr(self.context, name)(a.number))))

    def absolute(self, a: Value) -> Value:
        number = self.context.norm(a.number) if isinstance(a.number, mpc) else self.context.abs(a.number)
        return Value(self.context.sqrt(number), a.error + 2) if isinstance(a.number, mpc) else Value(number, a.error)

    def gamma(self, a: Value) -> Value:
        if isinstance(a.number, mpc) or abs(a.number) > MAX_GAMMA:
            raise TooLarge("a factorial of astronomical size")
        if a.number < 0 and a.number == self.context.rint(a.number):
            raise Undefined
        number = self.context.gamma(self.context.add(a.number, 1))
        return self._rounded(number, exponent_of(number) + max(a.error, -self.bits) + 20)

"""Values to any precision, each with a bound on its error.

An expression is evaluated with MPFR and MPC at a fixed precision; beside each value goes the binary exponent of a
running bound on its error (as in Higham, Accuracy and Stability of Numerical Algorithms, section 3.3, kept to powers
of two). So a difference that is not zero can be told from rounding, and `10^{-200}` from 0. Arguments that would make
a library function slow are refused before it is called.

No global state: every operation names its context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gmpy2
from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.exact import Undefined, rational, unit_interval
from truegold.verifiers.math.lexer import TooLarge
from truegold.verifiers.math.tree import Add, Big, Call, Const, Measure, Mul, Node, Num, Pow, Sym

EXACT = -(10**12)
"""The error's exponent of a value without error."""

MAX_EXPONENT = 1 << 40
"""Of an intermediate value, in bits. Above it a tower of powers has left what can be told apart."""

MAX_REDUCED_BITS = 4_000
"""Of a trigonometric argument. Stops sin(10^10^5), for which pi is needed to as many digits."""

MAX_SUM_TERMS = 200
"""Of a sum or product that is added up. Stops `\\sum_{k=1}^{10^9}`."""

MAX_GAMMA = 1e6


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
    return gmpy2.get_exp(number) if number != 0 else EXACT


class Evaluator:
    """Evaluates at one precision, over the reals or the complex numbers."""

    def __init__(self, bits: int, complex_: bool = False) -> None:
        self.bits = bits
        self.complex = complex_
        self.context = gmpy2.context(
            precision=bits, emin=gmpy2.get_emin_min(), emax=gmpy2.get_emax_max(), allow_complex=complex_
        )
        self.pi = self.context.const_pi()
        self.e = self.context.exp(mpfr(1, bits))

    def value(self, node: Node, point: Mapping[str, Value]) -> Value:  # noqa: PLR0911, PLR0912
        """Raises Undefined, NeedsComplex, Unsupported or TooLarge."""
        if isinstance(node, Num):
            return self.of(node.value)
        if isinstance(node, Sym):
            if node.name not in point:
                raise Unsupported(node.name)
            return point[node.name]
        if isinstance(node, Add):
            total = self.value(node.terms[0], point)
            for term in node.terms[1:]:
                total = self.add(total, self.value(term, point))
            return total
        if isinstance(node, Mul):
            total = self.value(node.factors[0], point)
            for factor in node.factors[1:]:
                total = self.multiply(total, self.value(factor, point))
            return total
        if isinstance(node, Pow):
            return self._pow(node, point)
        if isinstance(node, Const):
            return self._constant(node.name)
        if isinstance(node, Call):
            return self._call(node, point)
        if isinstance(node, Big):
            return self._big(node, point)
        if isinstance(node, Measure) and str(node.unit) == "percent":
            return self.multiply(self.value(node.value, point), self.of(mpq(1, 100)))
        raise Unsupported(type(node).__name__)

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

    def _constant(self, name: str) -> Value:
        if name == "pi":
            return Value(self.pi, 2 - self.bits)
        if name == "e":
            return Value(self.e, 2 - self.bits)
        if name == "i":
            if not self.complex:
                raise NeedsComplex
            return Value(mpc(0, 1, (self.bits, self.bits)), EXACT)
        raise Unsupported(name)

    # -- powers

    def _pow(self, node: Pow, point: Mapping[str, Value]) -> Value:
        exponent = rational(node.exponent)
        base = self.value(node.base, point)
        if exponent is not None:
            if exponent.denominator == 1:
                return self._whole_power(base, int(exponent))
            if exponent == mpq(1, 2):
                return self._sqrt(base)
        return self._real_power(base, self.value(node.exponent, point), exponent)

    def _whole_power(self, base: Value, power: int) -> Value:
        if power < 0:
            return self.inverse(self._whole_power(base, -power))
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

    def _sqrt(self, base: Value) -> Value:
        if not self.complex and base.number < 0:
            if not self.is_zero(base):
                raise NeedsComplex
            return Value(mpfr(0, self.bits), base.error // 2 + 1)
        number = self.context.sqrt(base.number)
        if self.is_zero(base):
            return Value(number, max(base.error // 2 + 2, EXACT))
        return self._rounded(number, exponent_of(number) + base.error - exponent_of(base.number) + 2)

    def _real_power(self, base: Value, exponent: Value, known: mpq | None) -> Value:
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

    def _call(self, node: Call, point: Mapping[str, Value]) -> Value:
        exact = rational(node)
        if exact is not None:
            return self.of(exact)
        args = [self.value(arg, point) for arg in node.args]
        if node.applied:
            return self._unknown(node.name, args)
        if len(args) == 1 and node.name in _ONE_ARGUMENT:
            return _ONE_ARGUMENT[node.name](self, args[0])
        if node.name in _SEVERAL_ARGUMENTS:
            return _SEVERAL_ARGUMENTS[node.name](self, args)
        raise Unsupported(node.name)

    def _unknown(self, name: str, args: list[Value]) -> Value:
        """An unknown function: any fixed number for given arguments, so that f(a+b) = f(b+a) and nothing more."""
        shown = ",".join(_digits(arg.number) for arg in args)
        return self.of(mpq(unit_interval(f"{name}({shown})", 1)) + mpq(1, 2))

    def trigonometric(self, name: str, a: Value) -> Value:
        if exponent_of(a.number) > MAX_REDUCED_BITS:
            raise TooLarge("an angle of astronomical size")
        number = getattr(self.context, name)(a.number)
        grown = exponent_of(number) if isinstance(number, mpc) else 0
        return self._rounded(number, max(a.error, -self.bits) + 1 + max(grown, 0))

    def exp(self, a: Value) -> Value:
        if exponent_of(a.number) > 36:
            raise TooLarge("an exponential of astronomical size")
        number = self.context.exp(a.number)
        return self._rounded(number, exponent_of(number) + max(a.error, -self.bits) + 2)

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
        return self.of(mpq(gmpy2.mpz(gmpy2.floor(a.number) if name == "floor" else gmpy2.ceil(a.number))))

    def absolute(self, a: Value) -> Value:
        number = self.context.norm(a.number) if isinstance(a.number, mpc) else abs(a.number)
        return Value(self.context.sqrt(number), a.error + 2) if isinstance(a.number, mpc) else Value(number, a.error)

    def gamma(self, a: Value) -> Value:
        if isinstance(a.number, mpc) or abs(a.number) > MAX_GAMMA:
            raise TooLarge("a factorial of astronomical size")
        if a.number < 0 and a.number == gmpy2.rint(a.number):
            raise Undefined
        number = self.context.gamma(self.context.add(a.number, 1))
        return self._rounded(number, exponent_of(number) + max(a.error, -self.bits) + 20)

    # -- sums

    def _big(self, node: Big, point: Mapping[str, Value]) -> Value:
        if node.kind not in ("sum", "prod") or node.low is None or node.high is None:
            raise Unsupported(node.kind)
        low, high = self._whole(node.low, point), self._whole(node.high, point)
        if high - low >= MAX_SUM_TERMS:
            raise Unsupported(f"{high - low + 1} terms")
        total = self.of(mpq(node.kind == "prod"))
        join = self.add if node.kind == "sum" else self.multiply
        for index in range(low, high + 1):
            total = join(total, self.value(node.body, {**point, node.variable: self.of(mpq(index))}))
        return total

    def _whole(self, node: Node, point: Mapping[str, Value]) -> int:
        exact = rational(node)
        if exact is None:
            number = self.value(node, point).number
            if isinstance(number, mpc) or abs(number) > 10**6 or number != self.context.rint(number):
                raise Unsupported("a bound that is no whole number")
            return int(number)
        if exact.denominator != 1 or abs(exact) > 10**12:
            raise Unsupported("a bound that is no whole number")
        return int(exact)


def _digits(number: Any) -> str:
    if isinstance(number, mpc):
        return f"{_digits(number.real)}+{_digits(number.imag)}i"
    return f"{number:.20e}" if number else "0"


def _reciprocal(name: str) -> Callable[[Evaluator, Value], Value]:
    return lambda e, a: e.inverse(e.trigonometric(name, a))


def _tangent(e: Evaluator, a: Value) -> Value:
    return e.multiply(e.trigonometric("sin", a), e.inverse(e.trigonometric("cos", a)))


def _cotangent(e: Evaluator, a: Value) -> Value:
    return e.multiply(e.trigonometric("cos", a), e.inverse(e.trigonometric("sin", a)))


def _root(e: Evaluator, args: list[Value]) -> Value:
    base, degree = args
    whole = degree.number
    if isinstance(whole, mpfr) and whole == gmpy2.rint(whole) and 0 < whole < 10**6:
        count = int(whole)
        if isinstance(base.number, mpfr) and base.number < 0 and count % 2 == 1:
            positive = _root(e, [Value(-base.number, base.error), degree])
            return Value(-positive.number, positive.error)
        if e.is_zero(base):
            return Value(mpfr(0, e.bits), max(base.error // count, EXACT))
    return e._real_power(base, e.inverse(degree), None)  # noqa: SLF001


def _log(e: Evaluator, args: list[Value]) -> Value:
    if len(args) == 1:
        return e.log(args[0])
    return e.multiply(e.log(args[0]), e.inverse(e.log(args[1])))


def _extreme(largest: bool) -> Callable[[Evaluator, list[Value]], Value]:
    def pick(e: Evaluator, args: list[Value]) -> Value:
        if any(isinstance(arg.number, mpc) for arg in args):
            raise Unsupported("the order of complex numbers")
        return (max if largest else min)(args, key=lambda arg: arg.number)

    return pick


def _binomial(e: Evaluator, args: list[Value]) -> Value:
    n, k = args
    below = e.multiply(e.gamma(k), e.gamma(e.subtract(n, k)))
    return e.multiply(e.gamma(n), e.inverse(below))


_ONE_ARGUMENT: dict[str, Callable[[Evaluator, Value], Value]] = {
    "sin": lambda e, a: e.trigonometric("sin", a),
    "cos": lambda e, a: e.trigonometric("cos", a),
    "tan": _tangent,
    "cot": _cotangent,
    "sec": _reciprocal("cos"),
    "csc": _reciprocal("sin"),
    "arcsin": lambda e, a: e.inverse_sine("asin", a),
    "arccos": lambda e, a: e.inverse_sine("acos", a),
    "arctan": lambda e, a: e.smooth("atan", a),
    "arccot": lambda e, a: e.subtract(Value(e.context.div_2exp(e.pi, 1), 1 - e.bits), e.smooth("atan", a)),
    "arcsec": lambda e, a: e.inverse_sine("acos", e.inverse(a)),
    "arccsc": lambda e, a: e.inverse_sine("asin", e.inverse(a)),
    "sinh": lambda e, a: e.smooth("sinh", a),
    "cosh": lambda e, a: e.smooth("cosh", a),
    "tanh": lambda e, a: e.smooth("tanh", a),
    "coth": lambda e, a: e.inverse(e.smooth("tanh", a)),
    "sech": lambda e, a: e.inverse(e.smooth("cosh", a)),
    "csch": lambda e, a: e.inverse(e.smooth("sinh", a)),
    "arcsinh": lambda e, a: e.smooth("asinh", a),
    "ln": lambda e, a: e.log(a),
    "abs": lambda e, a: e.absolute(a),
    "floor": lambda e, a: e.rounding("floor", a),
    "ceil": lambda e, a: e.rounding("ceil", a),
    "factorial": lambda e, a: e.gamma(a),
    "degree": lambda e, a: e.multiply(a, e.multiply(Value(e.pi, 2 - e.bits), e.of(mpq(1, 180)))),
    "Re": lambda e, a: Value(a.number.real, a.error),
    "Im": lambda e, a: Value(a.number.imag, a.error),
}
_SEVERAL_ARGUMENTS: dict[str, Callable[[Evaluator, list[Value]], Value]] = {
    "root": _root,
    "log": _log,
    "max": _extreme(True),
    "min": _extreme(False),
    "binom": _binomial,
}

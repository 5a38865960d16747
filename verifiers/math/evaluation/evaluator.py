"""Expressions to numbers: a tree's value at a point, with a bound on its error (`arithmetic`).

Not covered: integrals, limits, and sums of more than MAX_SUM_TERMS terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gmpy2 import mpc, mpq

from truegold.verifiers.math.evaluation.balls import EXACT, Arithmetic, NeedsComplex, Unsupported, Value
from truegold.verifiers.math.evaluation.exact import rational, unit_interval
from truegold.verifiers.math.evaluation.special_functions import ONE_ARGUMENT, SEVERAL_ARGUMENTS
from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.tree import Add, Big, Call, Const, Measure, Mul, Node, Num, Pow, Sym

MAX_SUM_TERMS = 200
"""Of a sum or product that is added up. Stops `\\sum_{k=1}^{10^9}`."""

MAX_BOUND = 10**12
"""Of a sum. Stops bounds with thousands of digits."""

MAX_IRRATIONAL_BOUND = 10**6
"""Of a sum whose bound is whole only once it is worked out, as \\sqrt{16}^3."""

_HALF = mpq(1, 2)
_HUNDREDTH = mpq(1, 100)

Join: TypeAlias = Callable[[Value, Value], Value]


class Evaluator(Arithmetic):
    """Evaluates trees at one precision, over the reals or the complex numbers."""

    def value(self, node: Node, point: Mapping[str, Value]) -> Value:  # noqa: PLR0911, one for each kind of node
        """Raises Undefined, NeedsComplex, Unsupported or TooLarge."""
        if isinstance(node, Num):
            return self.of(node.value)
        if isinstance(node, Mul):
            return self._folded(self.multiply, node.factors, point)
        if isinstance(node, Add):
            return self._folded(self.add, node.terms, point)
        if isinstance(node, Pow):
            return self._pow(node, point)
        if isinstance(node, Sym) and node.name in point:
            return point[node.name]
        if isinstance(node, (Const, Sym)):
            return self._constant(node.name)
        if isinstance(node, Call):
            return self._call(node, point)
        if isinstance(node, Big):
            return self._big(node, point)
        if isinstance(node, Measure) and node.unit == PERCENT:
            return self.multiply(self.value(node.value, point), self.of(_HUNDREDTH))
        raise Unsupported(type(node).__name__)

    def _folded(self, join: Join, parts: tuple[Node, ...], point: Mapping[str, Value]) -> Value:
        total = self.value(parts[0], point)
        for part in parts[1:]:
            total = join(total, self.value(part, point))
        return total

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

    def _pow(self, node: Pow, point: Mapping[str, Value]) -> Value:
        exponent = rational(node.exponent)
        base = self.value(node.base, point)
        if exponent is not None:
            if exponent.denominator == 1:
                return self.whole_power(base, int(exponent))
            if exponent == _HALF:
                return self.sqrt(base)
        return self.power(base, self.value(node.exponent, point))

    def _call(self, node: Call, point: Mapping[str, Value]) -> Value:
        exact = rational(node)
        if exact is not None:
            return self.of(exact)
        args = [self.value(arg, point) for arg in node.args]
        if node.applied:
            return self._unknown(node.name, args)
        if len(args) == 1 and node.name in ONE_ARGUMENT:
            return ONE_ARGUMENT[node.name](self, args[0])
        if node.name in SEVERAL_ARGUMENTS:
            return SEVERAL_ARGUMENTS[node.name](self, args)
        raise Unsupported(node.name)

    def _unknown(self, name: str, args: list[Value]) -> Value:
        """An unknown function: any fixed number for given arguments, so that f(a+b) = f(b+a) and nothing more."""
        shown = ",".join(_digits(arg.number) for arg in args)
        return self.of(mpq(unit_interval(f"{name}({shown})", 1)) + _HALF)

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
            if isinstance(number, mpc) or abs(number) > MAX_IRRATIONAL_BOUND or number != self.context.rint(number):
                raise Unsupported("a bound that is no whole number")
            return int(number)
        if exact.denominator != 1 or abs(exact) > MAX_BOUND:
            raise Unsupported("a bound that is no whole number")
        return int(exact)


def _digits(number: Any) -> str:
    if isinstance(number, mpc):
        return f"{_digits(number.real)}+{_digits(number.imag)}i"
    return f"{number:.20e}" if number else "0"

"""From expressions to numbers: a tree's value at a point, with a bound on its error (`balls`).

Not covered: integrals, limits, and sums of more than MAX_SUM_TERMS terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gmpy2 import mpc, mpq

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.evaluation.balls import EXACT, Arithmetic, Ball, NeedsComplex, Unsupported
from truegold.verifiers.math.evaluation.exact import rational, unit_interval
from truegold.verifiers.math.evaluation.special_functions import ONE_ARGUMENT, SEVERAL_ARGUMENTS
from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.tree import Add, Big, Call, Const, Measure, Mul, Node, Num, Pow, Sym

MAX_SUM_TERMS = 200
"""The longest sum or product that is worked out. Stops `\\sum_{k=1}^{10^9}`."""

MAX_BOUND = 10**12
"""The largest bound of a sum. Stops bounds with thousands of digits."""

MAX_IRRATIONAL_BOUND = 10**6
"""The largest bound that is whole only once it is worked out, as \\sqrt{16}^3."""

_SUM_STEPS, _TERM_STEPS = 10, 5
"""What a sum costs besides its terms, and each of them besides its own evaluation."""

_PRICE_FACTOR = {"factorial": 3, "binom": 9, "arcsin": 2, "arccos": 2, "arctan": 2, "arccot": 2, "arcsinh": 2}
"""How much dearer than others some functions are."""

_HALF = mpq(1, 2)
_HUNDREDTH = mpq(1, 100)

Join: TypeAlias = Callable[[Ball, Ball], Ball]


class Evaluator(Arithmetic):
    """Evaluates trees at one precision, over the reals or the complex numbers."""

    def value(self, node: Node, point: Mapping[str, Ball]) -> Ball:  # noqa: PLR0911, one for each kind of node
        """Return the value of a tree. Raises Undefined, NeedsComplex, Unsupported or TooLarge."""
        charge(self.node_steps)
        if isinstance(node, Num):
            return self.from_rational(node.value)
        if isinstance(node, Mul):
            return self._folded(self.multiply, node.factors, point)
        if isinstance(node, Add):
            return self._folded(self.add, node.terms, point)
        if isinstance(node, Pow):
            return self._power_value(node, point)
        if isinstance(node, Sym) and node.name in point:
            return point[node.name]
        if isinstance(node, (Const, Sym)):
            return self._constant_value(node.name)
        if isinstance(node, Call):
            return self._call_value(node, point)
        if isinstance(node, Big):
            return self._big_value(node, point)
        if isinstance(node, Measure) and node.unit == PERCENT:
            return self.multiply(self.value(node.value, point), self.from_rational(_HUNDREDTH))
        raise Unsupported(type(node).__name__)

    def _folded(self, join: Join, parts: tuple[Node, ...], point: Mapping[str, Ball]) -> Ball:
        total = self.value(parts[0], point)
        for part in parts[1:]:
            total = join(total, self.value(part, point))
        return total

    def _constant_value(self, name: str) -> Ball:
        if name == "pi":
            return Ball(self.pi, 2 - self.bits)
        if name == "e":
            return Ball(self.e, 2 - self.bits)
        if name == "i":
            if not self.complex:
                raise NeedsComplex
            return Ball(mpc(0, 1, (self.bits, self.bits)), EXACT)
        raise Unsupported(name)

    def _power_value(self, node: Pow, point: Mapping[str, Ball]) -> Ball:
        charge(self.function_steps)
        exponent = node.exponent.value if type(node.exponent) is Num else rational(node.exponent)
        base = self.value(node.base, point)
        if exponent is not None:
            if exponent.denominator == 1:
                return self.whole_power(base, int(exponent))
            if exponent == _HALF:
                return self.sqrt(base)
        return self.general_power(base, self.value(node.exponent, point))

    def _call_value(self, node: Call, point: Mapping[str, Ball]) -> Ball:
        exact = rational(node)
        if exact is not None:
            return self.from_rational(exact)
        args = [self.value(arg, point) for arg in node.args]
        charge(self.function_steps * _PRICE_FACTOR.get(node.name, 1))
        if node.applied:
            return self._unknown_value(node.name, args)
        if len(args) == 1 and node.name in ONE_ARGUMENT:
            return ONE_ARGUMENT[node.name](self, args[0])
        if node.name in SEVERAL_ARGUMENTS:
            return SEVERAL_ARGUMENTS[node.name](self, args)
        raise Unsupported(node.name)

    def _unknown_value(self, name: str, args: list[Ball]) -> Ball:
        """Return a fixed number for these arguments, so that f(a+b) = f(b+a) and nothing more is known of f."""
        shown = ",".join(_digits(arg.midpoint) for arg in args)
        return self.from_rational(mpq(unit_interval(f"{name}({shown})", 1)) + _HALF)

    def _big_value(self, node: Big, point: Mapping[str, Ball]) -> Ball:
        if node.kind not in ("sum", "prod") or node.low is None or node.high is None:
            raise Unsupported(node.kind)
        charge(_SUM_STEPS)
        low, high = self._whole_bound(node.low, point), self._whole_bound(node.high, point)
        if high - low >= MAX_SUM_TERMS:
            raise Unsupported(f"{high - low + 1} terms")
        charge(_TERM_STEPS * max(high - low + 1, 0))
        total = self.from_rational(mpq(node.kind == "prod"))
        join = self.add if node.kind == "sum" else self.multiply
        for index in range(low, high + 1):
            total = join(total, self.value(node.body, {**point, node.variable: self.from_rational(mpq(index))}))
        return total

    def _whole_bound(self, node: Node, point: Mapping[str, Ball]) -> int:
        exact = rational(node)
        if exact is None:
            bound = self.value(node, point).midpoint
            if isinstance(bound, mpc) or abs(bound) > MAX_IRRATIONAL_BOUND or bound != self.context.rint(bound):
                raise Unsupported("a bound that is no whole number")
            return int(bound)
        if exact.denominator != 1 or abs(exact) > MAX_BOUND:
            raise Unsupported("a bound that is no whole number")
        return int(exact)


def _digits(scalar: Any) -> str:
    if isinstance(scalar, mpc):
        return f"{_digits(scalar.real)}+{_digits(scalar.imag)}i"
    return f"{scalar:.20e}" if scalar else "0"

"""Calculates with balls: real and complex numbers of any precision, each with a bound on its error.

MPFR and MPC calculate at a fixed precision. Each number has a running bound on its error, a power of two (after Higham,
Accuracy and Stability of Numerical Algorithms, section 3.3). So a nonzero difference is distinguished from a rounding
error, and `10^{-200}` from 0. Arguments for which a library function would be slow are refused before the call.

There is no global state: every operation uses the context of its object. The operations raise Undefined if there is no
value, NeedsComplex if there is no real value, TooLarge beyond a limit, and Unsupported if the error has no known bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import gmpy2
from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.exact import Undefined, rational, unit_interval
from truegold.verifiers.math.measures import PERCENT
from truegold.verifiers.math.named_functions import NAMED, value_of
from truegold.verifiers.math.policy import TooLarge, charge
from truegold.verifiers.math.tree import Add, Big, Const, FunctionCall, Measure, Mul, Node, Num, Pow, Sym

EXACT = -(10**12)
"""The error exponent of a number without error."""

MAX_EXPONENT = 1 << 40
"""The largest exponent of an intermediate value. Stops towers of powers."""

MAX_REDUCED_BITS = 4_000
"""The largest exponent of an angle, and of the argument of a floor. Stops sin(10^10^5), which needs too many digits."""

MAX_GAMMA = 1e6
"""The largest argument of a factorial that is approximated."""


MAX_KNOWN_RATIONALS = 512
"""Maximum number of rationals that are cached for each precision. Only rationals with smaller parts are cached."""

MAX_DEGREE = 10**6
"""Roots of this degree or a higher one are computed as general powers."""
MAX_SUM_TERMS = 200
"""Maximum number of terms in a sum or a product. Stops `\\sum_{k=1}^{10^9}`."""
MAX_BOUND = 10**12
"""The largest bound of a sum. Stops bounds with thousands of digits."""
MAX_IRRATIONAL_BOUND = 10**6
"""The largest bound of a sum if the bound is a whole number with roots, such as \\sqrt{16}^3."""
_SUM_STEPS, _TERM_STEPS = 10, 5
"""Costs in steps of the verdict's budget (`policy`): `_SUM_STEPS` of a sum, `_TERM_STEPS` of choosing each term."""
MAX_SPECIAL_BITS = 400
"""The highest precision of special functions. Stops zeta, which takes a fifth of a second at 1,600 bits."""
_MAX_SPECIAL_EXPONENT = 12
"""The largest exponent of the argument of a special function."""
_NAMED_STEPS = 2_500
"""Cost of one function of mpmath, in steps of the budget."""
_PRICE_FACTOR = {
    "factorial": 3, "binom": 9, "arcsin": 2, "arccos": 2, "arctan": 2, "arccot": 2, "arcsinh": 2,
    "zeta": 150, "Gamma": 4, "beta": 12, "erf": 4, "erfc": 90,
}  # fmt: skip
"""Maps an expensive function to its cost, as a multiple of the cost of a usual function."""
_HALF = mpq(1, 2)
_HUNDREDTH = mpq(1, 100)


class NeedsComplex(Exception):
    """The expression has no real value."""


class Unsupported(Exception):
    """The expression cannot be evaluated with a bound on its error."""


class Ball(NamedTuple):
    """All numbers whose distance from `midpoint` is less than 2**error_exponent."""

    midpoint: Any
    """An mpfr or mpc number."""
    error_exponent: int
    """The binary exponent of the bound on the error."""


def exponent_of(scalar: Any) -> int:
    """Return the smallest e with |scalar| < 2**e. For a complex number, the larger of its two parts counts."""
    if isinstance(scalar, mpc):
        return max(exponent_of(scalar.real), exponent_of(scalar.imag))
    return gmpy2.get_exp(scalar) if scalar else EXACT


class Arithmetic:
    """Calculates with balls at one precision, over the reals or the complex numbers."""

    def __init__(self, bits: int, complex_: bool = False) -> None:
        self.bits = bits
        self.complex = complex_
        self.node_steps = 2 + bits // 300
        """Cost of one sum or product, in steps of the budget."""
        self.function_steps = bits // (6 if complex_ else 12)
        """Cost of one power, root or known function, in steps of the budget."""
        self.context = gmpy2.context(
            precision=bits, emin=gmpy2.get_emin_min(), emax=gmpy2.get_emax_max(), allow_complex=complex_
        )
        self._rationals: dict[mpq, Ball] = {}
        self.pi = self.context.const_pi()
        self.e = self.context.exp(mpfr(1, bits))

    def from_rational(self, value: mpq) -> Ball:
        """Return the ball of a rational number. Small ones are cached."""
        if (ball := self._rationals.get(value)) is None:
            midpoint = mpfr(value, self.bits)
            exact = value.denominator == 1 and value.numerator.bit_length() <= self.bits
            ball = Ball(midpoint, EXACT if exact else exponent_of(midpoint) - self.bits)
            is_small = abs(value.numerator) < MAX_KNOWN_RATIONALS and value.denominator < MAX_KNOWN_RATIONALS
            if is_small and len(self._rationals) < MAX_KNOWN_RATIONALS:
                self._rationals[value] = ball
        return ball

    def from_complex(self, value: complex) -> Ball:
        """Return the ball of an exact complex number. Raises NeedsComplex over the reals."""
        if not self.complex:
            raise NeedsComplex
        return Ball(mpc(value, precision=(self.bits, self.bits)), EXACT)

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
        """Tell whether the ball may contain zero."""
        return exponent_of(a.midpoint) <= a.error_exponent + 1

    def _rounded(self, midpoint: Any, error_exponent: int) -> Ball:
        """Return the ball of a rounded result. Raises TooLarge."""
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
        """Return the sine or cosine, given its name in gmpy2."""
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
        """Return the arcsine or arccosine, given its name in gmpy2."""
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
        if a.error_exponent == EXACT and a.midpoint in (1, -1):
            return self._rounded(midpoint, EXACT)
        return self._rounded(midpoint, relative // 2 + 3 if is_near_one else relative - min(room, 0) // 2 + 3)

    def smooth(self, name: str, a: Ball) -> Ball:
        """Return a function, given its name in gmpy2, whose slope is at most 1 or about equal to its value."""
        if exponent_of(a.midpoint) > 36 and name in ("sinh", "cosh"):
            raise TooLarge("a hyperbolic function of astronomical size")
        midpoint = getattr(self.context, name)(a.midpoint)
        return self._rounded(midpoint, max(a.error_exponent, -self.bits) + max(exponent_of(midpoint), 0) + 3)

    def special(self, name: str, a: Ball) -> Ball:
        """Return zeta, gamma, erf or erfc, given its name in gmpy2.

        The error is measured by evaluating at both ends of the argument's ball.
        """
        if isinstance(a.midpoint, mpc) or self.bits > MAX_SPECIAL_BITS:
            raise Unsupported(name)
        if exponent_of(a.midpoint) > _MAX_SPECIAL_EXPONENT:
            raise TooLarge(f"{name} of a large number")
        function = getattr(self.context, name)
        midpoint = function(a.midpoint)
        if not gmpy2.is_finite(midpoint):
            raise Undefined
        if a.error_exponent == EXACT:
            return self._rounded(midpoint, EXACT)
        step = self.context.pow(mpfr(2, self.bits), a.error_exponent)
        moved = [self.context.sub(function(self.context.add(a.midpoint, d)), midpoint) for d in (step, -step)]
        return self._rounded(midpoint, max(*map(exponent_of, moved), exponent_of(midpoint) - self.bits) + 3)

    def named(self, name: str, args: list[Ball]) -> Ball:
        """Return a function of `named_functions`. The error is measured at an end of the argument's ball."""
        *orders, last = args
        if self.bits > MAX_SPECIAL_BITS or any(isinstance(arg.midpoint, mpc) for arg in args):
            raise Unsupported(name)
        charge(_NAMED_STEPS)
        whole_orders = [order.midpoint for order in orders]
        points = [last.midpoint]
        if last.error_exponent != EXACT:
            step = self.context.pow(mpfr(2, self.bits), last.error_exponent)
            points.append(self.context.add(last.midpoint, step))
        values = [value_of(name, (*whole_orders, point), self.bits) for point in points]
        if None in values:
            raise Unsupported(name)
        midpoint, *moved = (
            self.context.mul(mpfr(mantissa, self.bits), self.context.exp2(mpfr(exponent, self.bits)))
            for mantissa, exponent in filter(None, values)
        )
        grown = max((exponent_of(self.context.sub(other, midpoint)) for other in moved), default=EXACT)
        return self._rounded(midpoint, max(grown, exponent_of(midpoint) - self.bits) + 4)

    def round_to_whole(self, name: str, a: Ball) -> Ball:
        """Return the floor or ceiling, given its name in gmpy2."""
        if isinstance(a.midpoint, mpc):
            raise Unsupported(name)
        if exponent_of(a.midpoint) > MAX_REDUCED_BITS:
            raise TooLarge("a whole part of astronomical size")
        nearest = self.context.rint(a.midpoint)
        may_be_next = a.error_exponent >= 0 or abs(a.midpoint - nearest) <= 2.0 ** max(a.error_exponent + 1, -1000)
        if may_be_next and a.error_exponent != EXACT:
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


OneArgument: TypeAlias = Callable[[Arithmetic, Ball], Ball]
"""A function of one ball."""
SeveralArguments: TypeAlias = Callable[[Arithmetic, list[Ball]], Ball]
"""A function of several balls."""


def _with_name(method: Callable[[Arithmetic, str, Ball], Ball], name: str) -> OneArgument:
    return lambda arithmetic, a: method(arithmetic, name, a)


def _reciprocal(function: OneArgument) -> OneArgument:
    return lambda arithmetic, a: arithmetic.inverse(function(arithmetic, a))


def _at_reciprocal(function: OneArgument) -> OneArgument:
    return lambda arithmetic, a: function(arithmetic, arithmetic.inverse(a))


def _quotient(above: OneArgument, below: OneArgument) -> OneArgument:
    return lambda arithmetic, a: arithmetic.divide(above(arithmetic, a), below(arithmetic, a))


_SIN, _COS = _with_name(Arithmetic.trigonometric, "sin"), _with_name(Arithmetic.trigonometric, "cos")
_ARCSIN, _ARCCOS = _with_name(Arithmetic.inverse_sine, "asin"), _with_name(Arithmetic.inverse_sine, "acos")
_ARCTAN, _ARCSINH = _with_name(Arithmetic.smooth, "atan"), _with_name(Arithmetic.smooth, "asinh")
_GAMMA, _ZETA, _ERF, _ERFC = (_with_name(Arithmetic.special, name) for name in ("gamma", "zeta", "erf", "erfc"))
_SINH, _COSH, _TANH = (_with_name(Arithmetic.smooth, name) for name in ("sinh", "cosh", "tanh"))


def _arccot(arithmetic: Arithmetic, a: Ball) -> Ball:
    half_pi = Ball(arithmetic.context.div_2exp(arithmetic.pi, 1), 1 - arithmetic.bits)
    return arithmetic.subtract(half_pi, _ARCTAN(arithmetic, a))


def _arctanh(arithmetic: Arithmetic, a: Ball) -> Ball:
    unit = arithmetic.from_rational(mpq(1))
    doubled = arithmetic.log(arithmetic.divide(arithmetic.add(unit, a), arithmetic.subtract(unit, a)))
    return arithmetic.multiply(doubled, arithmetic.from_rational(_HALF))


def _arccosh(arithmetic: Arithmetic, a: Ball) -> Ball:
    unit = arithmetic.from_rational(mpq(1))
    below, above = arithmetic.sqrt(arithmetic.subtract(a, unit)), arithmetic.sqrt(arithmetic.add(a, unit))
    return arithmetic.log(arithmetic.add(a, arithmetic.multiply(below, above)))


def _radians(arithmetic: Arithmetic, a: Ball) -> Ball:
    pi = Ball(arithmetic.pi, 2 - arithmetic.bits)
    return arithmetic.multiply(a, arithmetic.multiply(pi, arithmetic.from_rational(mpq(1, 180))))


def _root(arithmetic: Arithmetic, args: list[Ball]) -> Ball:
    """Return a root. Odd roots of negative numbers are real."""
    base, degree = args
    midpoint = degree.midpoint
    if isinstance(midpoint, mpfr) and midpoint == arithmetic.context.rint(midpoint) and 0 < midpoint < MAX_DEGREE:
        whole_degree = int(midpoint)
        if isinstance(base.midpoint, mpfr) and base.midpoint < 0 and whole_degree % 2 == 1:
            positive = _root(arithmetic, [Ball(arithmetic.context.minus(base.midpoint), base.error_exponent), degree])
            return Ball(arithmetic.context.minus(positive.midpoint), positive.error_exponent)
        if arithmetic.is_zero(base):
            return Ball(mpfr(0, arithmetic.bits), max(base.error_exponent // whole_degree, EXACT))
    return arithmetic.general_power(base, arithmetic.inverse(degree))


def _log(arithmetic: Arithmetic, args: list[Ball]) -> Ball:
    if len(args) == 1:
        return arithmetic.log(args[0])
    return arithmetic.divide(arithmetic.log(args[0]), arithmetic.log(args[1]))


def _extreme(choose: Callable[..., Ball]) -> SeveralArguments:
    def pick(_: Arithmetic, args: list[Ball]) -> Ball:
        if any(isinstance(arg.midpoint, mpc) for arg in args):
            raise Unsupported("the order of complex numbers")
        return choose(args, key=lambda arg: arg.midpoint)

    return pick


def _binomial(arithmetic: Arithmetic, args: list[Ball]) -> Ball:
    n, k = args
    below = arithmetic.multiply(arithmetic.factorial(k), arithmetic.factorial(arithmetic.subtract(n, k)))
    return arithmetic.divide(arithmetic.factorial(n), below)


def _beta(arithmetic: Arithmetic, args: list[Ball]) -> Ball:
    a, b = args
    above = arithmetic.multiply(_GAMMA(arithmetic, a), _GAMMA(arithmetic, b))
    return arithmetic.divide(above, _GAMMA(arithmetic, arithmetic.add(a, b)))


def _part(choose: Callable[[Any], Any]) -> OneArgument:
    def pick(arithmetic: Arithmetic, a: Ball) -> Ball:
        with gmpy2.context(arithmetic.context):
            return Ball(choose(a.midpoint), a.error_exponent)

    return pick


ONE_ARGUMENT: dict[str, OneArgument] = {
    "sin": _SIN, "cos": _COS, "tan": _quotient(_SIN, _COS), "cot": _quotient(_COS, _SIN), "sec": _reciprocal(_COS),
    "csc": _reciprocal(_SIN), "arcsin": _ARCSIN, "arccos": _ARCCOS, "arctan": _ARCTAN, "arccot": _arccot,
    "arcsec": _at_reciprocal(_ARCCOS), "arccsc": _at_reciprocal(_ARCSIN), "sinh": _SINH, "cosh": _COSH, "tanh": _TANH,
    "coth": _reciprocal(_TANH), "sech": _reciprocal(_COSH), "csch": _reciprocal(_SINH), "arcsinh": _ARCSINH,
    "ln": Arithmetic.log, "abs": Arithmetic.absolute, "factorial": Arithmetic.factorial, "degree": _radians,
    "floor": _with_name(Arithmetic.round_to_whole, "floor"), "ceil": _with_name(Arithmetic.round_to_whole, "ceil"),
    "Re": _part(lambda midpoint: midpoint.real), "Im": _part(lambda midpoint: midpoint.imag),
    "conj": _part(lambda midpoint: midpoint.conjugate()), "arctanh": _arctanh, "arccoth": _at_reciprocal(_arctanh),
    "arcsech": _at_reciprocal(_arccosh), "arccsch": _at_reciprocal(_ARCSINH), "arccosh": _arccosh,
    "Gamma": _GAMMA, "zeta": _ZETA, "erf": _ERF, "erfc": _ERFC,
}  # fmt: skip
"""Maps the name of a function of one argument to its evaluation."""
SEVERAL_ARGUMENTS: dict[str, SeveralArguments] = {
    "root": _root, "log": _log, "max": _extreme(max), "min": _extreme(min), "binom": _binomial,
    "beta": _beta,
}  # fmt: skip
"""Maps the name of a function of several arguments to its evaluation."""


Join: TypeAlias = Callable[[Ball, Ball], Ball]
"""A sum or a product of two balls."""


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
        if isinstance(node, FunctionCall):
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
        """Return pi, e or i. Raises Unsupported for other names."""
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
        """Return a power, by the most precise method for its exponent."""
        charge(self.function_steps)
        exponent = node.exponent.value if type(node.exponent) is Num else rational(node.exponent)
        base = self.value(node.base, point)
        if exponent is not None:
            if exponent.denominator == 1:
                return self.whole_power(base, int(exponent))
            if exponent == _HALF:
                return self.sqrt(base)
        return self.general_power(base, self.value(node.exponent, point))

    def _call_value(self, node: FunctionCall, point: Mapping[str, Ball]) -> Ball:
        """Return the value of a function of its arguments."""
        if (exact := rational(node)) is not None:
            return self.from_rational(exact)
        args = [self.value(arg, point) for arg in node.args]
        charge(self.function_steps * _PRICE_FACTOR.get(node.name, 1))
        if node.applied and node.name not in ONE_ARGUMENT:
            return self._unknown_value(node.name, args)
        if len(args) == 1 and node.name in ONE_ARGUMENT:
            return ONE_ARGUMENT[node.name](self, args[0])
        if node.name in SEVERAL_ARGUMENTS:
            return SEVERAL_ARGUMENTS[node.name](self, args)
        if node.name in NAMED:
            return self.named(node.name, args)
        raise Unsupported(node.name)

    def _unknown_value(self, name: str, args: list[Ball]) -> Ball:
        """Return a pseudorandom value of an unknown function. It depends only on the function's name and arguments.

        So f(a+b) equals f(b+a), but not f(a) + f(b).
        """
        shown = ",".join(_digits(arg.midpoint) for arg in args)
        return self.from_rational(mpq(unit_interval(f"{name}({shown})", 1)) + _HALF)

    def _big_value(self, node: Big, point: Mapping[str, Ball]) -> Ball:
        """Return a sum or a product, term by term."""
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
        if (exact := rational(node)) is None:
            bound = self.value(node, point).midpoint
            if isinstance(bound, mpc) or abs(bound) > MAX_IRRATIONAL_BOUND or bound != self.context.rint(bound):
                raise Unsupported("a bound that is not a whole number")
            return int(bound)
        if exact.denominator != 1 or abs(exact) > MAX_BOUND:
            raise Unsupported("a bound that is not a whole number")
        return int(exact)


def _digits(scalar: Any) -> str:
    if isinstance(scalar, mpc):
        return f"{_digits(scalar.real)}+{_digits(scalar.imag)}i"
    return f"{scalar:.20e}" if scalar else "0"

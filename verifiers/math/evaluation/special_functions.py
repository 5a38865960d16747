"""Known functions on balls, by name: those of one argument and those of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.evaluation.balls import EXACT, Arithmetic, Ball, Unsupported

MAX_DEGREE = 10**6
"""The largest degree of a root; above it the general power is taken, which has budgets of its own."""

OneArgument: TypeAlias = Callable[[Arithmetic, Ball], Ball]
SeveralArguments: TypeAlias = Callable[[Arithmetic, list[Ball]], Ball]


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
_SINH, _COSH, _TANH = (_with_name(Arithmetic.smooth, name) for name in ("sinh", "cosh", "tanh"))


def _arccot(arithmetic: Arithmetic, a: Ball) -> Ball:
    half_pi = Ball(arithmetic.context.div_2exp(arithmetic.pi, 1), 1 - arithmetic.bits)
    return arithmetic.subtract(half_pi, _ARCTAN(arithmetic, a))


def _radians(arithmetic: Arithmetic, a: Ball) -> Ball:
    pi = Ball(arithmetic.pi, 2 - arithmetic.bits)
    return arithmetic.multiply(a, arithmetic.multiply(pi, arithmetic.from_rational(mpq(1, 180))))


def _root(arithmetic: Arithmetic, args: list[Ball]) -> Ball:
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


ONE_ARGUMENT: dict[str, OneArgument] = {
    "sin": _SIN,
    "cos": _COS,
    "tan": _quotient(_SIN, _COS),
    "cot": _quotient(_COS, _SIN),
    "sec": _reciprocal(_COS),
    "csc": _reciprocal(_SIN),
    "arcsin": _ARCSIN,
    "arccos": _ARCCOS,
    "arctan": _ARCTAN,
    "arccot": _arccot,
    "arcsec": _at_reciprocal(_ARCCOS),
    "arccsc": _at_reciprocal(_ARCSIN),
    "sinh": _SINH,
    "cosh": _COSH,
    "tanh": _TANH,
    "coth": _reciprocal(_TANH),
    "sech": _reciprocal(_COSH),
    "csch": _reciprocal(_SINH),
    "arcsinh": _ARCSINH,
    "ln": Arithmetic.log,
    "abs": Arithmetic.absolute,
    "floor": _with_name(Arithmetic.round_to_whole, "floor"),
    "ceil": _with_name(Arithmetic.round_to_whole, "ceil"),
    "factorial": Arithmetic.factorial,
    "degree": _radians,
    "Re": lambda _, a: Ball(a.midpoint.real, a.error_exponent),
    "Im": lambda _, a: Ball(a.midpoint.imag, a.error_exponent),
}
SEVERAL_ARGUMENTS: dict[str, SeveralArguments] = {
    "root": _root,
    "log": _log,
    "max": _extreme(max),
    "min": _extreme(min),
    "binom": _binomial,
}

"""Known functions on numbers with error bounds: by name, those of one argument and those of several."""

from __future__ import annotations

from collections.abc import Callable

from gmpy2 import mpc, mpfr, mpq

from truegold.verifiers.math.evaluation.balls import EXACT, Arithmetic, Unsupported, Value

MAX_DEGREE = 10**6
"""Of a root. Above it, the general power is taken, which has budgets of its own."""


def _reciprocal(name: str) -> Callable[[Arithmetic, Value], Value]:
    return lambda e, a: e.inverse(e.trigonometric(name, a))


def _tangent(e: Arithmetic, a: Value) -> Value:
    return e.multiply(e.trigonometric("sin", a), e.inverse(e.trigonometric("cos", a)))


def _cotangent(e: Arithmetic, a: Value) -> Value:
    return e.multiply(e.trigonometric("cos", a), e.inverse(e.trigonometric("sin", a)))


def _root(e: Arithmetic, args: list[Value]) -> Value:
    base, degree = args
    whole = degree.number
    if isinstance(whole, mpfr) and whole == e.context.rint(whole) and 0 < whole < MAX_DEGREE:
        count = int(whole)
        if isinstance(base.number, mpfr) and base.number < 0 and count % 2 == 1:
            positive = _root(e, [Value(e.context.minus(base.number), base.error), degree])
            return Value(e.context.minus(positive.number), positive.error)
        if e.is_zero(base):
            return Value(mpfr(0, e.bits), max(base.error // count, EXACT))
    return e.power(base, e.inverse(degree))


def _log(e: Arithmetic, args: list[Value]) -> Value:
    if len(args) == 1:
        return e.log(args[0])
    return e.multiply(e.log(args[0]), e.inverse(e.log(args[1])))


def _extreme(largest: bool) -> Callable[[Arithmetic, list[Value]], Value]:
    def pick(e: Arithmetic, args: list[Value]) -> Value:
        if any(isinstance(arg.number, mpc) for arg in args):
            raise Unsupported("the order of complex numbers")
        return (max if largest else min)(args, key=lambda arg: arg.number)

    return pick


def _binomial(e: Arithmetic, args: list[Value]) -> Value:
    n, k = args
    below = e.multiply(e.gamma(k), e.gamma(e.subtract(n, k)))
    return e.multiply(e.gamma(n), e.inverse(below))


ONE_ARGUMENT: dict[str, Callable[[Arithmetic, Value], Value]] = {
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
SEVERAL_ARGUMENTS: dict[str, Callable[[Arithmetic, list[Value]], Value]] = {
    "root": _root,
    "log": _log,
    "max": _extreme(True),
    "min": _extreme(False),
    "binom": _binomial,
}

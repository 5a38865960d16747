"""The symbolic rung, inside its child process (`worker.py` starts it and keeps the deadline).

For each JSON line with two trees, `{"gold", "answer"}`, it prints a line `{"reason", "evidence"}`. Every node is built
by a named constructor of sympy; no text is ever parsed or evaluated. Running out of memory or stack ends the process,
because what such a failure leaves behind is not to be trusted with the next comparison.
"""

from __future__ import annotations

import os
from typing import Any

from truegold.verifiers.processes.child_serve import Conversation, limit_memory
from truegold.verifiers.verdict import Reason

MAX_MEMORY_BYTES = 2 << 30
"""The child's address space. Stops expressions that expand until the machine swaps."""

PROBE_DIGITS = 40
"""Two numbers are worked out to so many digits before they are believed to be equal."""

MAX_SHOWN_CHARS = 200
_EXIT_EXHAUSTED = 3
_SAME_NAME = {
    "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "exp", "factorial",
    "factorial2", "floor", "gcd", "lcm",
}  # fmt: skip
_OTHER_NAME = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot", "arcsec": "asec", "arccsc": "acsc",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "ln": "log", "log": "log", "abs": "Abs",
    "ceil": "ceiling", "sgn": "sign", "Re": "re", "Im": "im", "max": "Max", "min": "Min", "binom": "binomial",
    "root": "root",
}  # fmt: skip


def main() -> None:
    """Answer comparisons until the parent hangs up."""
    with Conversation() as conversation:
        _serve(conversation)


def _serve(conversation: Conversation) -> None:
    limit_memory(MAX_MEMORY_BYTES)
    try:
        import sympy  # noqa: F401
    except ImportError as error:
        conversation.reply({"error": str(error)})
        return
    conversation.reply({"ready": True})
    for request in conversation.requests():
        try:
            reply = compare(request["gold"], request["answer"])
        except (MemoryError, RecursionError):
            os._exit(_EXIT_EXHAUSTED)
        conversation.reply(reply)


def compare(gold: list[Any], answer: list[Any]) -> dict[str, Any]:
    """Return the reason and the evidence. Raises MemoryError and RecursionError."""
    try:
        gold_value, answer_value = _build(gold), _build(answer)
        same = _is_same(gold_value, answer_value)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # Whichever way sympy gives up on a pair, nothing shows the two equal.
        evidence = {"error": f"{type(error).__name__}: {error}"[:MAX_SHOWN_CHARS]}
        return {"reason": Reason.MISMATCH, "evidence": evidence}
    evidence = {"gold_value": str(gold_value)[:MAX_SHOWN_CHARS], "answer_value": str(answer_value)[:MAX_SHOWN_CHARS]}
    return {"reason": Reason.MATCH if same else Reason.MISMATCH, "evidence": evidence}


def _is_same(gold: Any, answer: Any) -> bool:
    import sympy

    gold, answer = gold.doit(), answer.doit()
    if gold == answer:
        return True
    if gold.is_number and answer.is_number:
        a, b = gold.evalf(PROBE_DIGITS), answer.evalf(PROBE_DIGITS)
        return bool(abs(a - b) <= max(abs(a), abs(b)) * 10 ** (5 - PROBE_DIGITS))
    if gold.has(sympy.Integral, sympy.Limit) != answer.has(sympy.Integral, sympy.Limit):
        return False
    return bool(sympy.simplify(gold - answer) == 0)


def _build(tree: list[Any]) -> Any:  # noqa: PLR0911, one for each kind of node
    import sympy

    kind, *rest = tree
    if kind == "num":
        return sympy.Rational(int(rest[0]), int(rest[1]))
    if kind == "const":
        return {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "inf": sympy.oo}[rest[0]]
    if kind == "sym":
        return sympy.Symbol(rest[0])
    if kind in ("add", "mul", "pow"):
        return {"add": sympy.Add, "mul": sympy.Mul, "pow": sympy.Pow}[kind](*map(_build, rest))
    if kind == "apply":
        return sympy.Function(rest[0])(*map(_build, rest[1:]))
    if kind == "call":
        return _build_call(rest[0], list(map(_build, rest[1:])))
    return _build_big(*rest)


def _build_call(name: str, args: list[Any]) -> Any:
    import sympy

    if name == "degree":
        return args[0] * sympy.pi / 180
    if name not in _SAME_NAME and name not in _OTHER_NAME:
        raise ValueError(f"no function {name}")
    return getattr(sympy, _OTHER_NAME.get(name, name))(*args)


def _build_big(kind: str, variable: str, low: list[Any] | None, high: list[Any] | None, body: list[Any]) -> Any:
    import sympy

    symbol, summand = sympy.Symbol(variable), _build(body)
    bounds = [_build(bound) for bound in (low, high) if bound is not None]
    if kind == "lim":
        return sympy.Limit(summand, symbol, bounds[0], "+-" if bounds[0].is_finite else "-")
    constructor = {"sum": sympy.Sum, "prod": sympy.Product, "int": sympy.Integral}[kind]
    return constructor(summand, (symbol, *bounds)) if bounds else constructor(summand, symbol)


if __name__ == "__main__":
    main()

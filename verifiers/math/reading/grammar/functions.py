"""Known functions and what they apply to: `\\sin 2x`, `\\sin^2 x`, `\\sin^{-1} x`, `\\log_2 8`, `sqrt(2)`, `max{1, 2}`.

Without brackets the argument is a product that ends before the next function, bracket or bar.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.reading.grammar.atoms import arguments
from truegold.verifiers.math.reading.grammar.brackets import braces
from truegold.verifiers.math.reading.grammar.cursor import Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import HALF, BareList, Call, Const, Node, Num, Pow, product_of

_INVERSES = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc",
    "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh",
}  # fmt: skip
_NO_ARGUMENT = frozenset({"op", "rel", "sep", "gap", "row", "cell", "close", "unbrace", "end", "stop"})
_CLOSING = {"(": ")", "[": "]"}


def function(reader: Grammar, name: str) -> Node:
    exponent: Node | None = None
    base: Node | None = None
    for _ in range(2):
        if reader.took("op", "^"):
            exponent = reader.script()
        elif reader.took("op", "_"):
            base = reader.script()
    if isinstance(exponent, Num) and exponent.value == -1 and name in _INVERSES:
        name, exponent = _INVERSES[name], None
    call = _call(name, base, _arguments(reader))
    return call if exponent is None else Pow(call, exponent)


def _call(name: str, base: Node | None, args: tuple[Node, ...]) -> Node:
    if name == "sqrt":
        return Pow(args[0], HALF)
    if name == "exp":
        return Pow(Const("e"), args[0])
    if name == "cbrt":
        return Call("root", (args[0], Num(mpq(3))))
    if name == "lg":
        return Call("log", (args[0], Num(mpq(10))))
    if name == "log" and base is not None:
        return Call("log", (args[0], base))
    return Call("binom" if name == "comb" else name, args)


def _arguments(reader: Grammar) -> tuple[Node, ...]:
    token = reader.peek()
    if token.kind == "open" and token.text in _CLOSING:
        reader.take()
        return arguments(reader, _CLOSING[token.text])
    if reader.took("brace"):
        inner = braces(reader)
        return inner.elements if isinstance(inner, BareList) else (inner,)
    if token.kind in _NO_ARGUMENT and not (token.kind == "op" and token.text in "+-±"):
        raise Unreadable("a function without an argument")
    factors = [reader.signed()]
    while reader.at_operand() and reader.peek().kind not in ("func", "bar"):
        if reader.at("open") and not isinstance(factors[-1], (Num, Const)):
            break
        factors.append(reader.power())
    return (product_of(factors),)

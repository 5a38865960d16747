"""Known functions and big operators, and what they apply to.

    \\sin 2x    \\sin^2 x    \\sin^{-1} x    \\log_2 8    sqrt(2)    max{1, 2}    \\sum_{k=1}^n k^2    \\int_0^1 x^2 dx

Without brackets the argument is a product that ends before the next function, bracket or bar.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.reading.grammar.atoms import read_arguments
from truegold.verifiers.math.reading.grammar.brackets import read_braces
from truegold.verifiers.math.reading.grammar.cursor import END
from truegold.verifiers.math.reading.grammar.levels import Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import (
    HALF,
    PLUS_ONE,
    BareList,
    Big,
    Call,
    Chain,
    Const,
    Node,
    Num,
    Pow,
    Sym,
    product_of,
)

_INVERSES = {
    "sin": "arcsin", "cos": "arccos", "tan": "arctan", "cot": "arccot", "sec": "arcsec", "csc": "arccsc",
    "sinh": "arcsinh", "cosh": "arccosh", "tanh": "arctanh",
}  # fmt: skip
_MAX_ARGUMENTS = 100
_ARITIES = {
    **dict.fromkeys(("binom", "comb", "perm"), (2, 2)),
    **dict.fromkeys(("gcd", "lcm", "max", "min"), (1, _MAX_ARGUMENTS)),
    "log": (1, 2),
}
"""The fewest and the most arguments of functions that do not have one."""

_NO_ARGUMENT = frozenset({"op", "rel", "sep", "gap", "row", "cell", "close", "unbrace", "end", "stop"})
_CLOSING = {"(": ")", "[": "]"}


def read_function(reader: Grammar, name: str) -> Node:
    """Read what stands behind the name of a function: its exponent, its base and its arguments."""
    exponent: Node | None = None
    base: Node | None = None
    for _ in range(2):
        if reader.take_if("op", "^"):
            exponent = reader.read_script()
        elif reader.take_if("op", "_"):
            base = reader.read_script()
    if isinstance(exponent, Num) and exponent.value == -1 and name in _INVERSES:
        name, exponent = _INVERSES[name], None
    call = _apply(name, base, _read_function_arguments(reader))
    return call if exponent is None else Pow(call, exponent)


def _apply(name: str, base: Node | None, args: tuple[Node, ...]) -> Node:  # noqa: PLR0911, one for each function
    fewest, most = _ARITIES.get(name, (1, 1))
    if not fewest <= len(args) <= most:
        raise Unreadable(f"{name} of {len(args)} arguments")
    if name == "sqrt":
        return Pow(args[0], HALF)
    if name == "exp":
        return Pow(Const("e"), args[0])
    if name == "cis":
        return Pow(Const("e"), product_of([Const("i"), args[0]]))
    if name == "cbrt":
        return Call("root", (args[0], Num(mpq(3))))
    if name == "lg":
        return Call("log", (args[0], Num(mpq(10))))
    if name == "log" and base is not None:
        return Call("log", (args[0], base))
    return Call("binom" if name == "comb" else name, args)


def _read_function_arguments(reader: Grammar) -> tuple[Node, ...]:
    token = reader.peek()
    if token.kind == "open" and token.text in _CLOSING:
        reader.take()
        return read_arguments(reader, _CLOSING[token.text])
    if reader.take_if("brace"):
        inner = read_braces(reader)
        return inner.elements if isinstance(inner, BareList) else (inner,)
    if token.kind in _NO_ARGUMENT and not (token.kind == "op" and token.text in "+-±"):
        raise Unreadable("a function without an argument")
    factors = [reader.read_signed()]
    while reader.operand_follows() and reader.peek().kind not in ("func", "bar"):
        if reader.next_is("open") and not isinstance(factors[-1], (Num, Const)):
            break
        factors.append(reader.read_power())
    return (product_of(factors),)


def read_big_operator(reader: Grammar, kind: str) -> Node:
    """Read what stands behind a sum, product, limit or integral: its bounds, its variable and its body."""
    low = high = None
    variable = ""
    for _ in range(2):
        if reader.take_if("op", "_"):
            low = reader.read_script()
            if isinstance(low, Chain) and low.operators[0] in ("=", "to") and isinstance(low.parts[0], Sym):
                variable, low = low.parts[0].name, low.parts[1]
        elif reader.take_if("op", "^"):
            high = reader.read_script()
    if kind == "int":
        return _read_integral(reader, low, high)
    if not variable or kind not in ("sum", "prod", "lim"):
        raise Unreadable(f"a {kind} whose variable is not given")
    return Big(kind, variable, low, high, reader.read_product())


def _read_integral(reader: Grammar, low: Node | None, high: Node | None) -> Node:
    """Read the body, which ends before the first `d` with a variable behind it that stands outside of all brackets."""
    depth, start, index = 0, reader.position, reader.position
    while (token := reader.tokens[index]) is not END:
        depth += (token.kind in ("open", "brace")) - (token.kind in ("close", "unbrace"))
        if depth < 0:
            break
        variable = reader.tokens[index + 1]
        if depth == 0 and token.kind == variable.kind == "name" and token.text == "d":
            body = reader.read_separately(reader.tokens[start:index], reader.depth) if index > start else PLUS_ONE
            reader.position = index + 2
            return Big("int", variable.text, low, high, body)
        index += 1
    raise Unreadable("an integral without its differential")

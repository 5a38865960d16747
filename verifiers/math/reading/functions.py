"""Parses functions with their arguments, and sums, products, limits and integrals with their bounds."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.named_functions import NAMED
from truegold.verifiers.math.policy import UnreadableAnswer
from truegold.verifiers.math.reading.brackets import read_arguments, read_braces
from truegold.verifiers.math.reading.grammar import END, Grammar
from truegold.verifiers.math.vocabulary import INVERSES

_MAX_ARGUMENTS = 100
"""Maximum number of arguments of `max`, `gcd` and the like."""
_ARITIES = {
    **dict.fromkeys(("beta", "binom", "comb", "perm"), (2, 2)),
    **dict.fromkeys(("diag", "gcd", "lcm", "max", "min"), (1, _MAX_ARGUMENTS)),
    "log": (1, 2),
    **dict.fromkeys(NAMED, (1, 2)),
}
"""The smallest and the largest number of arguments. Functions that are not listed take exactly one."""
_NO_ARGUMENT = frozenset({"op", "logic", "rel", "sep", "gap", "row", "cell", "close", "unbrace", "end", "stop"})
"""Kinds of tokens that do not begin an argument."""
_CLOSING_OF_CALL = {"(": ")", "[": "]"}
"""Maps the opening bracket of arguments to the closing one."""


def read_function(reader: Grammar, name: str) -> tree.Node:
    """Read a function after its name: exponent, base and arguments."""
    exponent: tree.Node | None = None
    base: tree.Node | None = None
    for _ in range(2):
        if reader.take_if("op", "^"):
            exponent = reader.read_script()
        elif reader.take_if("op", "_"):
            base = reader.read_script()
    if name in ("max", "min") and reader.next_is("rel"):
        return tree.Sym(name)
    if isinstance(exponent, tree.Num) and exponent.value == -1 and name in INVERSES:
        name, exponent = INVERSES[name], None
    call = _apply(name, base, _read_function_arguments(reader))
    return call if exponent is None else tree.Pow(call, exponent)


def _apply(name: str, base: tree.Node | None, args: tuple[tree.Node, ...]) -> tree.Node:  # noqa: PLR0911, one for each function
    """Return a function of its arguments. Some functions become powers or products."""
    fewest, most = _ARITIES.get(name, (1, 1))
    if not fewest <= len(args) <= most:
        raise UnreadableAnswer(f"{name} with {len(args)} arguments")
    if len(args) == 1 and isinstance(args[0], tree.Group) and args[0].opening == "{":
        # The braces of \\max\\{1, 2\\} and \\exp\\{x\\} are brackets.
        args = args[0].elements if name in ("max", "min") or len(args[0].elements) == 1 else args
    if name == "sinc":
        return tree.Mul((tree.FunctionCall("sin", args), tree.Pow(args[0], tree.MINUS_ONE)))
    if name == "sqrt":
        return tree.Pow(args[0], tree.HALF)
    if name == "exp":
        return tree.Pow(tree.Const("e"), args[0])
    if name == "cis":
        return tree.Pow(tree.Const("e"), tree.product_of([tree.Const("i"), args[0]]))
    if name == "cbrt":
        return tree.FunctionCall("root", (args[0], tree.Num(mpq(3))))
    if name == "lg":
        return tree.FunctionCall("log", (args[0], tree.Num(mpq(10))))
    if name == "log" and base is not None:
        return tree.FunctionCall("log", (args[0], base))
    return tree.FunctionCall("binom" if name == "comb" else name, args)


def _read_function_arguments(reader: Grammar) -> tuple[tree.Node, ...]:
    """Read arguments in brackets, or the factors after a function without brackets."""
    token = reader.peek()
    if token.kind == "open" and token.text in _CLOSING_OF_CALL:
        reader.take()
        return read_arguments(reader, _CLOSING_OF_CALL[token.text])
    if reader.take_if("brace"):
        inner = read_braces(reader)
        return inner.elements if isinstance(inner, tree.BareList) else (inner,)
    if token.kind in _NO_ARGUMENT and not (token.kind == "op" and token.text in "+-±"):
        raise UnreadableAnswer("a function without an argument")
    factors = [reader.read_signed()]
    while reader.operand_follows() and reader.peek().kind not in ("func", "bar"):
        if reader.next_is("open") and not isinstance(factors[-1], (tree.Num, tree.Const)):
            break
        if tree.symbols_of(factors) and reader.peek().text == "e" and reader.peek(1).text == "^":
            # The e^{-t} of \\sin\\frac{x}{L} e^{-t} is not part of the argument.
            break
        factors.append(reader.read_power())
    return (tree.product_of(factors),)


def read_big_operator(reader: Grammar, kind: str) -> tree.Node:
    """Read a sum, product, limit or integral after its sign: bounds, variable and body."""
    low = high = None
    variable = ""
    for _ in range(2):
        if reader.take_if("op", "_"):
            low = reader.read_script()
            if isinstance(low, tree.Chain) and low.operators[0] in ("=", "to") and isinstance(low.parts[0], tree.Sym):
                variable, low = low.parts[0].name, low.parts[1]
        elif reader.take_if("op", "^"):
            high = reader.read_script()
    if kind == "int":
        return _read_integral(reader, low, high)
    if not variable or kind not in ("sum", "prod", "lim"):
        raise UnreadableAnswer(f"a {kind} whose variable is not given")
    return tree.Big(kind, variable, low, high, reader.read_product())


def _read_integral(reader: Grammar, low: tree.Node | None, high: tree.Node | None) -> tree.Node:
    """Read the body of an integral, up to the first `dx` (with any variable) outside of all brackets."""
    depth, start, index = 0, reader.position, reader.position
    while (token := reader.tokens[index]) is not END:
        depth += (token.kind in ("open", "brace")) - (token.kind in ("close", "unbrace"))
        if depth < 0:
            break
        variable = reader.tokens[index + 1]
        if depth == 0 and token.kind == variable.kind == "name" and token.text == "d":
            body = reader.read_separately(reader.tokens[start:index], reader.depth) if index > start else tree.PLUS_ONE
            reader.position = index + 2
            return tree.Big("int", variable.text, low, high, body)
        index += 1
    raise UnreadableAnswer("an integral without its differential")

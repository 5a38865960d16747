"""Sums, products, limits and integrals: an operator, its bounds, its variable, its body."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.reading.grammar.cursor import END, Grammar
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import Big, Chain, Node, Num, Sym


def big_operator(reader: Grammar, kind: str) -> Node:
    low = high = None
    variable = ""
    for _ in range(2):
        if reader.took("op", "_"):
            low = reader.script()
            if isinstance(low, Chain) and low.operators[0] in ("=", "to") and isinstance(low.parts[0], Sym):
                variable, low = low.parts[0].name, low.parts[1]
        elif reader.took("op", "^"):
            high = reader.script()
    if kind == "int":
        return _integral(reader, low, high)
    if not variable or kind not in ("sum", "prod", "lim"):
        raise Unreadable(f"a {kind} whose variable is not given")
    return Big(kind, variable, low, high, reader.product())


def _integral(reader: Grammar, low: Node | None, high: Node | None) -> Node:
    """The body ends before the first `d` with a variable behind it that stands outside of all brackets."""
    depth, start, index = 0, reader.position, reader.position
    while (token := reader.tokens[index]) is not END:
        depth += (token.kind in ("open", "brace")) - (token.kind in ("close", "unbrace"))
        if depth < 0:
            break
        variable = reader.tokens[index + 1]
        if depth == 0 and token.kind == variable.kind == "name" and token.text == "d":
            body = reader.apart(reader.tokens[start:index], reader.depth) if index > start else Num(mpq(1))
            reader.position = index + 2
            return Big("int", variable.text, low, high, body)
        index += 1
    raise Unreadable("an integral without its differential")

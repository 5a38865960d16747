"""Small trees that several parts of the grammar build."""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math.tree import Measure, Mul, Node, Num

MINUS_ONE = Num(mpq(-1))
HALF = Num(mpq(1, 2))


def product_of(factors: list[Node]) -> Node:
    return factors[0] if len(factors) == 1 else Mul(tuple(factors))


def negated(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Measure):
        return Measure(negated(node.value), node.unit)
    return Mul((MINUS_ONE, node))

"""A tree with some of its variables renamed or replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gmpy2 import mpq

from truegold.verifiers.math.tree import (
    Add,
    BareList,
    Big,
    Call,
    Chain,
    Family,
    Group,
    Matrix,
    Measure,
    Mul,
    Node,
    Num,
    Pow,
    Ratio,
    SetOf,
    SetOps,
    Sym,
)


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    return replaced(node, {old: Sym(new) for old, new in names.items()})


def substituted(node: Node, name: str, value: Node) -> Node:
    return replaced(node, {name: value})


def replaced(node: Node, values: Mapping[str, Node]) -> Node:
    """Bound variables of sums stay as they are."""
    if isinstance(node, Sym):
        return values.get(node.name, node)
    if isinstance(node, Big):
        values = {name: value for name, value in values.items() if name != node.variable}
    return rebuilt(node, lambda part: replaced(part, values))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """`change` applied to every node, from the leaves up."""
    return change(rebuilt(node, lambda part: mapped(part, change)))


def with_log_base_ten(node: Node) -> Node:
    """Every `log` without a base to the base ten."""

    def based(part: Node) -> Node:
        if isinstance(part, Call) and part.name == "log" and len(part.args) == 1:
            return Call("log", (part.args[0], Num(mpq(10))))
        return part

    return mapped(node, based)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:  # noqa: PLR0911, PLR0912, one for each kind of node
    """`node` with `change` applied to each of its parts."""

    def each(parts: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(change(part) for part in parts)

    match node:
        case Add(terms):
            return Add(each(terms))
        case Mul(factors):
            return Mul(each(factors))
        case Pow(base, exponent):
            return Pow(change(base), change(exponent))
        case Call(name, args, applied):
            return Call(name, each(args), applied)
        case Big(kind, variable, low, high, body):
            bounds = [None if bound is None else change(bound) for bound in (low, high)]
            return Big(kind, variable, bounds[0], bounds[1], change(body))
        case Measure(value, unit):
            return Measure(change(value), unit)
        case BareList(items, joined):
            return BareList(each(items), joined)
        case Group(opening, closing, items):
            return Group(opening, closing, each(items))
        case Matrix(rows, bars):
            return Matrix(tuple(each(row) for row in rows), bars)
        case Chain(parts, operators):
            return Chain(each(parts), operators)
        case SetOps(operator, parts):
            return SetOps(operator, each(parts))
        case Ratio(parts):
            return Ratio(each(parts))
        case Family(body, parameters, conditions):
            return Family(change(body), parameters, each(conditions))
        case SetOf(element, condition):
            return SetOf(change(element), change(condition))
    return node

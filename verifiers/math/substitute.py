"""A tree with some of its parts replaced by others."""

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
    """Return the tree with other names for some of its variables."""
    return replaced(node, {old: Sym(new) for old, new in names.items()})


def substituted(node: Node, name: str, value: Node) -> Node:
    """Return the tree with `value` for the variable `name`."""
    return replaced(node, {name: value})


def replaced(node: Node, values: Mapping[str, Node]) -> Node:
    """Return the tree with other values for some of its variables; the bound variable of a sum stays as it is."""
    if isinstance(node, Sym):
        return values.get(node.name, node)
    if isinstance(node, Big):
        values = {name: value for name, value in values.items() if name != node.variable}
    return rebuilt(node, lambda part: replaced(part, values))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the tree with `change` applied to every node, from the leaves up."""
    return change(rebuilt(node, lambda part: mapped(part, change)))


def with_log_base_ten(node: Node) -> Node:
    """Return the tree with ten as the base of every `log` that has none."""

    def based(part: Node) -> Node:
        if isinstance(part, Call) and part.name == "log" and len(part.args) == 1:
            return Call("log", (part.args[0], Num(mpq(10))))
        return part

    return mapped(node, based)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:  # noqa: PLR0911, PLR0912, one for each kind of node
    """Return a copy of the node with `change` applied to each of its parts."""

    def changed(parts: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map(change, parts))

    match node:
        case Add(terms):
            return Add(changed(terms))
        case Mul(factors):
            return Mul(changed(factors))
        case Pow(base, exponent):
            return Pow(change(base), change(exponent))
        case Call(name, args, applied):
            return Call(name, changed(args), applied)
        case Big(kind, variable, low, high, body):
            bounds = [None if bound is None else change(bound) for bound in (low, high)]
            return Big(kind, variable, bounds[0], bounds[1], change(body))
        case Measure(value, unit):
            return Measure(change(value), unit)
        case BareList(elements, joined):
            return BareList(changed(elements), joined)
        case Group(opening, closing, elements):
            return Group(opening, closing, changed(elements))
        case Matrix(rows, bars):
            return Matrix(tuple(changed(row) for row in rows), bars)
        case Chain(parts, operators):
            return Chain(changed(parts), operators)
        case SetOps(operator, parts):
            return SetOps(operator, changed(parts))
        case Ratio(parts):
            return Ratio(changed(parts))
        case Family(body, parameters, conditions):
            return Family(change(body), parameters, changed(conditions))
        case SetOf(element, condition):
            return SetOf(change(element), change(condition))
    return node

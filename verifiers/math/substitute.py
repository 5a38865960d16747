"""A tree with some of its parts replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.tree import Node


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return the tree with other names for some of its variables."""
    return replaced(node, {old: tree.Sym(new) for old, new in names.items()})


def substituted(node: Node, name: str, value: Node) -> Node:
    """Return the tree with `value` for the variable `name`."""
    return replaced(node, {name: value})


def replaced(node: Node, values: Mapping[str, Node]) -> Node:
    """Return the tree with other values for some of its variables; the bound variable of a sum stays as it is."""
    if isinstance(node, tree.Sym):
        return values.get(node.name, node)
    if isinstance(node, tree.Big):
        values = {name: value for name, value in values.items() if name != node.variable}
    return _rebuilt(node, lambda part: replaced(part, values))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return the tree with `change` applied to every node, from the leaves up."""
    return change(_rebuilt(node, lambda part: mapped(part, change)))


def with_log_base_ten(node: Node) -> Node:
    """Return the tree with ten as the base of every `log` that has none."""

    def based(part: Node) -> Node:
        if isinstance(part, tree.Call) and part.name == "log" and len(part.args) == 1:
            return tree.Call("log", (part.args[0], tree.Num(mpq(10))))
        return part

    return mapped(node, based)


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:  # noqa: PLR0911, PLR0912, one for each kind of node
    """Return a copy of the node with `change` applied to each of its parts."""

    def changed(parts: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(map(change, parts))

    match node:
        case tree.Add(terms):
            return tree.Add(changed(terms))
        case tree.Mul(factors):
            return tree.Mul(changed(factors))
        case tree.Pow(base, exponent):
            return tree.Pow(change(base), change(exponent))
        case tree.Call(name, args, applied):
            return tree.Call(name, changed(args), applied)
        case tree.Big(kind, variable, low, high, body):
            bounds = [None if bound is None else change(bound) for bound in (low, high)]
            return tree.Big(kind, variable, bounds[0], bounds[1], change(body))
        case tree.Measure(value, unit):
            return tree.Measure(change(value), unit)
        case tree.BareList(elements, joined):
            return tree.BareList(changed(elements), joined)
        case tree.Group(opening, closing, elements):
            return tree.Group(opening, closing, changed(elements))
        case tree.Matrix(rows, bars):
            return tree.Matrix(tuple(changed(row) for row in rows), bars)
        case tree.Chain(parts, operators):
            return tree.Chain(changed(parts), operators)
        case tree.SetOps(operator, parts):
            return tree.SetOps(operator, changed(parts))
        case tree.Ratio(parts):
            return tree.Ratio(changed(parts))
        case tree.Family(body, parameters, conditions):
            return tree.Family(change(body), parameters, changed(conditions))
        case tree.SetOf(element, condition):
            return tree.SetOf(change(element), change(condition))
    return node

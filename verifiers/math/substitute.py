"""A tree with some of its parts substituted by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.tree import Node


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return the tree with other names for some of its variables."""
    return substituted(node, {old: tree.Sym(new) for old, new in names.items()})


def substituted(node: Node, values: Mapping[str, Node]) -> Node:
    """Return the tree with other values for some of its variables; the bound variable of a sum stays as it is."""
    if isinstance(node, tree.Sym):
        return values.get(node.name, node)
    if isinstance(node, tree.Big):
        values = {name: value for name, value in values.items() if name != node.variable}
    return _rebuilt(node, lambda part: substituted(part, values))


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


def _rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a copy of the node with `change` applied to each of its parts; a node without parts stays itself."""

    def changed(field: Any) -> Any:
        if isinstance(field, tuple):
            return tuple(map(changed, field))
        return change(field) if isinstance(field, Node) else field

    charge(2)
    if not tree.may_have_parts(node):
        return node
    return type(node)(*(changed(getattr(node, name)) for name in type(node).__slots__))

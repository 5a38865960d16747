"""How a tree was read, in one line of plain text, for the evidence of a verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from truegold.verifiers.math import tree
from truegold.verifiers.math.tree import CACHED_FACTS, Node

MAX_SHOWN_CHARS = 200


@lru_cache(maxsize=CACHED_FACTS)
def show(node: Node) -> str:
    """Return the tree in at most MAX_SHOWN_CHARS characters."""
    text = _show(node)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."


def _show(node: Node) -> str:
    return _SHOWN[type(node)](node)


def _show_all(nodes: tuple[Node, ...], mark: str = ", ") -> str:
    return mark.join(map(_show, nodes))


def _show_big(node: tree.Big) -> str:
    bounds = ", ".join("" if bound is None else _show(bound) for bound in (node.low, node.high))
    return f"{node.kind}({_show(node.body)}, {node.variable}, {bounds})"


def _show_chain(node: tree.Chain) -> str:
    words = [_show(node.parts[0])]
    for operator, part in zip(node.operators, node.parts[1:], strict=True):
        words += (operator, _show(part))
    return " ".join(words)


def _show_list(node: tree.BareList) -> str:
    return _show_all(node.elements, f"{node.joined} " if node.joined in ",;" else f" {node.joined} ")


def _show_product(factors: tuple[Node, ...]) -> str:
    """Show a*b/c rather than a*b*c^(-1)."""
    text = ""
    for factor in factors:
        if isinstance(factor, tree.Pow) and isinstance(factor.exponent, tree.Num) and factor.exponent.value == -1:
            text += f"/{_show_operand(factor.base)}" if text else f"1/{_show_operand(factor.base)}"
        else:
            text += f"*{_show_operand(factor)}" if text else _show_operand(factor)
    return text


def _show_clock(node: tree.Clock) -> str:
    if node.half in ("am", "pm"):
        return f"{node.minutes // 60 % 12 or 12}:{node.minutes % 60:02} {node.half}"
    return f"{node.minutes // 60}:{node.minutes % 60:02}"


def _show_operand(node: Node) -> str:
    return f"({_show(node)})" if isinstance(node, tree.Mul) else _show(node)


def _show_number(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:20]}...({len(text)} characters)"


_SHOWN: dict[type[Node], Callable[[Any], str]] = {
    tree.Num: lambda node: _show_number(node.value),
    tree.Const: lambda node: node.name,
    tree.Sym: lambda node: node.name,
    tree.Named: lambda node: node.name,
    tree.Add: lambda node: f"({_show_all(node.terms, ' + ')})",
    tree.Mul: lambda node: _show_product(node.factors),
    tree.Pow: lambda node: f"{_show(node.base)}^({_show(node.exponent)})",
    tree.Call: lambda node: f"{node.name}({_show_all(node.args)})",
    tree.Big: _show_big,
    tree.Sign: lambda node: "∓" if node.flipped else "±",
    tree.Measure: lambda node: f"{_show(node.value)} {node.unit}",
    tree.BareList: _show_list,
    tree.Group: lambda node: f"{node.opening}{_show_all(node.elements)}{node.closing}",
    tree.Matrix: lambda node: f"[{'; '.join(map(_show_all, node.rows))}]",
    tree.Chain: _show_chain,
    tree.SetOps: lambda node: _show_all(node.parts, f" {node.operator} "),
    tree.SetOf: lambda node: f"{{{_show(node.element)} | {_show(node.condition)}}}",
    tree.Ratio: lambda node: _show_all(node.parts, ":"),
    tree.BaseN: lambda node: f"{node.digits} base {node.base}",
    tree.Residues: lambda node: f"{node.label or '?'} = {_show_all(node.remainders)} mod {_show(node.modulus)}",
    tree.Clock: _show_clock,
    tree.Day: lambda node: "-".join(str(part or "?") for part in (node.year, node.month, node.day, node.weekday)),
    tree.Family: lambda node: f"{_show(node.body)} for integers {', '.join(sorted(node.parameters))}",
    tree.Text: lambda node: " ".join(node.words),
}

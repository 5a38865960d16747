"""How a tree was read, in one line of plain text, for the evidence of a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegold.verifiers.math.tree import (
    Add,
    BareList,
    BaseN,
    Big,
    Call,
    Chain,
    Clock,
    Const,
    Family,
    Group,
    Matrix,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    Pow,
    Ratio,
    SetOf,
    SetOps,
    Sign,
    Sym,
    Text,
)

MAX_SHOWN_CHARS = 200


def show(node: Node) -> str:
    """Return the tree in at most MAX_SHOWN_CHARS characters."""
    text = _show(node)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."


def _show(node: Node) -> str:
    return _SHOWN[type(node)](node)


def _show_all(nodes: tuple[Node, ...], mark: str = ", ") -> str:
    return mark.join(map(_show, nodes))


def _show_big(node: Big) -> str:
    bounds = ", ".join("" if bound is None else _show(bound) for bound in (node.low, node.high))
    return f"{node.kind}({_show(node.body)}, {node.variable}, {bounds})"


def _show_chain(node: Chain) -> str:
    words = [_show(node.parts[0])]
    for operator, part in zip(node.operators, node.parts[1:], strict=True):
        words += (operator, _show(part))
    return " ".join(words)


def _show_product(factors: tuple[Node, ...]) -> str:
    """Show a*b/c rather than a*b*c^(-1)."""
    text = ""
    for factor in factors:
        if isinstance(factor, Pow) and isinstance(factor.exponent, Num) and factor.exponent.value == -1:
            text += f"/{_show_operand(factor.base)}" if text else f"1/{_show_operand(factor.base)}"
        else:
            text += f"*{_show_operand(factor)}" if text else _show_operand(factor)
    return text


def _show_operand(node: Node) -> str:
    return f"({_show(node)})" if isinstance(node, Mul) else _show(node)


def _show_number(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:20]}...({len(text)} characters)"


_SHOWN: dict[type[Node], Callable[[Any], str]] = {
    Num: lambda node: _show_number(node.value),
    Const: lambda node: node.name,
    Sym: lambda node: node.name,
    Named: lambda node: node.name,
    Add: lambda node: f"({_show_all(node.terms, ' + ')})",
    Mul: lambda node: _show_product(node.factors),
    Pow: lambda node: f"{_show(node.base)}^({_show(node.exponent)})",
    Call: lambda node: f"{node.name}({_show_all(node.args)})",
    Big: _show_big,
    Sign: lambda node: "∓" if node.flipped else "±",
    Measure: lambda node: f"{_show(node.value)} {node.unit}",
    BareList: lambda node: _show_all(node.elements, f"{node.joined} " if node.joined in ",;" else f" {node.joined} "),
    Group: lambda node: f"{node.opening}{_show_all(node.elements)}{node.closing}",
    Matrix: lambda node: f"[{'; '.join(map(_show_all, node.rows))}]",
    Chain: _show_chain,
    SetOps: lambda node: _show_all(node.parts, f" {node.operator} "),
    SetOf: lambda node: f"{{{_show(node.element)} | {_show(node.condition)}}}",
    Ratio: lambda node: _show_all(node.parts, ":"),
    BaseN: lambda node: f"{node.digits} base {node.base}",
    Clock: lambda node: f"{node.minutes // 60 % 12 or 12}:{node.minutes % 60:02} {node.half}",
    Family: lambda node: f"{_show(node.body)} for integers {', '.join(sorted(node.parameters))}",
    Text: lambda node: " ".join(node.words),
}

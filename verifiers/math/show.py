"""How a tree was read, in one line of plain text, for the evidence of a verdict."""

from __future__ import annotations

from truegold.verifiers.math.tree import (
    Add,
    BaseN,
    Big,
    Call,
    Chain,
    Clock,
    Const,
    Family,
    Group,
    Items,
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

MAX_SHOWN = 200


def show(node: Node) -> str:
    """At most MAX_SHOWN characters."""
    text = _show(node)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _show(node: Node) -> str:  # noqa: PLR0911, PLR0912
    match node:
        case Num(value):
            return _number(value)
        case Const(name) | Sym(name) | Named(name):
            return name
        case Add(terms):
            return "(" + " + ".join(map(_show, terms)) + ")"
        case Mul(factors):
            return _quotient(factors)
        case Pow(base, exponent):
            return f"{_show(base)}^({_show(exponent)})"
        case Call(name, args):
            return f"{name}({', '.join(map(_show, args))})"
        case Big(kind, variable, low, high, body):
            bounds = ", ".join("" if bound is None else _show(bound) for bound in (low, high))
            return f"{kind}({_show(body)}, {variable}, {bounds})"
        case Sign(flipped):
            return "∓" if flipped else "±"
        case Measure(value, unit):
            return f"{_show(value)} {unit}"
        case Items(items, joined):
            return f"{joined} ".join(map(_show, items)) if joined in ",;" else f" {joined} ".join(map(_show, items))
        case Group(opening, closing, items):
            return f"{opening}{', '.join(map(_show, items))}{closing}"
        case Matrix(rows):
            return "[" + "; ".join(", ".join(map(_show, row)) for row in rows) + "]"
        case Chain(parts, operators):
            return " ".join(
                word for part, operator in zip(parts, (*operators, ""), strict=True) for word in (_show(part), operator)
            ).strip()
        case SetOps(operator, parts):
            return f" {operator} ".join(map(_show, parts))
        case SetOf(element, condition):
            return f"{{{_show(element)} | {_show(condition)}}}"
        case Ratio(parts):
            return ":".join(map(_show, parts))
        case BaseN(digits, base):
            return f"{digits} base {base}"
        case Clock(minutes, half):
            return f"{minutes // 60 % 12 or 12}:{minutes % 60:02} {half}"
        case Family(body, parameters):
            return f"{_show(body)} for integers {', '.join(sorted(parameters))}"
        case Text(words):
            return " ".join(words)


def _quotient(factors: tuple[Node, ...]) -> str:
    """a*b/c rather than a*b*c^(-1)."""
    text = ""
    for factor in factors:
        match factor:
            case Pow(base, Num(value)) if value == -1:
                text += f"/{_operand(base)}" if text else f"1/{_operand(base)}"
            case _:
                text += f"*{_operand(factor)}" if text else _operand(factor)
    return text


def _operand(node: Node) -> str:
    return f"({_show(node)})" if isinstance(node, Mul) else _show(node)


def _number(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:20]}...({len(text)} characters)"

r"""Sets of real numbers: intervals, inequalities, unions and what is left out of them, in one normal form.

    x \ge 1,   [1, \infty),   \{x : 1 \le x\}          one piece, closed at 1
    \mathbb{R}\setminus\{0\},   x \ne 0                two pieces

A set is a sorted list of pieces that do not touch. Endpoints are constants; with parameters in them (`(a, \infty)`)
there is no order, and only unions can be compared, piece by piece. Not covered: inequalities that need solving.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from gmpy2 import mpfr, mpq

from truegold.verifiers.math.identity import approximate
from truegold.verifiers.math.tree import (
    VALUES,
    Call,
    Chain,
    Const,
    Group,
    Items,
    Measure,
    Mul,
    Named,
    Node,
    Num,
    SetOf,
    SetOps,
    Sym,
    symbols,
)

MAX_PIECES = 64
"""Stops a union of thousands."""

_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
INFINITY = Const("inf")
MINUS_INFINITY = Mul((Num(mpq(-1)), INFINITY))


@dataclass(slots=True)
class End:
    """`at` is infinite or a number for ordering; None where a parameter leaves the order open."""

    node: Node
    closed: bool
    at: mpfr | None


@dataclass(slots=True)
class Piece:
    low: End
    high: End


class NoSet(Exception):
    """The node is no set of real numbers, or one that needs solving."""


SameEnd = Callable[[Node, Node], bool]


def looks_like_set(node: Node) -> bool:
    """Is it written as a set or a condition, rather than as a value, a list or a tuple?"""
    if isinstance(node, Chain):
        return node.operators[0] in ("<", ">", "<=", ">=", "!=", "in")
    if isinstance(node, Group):
        return (node.opening == "[" or node.closing == "]" or any(_infinite(item) for item in node.items)) and len(
            node.items
        ) == 2
    if isinstance(node, Items):
        return any(isinstance(item, Chain) and looks_like_set(item) for item in node.items)
    return isinstance(node, (SetOps, SetOf)) or (isinstance(node, Named) and node.name in ("reals", "empty"))


def pieces_of(node: Node) -> list[Piece]:
    """The normal form. Raises NoSet."""
    pieces = _pieces(node)
    if len(pieces) > MAX_PIECES:
        raise NoSet
    return _merged(pieces) if _ordered(pieces) else pieces


def same_set(gold: list[Piece], answer: list[Piece], same_end: SameEnd) -> bool:
    if len(gold) != len(answer):
        return False
    left = list(answer)
    for piece in gold:
        for candidate in left:
            if _same_piece(piece, candidate, same_end):
                left.remove(candidate)
                break
        else:
            return False
    return True


def _same_piece(a: Piece, b: Piece, same_end: SameEnd) -> bool:
    if (a.low.closed, a.high.closed) != (b.low.closed, b.high.closed):
        return False
    return same_end(a.low.node, b.low.node) and same_end(a.high.node, b.high.node)


def _pieces(node: Node) -> list[Piece]:  # noqa: PLR0911
    if isinstance(node, Named):
        if node.name == "reals":
            return [_piece(MINUS_INFINITY, False, INFINITY, False)]
        if node.name == "positive reals":
            return [_piece(Num(mpq(0)), False, INFINITY, False)]
        if node.name == "empty":
            return []
        raise NoSet
    if isinstance(node, Group):
        return _of_group(node)
    if isinstance(node, Chain):
        return _of_chain(node)
    if isinstance(node, SetOf):
        return _of_builder(node)
    if isinstance(node, SetOps):
        return functools.reduce(_OPERATIONS[node.operator], map(_pieces, node.parts))
    if isinstance(node, Items):
        return _of_conditions(node)
    raise NoSet


def _of_group(node: Group) -> list[Piece]:
    if node.opening == "{":
        if not all(isinstance(item, VALUES) for item in node.items):
            raise NoSet
        return [_piece(item, True, item, True) for item in node.items]
    if len(node.items) != 2 or node.opening not in "([]" or node.closing not in ")][":
        raise NoSet
    low, high = (item.value if isinstance(item, Measure) else item for item in node.items)
    if not (isinstance(low, VALUES) and isinstance(high, VALUES)):
        raise NoSet
    return [_piece(low, node.opening == "[" and not _infinite(low), high, node.closing == "]" and not _infinite(high))]


def _of_chain(node: Chain) -> list[Piece]:
    if node.operators == ("in",):
        return _pieces(node.parts[1])
    if any(operator not in _FLIP for operator in node.operators):
        raise NoSet
    at = _subject(node)
    result = [_piece(MINUS_INFINITY, False, INFINITY, False)]
    for index, operator in enumerate(node.operators):
        if index not in (at - 1, at):
            raise NoSet
        bound = node.parts[index + 1] if index == at else node.parts[index]
        bound = bound.value if isinstance(bound, Measure) else bound
        result = _common(result, _half_line(operator if index == at else _FLIP[operator], bound))
    return result


def _subject(node: Chain) -> int:
    """Which part is bounded: the only one that is no constant, or the only name."""
    open_parts = [
        i
        for i, part in enumerate(node.parts)
        if isinstance(part, VALUES) and symbols(part) or isinstance(part, Call) and part.applied
    ]
    if len(open_parts) == 1:
        return _single(node, open_parts[0])
    names = [i for i in open_parts if isinstance(node.parts[i], Sym) or isinstance(node.parts[i], Call)]
    if len(node.parts) == 3 and 1 in names:
        return 1
    if len(names) == 1:
        return names[0]
    if len(node.parts) == 2 and names == [0, 1]:  # x > a
        return 0
    raise NoSet


def _single(node: Chain, index: int) -> int:
    part = node.parts[index]
    if isinstance(part, Sym) or (isinstance(part, Call) and (part.applied or part.name in ())):
        return index
    raise NoSet


def _half_line(operator: str, bound: Node) -> list[Piece]:
    if isinstance(bound, Items) and operator == "!=":
        return functools.reduce(_common, [_half_line("!=", item) for item in bound.items])
    if not isinstance(bound, VALUES):
        raise NoSet
    finite = not _infinite(bound)
    if operator in ("<", "<="):
        return [_piece(MINUS_INFINITY, False, bound, operator == "<=" and finite)]
    if operator in (">", ">="):
        return [_piece(bound, operator == ">=" and finite, INFINITY, False)]
    if operator == "=":
        return [_piece(bound, True, bound, True)]
    return [_piece(MINUS_INFINITY, False, bound, False), _piece(bound, False, INFINITY, False)]


def _of_builder(node: SetOf) -> list[Piece]:
    pieces = _pieces(node.condition)
    if isinstance(node.element, Chain) and node.element.operators == ("in",):
        pieces = _common(_pieces(node.element.parts[1]), pieces)
    elif not isinstance(node.element, Sym):
        raise NoSet
    return pieces


def _of_conditions(node: Items) -> list[Piece]:
    """Conditions on one variable: `or` joins, `and` cuts, a comma does what leaves something."""
    parts = list(map(_pieces, node.items))
    if node.joined == "or":
        return functools.reduce(_union, parts)
    common = functools.reduce(_common, parts)
    return common if common or node.joined == "and" else functools.reduce(_union, parts)


def _piece(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Piece:
    return Piece(End(low, low_closed, _position(low)), End(high, high_closed, _position(high)))


def _position(node: Node) -> mpfr | None:
    if _infinite(node):
        return mpfr("inf") if node is INFINITY or isinstance(node, Const) else mpfr("-inf")
    return approximate(node)


def _infinite(node: Node) -> bool:
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Num):
        return _infinite(node.factors[1])
    return isinstance(node, Const) and node.name == "inf"


def _ordered(pieces: list[Piece]) -> bool:
    return all(end.at is not None for piece in pieces for end in (piece.low, piece.high))


def _need_order(*sets: list[Piece]) -> None:
    if not all(_ordered(pieces) for pieces in sets):
        raise NoSet


def _union(a: list[Piece], b: list[Piece]) -> list[Piece]:
    return [*a, *b]


def _common(a: list[Piece], b: list[Piece]) -> list[Piece]:
    if len(a) == 1 and _position(a[0].low.node) == mpfr("-inf") and _position(a[0].high.node) == mpfr("inf"):
        return b
    if not (_ordered(a) and _ordered(b)):
        return _common_open(a, b)
    found = []
    for p in a:
        for q in b:
            low = max(p.low, q.low, key=lambda end: (end.at, not end.closed))
            high = min(p.high, q.high, key=lambda end: (end.at, end.closed))
            assert low.at is not None and high.at is not None
            if low.at < high.at or (low.at == high.at and low.closed and high.closed):
                found.append(Piece(low, high))
    return found


def _common_open(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """a < x and x < b, whatever a and b are."""
    if len(a) == 1 and len(b) == 1:
        low = [p.low for p in (a[0], b[0]) if not _infinite(p.low.node)]
        high = [p.high for p in (a[0], b[0]) if not _infinite(p.high.node)]
        if len(low) <= 1 and len(high) <= 1:
            return [Piece(low[0] if low else a[0].low, high[0] if high else a[0].high)]
    raise NoSet


def _without(a: list[Piece], b: list[Piece]) -> list[Piece]:
    _need_order(a, b)
    for piece in b:
        outside = [
            Piece(End(MINUS_INFINITY, False, mpfr("-inf")), End(piece.low.node, not piece.low.closed, piece.low.at)),
            Piece(End(piece.high.node, not piece.high.closed, piece.high.at), End(INFINITY, False, mpfr("inf"))),
        ]
        a = [part for part in _common_pairs(a, outside) if part.low.at != part.high.at or part.low.closed]
    return a


def _common_pairs(a: list[Piece], b: list[Piece]) -> list[Piece]:
    found = []
    for p in a:
        for q in b:
            found.extend(_common([p], [q]) if not _infinite_piece(p) else [q] if _proper(q) else [])
    return found


def _infinite_piece(piece: Piece) -> bool:
    return piece.low.at == mpfr("-inf") and piece.high.at == mpfr("inf")


def _proper(piece: Piece) -> bool:
    assert piece.low.at is not None and piece.high.at is not None
    return bool(piece.low.at < piece.high.at)


def _merged(pieces: list[Piece]) -> list[Piece]:
    pieces = sorted(pieces, key=lambda piece: (piece.low.at, not piece.low.closed))
    merged: list[Piece] = []
    for piece in pieces:
        if merged:
            last = merged[-1]
            assert last.high.at is not None and piece.low.at is not None
            touches = last.high.at > piece.low.at or (
                last.high.at == piece.low.at and (last.high.closed or piece.low.closed)
            )
            if touches:
                high = max(last.high, piece.high, key=lambda end: (end.at, end.closed))
                merged[-1] = Piece(last.low, high)
                continue
        merged.append(piece)
    return merged


_OPERATIONS: dict[str, Callable[[list[Piece], list[Piece]], list[Piece]]] = {
    "cup": _union,
    "cap": _common,
    "minus": _without,
}

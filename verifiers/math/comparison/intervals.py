"""Sets of real numbers as pieces with two ends: what they have in common, their union, what is left out.

Ends are constants, or hold parameters (`at` is None): then there is no order, and little can be said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from gmpy2 import mpfr, mpq

from truegold.verifiers.math.evaluation.identity import approximate, infinity_sign
from truegold.verifiers.math.tree import Const, Mul, Node, Num

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


SameEnd: TypeAlias = Callable[[Node, Node], bool]


def same_set(gold: list[Piece], answer: list[Piece], same_end: SameEnd) -> bool:
    """Piece by piece, in any order; `same_end` compares the ends."""
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


def piece_of(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Piece:
    return Piece(End(low, low_closed, _position(low)), End(high, high_closed, _position(high)))


def _position(node: Node) -> mpfr | None:
    if is_infinite(node):
        return mpfr("inf") if infinity_sign(node) > 0 else mpfr("-inf")
    return approximate(node)


def is_infinite(node: Node) -> bool:
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Num):
        return is_infinite(node.factors[1])
    return isinstance(node, Const) and node.name == "inf"


def is_ordered(pieces: list[Piece]) -> bool:
    """No parameter leaves open which end comes first."""
    return all(end.at is not None for piece in pieces for end in (piece.low, piece.high))


def union(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Pieces may overlap until they are `merged`."""
    return [*a, *b]


def common(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """What lies in both. Raises NoSet where that depends on parameters."""
    if len(a) == 1 and _position(a[0].low.node) == mpfr("-inf") and _position(a[0].high.node) == mpfr("inf"):
        return b
    if not (is_ordered(a) and is_ordered(b)):
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
        low = [p.low for p in (a[0], b[0]) if not is_infinite(p.low.node)]
        high = [p.high for p in (a[0], b[0]) if not is_infinite(p.high.node)]
        if len(low) <= 1 and len(high) <= 1:
            return [Piece(low[0] if low else a[0].low, high[0] if high else a[0].high)]
    raise NoSet


def without(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """What lies in `a` alone. Raises NoSet where that depends on parameters."""
    if not (is_ordered(a) and is_ordered(b)):
        raise NoSet
    for piece in b:
        outside = [
            Piece(End(MINUS_INFINITY, False, mpfr("-inf")), End(piece.low.node, not piece.low.closed, piece.low.at)),
            Piece(End(piece.high.node, not piece.high.closed, piece.high.at), End(INFINITY, False, mpfr("inf"))),
        ]
        a = [part for part in _common_pairs(a, outside) if part.low.at != part.high.at or part.low.closed]
    return a


def _common_pairs(a: list[Piece], b: list[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for p in a:
        for q in b:
            if not _is_all(p):
                found.extend(common([p], [q]))
            elif _has_length(q):
                found.append(q)
    return found


def _is_all(piece: Piece) -> bool:
    return bool(piece.low.at == mpfr("-inf") and piece.high.at == mpfr("inf"))


def _has_length(piece: Piece) -> bool:
    assert piece.low.at is not None and piece.high.at is not None
    return bool(piece.low.at < piece.high.at)


def merged(pieces: list[Piece]) -> list[Piece]:
    """In order, with pieces that touch made one."""
    pieces = sorted(pieces, key=lambda piece: (piece.low.at, not piece.low.closed))
    found: list[Piece] = []
    for piece in pieces:
        if found:
            last = found[-1]
            assert last.high.at is not None and piece.low.at is not None
            touches = last.high.at > piece.low.at or (
                last.high.at == piece.low.at and (last.high.closed or piece.low.closed)
            )
            if touches:
                high = max(last.high, piece.high, key=lambda end: (end.at, end.closed))
                found[-1] = Piece(last.low, high)
                continue
        found.append(piece)
    return found

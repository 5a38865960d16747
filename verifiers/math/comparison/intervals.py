"""Sets of real numbers as pieces with two ends: what they have in common, their union, what is left out.

The ends are constants, or hold parameters. Then they have no position, and little can be concluded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from gmpy2 import mpfr

from truegold.verifiers.math.budget import charge
from truegold.verifiers.math.evaluation.identity import approximate, infinity_sign
from truegold.verifiers.math.tree import INFINITY, Const, Mul, Node, Num, negated

_PIECE_STEPS = 4
"""What it costs to see what two pieces have in common."""

MINUS_INFINITY = negated(INFINITY)


@dataclass(slots=True)
class End:
    """One end of a piece."""

    node: Node
    closed: bool
    """The end belongs to the piece."""
    position: mpfr | None
    """Where the end lies, which may be infinite; None where a parameter leaves that open."""


@dataclass(slots=True)
class Piece:
    """All numbers between two ends."""

    low: End
    high: End


class NoSet(Exception):
    """The node is no set of real numbers, or one that needs solving."""


SameEnd: TypeAlias = Callable[[Node, Node], bool]


def same_pieces(gold: list[Piece], answer: list[Piece], same_end: SameEnd) -> bool:
    """Compare piece by piece, in any order; `same_end` compares the ends."""
    if len(gold) != len(answer):
        return False
    unmatched = list(answer)
    charge(len(gold) * len(answer))
    for piece in gold:
        for candidate in unmatched:
            if _same_piece(piece, candidate, same_end):
                unmatched.remove(candidate)
                break
        else:
            return False
    return True


def _same_piece(a: Piece, b: Piece, same_end: SameEnd) -> bool:
    if (a.low.closed, a.high.closed) != (b.low.closed, b.high.closed):
        return False
    return same_end(a.low.node, b.low.node) and same_end(a.high.node, b.high.node)


def piece_of(low: Node, low_closed: bool, high: Node, high_closed: bool) -> Piece:
    """Return the piece between two ends."""
    return Piece(End(low, low_closed, _position(low)), End(high, high_closed, _position(high)))


def _position(node: Node) -> mpfr | None:
    if is_infinite(node):
        return mpfr("inf") if infinity_sign(node) > 0 else mpfr("-inf")
    return approximate(node)


def is_infinite(node: Node) -> bool:
    """Tell whether a node is infinity or its opposite."""
    if isinstance(node, Mul) and len(node.factors) == 2 and isinstance(node.factors[0], Num):
        return is_infinite(node.factors[1])
    return isinstance(node, Const) and node.name == "inf"


def is_ordered(pieces: list[Piece]) -> bool:
    """Tell whether no parameter leaves open which end comes first."""
    return all(end.position is not None for piece in pieces for end in (piece.low, piece.high))


def union(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return the pieces of both sets, which may overlap until they are `merged`."""
    charge(len(a) + len(b))
    return [*a, *b]


def common(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return what lies in both. Raises NoSet where that depends on parameters."""
    if len(a) == 1 and _is_all(a[0]):
        return b
    return _common_ordered(a, b) if is_ordered(a) and is_ordered(b) else _common_unordered(a, b)


def _common_ordered(a: list[Piece], b: list[Piece]) -> list[Piece]:
    charge(_PIECE_STEPS * len(a) * len(b))
    shared = []
    for p, q in itertools.product(a, b):
        low = max(p.low, q.low, key=lambda end: (end.position, not end.closed))
        high = min(p.high, q.high, key=lambda end: (end.position, end.closed))
        assert low.position is not None and high.position is not None
        if low.position < high.position or (low.position == high.position and low.closed and high.closed):
            shared.append(Piece(low, high))
    return shared


def _common_unordered(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return what a < x and x < b have in common, whatever a and b are."""
    if len(a) == 1 and len(b) == 1:
        lows = [p.low for p in (a[0], b[0]) if not is_infinite(p.low.node)]
        highs = [p.high for p in (a[0], b[0]) if not is_infinite(p.high.node)]
        if len(lows) <= 1 and len(highs) <= 1:
            return [Piece(lows[0] if lows else a[0].low, highs[0] if highs else a[0].high)]
    raise NoSet


def without(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return what lies in `a` alone. Raises NoSet where that depends on parameters."""
    if not (is_ordered(a) and is_ordered(b)):
        raise NoSet
    for piece in b:
        outside = [
            Piece(
                End(MINUS_INFINITY, False, mpfr("-inf")), End(piece.low.node, not piece.low.closed, piece.low.position)
            ),
            Piece(End(piece.high.node, not piece.high.closed, piece.high.position), End(INFINITY, False, mpfr("inf"))),
        ]
        a = _common_ordered(a, outside)
    return a


def _is_all(piece: Piece) -> bool:
    return bool(piece.low.position == mpfr("-inf") and piece.high.position == mpfr("inf"))


def merged(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces in order, those that touch joined."""
    pieces = sorted(pieces, key=lambda piece: (piece.low.position, not piece.low.closed))
    joined: list[Piece] = []
    for piece in pieces:
        if joined:
            last = joined[-1]
            assert last.high.position is not None and piece.low.position is not None
            touches = last.high.position > piece.low.position or (
                last.high.position == piece.low.position and (last.high.closed or piece.low.closed)
            )
            if touches:
                high = max(last.high, piece.high, key=lambda end: (end.position, end.closed))
                joined[-1] = Piece(last.low, high)
                continue
        joined.append(piece)
    return joined

r"""Sets of real numbers: intervals, inequalities, unions and what is left out of them, in one normal form.

    x \ge 1,   [1, \infty),   \{x : 1 \le x\}          one piece, closed at 1
    \mathbb{R}\setminus\{0\},   x \ne 0                two pieces

A set is a sorted list of pieces that do not touch. Its ends are constants; with parameters in them (`(a, \infty)`) they
have no order, and only unions can be compared, piece by piece. Inequalities are solved as far
as `solving` goes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from truegold.verifiers.math.comparison.intervals import (
    MINUS_INFINITY,
    NoSet,
    Piece,
    common,
    is_infinite,
    is_ordered,
    merged,
    piece_of,
    union,
    without,
)
from truegold.verifiers.math.comparison.solving import solved
from truegold.verifiers.math.tree import (
    INFINITY,
    VALUES,
    ZERO,
    BareList,
    Call,
    Chain,
    Group,
    Measure,
    Named,
    Node,
    SetOf,
    SetOps,
    Sym,
    symbols,
)

MAX_PIECES = 64
"""The most pieces of one set. Stops a union of thousands."""

REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
"""Each relation, read from right to left."""

_CONDITIONS = frozenset({"<", ">", "<=", ">=", "!=", "in"})


def looks_like_set(node: Node) -> bool:
    """Tell whether a node is written as a set or a condition, rather than as a value, a list or a tuple."""
    if isinstance(node, Chain):
        return node.operators[0] in _CONDITIONS
    if isinstance(node, Group):
        like_interval = node.opening == "[" or node.closing == "]" or any(map(is_infinite, node.elements))
        return like_interval and len(node.elements) == 2
    if isinstance(node, BareList):
        return any(isinstance(element, Chain) and looks_like_set(element) for element in node.elements)
    return isinstance(node, (SetOps, SetOf)) or (isinstance(node, Named) and node.name in ("reals", "empty"))


def pieces_of(node: Node) -> list[Piece]:
    """Return the normal form of a set. Raises NoSet."""
    pieces = _pieces(node)
    if len(pieces) > MAX_PIECES:
        raise NoSet
    return merged(pieces) if is_ordered(pieces) else pieces


def _pieces(node: Node) -> list[Piece]:
    if isinstance(node, Named):
        return _pieces_of_name(node.name)
    if isinstance(node, Group):
        return _pieces_of_group(node)
    if isinstance(node, Chain):
        return _pieces_of_chain(node)
    if isinstance(node, SetOf):
        return _pieces_of_builder(node)
    if isinstance(node, SetOps):
        return functools.reduce(_OPERATIONS[node.operator], map(_pieces, node.parts))
    if isinstance(node, BareList):
        return _pieces_of_conditions(node)
    raise NoSet


def _pieces_of_name(name: str) -> list[Piece]:
    if name == "empty":
        return []
    if name not in ("reals", "positive reals"):
        raise NoSet
    return [piece_of(MINUS_INFINITY if name == "reals" else ZERO, False, INFINITY, False)]


def _pieces_of_group(node: Group) -> list[Piece]:
    if node.opening == "{":
        if not all(isinstance(element, VALUES) for element in node.elements):
            raise NoSet
        return [piece_of(element, True, element, True) for element in node.elements]
    if len(node.elements) != 2 or node.opening not in "([]" or node.closing not in ")][":
        raise NoSet
    low, high = (element.value if isinstance(element, Measure) else element for element in node.elements)
    if not (isinstance(low, VALUES) and isinstance(high, VALUES)):
        raise NoSet
    low_closed = node.opening == "[" and not is_infinite(low)
    return [piece_of(low, low_closed, high, node.closing == "]" and not is_infinite(high))]


def _pieces_of_chain(node: Chain) -> list[Piece]:
    if node.operators == ("in",):
        return _pieces(node.parts[1])
    if any(operator not in REVERSED for operator in node.operators):
        raise NoSet
    try:
        subject = _subject_index(node)
    except NoSet:
        return solved(node)
    pieces = [piece_of(MINUS_INFINITY, False, INFINITY, False)]
    for index, operator in enumerate(node.operators):
        if index not in (subject - 1, subject):
            raise NoSet
        bound = node.parts[index + 1] if index == subject else node.parts[index]
        bound = bound.value if isinstance(bound, Measure) else bound
        pieces = common(pieces, _half_line(operator if index == subject else REVERSED[operator], bound))
    return pieces


def _subject_index(node: Chain) -> int:
    """Return the index of the part that is bounded: the only one that is no constant, or the only name."""
    variables = [i for i, part in enumerate(node.parts) if _is_variable(part)]
    names = [i for i in variables if isinstance(node.parts[i], (Sym, Call))]
    if len(variables) == 1:
        part = node.parts[variables[0]]
        if isinstance(part, Sym) or (isinstance(part, Call) and part.applied):
            return variables[0]
        raise NoSet
    if len(node.parts) == 3 and 1 in names:
        return 1
    # In x > a, the first name is bounded.
    if len(names) == 1 or (len(node.parts) == 2 and names == [0, 1]):
        return names[0]
    raise NoSet


def _is_variable(part: Node) -> bool:
    return (isinstance(part, VALUES) and bool(symbols(part))) or (isinstance(part, Call) and part.applied)


def _half_line(operator: str, bound: Node) -> list[Piece]:
    if isinstance(bound, BareList) and operator == "!=":
        return functools.reduce(common, [_half_line("!=", element) for element in bound.elements])
    if not isinstance(bound, VALUES):
        raise NoSet
    finite = not is_infinite(bound)
    if operator in ("<", "<="):
        return [piece_of(MINUS_INFINITY, False, bound, operator == "<=" and finite)]
    if operator in (">", ">="):
        return [piece_of(bound, operator == ">=" and finite, INFINITY, False)]
    if operator == "=":
        return [piece_of(bound, True, bound, True)]
    return [piece_of(MINUS_INFINITY, False, bound, False), piece_of(bound, False, INFINITY, False)]


def _pieces_of_builder(node: SetOf) -> list[Piece]:
    pieces = _pieces(node.condition)
    if isinstance(node.element, Chain) and node.element.operators == ("in",):
        pieces = common(_pieces(node.element.parts[1]), pieces)
    elif not isinstance(node.element, Sym):
        raise NoSet
    return pieces


def _pieces_of_conditions(node: BareList) -> list[Piece]:
    """Join conditions on one variable by `or`, cut them by `and`; a comma does whichever leaves something."""
    parts = list(map(_pieces, node.elements))
    if node.joined == "or":
        return functools.reduce(union, parts)
    shared = functools.reduce(common, parts)
    return shared if shared or node.joined == "and" else functools.reduce(union, parts)


_OPERATIONS: dict[str, Callable[[list[Piece], list[Piece]], list[Piece]]] = {
    "cup": union,
    "cap": common,
    "minus": without,
}

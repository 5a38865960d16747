r"""Compares sets of real numbers: intervals, inequalities, unions, intersections and differences, in one normal form.

    x \ge 1,   [1, \infty),   \{x : 1 \le x\}          one piece, closed at 1
    \mathbb{R}\setminus\{0\},   x \ne 0                two pieces

The normal form is a sorted list of pieces that do not touch. If ends contain parameters (`(a, \infty)`), the pieces
cannot be sorted, and only unions can be compared. Inequalities are solved if they are linear or quadratic, or have one
absolute value, with rational coefficients: `2x > 6`, `x^2 < 4`, `|2x - 1| <= 3`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from gmpy2 import is_square, isqrt, mpfr, mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.formulas import same_formulas
from truegold.verifiers.math.comparison.lists import (
    TURNED,
    Comparison,
    elementwise,
    is_infinite,
    matched,
    same_ordered,
    says_other_connective,
)
from truegold.verifiers.math.comparison.relations import same_relations
from truegold.verifiers.math.comparison.single_values import same_values
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import approximate, infinity_sign
from truegold.verifiers.math.policy import OTHER_STRUCTURE, UNDECIDED, Sameness, charge

_PIECE_STEPS = 4
"""Cost of intersecting two pieces, in steps of the verdict's budget (`policy`)."""

MINUS_INFINITY = tree.negated(tree.INFINITY)

MAX_EXPONENT = 2
"""The highest degree of an inequality that is solved."""
_STRICT = frozenset({"<", ">", "!="})
"""Relations that exclude the bound."""
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}
"""Maps a relation to the relation with the sides swapped."""
MAX_PIECES = 64
"""Maximum number of pieces in a set. Stops unions of thousands of pieces."""


@dataclass(slots=True)
class PieceEnd:
    """One end of a piece."""

    node: tree.Node
    closed: bool
    """Whether the end belongs to the piece."""
    position: mpfr | None
    """The position of the end, which may be infinite. None if it depends on a parameter."""


@dataclass(slots=True)
class Piece:
    """All numbers between two ends."""

    low: PieceEnd
    high: PieceEnd


class NoSet(Exception):
    """The node is not a set of real numbers, or is an inequality that is not solved here."""


SameEnd: TypeAlias = Callable[[tree.Node, tree.Node], bool]


def same_pieces(gold: list[Piece], answer: list[Piece], same_end: SameEnd) -> bool:
    """Tell whether two sets have the same pieces, in any order. `same_end` compares the ends."""
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


def piece_of(low: tree.Node, low_closed: bool, high: tree.Node, high_closed: bool) -> Piece:
    """Return the piece between two ends."""
    return Piece(PieceEnd(low, low_closed, _position(low)), PieceEnd(high, high_closed, _position(high)))


def _position(node: tree.Node) -> mpfr | None:
    if is_infinite(node):
        return mpfr("inf") if infinity_sign(node) > 0 else mpfr("-inf")
    return approximate(node)


def is_ordered(pieces: list[Piece]) -> bool:
    """Tell whether the positions of all ends are known."""
    return all(end.position is not None for piece in pieces for end in (piece.low, piece.high))


def union(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return the pieces of both sets, which may overlap. (`merged` joins them.)"""
    charge(len(a) + len(b))
    return [*a, *b]


def common(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return the intersection of two sets. Raises NoSet if it depends on parameters."""
    if len(a) == 1 and _is_all(a[0]):
        return b
    return _common_ordered(a, b) if is_ordered(a) and is_ordered(b) else _common_unordered(a, b)


def _common_ordered(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return the intersection of two sets whose ends have known positions."""
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
    """Return the intersection of two pieces whose ends are not ordered, such as a < x and x < b. Raises NoSet."""
    if len(a) == 1 and len(b) == 1:
        lows = [p.low for p in (a[0], b[0]) if not is_infinite(p.low.node)]
        highs = [p.high for p in (a[0], b[0]) if not is_infinite(p.high.node)]
        if len(lows) <= 1 and len(highs) <= 1:
            return [Piece(lows[0] if lows else a[0].low, highs[0] if highs else a[0].high)]
    raise NoSet


def without(a: list[Piece], b: list[Piece]) -> list[Piece]:
    """Return the difference of two sets. Raises NoSet if it depends on parameters."""
    if not (is_ordered(a) and is_ordered(b)):
        raise NoSet
    for piece in b:
        low, high = (PieceEnd(end.node, not end.closed, end.position) for end in (piece.low, piece.high))
        below = Piece(PieceEnd(MINUS_INFINITY, False, mpfr("-inf")), low)
        above = Piece(high, PieceEnd(tree.INFINITY, False, mpfr("inf")))
        a = _common_ordered(a, [below, above])
    return a


def _is_all(piece: Piece) -> bool:
    return bool(piece.low.position == mpfr("-inf") and piece.high.position == mpfr("inf"))


def merged(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces in order, with touching pieces joined."""
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


def solved(chain: tree.Chain) -> list[Piece]:
    """Return the numbers that fulfil all relations of a chain. Raises NoSet for relations that are not solved here."""
    names = tree.symbols(chain)
    if len(names) != 1 or any(operator not in _REVERSED for operator in chain.operators):
        raise NoSet
    name = next(iter(names))
    pieces = [piece_of(MINUS_INFINITY, False, tree.INFINITY, False)]
    for left, operator, right in zip(chain.parts, chain.operators, chain.parts[1:], strict=False):
        pieces = common(pieces, _solved_relation(left, operator, right, name))
    return pieces


def _solved_relation(left: tree.Node, operator: str, right: tree.Node, name: str) -> list[Piece]:
    if isinstance(right, tree.FunctionCall) and right.name == "abs":
        left, operator, right = right, _REVERSED[operator], left
    if isinstance(left, tree.FunctionCall) and left.name == "abs" and len(left.args) == 1:
        return _solved_absolute(left.args[0], operator, right, name)
    return _where(_coefficients(tree.Add((left, tree.Mul((tree.MINUS_ONE, right)))), name), operator)


def _solved_absolute(inside: tree.Node, operator: str, bound: tree.Node, name: str) -> list[Piece]:
    """Solve |u| < c as -c < u < c, and |u| > c as u > c or u < -c."""
    if (limit := rational(bound)) is None or limit < 0:
        raise NoSet
    above = _where(_coefficients(tree.Add((inside, tree.Num(-limit))), name), operator)
    below = _where(_coefficients(tree.Add((inside, tree.Num(limit))), name), _REVERSED[operator])
    return common(above, below) if operator in ("<", "<=", "!=") else union(above, below)


def _coefficients(node: tree.Node, name: str) -> tuple[mpq, mpq, mpq]:
    """Return c, b and a of a polynomial ax^2 + bx + c. Raises NoSet for other nodes."""
    for part in tree.walk(node):
        exponent = rational(part.exponent) if isinstance(part, tree.Pow) else None
        is_whole_power = exponent is not None and (exponent in range(MAX_EXPONENT + 1) or not tree.symbols(part))
        if not (
            isinstance(part, (tree.Num, tree.Add, tree.Mul))
            or is_whole_power
            or (isinstance(part, tree.Sym) and part.name == name)
        ):
            raise NoSet
    values = [rational(tree.substituted(node, {name: tree.Num(mpq(point))})) for point in (0, 1, -1, 2, 3, -5)]
    if any(value is None for value in values):
        raise NoSet
    c, at_one, at_minus_one, *others = (value for value in values if value is not None)
    a = (at_one + at_minus_one) / 2 - c
    b = at_one - a - c
    if [a * point**2 + b * point + c for point in (2, 3, -5)] != others:
        raise NoSet
    return c, b, a


def _where(coefficients: tuple[mpq, mpq, mpq], operator: str) -> list[Piece]:
    """Return the solutions of `ax^2 + bx + c operator 0`, such as ax^2 + bx + c < 0."""
    c, b, a = coefficients
    roots = _roots(c, b, a)
    closed = operator not in _STRICT
    ends: list[tree.Node] = [MINUS_INFINITY, *roots, tree.INFINITY]
    # To the right of its last root, the polynomial has the sign of its leading coefficient. Simple roots change it.
    sign = next((1 if value > 0 else -1 for value in (a, b, c) if value), 0)
    if sign == 0:
        return [piece_of(MINUS_INFINITY, False, tree.INFINITY, False)] if closed else []
    is_double = a != 0 and len(roots) == 1
    pieces: list[Piece] = []
    for index in range(len(ends) - 2, -1, -1):
        if operator == "!=" or (sign > 0) == (operator in (">", ">=")):
            pieces.append(piece_of(ends[index], closed and index > 0, ends[index + 1], closed and index < len(roots)))
        sign = sign if is_double else -sign
    if closed:
        pieces.extend(piece_of(root, True, root, True) for root in roots)
    return pieces


def _roots(c: mpq, b: mpq, a: mpq) -> list[tree.Node]:
    """Return the real roots of ax^2 + bx + c in ascending order."""
    if a == 0:
        return [tree.Num(-c / b)] if b else []
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    middle = -b / (2 * a)
    if discriminant == 0:
        return [tree.Num(middle)]
    spread = discriminant / (4 * a * a)
    if is_square(spread.numerator) and is_square(spread.denominator):
        root = mpq(isqrt(spread.numerator), isqrt(spread.denominator))
        return [tree.Num(middle - root), tree.Num(middle + root)]
    half = tree.Pow(tree.Num(spread), tree.HALF)
    return [tree.Add((tree.Num(middle), tree.Mul((tree.MINUS_ONE, half)))), tree.Add((tree.Num(middle), half))]


def pieces_of(node: tree.Node) -> list[Piece]:
    """Return the normal form of a set. Raises NoSet."""
    pieces = _pieces(node)
    if len(pieces) > MAX_PIECES:
        raise NoSet
    return merged(pieces) if is_ordered(pieces) else pieces


def _pieces(node: tree.Node) -> list[Piece]:
    """Return the pieces of a set, which may overlap. Raises NoSet."""
    if isinstance(node, tree.Named):
        return _pieces_of_name(node.name)
    if isinstance(node, tree.Group):
        return _pieces_of_group(node)
    if isinstance(node, tree.Chain):
        return _pieces_of_chain(node)
    if isinstance(node, tree.SetOf):
        return _pieces_of_builder(node)
    if isinstance(node, tree.SetOps) and node.operator in _OPERATIONS:
        return functools.reduce(_OPERATIONS[node.operator], map(_pieces, node.parts))
    if isinstance(node, tree.BareList):
        return _pieces_of_conditions(node)
    raise NoSet


def _pieces_of_name(name: str) -> list[Piece]:
    if name == "empty":
        return []
    if name not in ("reals", "positive reals"):
        raise NoSet
    return [piece_of(MINUS_INFINITY if name == "reals" else tree.ZERO, False, tree.INFINITY, False)]


def _pieces_of_group(node: tree.Group) -> list[Piece]:
    """Return the pieces of an interval or of a finite set. Raises NoSet."""
    if node.opening == "{":
        if not all(isinstance(element, tree.VALUES) for element in node.elements):
            raise NoSet
        return [piece_of(element, True, element, True) for element in node.elements]
    if len(node.elements) != 2 or node.opening not in "([]" or node.closing not in ")][":
        raise NoSet
    low, high = (element.value if isinstance(element, tree.Measure) else element for element in node.elements)
    if not (isinstance(low, tree.VALUES) and isinstance(high, tree.VALUES)):
        raise NoSet
    low_closed = node.opening == "[" and not is_infinite(low)
    return [piece_of(low, low_closed, high, node.closing == "]" and not is_infinite(high))]


def _pieces_of_chain(node: tree.Chain) -> list[Piece]:
    """Return the pieces of a condition such as `1 < x <= 2`. Raises NoSet."""
    if node.operators == ("in",):
        return _pieces(node.parts[1])
    if any(operator not in TURNED for operator in node.operators):
        raise NoSet
    try:
        subject = _subject_index(node)
    except NoSet:
        return solved(node)
    pieces = [piece_of(MINUS_INFINITY, False, tree.INFINITY, False)]
    for index, operator in enumerate(node.operators):
        if index not in (subject - 1, subject):
            raise NoSet
        bound = node.parts[index + 1] if index == subject else node.parts[index]
        bound = bound.value if isinstance(bound, tree.Measure) else bound
        pieces = common(pieces, _half_line(operator if index == subject else TURNED[operator], bound))
    return pieces


def _subject_index(node: tree.Chain) -> int:
    """Return the index of the part that is bounded: the only part that is not a constant, or the only name."""
    variables = [i for i, part in enumerate(node.parts) if _is_variable(part)]
    names = [i for i in variables if isinstance(node.parts[i], (tree.Sym, tree.FunctionCall))]
    if len(variables) == 1:
        part = node.parts[variables[0]]
        if isinstance(part, tree.Sym) or (isinstance(part, tree.FunctionCall) and part.applied):
            return variables[0]
        raise NoSet
    if len(node.parts) == 3 and 1 in names:
        return 1
    # In x > a, the first name is the bounded one.
    if len(names) == 1 or (len(node.parts) == 2 and names == [0, 1]):
        return names[0]
    raise NoSet


def _is_variable(part: tree.Node) -> bool:
    return (isinstance(part, tree.VALUES) and bool(tree.symbols(part))) or (
        isinstance(part, tree.FunctionCall) and part.applied
    )


def _half_line(operator: str, bound: tree.Node) -> list[Piece]:
    """Return the numbers x for which `x operator bound` holds, as in x < 3. Raises NoSet."""
    if isinstance(bound, tree.BareList) and operator == "!=":
        return functools.reduce(common, [_half_line("!=", element) for element in bound.elements])
    if not isinstance(bound, tree.VALUES):
        raise NoSet
    finite = not is_infinite(bound)
    if operator in ("<", "<="):
        return [piece_of(MINUS_INFINITY, False, bound, operator == "<=" and finite)]
    if operator in (">", ">="):
        return [piece_of(bound, operator == ">=" and finite, tree.INFINITY, False)]
    if operator == "=":
        return [piece_of(bound, True, bound, True)]
    return [piece_of(MINUS_INFINITY, False, bound, False), piece_of(bound, False, tree.INFINITY, False)]


def _pieces_of_builder(node: tree.SetOf) -> list[Piece]:
    pieces = _pieces(node.condition)
    if isinstance(node.element, tree.Chain) and node.element.operators == ("in",):
        pieces = common(_pieces(node.element.parts[1]), pieces)
    elif not isinstance(node.element, tree.Sym) or node.element.name not in tree.symbols(node.condition):
        raise NoSet
    return pieces


def _pieces_of_conditions(node: tree.BareList) -> list[Piece]:
    """Return the set of several conditions on one variable.

    `or` makes a union, `and` an intersection. A comma makes an intersection, or a union if the intersection is empty.
    """
    letters = [tree.symbols(element) for element in node.elements if isinstance(element, tree.Chain)]
    if len(letters) > 1 and all(letters) and not frozenset.intersection(*letters):
        raise NoSet  # Conditions on different letters are not a set of numbers.
    parts = list(map(_pieces, node.elements))
    if node.joined == "or":
        return functools.reduce(union, parts)
    shared = functools.reduce(common, parts)
    return shared if shared or node.joined == "and" else functools.reduce(union, parts)


_OPERATIONS = {"cup": union, "cap": common, "minus": without}


def same_sets(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare two sides, at least one of which is a set of numbers or a condition. Raises TooLarge."""
    answer_set = tree.Group("{", "}", (answer,)) if isinstance(answer, tree.VALUES) else answer
    try:
        gold_pieces, answer_pieces = pieces_of(gold), pieces_of(answer_set)
    except NoSet:
        formulas = same_formulas(gold, answer) if tree.SetOps in (type(gold), type(answer)) else None
        return formulas if formulas is not None else _same_as_written(comparer, gold, answer)
    if not _subjects_agree(gold, answer):
        return OTHER_STRUCTURE
    same = same_pieces(gold_pieces, answer_pieces, lambda a, b: same_values(a, b, comparer.policy).same is True)
    return Sameness(same, "structure")


def _subjects_agree(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether two conditions are about the same coordinate: x > 3 is not y > 3."""
    gold_coordinate, answer_coordinate = _coordinate(gold), _coordinate(answer)
    return gold_coordinate is None or answer_coordinate is None or gold_coordinate == answer_coordinate


def _coordinate(node: tree.Node) -> str | None:
    if not isinstance(node, tree.Chain):
        return None
    names = [part.name for part in node.parts if isinstance(part, tree.Sym)]
    return names[0] if len(names) == 1 and names[0] in tree.COORDINATES else None


def _same_as_written(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:  # noqa: PLR0911, one for each shape
    """Compare sets that have no normal form, part by part."""
    if isinstance(gold, tree.SetOps) and isinstance(answer, tree.SetOps) and gold.operator == answer.operator:
        if len(gold.parts) != len(answer.parts):
            return UNDECIDED
        join = elementwise if gold.operator == "minus" else matched
        return join(comparer, gold.parts, answer.parts)
    if isinstance(gold, tree.SetOf) and isinstance(answer, tree.SetOf):
        return elementwise(comparer, [gold.element, gold.condition], [answer.element, answer.condition])
    if isinstance(gold, tree.Chain) or isinstance(answer, tree.Chain):
        return _same_conditions(comparer, gold, answer)
    if isinstance(gold, tree.Group) and isinstance(answer, tree.Group):
        same_brackets = (gold.opening, gold.closing) == (answer.opening, answer.closing)
        return same_ordered(comparer, gold, answer) if same_brackets else OTHER_STRUCTURE
    if (
        isinstance(gold, tree.BareList)
        and isinstance(answer, tree.BareList)
        and len(gold.elements) == len(answer.elements)
        and not says_other_connective(gold, answer)
    ):
        return matched(comparer, gold.elements, answer.elements)
    return OTHER_STRUCTURE


def _same_conditions(comparer: Comparison, gold: tree.Node, answer: tree.Node) -> Sameness:
    """Compare two conditions, or the S of `x \\in S` with a set."""
    if not (isinstance(gold, tree.Chain) and isinstance(answer, tree.Chain)):
        if isinstance(gold, tree.Chain) and gold.operators == ("in",):
            return comparer.same(gold.parts[1], answer)
        if isinstance(answer, tree.Chain) and answer.operators == ("in",):
            return comparer.same(gold, answer.parts[1])
    return same_relations(comparer, gold, answer)

r"""Inequalities that need solving, as far as roots of the second degree and absolute values go.

2x > 6           x^2 < 4          |2x - 1| <= 3          0 < |x| < 2

The coefficients are rational. Not covered: fractions, roots and functions of the unknown.
"""

from __future__ import annotations

from gmpy2 import is_square, isqrt, mpq

from truegold.verifiers.math.comparison.intervals import MINUS_INFINITY, NoSet, Piece, common, piece_of, union
from truegold.verifiers.math.evaluation.exact import rational
from truegold.verifiers.math.substitute import substituted
from truegold.verifiers.math.tree import (
    HALF,
    INFINITY,
    MINUS_ONE,
    Add,
    Call,
    Chain,
    Mul,
    Node,
    Num,
    Pow,
    Sym,
    symbols,
    walk,
)

MAX_EXPONENT = 2

_STRICT = frozenset({"<", ">", "!="})
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def solved(chain: Chain) -> list[Piece]:
    """Return the numbers that fulfil all relations of a chain. Raises NoSet where that takes more than this."""
    names = symbols(chain)
    if len(names) != 1 or any(operator not in _REVERSED for operator in chain.operators):
        raise NoSet
    name = next(iter(names))
    pieces = [piece_of(MINUS_INFINITY, False, INFINITY, False)]
    for left, operator, right in zip(chain.parts, chain.operators, chain.parts[1:], strict=False):
        pieces = common(pieces, _solved_relation(left, operator, right, name))
    return pieces


def _solved_relation(left: Node, operator: str, right: Node, name: str) -> list[Piece]:
    if isinstance(right, Call) and right.name == "abs":
        left, operator, right = right, _REVERSED[operator], left
    if isinstance(left, Call) and left.name == "abs" and len(left.args) == 1:
        return _solved_absolute(left.args[0], operator, right, name)
    return _where(_coefficients(Add((left, Mul((MINUS_ONE, right)))), name), operator)


def _solved_absolute(inside: Node, operator: str, bound: Node, name: str) -> list[Piece]:
    """Solve |u| < c as -c < u < c, and |u| > c as u > c or u < -c."""
    limit = rational(bound)
    if limit is None or limit < 0:
        raise NoSet
    above = _where(_coefficients(Add((inside, Num(-limit))), name), operator)
    below = _where(_coefficients(Add((inside, Num(limit))), name), _REVERSED[operator])
    return common(above, below) if operator in ("<", "<=", "!=") else union(above, below)


def _coefficients(node: Node, name: str) -> tuple[mpq, mpq, mpq]:
    """Return c, b and a of ax^2 + bx + c. Raises NoSet for what is no such polynomial."""
    for part in walk(node):
        is_whole_power = (
            isinstance(part, Pow)
            and (exponent := rational(part.exponent)) is not None
            and ((exponent.denominator == 1 and 0 <= exponent <= MAX_EXPONENT) or not symbols(part))
        )
        if not (isinstance(part, (Num, Add, Mul)) or is_whole_power or (isinstance(part, Sym) and part.name == name)):
            raise NoSet
    values = [rational(substituted(node, {name: Num(mpq(point))})) for point in (0, 1, -1, 2, 3, -5)]
    if any(value is None for value in values):
        raise NoSet
    c, at_one, at_minus_one, *others = (value for value in values if value is not None)
    a = (at_one + at_minus_one) / 2 - c
    b = at_one - a - c
    if [a * point**2 + b * point + c for point in (2, 3, -5)] != others:
        raise NoSet
    return c, b, a


def _where(coefficients: tuple[mpq, mpq, mpq], operator: str) -> list[Piece]:
    """Return where ax^2 + bx + c relates to 0 as the operator says."""
    c, b, a = coefficients
    roots = _roots(c, b, a)
    closed = operator not in _STRICT
    ends: list[Node] = [MINUS_INFINITY, *roots, INFINITY]
    # Right of its last root the polynomial has the sign of its first coefficient, and each simple root changes it.
    sign = next((1 if value > 0 else -1 for value in (a, b, c) if value), 0)
    if sign == 0:
        return [piece_of(MINUS_INFINITY, False, INFINITY, False)] if closed else []
    is_double = a != 0 and len(roots) == 1
    pieces: list[Piece] = []
    for index in range(len(ends) - 2, -1, -1):
        if operator == "!=" or (sign > 0) == (operator in (">", ">=")):
            pieces.append(piece_of(ends[index], closed and index > 0, ends[index + 1], closed and index < len(roots)))
        sign = sign if is_double else -sign
    if closed:
        pieces.extend(piece_of(root, True, root, True) for root in roots)
    return pieces


def _roots(c: mpq, b: mpq, a: mpq) -> list[Node]:
    if a == 0:
        return [Num(-c / b)] if b else []
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    middle = -b / (2 * a)
    if discriminant == 0:
        return [Num(middle)]
    spread = discriminant / (4 * a * a)
    if is_square(spread.numerator) and is_square(spread.denominator):
        root = mpq(isqrt(spread.numerator), isqrt(spread.denominator))
        return [Num(middle - root), Num(middle + root)]
    half = Pow(Num(spread), HALF)
    return [Add((Num(middle), Mul((MINUS_ONE, half)))), Add((Num(middle), half))]

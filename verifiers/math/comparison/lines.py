r"""Compares lines, which may be given by any of their points and any multiple of their direction. These are the same:

    (1,2) + t(3,4)          (4,6) + s(6,8)
    x = 1+2t, y = 3-t       x = 3-2s, y = 2+s
    (1,0,2) + t(2,1,1)      \frac{x-1}{2} = \frac{y}{1} = \frac{z-2}{1}

In the plane, gold must be written with vectors, because x = 2t, y = 3t may be a position at the time t. Not covered:
irrational coordinates, and planes with two parameters.
"""

from __future__ import annotations

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.comparison.arrays import rank, vector, worked_out
from truegold.verifiers.math.exact import rational

LINE_LETTERS = frozenset({"s", "t", "r", "u", "k", "lambda", "mu"})
"""Letters that may be the parameter of a line."""
_AXES = ["x", "y", "z"]
_PLANE = _AXES[:2]


def same_lines(gold: tree.Node, answer: tree.Node) -> bool:
    """Tell whether two sides are the same line."""
    if (
        isinstance(gold, (tree.Sym, tree.FunctionCall, tree.Num))
        or (line := _line(gold)) is None
        or (other := _line(answer)) is None
        or len(line[0]) != len(other[0])
    ):
        return False
    if len(line[0]) == len(_PLANE) and not any(
        isinstance(part, tree.Add) and _holds_vector(part) for part in tree.walk(gold)
    ):
        return False
    between = [a - b for a, b in zip(line[0], other[0], strict=True)]
    return any(line[1]) and any(other[1]) and rank([line[1], other[1], between]) == 1


def _holds_vector(node: tree.Add) -> bool:
    return any(vector(term) is not None for term in node.terms)


def _line(node: tree.Node) -> tuple[list[mpq], list[mpq]] | None:
    """Return a point and the direction of a line, or None if the node is not a line."""
    coordinates = _coordinates(node)
    letters = tree.symbols_of(coordinates)
    if len(coordinates) < 2 or len(letters) != 1 or not letters <= LINE_LETTERS:
        return None
    (letter,) = letters
    points: list[list[mpq]] = []
    for parameter in (0, 1, 3):
        values = (rational(tree.substituted(c, {letter: tree.Num(mpq(parameter))})) for c in coordinates)
        points.append([value for value in values if value is not None])
    if any(len(point) < len(coordinates) for point in points):
        return None
    start, second, third = points
    direction = [b - a for a, b in zip(start, second, strict=True)]
    is_straight = all(c - a == 3 * d for a, c, d in zip(start, third, direction, strict=True))
    return (start, direction) if is_straight else None


def _coordinates(node: tree.Node) -> tuple[tree.Node, ...]:
    """Return the coordinates of a line, each an expression of the parameter, or an empty tuple for other nodes."""
    if isinstance(node, tree.Chain):
        if len(node.parts) > 2 and set(node.operators) == {"="}:
            return _from_ratios(node)
        value = tree.labelled(node)[1]
        return () if value is None or isinstance(value, tree.Chain) else _coordinates(value)
    if isinstance(node, tree.BareList):
        labels = [tree.label_of(element) for element in node.elements]
        values = [tree.labelled(element)[1] for element in node.elements]
        known = tuple(value for value in values if isinstance(value, tree.VALUES))
        return known if labels == _AXES[: len(labels)] == _AXES[: len(known)] else ()
    return vector(worked_out(node)) or ()


def _from_ratios(node: tree.Chain) -> tuple[tree.Node, ...]:
    r"""Return 1+2t, t, 2+t for \frac{x-1}{2} = \frac{y}{1} = \frac{z-2}{1}."""
    terms: dict[str, tree.Node] = {}
    for part in node.parts:
        names = tree.symbols(part)
        values = [rational(tree.substituted(part, dict.fromkeys(names, tree.Num(mpq(i))))) for i in (0, 1, 3)]
        start, second, third = (mpq(0) if value is None else value for value in values)
        slope = second - start
        if len(names) != 1 or None in values or not slope or third - start != 3 * slope:
            return ()
        terms[next(iter(names))] = tree.Add((tree.Num(-start / slope), tree.Mul((tree.Num(1 / slope), tree.Sym("t")))))
    return tuple(terms[axis] for axis in _AXES) if sorted(terms) == _AXES else ()

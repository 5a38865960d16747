r"""Vectors and matrices that are written as sums and products.

2\begin{pmatrix}1\\2\end{pmatrix}, (1,2)+t(3,4)     worked out to one vector
2\mathbf{i}-3\mathbf{j}                             (2,-3), where the other side is a vector
[[1,2],[3,4]]                                       a matrix, where the other side is one
\begin{vmatrix}1&2\\3&4\end{vmatrix}                -2, where the other side is a value
"""

from __future__ import annotations

import itertools

from gmpy2 import mpq

from truegold.verifiers.math.identity import same_value
from truegold.verifiers.math.tree import (
    MINUS_ONE,
    PLUS_ONE,
    VALUES,
    ZERO,
    Add,
    Chain,
    Const,
    Group,
    Matrix,
    Mul,
    Node,
    Num,
    Pow,
    Sym,
    mapped,
    may_have_parts,
    product_of,
    walk,
)

MAX_CELLS = 100
"""The most cells of a matrix that is worked out. Stops products of large matrices."""

MAX_DETERMINANT_ROWS = 4

_ARRAYS = frozenset({Matrix, Group})
_COMPOSED = frozenset({Add, Mul, Pow})
_BASIS = ("i", "j", "k")
_TUPLE_OPENINGS = frozenset("(<[")


def worked_out(node: Node) -> Node:
    """Return the vector or matrix that a sum or a product is; any other node as it is."""
    return _worked_out(node) if _holds_array(node) else node


def with_vector_worked_out(node: Node) -> Node:
    """Return (x, y) = (1+3t, 2+t) for (x, y) = (1, 2) + t(3, 1)."""
    if isinstance(node, Chain) and node.operators == ("=",) and isinstance(node.parts[1], (Add, Mul)):
        return Chain((node.parts[0], worked_out(node.parts[1])), node.operators)
    return node


def as_array_beside(node: Node, other: Node) -> Node:
    """Return a node as the vector, matrix or value that it is beside the other side."""
    if isinstance(other, Matrix) and isinstance(node, Group) and (rows := _rows_of(node)) is not None:
        return Matrix(rows)
    if isinstance(node, Matrix) and node.bars and isinstance(other, VALUES):
        return _determinant(node) or node
    if isinstance(node, VALUES) and isinstance(other, (Matrix, Group)):
        size = _size_of_vector(other)
        coordinates = _coordinates(node, size) if size in (2, 3) else None
        return Group("(", ")", coordinates) if coordinates is not None else node
    return node


def _holds_array(node: Node) -> bool:
    """Tell whether an array stands in sums and products: quicker than what `facts` remembers of a node."""
    if (kind := type(node)) is Mul:
        parts = node.factors  # type: ignore[attr-defined]
    elif kind is Add:
        parts = node.terms  # type: ignore[attr-defined]
    elif kind is Pow:
        parts = (node.base,)  # type: ignore[attr-defined]
    else:
        return False
    for part in parts:
        kind = type(part)
        if kind in _ARRAYS or (kind in _COMPOSED and _holds_array(part)):
            return True
    return False


def _is_array(node: Node) -> bool:
    if isinstance(node, Matrix):
        return not node.bars
    return isinstance(node, Group) and node.opening in _TUPLE_OPENINGS and len(node.elements) > 1


def _worked_out(node: Node) -> Node:
    if isinstance(node, Add):
        return _added(node, [_worked_out(term) for term in node.terms])
    if isinstance(node, Mul):
        return _multiplied(node, [_worked_out(factor) for factor in node.factors])
    if isinstance(node, Pow) and isinstance(node.exponent, Sym) and node.exponent.name in ("T", "t"):
        rows = _cells(node.base)
        return (
            Matrix(tuple(zip(*rows, strict=True)))
            if rows is not None and len({len(row) for row in rows}) == 1
            else node
        )
    return node


def _added(node: Add, terms: list[Node]) -> Node:
    cells = [_cells(term) for term in terms]
    shapes = {tuple(len(row) for row in rows) if rows is not None else None for rows in cells}
    if len(shapes) != 1 or None in shapes:
        return node
    rows = tuple(
        tuple(Add(parts) for parts in zip(*(matrix[i] for matrix in cells if matrix), strict=True))
        for i in range(len(cells[0] or ()))
    )
    return _like(terms[0], rows)


def _multiplied(node: Mul, factors: list[Node]) -> Node:
    arrays = [factor for factor in factors if _is_array(factor)]
    scalars = [factor for factor in factors if not _is_array(factor)]
    is_point = len(scalars) == 1 and isinstance(scalars[0], Sym) and scalars[0].name[:1].isupper()
    if not arrays or is_point or not all(isinstance(scalar, VALUES) for scalar in scalars):
        return node
    product = arrays[0]
    for array in arrays[1:]:
        rows, columns = _cells(product), _cells(array)
        if not (isinstance(product, Matrix) and isinstance(array, Matrix)) or rows is None or columns is None:
            return node
        if any(len(row) != len(columns) for row in rows) or len(rows) * len(columns[0]) > MAX_CELLS:
            return node
        product = Matrix(tuple(tuple(_dot(row, column) for column in zip(*columns, strict=True)) for row in rows))
    rows = _cells(product)
    if not scalars or rows is None:
        return product
    return _like(product, tuple(tuple(product_of([*scalars, cell]) for cell in row) for row in rows))


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    return Add(tuple(Mul((a, b)) for a, b in zip(row, column, strict=True)))


def _cells(node: Node) -> tuple[tuple[Node, ...], ...] | None:
    """Return the rows of a matrix; a tuple is one row."""
    if isinstance(node, Group) and _is_array(node):
        return (node.elements,) if len(node.elements) <= MAX_CELLS else None
    if isinstance(node, Matrix) and not node.bars and sum(map(len, node.rows)) <= MAX_CELLS:
        return node.rows
    return None


def _like(shape: Node, rows: tuple[tuple[Node, ...], ...]) -> Node:
    return Group(shape.opening, shape.closing, rows[0]) if isinstance(shape, Group) else Matrix(rows)


def _rows_of(node: Group) -> tuple[tuple[Node, ...], ...] | None:
    """Return the rows of a matrix that is written as a tuple of tuples."""
    rows = [part.elements for part in node.elements if isinstance(part, Group) and part.opening in _TUPLE_OPENINGS]
    return tuple(rows) if rows and len(rows) == len(node.elements) and len({len(row) for row in rows}) == 1 else None


def _size_of_vector(node: Node) -> int:
    if isinstance(node, Group):
        return len(node.elements) if node.opening in "(<" else 0
    if isinstance(node, Matrix) and not node.bars:
        return len(node.rows) if all(len(row) == 1 for row in node.rows) else len(node.rows[0]) * (len(node.rows) == 1)
    return 0


def _coordinates(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return (2, -3) for 2i-3j; None for an expression that is no combination of the unit vectors."""
    if not (names := {_basis_name(part) for part in walk(node)} - {None}) or not names <= set(_BASIS[:size]):
        return None
    if names == {"i"} and size == 2 and not isinstance(node, (Const, Mul)):
        return None
    units = [tuple(PLUS_ONE if j == k else ZERO for k in range(size)) for j in range(size)]
    coordinates = tuple(_evaluated_for(node, unit) for unit in units)
    twice = _evaluated_for(node, tuple(Num(mpq(2)) for _ in range(size)))
    is_linear = same_value(_evaluated_for(node, (ZERO,) * size), ZERO).same is True
    is_linear = is_linear and same_value(twice, Mul((Num(mpq(2)), Add(coordinates)))).same is True
    return coordinates if is_linear else None


def _basis_name(node: Node) -> str | None:
    return node.name if isinstance(node, (Const, Sym)) and node.name in _BASIS else None


def _evaluated_for(node: Node, unit: tuple[Node, ...]) -> Node:
    def chosen(part: Node) -> Node:
        name = _basis_name(part)
        return unit[_BASIS.index(name)] if name is not None else part

    return chosen(node) if not may_have_parts(node) else mapped(node, chosen)


def _determinant(node: Matrix) -> Node | None:
    size = len(node.rows)
    if size > MAX_DETERMINANT_ROWS or any(len(row) != size for row in node.rows):
        return None
    terms: list[Node] = []
    for order in itertools.permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        factors = [node.rows[i][column] for i, column in enumerate(order)]
        terms.append(Mul((MINUS_ONE if swaps % 2 else PLUS_ONE, *factors)))
    return Add(tuple(terms))

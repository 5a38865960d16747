r"""Works out vectors and matrices: sums, products, transposes and determinants.

    2\begin{pmatrix}1\\2\end{pmatrix}       the vector (2, 4)
    (1,2) + t(3,4)                          the vector (1+3t, 2+4t)
    2\mathbf{i}-3\mathbf{j}                 (2,-3), where the other side is a vector
    [[1,2],[3,4]]                           a matrix, where the other side is one
    \begin{vmatrix}1&2\\3&4\end{vmatrix}    -2, where the other side is a value

Sums and products whose shapes do not fit stay as they are.
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
_UNIT_VECTORS = ("i", "j", "k")
_TUPLE_OPENINGS = frozenset("(<[")
_Rows = tuple[tuple[Node, ...], ...]


def worked_out(node: Node) -> Node:
    """Return the vector or matrix that a sum, a product or a transpose is; any other node as it is."""
    if isinstance(node, Add):
        return _added(node, [worked_out(term) for term in node.terms])
    if isinstance(node, Mul):
        return _multiplied(node, [worked_out(factor) for factor in node.factors])
    if isinstance(node, Pow) and isinstance(node.exponent, Sym) and node.exponent.name in ("T", "t"):
        rows = _cells(node.base)
        if rows is not None and len({len(row) for row in rows}) == 1:
            return Matrix(tuple(zip(*rows, strict=True)))
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


def _is_array(node: Node) -> bool:
    """Tell whether a node is a matrix or a tuple; a determinant is a value."""
    if isinstance(node, Matrix):
        return not node.bars
    return isinstance(node, Group) and node.opening in _TUPLE_OPENINGS and len(node.elements) > 1


def _added(node: Add, terms: list[Node]) -> Node:
    """Return the sum cell by cell; the node itself where a term is no array or has another shape."""
    arrays = [rows for term in terms if (rows := _cells(term)) is not None]
    shapes = {tuple(map(len, rows)) for rows in arrays}
    if len(arrays) < len(terms) or len(shapes) != 1:
        return node
    sums = tuple(tuple(map(Add, zip(*rows, strict=True))) for rows in zip(*arrays, strict=True))
    return _in_shape_of(terms[0], sums)


def _multiplied(node: Mul, factors: list[Node]) -> Node:
    """Return the product of matrices, or of values and one array; A(2, 3) names a point and stays as it is."""
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
    return _in_shape_of(product, tuple(tuple(product_of([*scalars, cell]) for cell in row) for row in rows))


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    return Add(tuple(Mul((a, b)) for a, b in zip(row, column, strict=True)))


def _cells(node: Node) -> _Rows | None:
    """Return the rows of a matrix; a tuple is one row."""
    if isinstance(node, Group) and _is_array(node):
        return (node.elements,) if len(node.elements) <= MAX_CELLS else None
    if isinstance(node, Matrix) and not node.bars and sum(map(len, node.rows)) <= MAX_CELLS:
        return node.rows
    return None


def _in_shape_of(shape: Node, rows: _Rows) -> Node:
    """Return the rows as a tuple with the brackets of `shape`, or as a matrix where `shape` is one."""
    return Group(shape.opening, shape.closing, rows[0]) if isinstance(shape, Group) else Matrix(rows)


def _rows_of(node: Group) -> _Rows | None:
    """Return the rows of a matrix that is written as a tuple of tuples."""
    rows = [part.elements for part in node.elements if isinstance(part, Group) and part.opening in _TUPLE_OPENINGS]
    return tuple(rows) if rows and len(rows) == len(node.elements) and len({len(row) for row in rows}) == 1 else None


def _size_of_vector(node: Node) -> int:
    """Return how many coordinates a tuple, a row or a column has; 0 for anything else."""
    if isinstance(node, Group):
        return len(node.elements) if node.opening in "(<" else 0
    if not isinstance(node, Matrix) or node.bars:
        return 0
    if all(len(row) == 1 for row in node.rows):
        return len(node.rows)
    return len(node.rows[0]) if len(node.rows) == 1 else 0


def _coordinates(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return (2, -3) for 2i-3j; None for an expression that is no combination of the unit vectors."""
    names = {name for part in walk(node) if (name := _unit_vector_name(part)) is not None}
    if not names or not names <= set(_UNIT_VECTORS[:size]):
        return None
    if names == {"i"} and size == 2 and not isinstance(node, (Const, Mul)):
        # 2+3i is a complex number.
        return None
    units = [tuple(PLUS_ONE if j == k else ZERO for k in range(size)) for j in range(size)]
    coordinates = tuple(_with_unit_vectors_as(unit, node) for unit in units)
    two = Num(mpq(2))
    is_linear = same_value(_with_unit_vectors_as((ZERO,) * size, node), ZERO).same is True
    is_linear = (
        is_linear and same_value(_with_unit_vectors_as((two,) * size, node), Mul((two, Add(coordinates)))).same is True
    )
    return coordinates if is_linear else None


def _unit_vector_name(node: Node) -> str | None:
    return node.name if isinstance(node, (Const, Sym)) and node.name in _UNIT_VECTORS else None


def _with_unit_vectors_as(values: tuple[Node, ...], node: Node) -> Node:
    """Return 2*5 - 3*7 for 2i-3j and the values 5 and 7."""

    def replaced(part: Node) -> Node:
        name = _unit_vector_name(part)
        return values[_UNIT_VECTORS.index(name)] if name is not None else part

    return replaced(node) if not may_have_parts(node) else mapped(node, replaced)


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

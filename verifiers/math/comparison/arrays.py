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

from truegold.verifiers.math import tree
from truegold.verifiers.math.identity import same_value

MAX_CELLS = 100
"""The most cells of a matrix that is worked out. Stops products of large matrices."""
MAX_DETERMINANT_ROWS = 4
_UNIT_VECTORS = ("i", "j", "k")
_TUPLE_OPENINGS = frozenset("(<[")
_Rows = tuple[tuple[tree.Node, ...], ...]


def worked_out(node: tree.Node) -> tree.Node:
    """Return the vector or matrix that a sum, a product or a transpose is; any other node as it is."""
    if isinstance(node, tree.Add):
        return _added(node, [worked_out(term) for term in node.terms])
    if isinstance(node, tree.Mul):
        return _multiplied(node, [worked_out(factor) for factor in node.factors])
    if isinstance(node, tree.Pow) and isinstance(node.exponent, tree.Sym) and node.exponent.name in ("T", "t"):
        rows = _cells(node.base)
        if rows is not None and len({len(row) for row in rows}) == 1:
            return tree.Matrix(tuple(zip(*rows, strict=True)))
    return node


def as_array_beside(node: tree.Node, other: tree.Node) -> tree.Node:
    """Return a node as the vector, matrix or value that it is beside the other side."""
    if isinstance(other, tree.Matrix) and isinstance(node, tree.Group) and (rows := _rows_of(node)) is not None:
        return tree.Matrix(rows)
    if isinstance(node, tree.Matrix) and node.bars and isinstance(other, tree.VALUES):
        return _determinant(node) or node
    if isinstance(node, tree.VALUES) and isinstance(other, (tree.Matrix, tree.Group)):
        size = _size_of_vector(other)
        coordinates = _coordinates(node, size) if size in (2, 3) else None
        return tree.Group("(", ")", coordinates) if coordinates is not None else node
    return node


def _is_array(node: tree.Node) -> bool:
    """Tell whether a node is a matrix or a tuple; a determinant is a value."""
    if isinstance(node, tree.Matrix):
        return not node.bars
    return isinstance(node, tree.Group) and node.opening in _TUPLE_OPENINGS and len(node.elements) > 1


def _added(node: tree.Add, terms: list[tree.Node]) -> tree.Node:
    """Return the sum cell by cell; the node itself where a term is no array or has another shape."""
    arrays = [rows for term in terms if (rows := _cells(term)) is not None]
    shapes = {tuple(map(len, rows)) for rows in arrays}
    if len(arrays) < len(terms) or len(shapes) != 1:
        return node
    sums = tuple(tuple(map(tree.Add, zip(*rows, strict=True))) for rows in zip(*arrays, strict=True))
    return _in_shape_of(terms[0], sums)


def _multiplied(node: tree.Mul, factors: list[tree.Node]) -> tree.Node:
    """Return the product of matrices, or of values and one array; A(2, 3) names a point and stays as it is."""
    arrays = [factor for factor in factors if _is_array(factor)]
    scalars = [factor for factor in factors if not _is_array(factor)]
    is_point = len(scalars) == 1 and isinstance(scalars[0], tree.Sym) and scalars[0].name[:1].isupper()
    if not arrays or is_point or not all(isinstance(scalar, tree.VALUES) for scalar in scalars):
        return node
    product = arrays[0]
    for array in arrays[1:]:
        rows, columns = _cells(product), _cells(array)
        if not (isinstance(product, tree.Matrix) and isinstance(array, tree.Matrix)) or rows is None or columns is None:
            return node
        if any(len(row) != len(columns) for row in rows) or len(rows) * len(columns[0]) > MAX_CELLS:
            return node
        product = tree.Matrix(tuple(tuple(_dot(row, column) for column in zip(*columns, strict=True)) for row in rows))
    rows = _cells(product)
    if not scalars or rows is None:
        return product
    return _in_shape_of(product, tuple(tuple(tree.product_of([*scalars, cell]) for cell in row) for row in rows))


def _dot(row: tuple[tree.Node, ...], column: tuple[tree.Node, ...]) -> tree.Node:
    return tree.Add(tuple(tree.Mul((a, b)) for a, b in zip(row, column, strict=True)))


def _cells(node: tree.Node) -> _Rows | None:
    """Return the rows of a matrix; a tuple is one row."""
    if isinstance(node, tree.Group) and _is_array(node):
        return (node.elements,) if len(node.elements) <= MAX_CELLS else None
    if isinstance(node, tree.Matrix) and not node.bars and sum(map(len, node.rows)) <= MAX_CELLS:
        return node.rows
    return None


def _in_shape_of(shape: tree.Node, rows: _Rows) -> tree.Node:
    """Return the rows as a tuple with the brackets of `shape`, or as a matrix where `shape` is one."""
    return tree.Group(shape.opening, shape.closing, rows[0]) if isinstance(shape, tree.Group) else tree.Matrix(rows)


def _rows_of(node: tree.Group) -> _Rows | None:
    """Return the rows of a matrix that is written as a tuple of tuples."""
    rows = [part.elements for part in node.elements if isinstance(part, tree.Group) and part.opening in _TUPLE_OPENINGS]
    return tuple(rows) if rows and len(rows) == len(node.elements) and len({len(row) for row in rows}) == 1 else None


def _size_of_vector(node: tree.Node) -> int:
    """Return how many coordinates a tuple, a row or a column has; 0 for anything else."""
    if isinstance(node, tree.Group):
        return len(node.elements) if node.opening in "(<" else 0
    if not isinstance(node, tree.Matrix) or node.bars:
        return 0
    if all(len(row) == 1 for row in node.rows):
        return len(node.rows)
    return len(node.rows[0]) if len(node.rows) == 1 else 0


def _coordinates(node: tree.Node, size: int) -> tuple[tree.Node, ...] | None:
    """Return (2, -3) for 2i-3j; None for an expression that is no combination of the unit vectors."""
    names = {name for part in tree.walk(node) if (name := _unit_vector_name(part)) is not None}
    if not names or not names <= set(_UNIT_VECTORS[:size]):
        return None
    if names == {"i"} and size == 2 and not isinstance(node, (tree.Const, tree.Mul)):
        # 2+3i is a complex number.
        return None
    units = [tuple(tree.PLUS_ONE if j == k else tree.ZERO for k in range(size)) for j in range(size)]
    coordinates = tuple(_with_unit_vectors_as(unit, node) for unit in units)
    two = tree.Num(mpq(2))
    is_linear = same_value(_with_unit_vectors_as((tree.ZERO,) * size, node), tree.ZERO).same is True
    is_linear = (
        is_linear
        and same_value(_with_unit_vectors_as((two,) * size, node), tree.Mul((two, tree.Add(coordinates)))).same is True
    )
    return coordinates if is_linear else None


def _unit_vector_name(node: tree.Node) -> str | None:
    return node.name if isinstance(node, (tree.Const, tree.Sym)) and node.name in _UNIT_VECTORS else None


def _with_unit_vectors_as(values: tuple[tree.Node, ...], node: tree.Node) -> tree.Node:
    """Return 2*5 - 3*7 for 2i-3j and the values 5 and 7."""

    def replaced(part: tree.Node) -> tree.Node:
        name = _unit_vector_name(part)
        return values[_UNIT_VECTORS.index(name)] if name is not None else part

    return replaced(node) if not tree.may_have_parts(node) else tree.mapped(node, replaced)


def _determinant(node: tree.Matrix) -> tree.Node | None:
    size = len(node.rows)
    if size > MAX_DETERMINANT_ROWS or any(len(row) != size for row in node.rows):
        return None
    terms: list[tree.Node] = []
    for order in itertools.permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        factors = [node.rows[i][column] for i, column in enumerate(order)]
        terms.append(tree.Mul((tree.MINUS_ONE if swaps % 2 else tree.PLUS_ONE, *factors)))
    return tree.Add(tuple(terms))

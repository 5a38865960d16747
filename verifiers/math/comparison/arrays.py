r"""Computes vectors and matrices: sums, products, transposes, determinants, traces and ranks.

    2\begin{pmatrix}1\\2\end{pmatrix}    -> the vector (2, 4)
    (1,2) + t(3,4)                       -> the vector (1+3t, 2+4t)
    \|(3,4)\|, (1,2)\cdot(2,1.5)         -> 5
    2\mathbf{i}-3\mathbf{j}              -> (2,-3), if the other side is a vector
    [[1,2],[3,4]]                        -> a matrix, if the other side is a matrix
    3I_2, \operatorname{diag}(3,3)       -> a matrix, if the other side is a matrix
    \begin{vmatrix}1&2\\3&4\end{vmatrix} -> -2, if the other side is a value

Sums and products of arrays whose shapes do not fit are not changed.
"""

from __future__ import annotations

import itertools

from gmpy2 import mpq

from truegold.verifiers.math import tree
from truegold.verifiers.math.exact import rational
from truegold.verifiers.math.identity import same_value

MAX_CELLS = 100
"""Maximum number of cells in a matrix whose sums and products are computed. Stops products of large matrices."""
MAX_DETERMINANT_ROWS = 4
"""Maximum number of rows in a determinant that is computed."""
_LITTLE = mpq(1, 1 << 150)
"""Numbers below this size count as zero, because they are rounding errors."""
_UNIT_VECTORS = ("i", "j", "k")
_TUPLE_OPENINGS = frozenset("(<[")
_Rows = tuple[tuple[tree.Node, ...], ...]
"""The cells of a matrix, row by row."""


def worked_out(node: tree.Node) -> tree.Node:
    """Return the result of a sum, product or function of arrays. Other nodes are returned unchanged."""
    if isinstance(node, tree.Add):
        return _added(node, list(map(worked_out, node.terms)))
    if isinstance(node, tree.Mul):
        return _multiplied(node, list(map(worked_out, node.factors)))
    if isinstance(node, tree.FunctionCall):
        return _applied(node, list(map(worked_out, node.args)))
    if isinstance(node, tree.Pow) and isinstance(node.exponent, tree.Sym) and node.exponent.name in ("T", "t"):
        rows = _cells(node.base)
        if rows is not None and len({len(row) for row in rows}) == 1:
            return tree.Matrix(tuple(zip(*rows, strict=True)))
    return node


def _applied(node: tree.FunctionCall, args: list[tree.Node]) -> tree.Node:
    """Return the determinant, trace, rank or length of an array, or the diagonal matrix of some values."""
    if node.name == "diag" and all(isinstance(arg, tree.VALUES) for arg in args) and len(args) ** 2 <= MAX_CELLS:
        return _diagonal(args)
    if node.name in ("dot", "cross") and None not in (sides := [vector(arg) for arg in args]):
        return _product_of_vectors(node.name, *(side for side in sides if side is not None)) or node
    array = args[0] if len(args) == 1 else None
    if isinstance(array, tree.Group) and (rows_of_group := _rows_of(array)) is not None:
        array = tree.Matrix(rows_of_group)
    if array is not None and node.name == "abs" and (coordinates := vector(array)) is not None:
        squares = (tree.Pow(tree.FunctionCall("abs", (part,)), tree.Num(mpq(2))) for part in coordinates)
        return tree.Pow(tree.Add(tuple(squares)), tree.HALF)
    return (_characteristic(node.name, array) if isinstance(array, tree.Matrix) else None) or node


def _characteristic(name: str, array: tree.Matrix) -> tree.Node | None:
    """Return the rank, the trace or the determinant of a matrix."""
    rows = _cells(array)
    if rows is None or len(set(map(len, rows))) != 1:
        return None
    if name == "rank":
        values = [[value for cell in row if (value := rational(cell)) is not None] for row in rows]
        return tree.Num(mpq(rank(values))) if list(map(len, values)) == list(map(len, rows)) else None
    if len(rows) == len(rows[0]) and name == "tr":
        return tree.Add(tuple(row[i] for i, row in enumerate(rows)))
    return _determinant(array) if name == "det" else None


def _diagonal(values: list[tree.Node]) -> tree.Matrix:
    cells = enumerate(values)
    return tree.Matrix(tuple(tuple(value if i == j else tree.ZERO for j in range(len(values))) for i, value in cells))


def vector(node: tree.Node) -> tuple[tree.Node, ...] | None:
    """Return the coordinates of a tuple, a row or a column, or None for other nodes."""
    rows = _cells(node)
    if rows is None or not (len(rows) == 1 or set(map(len, rows)) == {1}):
        return None
    return rows[0] if len(rows) == 1 else tuple(row[0] for row in rows)


def rank(rows: list[list[mpq]]) -> int:
    """Return the rank of a matrix by elimination. Numbers below `_LITTLE` count as 0."""
    pivots, left = 0, [row for row in rows if row]
    for column in range(len(rows[0])):
        pivot = max(left, key=lambda row: abs(row[column]), default=[])
        if not pivot or abs(pivot[column]) < _LITTLE:
            continue
        pivots += 1
        left.remove(pivot)
        left = [[x - row[column] / pivot[column] * y for x, y in zip(row, pivot, strict=True)] for row in left]
    return pivots


def as_array_beside(node: tree.Node, other: tree.Node) -> tree.Node:
    """Return a node as a vector, a matrix or a value, in the shape of the other side."""
    if isinstance(other, tree.Matrix) and isinstance(node, tree.Group) and (rows := _rows_of(node)) is not None:
        return tree.Matrix(rows)
    if isinstance(node, tree.Matrix) and node.bars and isinstance(other, tree.VALUES):
        return _determinant(node) or node
    if isinstance(node, tree.VALUES) and isinstance(other, tree.Matrix) and not other.bars:
        node = _with_unit_matrices(node, len(other.rows))
    if isinstance(node, tree.VALUES) and isinstance(other, (tree.Matrix, tree.Group)):
        size = _size_of_vector(other)
        coordinates = _coordinates(node, size) if size in (2, 3) else None
        return tree.Group("(", ")", coordinates) if coordinates is not None else node
    return node


def _with_unit_matrices(node: tree.Node, size: int) -> tree.Node:
    """Return 3I_2 as a matrix. I without a number is the unit matrix of `size` rows."""
    names = {name for name in tree.symbols(node) if name in ("I", "E", f"I_{size}", f"E_{size}")}
    if not names or size**2 > MAX_CELLS:
        return node
    return worked_out(tree.substituted(node, dict.fromkeys(names, _diagonal([tree.PLUS_ONE] * size))))


def _is_array(node: tree.Node) -> bool:
    """Tell whether a node is a matrix or a tuple. A determinant is a value."""
    if isinstance(node, tree.Matrix):
        return not node.bars
    return isinstance(node, tree.Group) and node.opening in _TUPLE_OPENINGS and len(node.elements) > 1


def _added(node: tree.Add, terms: list[tree.Node]) -> tree.Node:
    """Return the sum of arrays cell by cell. If not all terms are arrays of one shape, return the node unchanged."""
    arrays = [rows for term in terms if (rows := _cells(term)) is not None]
    if not arrays:
        return tree.Add(tuple(terms))
    shapes = {tuple(map(len, rows)) for rows in arrays}
    if len(arrays) < len(terms) or len(shapes) != 1:
        return node
    sums = tuple(tuple(map(tree.Add, zip(*rows, strict=True))) for rows in zip(*arrays, strict=True))
    return _in_shape_of(terms[0], sums)


def _product_of_vectors(name: str, a: tuple[tree.Node, ...], b: tuple[tree.Node, ...]) -> tree.Node | None:
    """Return the scalar product of two vectors, or the cross product of two vectors with three coordinates."""
    if len(a) != len(b):
        return None
    if name == "dot":
        return _dot(a, b)
    pairs = ((1, 2), (2, 0), (0, 1)) if len(a) == len(_UNIT_VECTORS) else ()
    minors = (_determinant(tree.Matrix(((a[i], a[j]), (b[i], b[j])))) for i, j in pairs)
    return tree.Group("(", ")", tuple(minor for minor in minors if minor is not None)) if pairs else None


def _multiplied(node: tree.Mul, factors: list[tree.Node]) -> tree.Node:
    """Return the product of matrices, or of values and one array. The point A(2, 3) is returned unchanged."""
    arrays = [factor for factor in factors if _is_array(factor)]
    scalars = [factor for factor in factors if not _is_array(factor)]
    if not arrays:
        return tree.product_of(scalars)
    is_point = len(scalars) == 1 and isinstance(scalars[0], tree.Sym) and scalars[0].name[:1].isupper()
    if is_point or not all(isinstance(scalar, tree.VALUES) for scalar in scalars):
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
    """Return the rows of a matrix. A tuple is one row. Return None for other nodes and for large matrices."""
    if isinstance(node, tree.Group) and _is_array(node):
        return (node.elements,) if len(node.elements) <= MAX_CELLS else None
    if isinstance(node, tree.Matrix) and not node.bars and sum(map(len, node.rows)) <= MAX_CELLS:
        return node.rows
    return None


def _in_shape_of(shape: tree.Node, rows: _Rows) -> tree.Node:
    """Return the rows as a tuple with the brackets of `shape`, or as a matrix if `shape` is a matrix."""
    return tree.Group(shape.opening, shape.closing, rows[0]) if isinstance(shape, tree.Group) else tree.Matrix(rows)


def _rows_of(node: tree.Group) -> _Rows | None:
    """Return the rows of a matrix that is written as a tuple of tuples, or None for other tuples."""
    rows = [part.elements for part in node.elements if isinstance(part, tree.Group) and part.opening in _TUPLE_OPENINGS]
    return tuple(rows) if rows and len(rows) == len(node.elements) and len({len(row) for row in rows}) == 1 else None


def _size_of_vector(node: tree.Node) -> int:
    """Return the number of coordinates of a tuple, a row or a column, or 0 for other nodes."""
    if isinstance(node, tree.Group):
        return len(node.elements) if node.opening in "(<" else 0
    if not isinstance(node, tree.Matrix) or node.bars:
        return 0
    if all(len(row) == 1 for row in node.rows):
        return len(node.rows)
    return len(node.rows[0]) if len(node.rows) == 1 else 0


def _coordinates(node: tree.Node, size: int) -> tuple[tree.Node, ...] | None:
    """Return (2, -3) for 2i-3j, or None if an expression is not a linear combination of unit vectors."""
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
    """Return the tree with `values` for the unit vectors: 2*5 - 3*7 for 2i-3j and the values 5 and 7."""

    def replaced(part: tree.Node) -> tree.Node:
        name = _unit_vector_name(part)
        return values[_UNIT_VECTORS.index(name)] if name is not None else part

    return replaced(node) if not tree.may_have_parts(node) else tree.mapped(node, replaced)


def _determinant(node: tree.Matrix) -> tree.Node | None:
    """Return the determinant by the Leibniz formula, or None if the matrix is not square or too large."""
    size = len(node.rows)
    if size > MAX_DETERMINANT_ROWS or any(len(row) != size for row in node.rows):
        return None
    terms: list[tree.Node] = []
    for order in itertools.permutations(range(size)):
        swaps = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        factors = [node.rows[i][column] for i, column in enumerate(order)]
        terms.append(tree.Mul((tree.MINUS_ONE if swaps % 2 else tree.PLUS_ONE, *factors)))
    return tree.Add(tuple(terms))

r"""Compares products whose factors do not commute. Letters are replaced by matrices of pseudorandom numbers.

    A^{-1}B^{-1}    (BA)^{-1}       the same
    P^{-1}AP        PAP^{-1}        different
    AB - BA         -(BA - AB)      the same
    |0\rangle|1\rangle    |1\rangle|0\rangle        different

Operators (`\hat{A}`) and kets never commute. Capital letters are matrices if a side has an inverse or a transpose, or
if the problem is about matrices. Other letters are numbers.
"""

from __future__ import annotations

from itertools import chain
from typing import TypeAlias

from gmpy2 import mpc

from truegold.verifiers.math.exact import rational, unit_interval
from truegold.verifiers.math.identity import value_at_point
from truegold.verifiers.math.policy import charge
from truegold.verifiers.math.tree import (
    HAT,
    MAX_SHOWN_CHARS,
    MINUS_ONE,
    Add,
    Mul,
    Node,
    Num,
    Pow,
    Sym,
    show,
    symbols,
    walk,
)
from truegold.verifiers.math.vocabulary import GREEK

TRANSPOSED = "^T"
"""The end of the name of a transposed matrix."""
_MATRIX_STEPS = 20
"""Cost of evaluating one node, in steps of the verdict's budget (`policy`)."""
_MAX_POWER = 20
_TOLERANCE = 1e-9
"""The largest relative difference of equal cells."""
_DIMENSIONS = frozenset("MLT")
"""Letters of physical dimensions, which commute: MLT^{-2} is a force."""
_Matrix: TypeAlias = tuple[mpc, mpc, mpc, mpc]
"""A matrix of two rows and two columns, row by row."""
_IDENTITY: _Matrix = (mpc(1), mpc(0), mpc(0), mpc(1))


class _NoMatrixError(Exception):
    """The expression does not consist of sums, products, whole powers and transposes, or is undefined."""


def is_spelled_alike(gold: Node, answer: Node) -> bool:
    """Tell whether two trees are written the same."""
    shown = show(gold)
    return len(shown) < MAX_SHOWN_CHARS and shown == show(answer)


def same_in_matrices(gold: Node, answer: Node, *, all_capitals: bool) -> bool | None:
    """Tell whether two expressions with matrices are equal. Return None if they have no matrices.

    Expressions that cannot be evaluated with matrices are compared as text.

    all_capitals: read all capital letters as matrices, because the problem is about matrices.
    """
    names = {name.removesuffix(TRANSPOSED) for name in symbols(gold) | symbols(answer)}
    matrices = {name for name in names if HAT in name or name[0] in "|⟨" or "†" in name or f"{name}†" in names}
    capitals = {name for name in names if name[0].isupper() and (len(_stem(name)) == 1 or _stem(name) in GREEK)}
    if all_capitals or _show_matrices(gold, answer):
        matrices |= capitals
    if len(matrices) < 2 and not any(name.endswith(TRANSPOSED) for name in symbols(gold)):
        return None
    try:
        entries = zip(_value(gold, matrices), _value(answer, matrices), strict=True)
        return all(abs(a - b) <= _TOLERANCE * (1 + abs(a)) for a, b in entries)
    except (_NoMatrixError, ZeroDivisionError):
        return is_spelled_alike(gold, answer)


def _stem(name: str) -> str:
    return name.rstrip("'_0123456789")


def _show_matrices(*sides: Node) -> bool:
    """Tell whether a capital letter has the exponent -1 or T, and no capital letter is a divisor."""
    marked = {name[0] for side in sides for name in symbols(side) if name.endswith(TRANSPOSED)}
    for part in chain.from_iterable(map(walk, sides)):
        if isinstance(part, Pow) and isinstance(part.base, Sym) and part.base.name[0].isupper():
            if part.exponent is MINUS_ONE:
                return False
            if isinstance(part.exponent, Num) and part.exponent.value == -1:
                marked.add(part.base.name)
    return bool(marked) and not _DIMENSIONS & marked


def _value(node: Node, matrices: set[str]) -> _Matrix:
    """Return the matrix of an expression. A number is a multiple of the unit matrix."""
    charge(_MATRIX_STEPS)
    if isinstance(node, Sym) and node.name.endswith(TRANSPOSED):
        a, b, c, d = _value(Sym(node.name.removesuffix(TRANSPOSED)), matrices)
        return a, c, b, d
    if isinstance(node, Sym) and node.name in matrices and node.name != "I":
        a, b, c, d = (mpc(unit_interval(f"{node.name}{i}", 0)) for i in range(4))
        return a, b, c, d
    names = symbols(node)
    if names == {"I"} or matrices.isdisjoint(name.removesuffix(TRANSPOSED) for name in names):
        value = mpc(1) if names == {"I"} else value_at_point(node, names)
        if value is None:
            raise _NoMatrixError
        return value, mpc(0), mpc(0), value
    return _composed_value(node, matrices)


def _composed_value(node: Node, matrices: set[str]) -> _Matrix:
    """Return the matrix of a sum, a product or a power."""
    if isinstance(node, Add):
        a, b, c, d = map(sum, zip(*(_value(term, matrices) for term in node.terms), strict=True))
        return a, b, c, d
    if isinstance(node, Mul):
        product = _IDENTITY
        for factor in node.factors:
            product = _times(product, _value(factor, matrices))
        return product
    if not isinstance(node, Pow):
        raise _NoMatrixError
    base = _value(node.base, matrices)
    if isinstance(node.exponent, Sym) and node.exponent.name == "T":
        return base[0], base[2], base[1], base[3]
    return _power(base, node.exponent)


def _times(a: _Matrix, b: _Matrix) -> _Matrix:
    return (
        a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3],
    )  # fmt: skip


def _power(base: _Matrix, exponent: Node) -> _Matrix:
    power = rational(exponent)
    if power is None or power.denominator != 1 or abs(power) > _MAX_POWER:
        raise _NoMatrixError
    if power < 0:
        scale = 1 / (base[0] * base[3] - base[1] * base[2])
        base = base[3] * scale, -base[1] * scale, -base[2] * scale, base[0] * scale
    product = _IDENTITY
    for _ in range(abs(int(power))):
        product = _times(product, base)
    return product
